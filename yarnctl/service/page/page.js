// The page: polls the API and shows it. Text from the cluster is set as text, never as markup. No other host gets
// a request. If the daemon does not answer, the page says so, with the age of the data.
"use strict";

const POLL_MS = 1000, PATIENCE_MS = 5000, CHART = { width: 800, height: 220 };
const byId = (id) => document.getElementById(id);
const open = new Set(["ordered", "suspending", "checkpointed", "freed", "simulated"]);
const explained = new Map(); // decision id -> its story, while it is unfolded
let lastAnswerAt = null;
let token = ""; // where reading needs one: kept in this page only, until it is closed

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = String(text);
  if (className) made.className = className;
  return made;
}

async function get(path) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { cache: "no-store", headers, signal: AbortSignal.timeout(PATIENCE_MS) });
  byId("token-form").hidden = answer.status !== 401;
  const body = await answer.json();
  if (!answer.ok) throw new Error(body && body.error ? body.error.message : `status ${answer.status}`);
  return body;
}

// --- numbers and spans -----------------------------------------------------------------------------------------

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
  byId("state").textContent = loop.loop_state;
  byId("state").className = `badge ${loop.loop_state}`;
  byId("mode").textContent = loop.enforce ? "sends orders" : "observes only";
  const parts = [loop.why];
  for (const each of loop.aside) parts.push(each.reason.text);
  if (!loop.reachable) parts.push("the ResourceManager does not answer");
  if (loop.tick_errors) {
    const when = loop.last_error_at_ms === null ? "" : ` ${ago(loop.last_error_at_ms, seen.now_ms)} ago`;
    parts.push(`${loop.tick_errors} ticks failed, last${when}: ${loop.last_error}`);
  }
  byId("why").textContent = parts.filter(Boolean).join("; ");
  const cluster = seen.cluster;
  byId("cluster").textContent = cluster ? `${cluster.node_count} nodes, epoch ${cluster.epoch}` : "no cluster observed yet";
}

function showGlance(seen) {
  const place = byId("glance");
  if (!seen.total) { place.textContent = "nothing observed yet"; return; }
  const part = (name) => `${name} ${gib(seen[name].used)} in ${seen[name].containers} containers` +
    (seen[name].pending ? ` (${seen[name].pending} requested)` : "");
  place.textContent = `${part("preempting")} · ${part("preemptable")} · ${part("other")} · of ${gib(seen.total)}; ` +
    `observed ${ago(seen.snapshot_at_ms, seen.now_ms)} before the last tick` +
    `${seen.quiet ? "; no preempting application has pending requests" : ""}`;
}

// --- the chart: areas stacked by role, and the pending requests of preempting applications ------------------------

function drawChart(samples) {
  const chart = byId("chart");
  if (!samples.length) { chart.replaceChildren(); return; }
  const first = samples[0].at_ms, last = samples[samples.length - 1].at_ms;
  const wide = Math.max(1, last - first);
  const x = (at) => (CHART.width * (at - first)) / wide;
  const most = Math.max(1, ...samples.map((each) => each.total.memory_mib));
  const y = (mib) => CHART.height * (1 - mib / most);
  let base = samples.map(() => 0);
  const areas = ["preemptable", "preempting", "other"].map((name) => {
    const top = samples.map((each, i) => base[i] + each[name].used.memory_mib);
    const path = steps(samples, x, top.map(y)) + " " + steps(samples, x, base.map(y), true);
    base = top;
    return drawn("path", { d: `M${path.slice(1)} Z`, class: name });
  });
  const waits = Math.max(1, ...samples.map((each) => each.preempting.pending));
  const line = steps(samples, x, samples.map((each) => CHART.height * (1 - (0.9 * each.preempting.pending) / waits)));
  areas.push(drawn("path", { d: `M${line.slice(1)}`, class: "waiting" }));
  chart.replaceChildren(...areas);
  byId("span").textContent = `the last ${span(last - first)}; dashed: up to ${waits} containers`;
}

function steps(samples, x, heights, backwards) {
  // A value is valid until the next sample: a line of steps; backwards for the lower edge of an area.
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

// --- users and jobs -----------------------------------------------------------------------------------

let known = new Map(); // application id -> its item of GET /v1/applications
let ended = new Map(); // application id -> [name, user, queue] of the decisions and orders shown

function jobName(id) {
  // The name and user of a job, of an ended one also its queue; its id is shown beside it.
  const job = known.get(id), [name, user, queue] = ended.get(id) || [];
  if (job) return `${job.name || "unnamed job"} (${job.user})`;
  return user === undefined ? "ended job" : `${name || "unnamed job"} (${user}, ${short(queue)})`;
}

function short(queue) {
  return queue.replace(/^root\./, "");
}

function instant(ms) {
  // Local time; the element's title has the date.
  return new Date(ms).toLocaleTimeString([], { hour12: false });
}

function timeOf(ms) {
  const made = element("time", instant(ms));
  made.dateTime = new Date(ms).toISOString();
  made.title = new Date(ms).toLocaleString();
  return made;
}

function linkTo(id, text) {
  // A long id can wrap at its underscores and still copies as one word.
  const made = element("a", null, id.startsWith("o-") ? "short" : "");
  if (text === undefined) id.split(/(?<=_)/).forEach((part, i) => made.append(...(i ? [element("wbr")] : []), part));
  else made.textContent = text;
  made.href = `#explain=${encodeURIComponent(id)}`;
  made.title = `explain ${id}`;
  return made;
}

function tableOf(columns, rows, caption) {
  // Columns: names, with "#" for numbers. Rows: texts or elements; a row can have a class.
  const table = element("table"), head = element("tr"), box = element("div", null, "scroll");
  if (caption) table.append(caption);
  const numbers = columns.map((name) => name.startsWith("#"));
  columns.forEach((name, i) => head.append(element("th", name.replace("#", ""), numbers[i] ? "number" : "")));
  if (rows.length) table.append(head);
  for (const { cells, className } of rows) {
    const row = element("tr", null, className);
    cells.forEach((cell, i) => {
      const place = element("td", null, numbers[i] ? "number" : "");
      place.append(cell instanceof Node ? cell : String(cell ?? "-"));
      row.append(place);
    });
    table.append(row);
  }
  box.append(table);
  return box;
}

// --- waiting applications ------------------------------------------------------------------------------------

function waitReason(job) {
  // The one reason why a job waits; "" if it does not wait, or no observation shows it yet.
  return job && job.waiting ? job.waiting.text : "";
}

function showWaiting() {
  const waiting = [...known.values()].filter((job) => job.pending > 0 && job.role === "preempting");
  waiting.sort((one, other) => one.queue.localeCompare(other.queue) || one.rank - other.rank);
  const rows = waiting.map((job) => ({ cells: [job.name || "-", job.user, short(job.queue), job.pending, job.expected,
    waitReason(job), linkTo(job.application)] }));
  const columns = ["job", "user", "queue", "#pending", "#expected", "reason", "application"];
  const shown = rows.length ? tableOf(columns, rows) : element("p", "No preempting application has pending requests.", "quiet");
  byId("waiting").replaceChildren(shown);
}

function suspendable(job) {
  if (!job.runner) return `no: ${job.why_not}`;
  if (job.master_only_ms !== null) return `all tasks suspended for ${span(job.master_only_ms)}; its application master stays`;
  const whys = Object.values(job.left_alone);
  const reduces = whys.length === 1 ? "reduce" : "reduces";
  return whys.length ? `yes, except ${whys.length} ${reduces}: ${[...new Set(whys)].join("; ")}` : "yes";
}

function showApplications(page) {
  const rows = page.items.map((job) => ({ cells: [job.name || "-", job.user, short(job.queue), job.role, job.containers,
    job.pending, job.suspending, suspendable(job), linkTo(job.application)] }));
  const columns = ["job", "user", "queue", "role", "#containers", "#pending", "#suspending", "can be suspended", "application"];
  const more = page.total > rows.length ? [element("p", `${page.total - rows.length} more; run yarnctl apps`, "quiet")] : [];
  const shown = rows.length ? tableOf(columns, rows) : element("p", "None.", "quiet");
  byId("applications").replaceChildren(shown, ...more);
}

// --- sold deadlines ------------------------------------------------------------------------------------

const tokens = (mtokens) => (mtokens / 1000).toLocaleString([], { maximumFractionDigits: 3 });

function outcome(each) {
  // A promise is met or late once its job has ended.
  const late = each.changed_at_ms - each.plan.deadline_at_ms;
  if (each.state === "ended") return late > 0 ? `late by ${span(late)}` : `met, ${span(-late)} early`;
  if (each.state === "waiting" && each.plan.price_mtokens !== null) return "promised";
  return each.state === "admitted" ? "promised" : each.state;
}

function showMarket(accounts, admissions) {
  byId("market").hidden = !accounts.items.length;
  const balances = accounts.items.map((each) => ({ cells: [each.name, tokens(each.balance_mtokens),
    tokens(each.given_mtokens), tokens(each.spent_mtokens),
    each.daily_mtokens ? `${tokens(each.daily_mtokens)} a day up to ${tokens(each.cap_mtokens)}` : "-"] }));
  const paid = admissions.items.filter((each) => each.plan.price_mtokens !== null);
  const promises = paid.map((each) => ({ cells: [linkTo(each.id), each.request.name, each.request.user, each.request.account,
    tokens(each.plan.price_mtokens), tokens(each.refunded_mtokens), timeOf(each.plan.deadline_at_ms), outcome(each),
    each.plan.because.map(([term, amount]) => `${term} ${tokens(amount)}`).join(", ")],
    className: each.state === "admitted" || each.state === "running" ? "" : "settled" }));
  byId("accounts").replaceChildren(tableOf(["account", "#tokens", "#credited", "#spent", "refill"], balances));
  const columns = ["admission", "job", "user", "account", "#tokens", "#refunded", "deadline", "promise", "price terms"];
  byId("promises").replaceChildren(promises.length ? tableOf(columns, promises) : element("p", "No deadline has been sold yet.", "quiet"));
}

// --- placed applications -----------------------------------------------------------------------------------

function showPlacement(page) {
  const pools = page.gate ? page.gate.pools : [];
  byId("placement").hidden = !pools.length;
  byId("pools").replaceChildren(...pools.map(poolTable));
  const placed = page.items.filter((each) => each.placement).map((each) => placedRow(each, each.placement));
  const columns = ["admission", "application", "user", "runs as", "starts", "ends by", "deadline", "#tokens",
    "#predicted", "#run time", "state", "reason", "not chosen"];
  byId("placed").replaceChildren(placed.length ? tableOf(columns, placed) : element("p", "No application has been placed yet.", "quiet"));
}

function poolTable(pool) {
  const accepts = pool.kinds.length ? `accepts ${pool.kinds.join(", ")}` : "accepts all";
  const most = pool.hourly_mtokens === null ? "" : `, at most ${tokens(pool.hourly_mtokens)} an hour`;
  const caption = element("caption", `${pool.name}: ${pool.capacity} containers of ${pool.queues.join(", ")}, ${accepts}; ` +
    `${tokens(pool.cost_mtokens)} tokens a container-second${most}${pool.reserved.length ? "" : "; no reservations"}`);
  const rows = pool.reserved.map((held) => ({ cells: [held.admission && linkTo(held.admission), held.kind, held.containers,
    timeOf(held.from_ms), timeOf(held.until_ms), held.application && linkTo(held.application)] }));
  return tableOf(["reserved for", "kind", "#containers", "from", "until", "application"], rows, caption);
}

function placedRow(each, placed) {
  const at = (ms) => (ms === null ? "-" : timeOf(ms));
  const refused = placed.refused.map((one) => `${one.kind} with ${one.containers} in ${one.pool}: ${one.reason.text}`);
  const cells = [linkTo(each.id), each.request.name, each.request.user,
    placed.kind ? `${placed.kind} with ${placed.containers} in ${placed.pool}` : "-", at(placed.start_at_ms), at(placed.finish_at_ms),
    timeOf(each.plan.deadline_at_ms), placed.cost_mtokens === null ? "-" : tokens(placed.cost_mtokens),
    placed.predicted_ms === null ? "-" : span(placed.predicted_ms), placed.elapsed_ms === null ? "-" : span(placed.elapsed_ms),
    each.state, placed.reason.text, refused.join("; ") || "-"];
  return { cells, className: ["waiting", "admitted", "running"].includes(each.state) ? "" : "settled" };
}

// --- loss budgets -----------------------------------------------------------------------------------

function showBudgets(page) {
  byId("losses").hidden = !page.items.length;
  const owner = (each) => (each.application ? `job of ${each.user}` : each.queue ? `queue ${short(each.queue)}` : `user ${each.user}`);
  const rows = page.items.map((each) => ({ className: "", cells: [
    each.application ? linkTo(each.application, owner(each)) : owner(each), `${+(each.may_lose_ratio * 100).toFixed(3)} %`,
    span(each.window_ms), span(each.lost_ms), `${span(each.left_ms)} of ${gib({ memory_mib: each.container_mib })} containers`, each.bought.containers,
    span(each.bought.waiting_saved_ms)] }));
  byId("budgets").replaceChildren(tableOf(["budget of", "#may lose", "#window", "#lost", "#left", "#containers", "#wait saved"], rows));
}

function showTimeLost(page) {
  byId("lost-time").hidden = !page.items.length;
  const rows = [...page.items].sort((a, b) => b.waited_ms - a.waited_ms).map((each) => ({ className: "", cells: [
    each.cause, span(each.waited_ms), each.saves ?? "-"] }));
  byId("time-lost").replaceChildren(tableOf(["cause", "#container time", "would have saved it"], rows));
}

// --- the report of a day ---------------------------------------------------------------------------------

const interval = (less) => (less.estimated ? `${span(less.estimate_ms)} (${span(less.least_ms)} to ${span(less.most_ms)})` : "-");
const gibHours = (mibMs) => `${(mibMs / 1024 / 3600000).toFixed(2)} GiB h`;

function showReport(report) {
  byId("report").hidden = !report.gains.length;
  const waited = report.would ? "Production would wait less" : "Production waited less";
  byId("gain").textContent = `${waited}: ${interval(report.waited_less)} of container time (an estimate and its 90 % interval).`;
  const gains = report.gains.map((each) => ({ className: "", cells: [short(each.queue), each.user || "-", each.decisions,
    each.ordered, each.received, each.unmet, interval(each.waited_less)] }));
  byId("gains").replaceChildren(tableOf(["production", "user", "#decisions", "#ordered", "#received", "#not found", "#waited less"], gains));
  const losses = report.losses.map((each) => ({ className: "", cells: [short(each.queue), each.user || "-", each.containers,
    gibHours(each.kept_mib_ms), gibHours(each.lost_mib_ms)] }));
  byId("given").replaceChildren(losses.length ? tableOf(["research", "user", "#containers", "#kept", "#lost"], losses) : "");
}

// --- reclaim lists -------------------------------------------------------------------------------------

const COLUMNS = ["order", "from", "attempt", "state", "ordered", "#keys kept", "#time left", "given to"];

function showReclaims(page) {
  const tables = page.items.map((list) => {
    const caption = element("caption", captionOf(list));
    return tableOf(COLUMNS, list.entries.slice(-100).map(rowOf), caption);
  });
  if (!tables.length) tables.push(element("p", "No preempting application has pending requests, and no order is open.", "quiet"));
  byId("reclaims").replaceChildren(...tables);
}

function captionOf(list) {
  const waits = list.pending === null ? "no longer exists" : `requests ${list.pending}`;
  const orders = counts(sentStates(list)) || waitReason(known.get(list.application)) || "no order is open";
  return `${jobName(list.application)}: ${list.application} ${waits}, ${list.expected} expected: ${orders}`;
}

function sentStates(list) {
  // An observing daemon has sent no order: its entries do not count.
  const sent = {};
  for (const entry of list.entries) if (!entry.observed) sent[entry.state] = (sent[entry.state] || 0) + 1;
  return sent;
}

function stateOf(entry) {
  if (entry.observed && entry.state === "ordered") return "would order";
  return entry.state === "simulated" ? "would have freed" : entry.state.replace("_", " ");
}

function rowOf(entry) {
  const left = entry.remaining_ms === null ? "-" : span(entry.remaining_ms);
  const from = linkTo(entry.victim, jobName(entry.victim));
  const cells = [linkTo(entry.order), from, linkTo(entry.attempt), stateOf(entry),
    timeOf(entry.ordered_at_ms), entry.keys_done, left, entry.receiver_application && jobName(entry.receiver_application)];
  return { cells: cells.map((cell) => cell || (cell === 0 ? 0 : "-")), className: open.has(entry.state) ? "" : "settled" };
}

// --- decisions -------------------------------------------------------------------------------------------

// A row stays the same element from poll to poll, so that a click, the focus and a selection persist.
const rows = new Map(); // decision id -> {row, button, story}

function showDecisions(page) {
  const place = byId("decisions"), before = [...rows.keys()].join();
  const shown = new Set(page.items.map((each) => each.id));
  for (const id of [...rows.keys()]) if (!shown.has(id)) { rows.delete(id); explained.delete(id); }
  for (const each of page.items) {
    if (!rows.has(each.id)) rows.set(each.id, newRow(each.id));
    const { button, story } = rows.get(each.id);
    setParts(button, partsOf(each));
    button.setAttribute("aria-expanded", String(explained.has(each.id)));
    story.hidden = !explained.has(each.id);
    setText(story, explained.get(each.id) || "");
  }
  if (!rows.size) place.replaceChildren(element("p", "None yet.", "quiet"));
  else if ([...rows.keys()].join() !== before) {
    place.replaceChildren(...page.items.map((each) => rows.get(each.id).row));
  }
}

function partsOf(each) {
  const became = each.withheld === each.chosen && each.chosen
    ? `would order ${each.withheld}` : counts(each.states);
  return [String(each.id), instant(each.at_ms), `for ${jobName(each.application)} in ${short(each.queue)}`,
    `${each.chosen} of ${each.shortfall} from ${each.victims.map(jobName).join(", ") || "no job"}`, became,
    `${each.application}: ${each.why}`];
}

function newRow(id) {
  const row = element("div", null, "decision"), button = element("button"), story = element("pre");
  button.type = "button";
  button.dataset.decision = id;
  button.addEventListener("click", () => unfold(id));
  row.append(button, story);
  return { row, button, story };
}

function setParts(place, parts) {
  if (place.textContent === parts.join("")) return;
  place.replaceChildren(...parts.map((text) => element("span", text)));
}

function setText(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

async function explain(id) {
  try {
    const detail = await get(`v1/decisions/${id}`);
    return detail.explanation.text.join("\n");
  } catch (error) {
    return `no explanation: ${error.message}`;
  }
}

async function unfold(id) {
  if (explained.has(id)) explained.delete(id);
  else explained.set(id, await explain(id));
  await poll();
}

function showRefusals(page) {
  const rows = page.items.map((each) => {
    const jobs = each.refused_jobs.map((job) => `${jobName(job.application)}: ${job.meaning || job.why}`);
    return { cells: [timeOf(each.at_ms), jobName(each.trigger.application), short(each.trigger.queue), each.trigger.shortfall,
      each.why, jobs.join("; ") || "-", linkTo(each.trigger.application)] };
  });
  const columns = ["at", "job", "queue", "#pending", "reason", "jobs considered", "application"];
  byId("refusals").replaceChildren(rows.length ? tableOf(columns, rows) : element("p", "None.", "quiet"));
}

// --- one explanation, by the part of the address after # ----------------------------------------------------

function wantedId(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // typed by hand: the API returns an error
  }
}

async function showExplanation() {
  const wanted = wantedId(location.hash.match(/^#explain=(.+)$/)?.[1] ?? "");
  const section = byId("explained");
  section.hidden = !wanted;
  if (!wanted) { byId("story").replaceChildren(); return; }
  byId("h-explained").textContent = `Explanation of ${wanted}`;
  let text;
  try {
    text = (await get(`v1/explanations/${encodeURIComponent(wanted)}`)).text.join("\n");
  } catch (error) {
    text = `no explanation: ${error.message}`;
  }
  byId("story").replaceChildren(element("pre", text));
}

window.addEventListener("hashchange", async () => {
  await showExplanation();
  if (!byId("explained").hidden) byId("explained").scrollIntoView();
});

// --- polling -----------------------------------------------------------------------------------------------

async function poll() {
  try {
    const [seen, samples, lists, decided, refusals, jobs] = await Promise.all([
      get("v1/snapshot"), newHistory(), get("v1/reclaims?limit=50"), get("v1/decisions?limit=25"),
      get("v1/refusals?limit=5"), get("v1/applications?limit=200")]);
    const [accounts, admissions, budgets, timeLost, report] = await Promise.all([
      get("v1/accounts"), get("v1/admissions?limit=50"), get("v1/budgets?limit=50"), get("v1/time-lost"), get("v1/report")]);
    known = new Map(jobs.items.map((each) => [each.application, each]));
    for (const id of [...explained.keys()]) {
      const story = await explain(id);
      if (explained.has(id)) explained.set(id, story);
    }
    showLoop(seen); showGlance(seen); drawChart(samples);
    showWaiting(); showApplications(jobs); showMarket(accounts, admissions);
    showPlacement(admissions); showBudgets(budgets); showTimeLost(timeLost); showReport(report);
    ended = new Map([...decided.items, ...lists.items.flatMap((list) => list.entries)].flatMap((one) => Object.entries(one.names)));
    showReclaims(lists); showDecisions(decided); showRefusals(refusals);
    byId("unreachable").hidden = true;
    lastAnswerAt = Date.now();
  } catch (error) {
    byId("state").textContent = "unreachable";
    byId("state").className = "badge unreachable";
    byId("why").textContent = "";
    const since = lastAnswerAt === null ? "" : ` The data is ${span(Date.now() - lastAnswerAt)} old.`;
    byId("unreachable").textContent = `yarnctl does not answer (${error.message}).${since}`;
    byId("unreachable").hidden = false;
  }
}

let samples = [], polls = 0;

async function newHistory() {
  // New samples only; sometimes all, because the daemon thins out old samples and can restart.
  if (polls++ % 120 === 0 || !samples.length) samples = (await get("v1/occupancy")).items;
  else {
    const since = samples[samples.length - 1].at_ms + 1;
    samples = samples.concat((await get(`v1/occupancy?since_ms=${since}`)).items);
  }
  return samples;
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value.trim();
  poll();
});

async function run() {
  await poll();
  setTimeout(run, POLL_MS);
}

run();
showExplanation();
