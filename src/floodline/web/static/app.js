// The dashboard: one state in, all parts of the page out.

import { keyed, make, mark, say, show, table, words } from "./parts.js";
import { Plot, inWords, reach } from "./plot.js";
import { count, growth, pace, place, reasons, rise, shortened, size, span, time } from "./words.js";

const find = (id) => document.getElementById(id);
const NAME = /^\S*[._]\S/; // such as app.SESSIONS, which is written as it is
const title = (text) => (NAME.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1));

// the token is no longer needed: it is in a cookie now
if (location.search) history.replaceState(null, "", location.pathname);

// ---- the verdict --------------------------------------------------------------------------------

const BECAUSE = {
  growing: {
    native: "Memory grows outside Python objects: in C extensions or their buffers.",
    fragmentation: "The allocator holds memory that Python has freed: fragmentation, not a container.",
    unknown: "Memory grows, and no single container explains it yet.",
  },
  bounded: "Python objects and process memory are both flat.",
};

function because(state) {
  const worst = state.suspects.find((suspect) => suspect.verdict === "growing");
  if (state.verdict === "growing" && worst) {
    const fed = place(worst);
    return [
      make("span", { class: "mono" }, worst.owner),
      ` gains ${pace(worst.per_round, " items").slice(1)} (${growth(worst.bytes_per_round)})`,
      ...(fed ? [", fed\u00a0at\u00a0", make("span", { class: "mono", title: fed }, shortened(fed))] : []),
      ".",
    ];
  }
  const needed = state.needed;
  if (state.verdict === "growing") {
    const unnamed = state.where === "python" && needed && needed.why ? `${title(needed.why)}.` : BECAUSE.growing.unknown;
    return [BECAUSE.growing[state.where] || unnamed];
  }
  if (state.verdict === "bounded") return [BECAUSE.bounded];
  if (!needed) return ["Watching; too early for a verdict."];
  const more = needed.seconds ? ` About ${span(needed.seconds)} more.` : "";
  return [`${title(needed.why || "watching")}.${more}`.replace("..", ".")];
}

const LAST_VERDICTS = 6;

// How the verdict changed, the last changes at most; nothing if it never did.
function verdicts(state) {
  const all = state.history || [];
  if (all.length < 2) return "";
  const [first, ...rest] = all.slice(-LAST_VERDICTS);
  const told = rest.map(({ at, verdict }) => `${verdict} after ${span(Math.max(at - state.started, 0))}`);
  return `The verdict so far: ${first.verdict}, then ${told.join(", ")}.`;
}

function showVerdict(state) {
  const heading = find("verdict");
  const before = heading.dataset.said;
  heading.dataset.verdict = state.verdict;
  say(heading, title(state.verdict));
  const parts = because(state);
  const text = parts.map((part) => part.textContent ?? part).join("");
  if (find("because").textContent !== text) find("because").replaceChildren(...parts);
  if (before !== state.verdict) {
    heading.dataset.said = state.verdict;
    say(find("announce"), `${title(state.verdict)}. ${text}`);
  }
  const changes = verdicts(state);
  show(find("changes"), changes !== "");
  say(find("changes"), changes);
  show(find("ended"), state.closed);
  say(find("ended"), state.closed ? ending(state.exit) : "");
  find("ended").classList.toggle("calm", !state.exit || state.exit.status === 0);
}

function ending(exit) {
  return exit ? `How the program ended: ${how(exit)}.` : "The program has ended.";
}

function how(exit) {
  const cause = exit.cause || (exit.status === null ? "unknown" : `status ${exit.status}`);
  return exit.signal && !cause.includes(exit.signal) ? `${cause} (${exit.signal})` : cause;
}

const showFigures = keyed(find("figures"), ([name]) => name,
  ([name]) => make("div", {}, make("dt", {}, name), make("dd", {}, make("span"), make("small"))),
  (element, [, value, below, alarm]) => {
    const [main, small] = element.lastChild.children;
    say(main, value);
    main.className = alarm ? "alarm" : "";
    say(small, below);
  });

function figures(state) {
  const { now, peak, crosses_in: crossing, limit } = state.memory;
  const [mark, named] = state.line ? [state.line, "line"] : [limit, "limit"];
  const over = mark && now >= mark;
  const soon = !over && !state.closed && crossing;
  return [
    [state.closed ? "Memory at the end" : "Memory now", size(now),
      mark ? `of ${size(mark)}, the ${named}` : "no limit", over],
    ["Growth", rise(state), `peak ${size(peak)}`],
    [`${title(named)} reached`, over ? "now" : soon ? `in ${span(soon)}` : "not in sight",
      over ? `memory is above the ${named}` : state.line ? "at the current rate" : "set a line with --line", over],
    ["Watched", span(state.now - state.started), `since ${time(state.started)}`],
  ];
}

// ---- memory -------------------------------------------------------------------------------------

const plot = new Plot(find("plot"), find("reading"));
const showKeys = keyed(find("keys"), ([kind]) => kind,
  ([kind]) => make("li", { class: kind }), (element, [, text]) => say(element, text));
const showPoints = keyed(find("points"), ([at]) => String(at),
  () => make("tr", {}, make("td"), make("td", { class: "number" })),
  (row, [at, bytes]) => {
    say(row.children[0], time(at));
    say(row.children[1], size(bytes));
  });

function showMemory(state) {
  const { points, rate } = state.memory;
  const { line, limit } = reach(state);
  const keys = [["memory", "resident, all processes"]];
  if (rate > 0 && !state.closed) keys.push(["forecast", "forecast"]);
  if (state.line) keys.push(["line", `the line, ${size(state.line)}${line ? "" : ", is far above"}`]);
  if (limit) keys.push(["limit", `the system's limit, ${size(limit)}`]);
  showKeys(keys);
  say(find("plot-words"), inWords(state));
  if (points.length) plot.draw(state);
  const every = Math.max(1, Math.ceil(points.length / 24));
  showPoints(points.filter((_, n) => n % every === 0).reverse());
}

// ---- tables -------------------------------------------------------------------------------------

const showSuspects = table(find("suspects"), (s) => `${s.command} ${s.owner} ${s.path}`, [
  words("Container", (s) => s.owner, {
    first: true, className: "owner",
    small: (s) => [s.type, s.holds && `holds ${s.holds}`].filter(Boolean).join(", "),
  }),
  mark("Verdict", (s) => s.verdict),
  words("Items", (s) => count(s.len), { number: true }),
  words("Rate", (s) => pace(s.per_round), { number: true, small: (s) => growth(s.bytes_per_round) }),
  words("Fed at", (s) => shortened(place(s)) || "not known yet", {
    className: "mono", hover: place, small: (s) => (s.path && s.path !== s.owner ? `reached by ${s.path}` : ""),
  }),
]);

const showHolders = table(find("holders"), (h) => `${h.pid} ${h.path}`, [
  words("Place", (h) => h.owner, {
    first: true, className: "owner",
    small: (h) => [h.type, h.within && `part of ${h.within}`, h.path !== h.owner && `reached by ${h.path}`,
      `process ${h.pid}`].filter(Boolean).join(", "),
  }),
  words("About", (h) => size(h.bytes), { number: true, small: (h) => `${size(h.own)} of its own` }),
  words("Of resident", (h) => `${Math.round(h.share * 100)} %`, { number: true }),
  words("Items", (h) => (h.items ? count(h.items) : "–"), { number: true }),
]);

const PARTS = {
  python: "Python objects", malloc: "malloc in use", malloc_free: "malloc free but held",
  mapped: "mapped by malloc", unexplained: "unexplained (code, stacks, other mappings)",
};

const showSplits = keyed(find("splits"), ([pid]) => String(pid), () => make("li"),
  (element, [pid, split]) => {
    const parts = Object.entries(PARTS).filter(([name]) => split[name]);
    say(element, `Process ${pid}: ${parts.map(([name, text]) => `${text} ${size(split[name])}`).join(", ")}`);
  });

const departed = {
  label: "Left, by reason",
  fill(cell, item) {
    const counts = reasons(item.left || item.evicted);
    const text = counts.map(([name, n]) => `${name} ${n}`).join();
    if (cell.dataset.text === text) return;
    cell.dataset.text = text;
    cell.className = "reasons";
    const spans = counts.map(([name, n]) => make("span", {}, `${name.replace("_", " ")} `, make("b", {}, count(n))));
    cell.replaceChildren(...(spans.length ? spans : ["none"]));
  },
};

function troubled(label, field) {
  return {
    label, number: true,
    fill(cell, item) {
      cell.className = item[field] ? "alarm" : "";
      say(cell, count(item[field]));
    },
  };
}

function capacity(sessions) {
  const most = sessions.max_items ? [`of ${count(sessions.max_items)}`] : [];
  if (sessions.filling) most.push(`full in about ${span(sessions.filling.full_in)}`);
  return most.join(", ");
}

const showSessions = table(find("sessions"), (s) => `${s.name} ${s.pid}`, [
  words("Name", (s) => s.name, { first: true, className: "owner", small: (s) => `process ${s.pid}` }),
  words("Live", (s) => count(s.live), { number: true, small: capacity }),
  words("Parked", (s) => count(s.parked), { number: true }),
  words("Opened", (s) => count(s.opened), { number: true }),
  departed,
  troubled("Stuck", "stuck"),
  troubled("Retained", "retained"),
]);

const SVG = "http://www.w3.org/2000/svg";

function spark() {
  const element = document.createElementNS(SVG, "svg");
  element.setAttribute("class", "spark");
  element.setAttribute("viewBox", "0 0 100 24");
  element.setAttribute("preserveAspectRatio", "none");
  element.setAttribute("aria-hidden", "true");
  element.append(document.createElementNS(SVG, "polyline"));
  return element;
}

const trace = {
  label: "Over time",
  fill(cell, process) {
    if (!cell.firstChild) cell.append(spark());
    const points = process.points || [];
    if (points.length < 2) return;
    const [first, last] = [points[0][0], points[points.length - 1][0]];
    const most = Math.max(...points.map(([, bytes]) => bytes), 1);
    const across = (at) => ((at - first) / (last - first || 1) * 100).toFixed(1);
    const down = (bytes) => (23 - bytes / most * 21).toFixed(1);
    cell.firstChild.firstChild.setAttribute("points", points.map(([at, bytes]) => `${across(at)},${down(bytes)}`).join(" "));
  },
};

const NO_PROBE = "no probe";

function about(process) {
  const parts = [`pid ${process.pid}`];
  if (process.python) parts.push(`Python ${process.python}`);
  if (process.recycled) parts.push(`replaces ${process.recycled} before it`);
  if (process.exit) parts.push(how(process.exit));
  parts.push(...process.blind_spots.filter((text) => text.startsWith(NO_PROBE)));
  return parts.join(", ");
}

const showProcesses = table(find("processes"), (p) => `${p.pid} ${p.started}`, [
  words("Process", (p) => p.command, { first: true, className: "mono", small: about }),
  mark("State", (p) => p.state),
  mark("Verdict", (p) => p.verdict || "undecided"),
  words("Memory", (p) => size(p.rss || p.peak), { number: true, small: (p) => (p.rss ? "" : "peak") }),
  trace,
  words("Threads", (p) => count(p.threads), { number: true }),
  words("Tasks", (p) => count(p.tasks), { number: true }),
  words("Files", (p) => count(p.fds), { number: true }),
  words("Our cost", (p) => `${(p.cost_seconds || 0).toFixed(1)} s`, { number: true }),
]);

// ---- levels and events --------------------------------------------------------------------------

function fullness(container) {
  const parts = [[container.items, container.max_items], [container.bytes, container.max_bytes]];
  return Math.max(0, ...parts.filter(([, most]) => most).map(([now, most]) => now / most));
}

function amounts(container) {
  const parts = [`${count(container.items)}${container.max_items ? ` of ${count(container.max_items)}` : ""} items`];
  if (container.max_bytes) parts.push(`${size(container.bytes)} of ${size(container.max_bytes)}`);
  if (container.filling) parts.push(`full in about ${span(container.filling.full_in)}`);
  const gone = reasons(container.evicted || container.left).map(([name, n]) => `${count(n)} by ${name.replace("_", " ")}`);
  if (gone.length) parts.push(`left: ${gone.join(", ")}`);
  return parts.join(" · ");
}

const showContainers = keyed(find("containers"), (c) => `${c.kind} ${c.name} ${c.pid}`,
  () => make("li", {},
    make("p", { class: "name" }, make("span"), make("span")),
    make("div", { class: "level", role: "meter", "aria-valuemin": "0", "aria-valuemax": "100" }, make("span")),
    make("p", { class: "amount" })),
  (element, container) => {
    const [name, level, amount] = element.children;
    const percent = Math.round(Math.min(1, fullness(container)) * 100);
    say(name.firstChild, container.name);
    say(name.lastChild, `${container.kind} · ${percent} %`);
    level.setAttribute("aria-label", `${container.name} is filled`);
    level.setAttribute("aria-valuenow", percent);
    level.firstChild.style.width = `${percent}%`;
    say(amount, amounts(container));
  });

const showEvents = keyed(find("events"), (e) => `${e.at} ${e.pid} ${e.kind} ${e.text}`,
  (event) => make("li", {},
    make("time", { datetime: new Date(event.at * 1000).toISOString() }, time(event.at)),
    make("span", { class: "kind" }, event.kind.replaceAll("_", " ")),
    make("span", { class: "text" })),
  (element, event) => say(element.lastChild, event.count > 1 ? `${event.text} (${count(event.count)} times)` : event.text));

const showGaps = keyed(find("gaps"), (text) => text, (text) => make("li", {}, text), () => {});

const showBlind = keyed(find("blind"), (text) => text, (text) => make("li", {}, text), () => {});

function blindSpots(state) {
  const texts = state.processes.flatMap((process) => process.blind_spots);
  return [...new Set(texts)].filter((text) => !text.startsWith(NO_PROBE));
}

const showNext = keyed(find("next"), (step) => `${step.says} ${step.code}`,
  (step) => make("li", {}, make("div", {}, step.says,
    ...(step.code ? [make("pre", {}, make("code", {}, step.code))] : []))), () => {});

// ---- all of it ----------------------------------------------------------------------------------

function draw(state) {
  document.title = `${title(state.verdict)} · ${size(state.memory.now)} · floodline`;
  say(find("command"), state.command);
  showVerdict(state);
  showFigures(figures(state));
  showMemory(state);
  for (const [name, update] of [["suspects", showSuspects], ["holders", showHolders], ["sessions", showSessions],
    ["containers", showContainers], ["processes", showProcesses]]) {
    const items = name === "suspects" ? state.suspects.filter((s) => s.verdict !== "bounded") : state[name] || [];
    update(items);
    show(find(`${name}-none`), items.length === 0);
  }
  showSplits(state.processes.filter((p) => p.split && p.state === "running").map((p) => [p.pid, p.split]));
  showNext(state.next || []);
  show(find("next-part"), Boolean(state.next && state.next.length));
  const events = state.events.slice(-200).reverse();
  showEvents(events);
  show(find("events"), events.length > 0);
  show(find("events-none"), events.length === 0);
  showGaps(state.not_covered || []);
  const blind = blindSpots(state);
  show(find("unseen"), blind.length > 0);
  showBlind(blind);
  const { rss, file, file_bytes: bytes, pid } = state.recorder;
  say(find("recorder"), `${state.tool}. The recorder is process ${pid} and uses ${size(rss)}; ${file ? `the recording is ${file}, ${size(bytes)}` : "nothing is recorded to disk"}.`);
}

let ended = false;
let wait = 1;

function link(kind, text) {
  find("link").dataset.link = kind;
  say(find("link"), text);
}

function connect() {
  const events = new EventSource("api/live");
  events.addEventListener("state", (event) => {
    const state = JSON.parse(event.data);
    ended = state.closed;
    wait = 1;
    link(ended ? "waiting" : "live", ended ? "ended" : "live");
    draw(state);
  });
  events.onerror = () => {
    events.close();
    link(ended ? "waiting" : "lost", ended ? "ended" : "connection lost, trying again");
    if (ended) return;
    setTimeout(connect, wait * 1000);
    wait = Math.min(wait * 2, 15);
  };
}

connect();
