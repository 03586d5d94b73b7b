// Numbers as people read them.

const SIZES = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
const SPANS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
});

function digits(number) {
  const size = Math.abs(number);
  const text = number.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

export function count(number) {
  return number === null || number === undefined ? "–" : Math.round(number).toLocaleString("en");
}

export function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  const found = SIZES.find(([unit]) => Math.abs(bytes) >= unit);
  return found ? `${digits(bytes / found[0])} ${found[1]}` : `${Math.round(bytes)} B`;
}

export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 59.5) return `${Number(seconds.toPrecision(3))} s`;
  let rest = seconds < 3600 ? Math.round(seconds) : Math.round(seconds / 60) * 60;
  const parts = [];
  for (const [length, unit] of SPANS) {
    if (rest >= length) parts.push(`${Math.floor(rest / length)} ${unit}`);
    rest %= length;
  }
  return parts.slice(0, 2).join(" ");
}

export function growth(bytesPerSecond) {
  const minute = bytesPerSecond * 60;
  if (Math.abs(minute) < 1) return "none";
  return `${minute < 0 ? "−" : "+"}${size(Math.abs(minute))}/min`;
}

// How fast memory grows; in its first seconds a run has no rate.
export function rise(state) {
  const { rate } = state.memory;
  return !rate && state.now - state.started < 22 ? "too early to tell" : growth(rate);
}

export function pace(perSecond, unit = "") {
  const [amount, span] = perSecond >= 1 ? [perSecond, "s"]
    : perSecond * 60 >= 1 ? [perSecond * 60, "min"] : [perSecond * 3600, "h"];
  return `${amount < 0 ? "−" : "+"}${digits(Math.abs(amount))}${unit}/${span}`;
}

export function time(wall) {
  return clock.format(new Date(wall * 1000));
}

export function place(suspect) {
  if (!suspect.file) return "";
  const fed = `${suspect.file}:${suspect.line}`;
  return suspect.caller ? `${fed}, called from ${suspect.caller.file}:${suspect.caller.line}` : fed;
}

// The end of a long path, which tells files apart.
export function shortened(path) {
  const parts = path.split("/");
  return parts.length > 4 ? `…/${parts.slice(-2).join("/")}` : path;
}

export function reasons(counts) {
  return Object.entries(counts || {}).filter(([, n]) => n).sort((a, b) => b[1] - a[1]);
}
