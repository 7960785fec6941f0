// The chart: memory by role, requested containers, and a mark for each order, over one time axis (uPlot).
"use strict";

const RANGES = { "10 min": 600, "1 h": 3600, "6 h": 21_600, all: 0 };
const ROLES = ["preemptable", "preempting", "other"];
const MARK_PX = 6;
let plot = null, marks = [], drawnFor = "";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const rangeOf = () => (setting("range") in RANGES ? setting("range") : "1 h");

function drawChart(samples, orders) {
  marks = orders;
  if (!samples.length) return;
  showRanges();
  const data = columnsOf(samples), wanted = `${rangeOf()} ${matchMedia("(prefers-color-scheme: dark)").matches}`;
  if (plot && drawnFor !== wanted) { plot.destroy(); plot = null; }
  drawnFor = wanted;
  if (plot) plot.setData(data);
  else plot = new uPlot(optionsOf(), data, byId("chart"));
}

function columnsOf(samples) {
  // Areas are drawn one before the other, the sum of all first: what is seen of each is its own part.
  const seconds = samples.map((each) => each.at_ms / 1000);
  const sums = ROLES.map((_, i) => samples.map((each) => ROLES.slice(0, i + 1)
    .reduce((sum, role) => sum + each[role].used.memory_mib / 1024, 0)));
  return [seconds, ...sums.reverse(), samples.map((each) => each.total.memory_mib / 1024),
    samples.map((each) => each.preempting.pending)];
}

function optionsOf() {
  const stepped = uPlot.paths.stepped({ align: 1 });
  const axis = { stroke: colour("faint"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") } };
  const own = (i) => (plot_, _value, _series, at) => {
    // The legend shows a role's own memory, not the sum.
    if (at === null) return "-";
    const sum = plot_.data[i][at], below = i < ROLES.length ? plot_.data[i + 1][at] : 0;
    return `${(sum - below).toFixed(1)} GiB`;
  };
  const area = (role, i) => ({ label: CLASSES[role], stroke: colour(role), fill: colour(role), width: 0, paths: stepped,
    points: { show: false }, value: own(i + 1) });
  return {
    width: widthOf(), height: 260,
    scales: { x: { time: true, range: visible }, gib: { range: (_, __, most) => [0, most * 1.02 || 1] },
      requests: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
    axes: [{ ...axis, values: (_, at) => at.map((second) => instant(second * 1000)), space: 80 }, { ...axis, scale: "gib", label: "memory, GiB", size: 60 },
      { ...axis, scale: "requests", side: 1, label: "requested containers", grid: { show: false }, size: 60 }],
    series: [{ value: (_, at) => (at === null ? "-" : new Date(at * 1000).toLocaleString()) },
      ...[...ROLES].reverse().map((role, i) => ({ ...area(role, i), scale: "gib" })),
      { label: "cluster", scale: "gib", stroke: colour("faint"), width: 1, paths: stepped, points: { show: false },
        value: (_, gibs) => (gibs === null ? "-" : `${gibs.toFixed(1)} GiB`) },
      { label: "requested", scale: "requests", stroke: colour("ink"), width: 1.5, dash: [4, 3], paths: stepped,
        points: { show: false }, value: (_, n) => (n === null ? "-" : `${n} containers`) }],
    hooks: { draw: [drawMarks], setCursor: [showMark] },
  };
}

function visible(_, least, most) {
  const seconds = RANGES[rangeOf()];
  return [seconds ? Math.max(most - seconds, Math.min(least, most - 1)) : Math.min(least, most - 1), most];
}

function widthOf() {
  return Math.max(200, byId("chart").clientWidth || 200);
}

function drawMarks(shown) {
  const { ctx, bbox } = shown, size = MARK_PX * devicePixelRatio;
  ctx.save();
  ctx.fillStyle = colour("bad");
  for (const each of marks) {
    const x = shown.valToPos(each.at_ms / 1000, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x - size / 2, bbox.top);
    ctx.lineTo(x + size / 2, bbox.top);
    ctx.lineTo(x, bbox.top + size * 1.5);
    ctx.fill();
  }
  ctx.restore();
}

function showMark(shown) {
  // The orders below the pointer; else how many marks there are.
  const { left } = shown.cursor;
  const near = left < 0 ? [] : marks.filter((each) => Math.abs(shown.valToPos(each.at_ms / 1000, "x") - left) <= MARK_PX);
  const some = near.slice(-3).map((each) => each.text).join("; ");
  const more = near.length > 3 ? ` and ${near.length - 3} more` : "";
  byId("marker").textContent = some ? some + more : `▼ ${marks.length} ${marks.length === 1 ? "order" : "orders"}; point at a mark to read it, or read the tables`;
}

function showRanges() {
  const made = Object.keys(RANGES).map((name) => {
    const link = element("a", name, name === rangeOf() ? "chosen" : "");
    link.href = addressWith({ range: name });
    if (name === rangeOf()) link.ariaCurrent = "true";
    return link;
  });
  renew(byId("ranges"), ...made);
}

window.addEventListener("resize", () => plot?.setSize({ width: widthOf(), height: 260 }));
