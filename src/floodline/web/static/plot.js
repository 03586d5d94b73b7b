// Memory over time with the line and the forecast, drawn by uPlot; and the same in words.

import { rise, size, span, time } from "./words.js";

const MIB = 2 ** 20;
const STEPS = Array.from({ length: 24 }, (_, n) => MIB / 4 * 2 ** n);
const FAR = 4; // a line beyond this multiple of the memory would flatten the curve
const NEAR = 1.5; // the system's limit is drawn only if it is near

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function ahead(state) {
  const { points, rate, crosses_in: crossing } = state.memory;
  const watched = points.length > 1 ? points[points.length - 1][0] - points[0][0] : 0;
  if (state.closed || !watched || rate <= 0) return 0;
  return crossing ? Math.min(crossing, watched / 2) : watched / 5;
}

export function series(state) {
  const { points, now, rate } = state.memory;
  const times = points.map(([at]) => at);
  const sizes = points.map(([, bytes]) => bytes);
  const forecast = sizes.map(() => null);
  const seconds = ahead(state);
  if (seconds) {
    const last = times[times.length - 1];
    forecast[forecast.length - 1] = now;
    times.push(last + seconds);
    sizes.push(null);
    forecast.push(now + rate * seconds);
  }
  return [times, sizes, forecast];
}

// The height of the plot, and which lines are within it.
export function reach(state) {
  const { peak, now, rate, limit } = state.memory;
  const least = Math.max(peak, now + rate * ahead(state), MIB);
  const line = state.line && state.line <= FAR * least ? state.line : null;
  const most = Math.max(least, line || 0);
  const near = limit && limit <= NEAR * most ? limit : null;
  return { top: Math.max(most, near || 0) * 1.08, line, limit: near };
}

function across(u, bytes, name, dash) {
  if (!bytes) return;
  const y = u.valToPos(bytes, "y", true);
  const { left, width } = u.bbox;
  u.ctx.save();
  u.ctx.strokeStyle = colour(name);
  u.ctx.lineWidth = 1.5 * devicePixelRatio;
  u.ctx.setLineDash(dash.map((n) => n * devicePixelRatio));
  u.ctx.beginPath();
  u.ctx.moveTo(left, y);
  u.ctx.lineTo(left + width, y);
  u.ctx.stroke();
  u.ctx.restore();
}

// The last label of the time axis is centred on its tick, which may be at the very edge.
function halfALabel(font) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = font;
  return Math.ceil(pen.measureText(time(0)).width / 2) + 4;
}

export class Plot {
  constructor(element, reading) {
    this.element = element;
    this.reading = reading;
    this.state = null;
    this.chart = null;
    new ResizeObserver(() => this.fit()).observe(element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  draw(state) {
    this.state = state;
    if (!this.chart) this.chart = new uPlot(this.options(), series(state), this.element);
    else this.chart.setData(series(state));
  }

  redraw() {
    if (!this.chart) return;
    this.chart.destroy();
    this.chart = null;
    this.draw(this.state);
  }

  fit() {
    if (this.chart) this.chart.setSize(this.extent());
  }

  extent() {
    const width = this.element.clientWidth;
    return { width, height: width < 560 ? 200 : 280 };
  }

  options() {
    const axis = {
      stroke: colour("--faint"), font: "12px system-ui, sans-serif", ticks: { show: false },
      grid: { stroke: colour("--rule"), width: 1 },
    };
    return {
      ...this.extent(),
      padding: [8, halfALabel(axis.font), 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 } },
      scales: { x: { time: true }, y: { range: () => [0, reach(this.state).top] } },
      axes: [
        { ...axis, grid: { show: false }, space: 90, size: 30, values: (_, ticks) => ticks.map((t) => time(t)) },
        { ...axis, size: 72, space: 44, incrs: STEPS, values: (_, ticks) => ticks.map((t) => (t ? size(t) : "0")) },
      ],
      series: [
        {},
        { stroke: colour("--water"), fill: colour("--wash"), width: 2, points: { show: false } },
        { stroke: colour("--water"), width: 2, dash: [5, 5], points: { show: false } },
      ],
      hooks: {
        draw: [(u) => {
          const { line, limit } = reach(this.state);
          across(u, limit, "--faint", []);
          across(u, line, "--line", [7, 5]);
        }],
        setCursor: [(u) => this.read(u)],
      },
    };
  }

  read(u) {
    const [times, sizes, forecast] = u.data;
    const at = u.cursor.idx;
    const bytes = at === null || at === undefined ? null : sizes[at] ?? forecast[at];
    this.reading.textContent = bytes ? `${time(times[at])}  ${size(bytes)}` : "";
  }
}

export function inWords(state) {
  const { points, now, peak, crosses_in: crossing } = state.memory;
  if (!points.length) return "No memory data yet.";
  const watched = points[points.length - 1][0] - points[0][0];
  const parts = [
    `Resident memory over ${span(watched)}: from ${size(points[0][1])} to ${size(now)}, peak ${size(peak)}; growth ${rise(state)}.`,
  ];
  if (state.line) parts.push(`The line is at ${size(state.line)}.`);
  if (crossing && state.line) parts.push(`It will be crossed in ${span(crossing)} at the current rate.`);
  return parts.join(" ");
}
