// The page: polls the API and shows it. Law: text from the cluster is only ever set as text, never as markup;
// nothing is asked of any other host; a daemon that does not answer is said to be gone, and what is shown is old.
"use strict";

const POLL_MS = 1000, PATIENCE_MS = 5000, CHART = { width: 800, height: 220 };
const byId = (id) => document.getElementById(id);
const open = new Set(["asked", "suspending", "checkpointed", "freed"]);
const explained = new Map(); // decision id -> its story, while it is unfolded
let lastAnswerAt = null;
let token = ""; // where reading needs one: kept for as long as the page is open, and nowhere else

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = String(text);
  if (className) made.className = className;
  return made;
}

async function get(path) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { cache: "no-store", headers, signal: AbortSignal.timeout(PATIENCE_MS) });
  byId("ask").hidden = answer.status !== 401;
  const body = await answer.json();
  if (!answer.ok) throw new Error(body && body.error ? body.error.message : `status ${answer.status}`);
  return body;
}

// --- words -----------------------------------------------------------------------------------------

const counts = (states) => Object.entries(states).map(([name, n]) => `${n} ${name.replace("_", " ")}`).join(", ");
const ago = (then, now) => (then === null ? "-" : span(Math.max(0, now - then)));

function span(ms) {
  if (ms < 0) return "?";
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 120_000) return `${Math.round(ms / 1000)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  return `${(ms / 3_600_000).toFixed(1)} h`;
}

const gib = (size) => `${(size.memory_mib / 1024).toFixed(size.memory_mib < 10_240 ? 1 : 0)} GiB`;

// --- the loop ----------------------------------------------------------------------------------------

function showLoop(seen) {
  const loop = seen.loop;
  byId("state").textContent = loop.state;
  byId("state").className = `badge ${loop.state}`;
  byId("mode").textContent = loop.mode === "observe" ? "observes only" : "enforces";
  const parts = [loop.why];
  if (!loop.reachable) parts.push("the ResourceManager does not answer");
  if (loop.tick_errors) parts.push(`${loop.tick_errors} ticks failed, last: ${loop.last_error}`);
  byId("why").textContent = parts.filter(Boolean).join("; ");
  const cluster = seen.cluster;
  byId("cluster").textContent = cluster ? `${cluster.node_count} nodes, epoch ${cluster.epoch}` : "no cluster yet";
}

function showGlance(seen) {
  const place = byId("glance");
  if (!seen.total) { place.textContent = "nothing seen yet"; return; }
  const part = (name) => `${name} ${gib(seen[name].used)} in ${seen[name].containers} containers` +
    (seen[name].pending ? ` (${seen[name].pending} waited for)` : "");
  place.textContent = `${part("hurried")} · ${part("victim")} · ${part("other")} · of ${gib(seen.total)}; ` +
    `seen ${ago(seen.snapshot_at_ms, seen.now_ms)} before the last tick${seen.quiet ? "; nobody hurried waits" : ""}`;
}

// --- the chart: areas stacked by class, and how many the hurried ones wait for ------------------------

function drawChart(samples) {
  const chart = byId("chart");
  if (!samples.length) { chart.replaceChildren(); return; }
  const first = samples[0].at_ms, last = samples[samples.length - 1].at_ms;
  const wide = Math.max(1, last - first);
  const x = (at) => (CHART.width * (at - first)) / wide;
  const most = Math.max(1, ...samples.map((each) => each.total.memory_mib));
  const y = (mib) => CHART.height * (1 - mib / most);
  let base = samples.map(() => 0);
  const areas = ["victim", "hurried", "other"].map((name) => {
    const top = samples.map((each, i) => base[i] + each[name].used.memory_mib);
    const path = steps(samples, x, top.map(y)) + " " + steps(samples, x, base.map(y), true);
    base = top;
    return drawn("path", { d: `M${path.slice(1)} Z`, class: name });
  });
  const waits = Math.max(1, ...samples.map((each) => each.hurried.pending));
  const line = steps(samples, x, samples.map((each) => CHART.height * (1 - (0.9 * each.hurried.pending) / waits)));
  areas.push(drawn("path", { d: `M${line.slice(1)}`, class: "waiting" }));
  chart.replaceChildren(...areas);
  byId("span").textContent = `the last ${span(last - first)}; dashed: up to ${waits} containers`;
}

function steps(samples, x, heights, backwards) {
  // A value holds until the next sample: a line of steps, forth for the top, back for the bottom.
  const points = [];
  samples.forEach((each, i) => {
    if (i) points.push([x(each.at_ms), heights[i - 1]]);
    points.push([x(each.at_ms), heights[i]]);
  });
  if (backwards) points.reverse();
  return points.map(([px, py]) => `L${px.toFixed(1)} ${py.toFixed(1)}`).join(" ");
}

function drawn(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// --- reclaim lists -------------------------------------------------------------------------------------

const COLUMNS = ["order", "victim", "attempt", "state", "asked", "kept keys", "left to do", "room to"];
const NUMBERS = new Set(["asked", "kept keys", "left to do"]);

function showReclaims(page) {
  const tables = page.items.map((list) => {
    const table = element("table");
    table.append(element("caption", captionOf(list)));
    if (list.entries.length) {
      const head = element("tr");
      for (const name of COLUMNS) head.append(element("th", name, NUMBERS.has(name) ? "number" : ""));
      table.append(head);
    }
    for (const entry of list.entries.slice(-100)) table.append(rowOf(entry, page.now_ms));
    const box = element("div", null, "scroll");
    box.append(table);
    return box;
  });
  if (!tables.length) tables.push(element("p", "Nobody hurried waits, and nothing is being taken back.", "quiet"));
  byId("reclaims").replaceChildren(...tables);
}

function captionOf(list) {
  const waits = list.pending === null ? "is not there any more" : `waits for ${list.pending}`;
  const told = counts(list.states) || "nothing asked for";
  return `${list.application} ${waits}, ${list.on_their_way} on their way: ${told}`;
}

function rowOf(entry, now) {
  const row = element("tr", null, open.has(entry.state) ? "" : "settled");
  const left = entry.remaining_ms === null ? "-" : span(entry.remaining_ms);
  const cells = [entry.order, entry.victim, entry.attempt, entry.state.replace("_", " "),
    `${ago(entry.asked_at_ms, now)} ago`, entry.keys_done ?? "-", left, entry.room_to_application || "-"];
  cells.forEach((text, i) => row.append(element("td", text, NUMBERS.has(COLUMNS[i]) ? "number" : "")));
  return row;
}

// --- decisions -------------------------------------------------------------------------------------------

// A row stays the same element from poll to poll, so that a click, the focus or a selection is not lost.
const rows = new Map(); // decision id -> {row, button, story}

function showDecisions(page) {
  const place = byId("decisions"), before = [...rows.keys()].join();
  const shown = new Set(page.items.map((each) => each.id));
  for (const id of [...rows.keys()]) if (!shown.has(id)) { rows.delete(id); explained.delete(id); }
  for (const each of page.items) {
    if (!rows.has(each.id)) rows.set(each.id, newRow(each.id));
    const { button, story } = rows.get(each.id);
    setText(button, `${each.id}: ${ago(each.at_ms, page.now_ms)} ago for ${each.application} (${each.why}): ` +
      `${each.chosen} of ${each.need} from ${each.victims.join(", ") || "nobody"} — ${counts(each.states)}`);
    button.setAttribute("aria-expanded", String(explained.has(each.id)));
    story.hidden = !explained.has(each.id);
    setText(story, explained.get(each.id) || "");
  }
  if (!rows.size) place.replaceChildren(element("p", "None yet.", "quiet"));
  else if ([...rows.keys()].join() !== before) {
    place.replaceChildren(...page.items.map((each) => rows.get(each.id).row));
  }
}

function newRow(id) {
  const row = element("div", null, "decision"), button = element("button"), story = element("pre");
  button.type = "button";
  button.dataset.decision = id;
  button.addEventListener("click", () => unfold(id));
  row.append(button, story);
  return { row, button, story };
}

function setText(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

async function explain(id) {
  try {
    const detail = await get(`v1/decisions/${id}`);
    return detail.explanation.text.join("\n");
  } catch (error) {
    return `cannot be shown: ${error.message}`;
  }
}

async function unfold(id) {
  if (explained.has(id)) explained.delete(id);
  else explained.set(id, await explain(id));
  await poll();
}

function showRefusals(page) {
  const rows = page.items.map((each) => {
    const jobs = each.refused_jobs.map((job) => `${job.application}: ${job.meaning || job.why}`);
    const said = `${ago(each.at_ms, page.now_ms)} ago ${each.trigger.application} waited for ` +
      `${each.trigger.need}: ${each.why}${jobs.length ? ` (${jobs.join("; ")})` : ""}`;
    return element("p", said);
  });
  if (!rows.length) rows.push(element("p", "Never.", "quiet"));
  byId("refusals").replaceChildren(...rows);
}

// --- polling -----------------------------------------------------------------------------------------------

async function poll() {
  try {
    const [seen, samples, lists, decided, vain] = await Promise.all([
      get("v1/snapshot"), newHistory(), get("v1/reclaims?limit=50"), get("v1/decisions?limit=25"),
      get("v1/refusals?limit=5")]);
    for (const id of [...explained.keys()]) {
      const story = await explain(id);
      if (explained.has(id)) explained.set(id, story);
    }
    showLoop(seen); showGlance(seen); drawChart(samples);
    showReclaims(lists); showDecisions(decided); showRefusals(vain);
    byId("gone").hidden = true;
    lastAnswerAt = Date.now();
  } catch (error) {
    byId("state").textContent = "gone";
    byId("state").className = "badge gone";
    byId("why").textContent = "";
    const since = lastAnswerAt === null ? "" : ` What is shown is ${span(Date.now() - lastAnswerAt)} old.`;
    byId("gone").textContent = `yarnctl does not answer (${error.message}).${since}`;
    byId("gone").hidden = false;
  }
}

let samples = [], polls = 0;

async function newHistory() {
  // Only what is new; all of it now and then, for the daemon thins out what is old (and may have begun anew).
  if (polls++ % 120 === 0 || !samples.length) samples = (await get("v1/occupancy")).items;
  else {
    const since = samples[samples.length - 1].at_ms + 1;
    samples = samples.concat((await get(`v1/occupancy?since_ms=${since}`)).items);
  }
  return samples;
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value.trim();
  poll();
});

async function run() {
  await poll();
  setTimeout(run, POLL_MS);
}

run();
