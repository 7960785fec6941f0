// The page: polls the API and shows one view of it. No other host gets a request. If the daemon does not answer,
// the page says so, with the age of the data.
"use strict";

const POLL_MS = 1000, LONGEST_PAUSE_MS = 10_000, PATIENCE_MS = 5000, VIEWS = ["operator", "production", "research"];
let lastAnswerAt = null;
let token = ""; // where reading needs one: kept in this page only, until it is closed
const NOTHING = { items: [], gate: null };
let last = null; // the newest answers
let pauseMs = POLL_MS; // until the next poll; twice as long after each failed one

const viewOf = () => (VIEWS.includes(setting("view")) ? setting("view") : "operator");

async function get(path) {
  const answer = await fetch(path, { cache: "no-store", headers: withToken(token), signal: AbortSignal.timeout(PATIENCE_MS) });
  byId("token-form").hidden = answer.status !== 401;
  return bodyOf(answer);
}

async function getAllowed(path, otherwise) {
  // What a token of the scope "own" may not read is left empty.
  try {
    return await get(path);
  } catch (error) {
    if (error.status === 403) return otherwise;
    throw error;
  }
}

const withToken = (secret) => (secret ? { Authorization: `Bearer ${secret}` } : {});

async function bodyOf(answer) {
  const body = await answer.json();
  if (answer.ok) return body;
  const error = body && body.error;
  const text = error ? [error.message, error.next].filter(Boolean).join("; ") : `status ${answer.status}`;
  throw Object.assign(new Error(text), { status: answer.status });
}

// --- what is shown ----------------------------------------------------------------------------------------

function show() {
  const view = viewOf();
  if (last) showAnswers(view);
  for (const section of document.querySelectorAll("section[data-view]")) {
    section.hidden = !section.dataset.view.split(" ").includes(view) || section.dataset.empty === "true";
  }
  for (const link of document.querySelectorAll("nav a")) {
    link.href = addressWith({ view: link.dataset.to, explain: "" });
    link.ariaCurrent = link.dataset.to === view ? "page" : null;
  }
  byId("close").href = addressWith({ explain: "" });
  if (document.activeElement !== byId("filter")) byId("filter").value = setting("filter");
}

function showAnswers(view) {
  const { seen, status, samples, lists, decided, refusals, jobs, accounts, admissions, budgets, timeLost, report } = last;
  const entries = lists.items.flatMap((list) => list.entries);
  known = new Map(jobs.items.map((each) => [each.application, each]));
  ended = new Map([...decided.items, ...entries].flatMap((one) => Object.entries(one.names)));
  resourceManager = seen.loop.resource_manager;
  showLoop(seen); showGlance(seen); showQueues(seen);
  drawChart(samples, entries.filter((each) => !each.observed).map((each) => ({ at_ms: each.ordered_at_ms,
    text: `${each.order}: ${each.verb} from ${jobName(each.victim)} for ${jobName(each.requester)}, ${stateOf(each)}` })));
  showBudgets(budgets); showTimeLost(timeLost); if (report) showReport(report); showMarket(accounts, admissions); showPlacement(admissions);
  if (view === "operator" && status) { showHealth(seen, status); showChanges(status); }
  if (view === "production") { showWaiting(lists); showReclaims(unretired(lists)); }
  if (view === "research") showTaken(lists);
  if (view !== "operator") { showApplications(jobs, view); showEnded(entries, view); }
  if (view !== "research") { showDecisions(decided); showRefusals(refusals); }
}

function unretired(lists) {
  // A list of which every order has left it, of an application that has ended, is among the ended ones.
  const items = lists.items.map((list) => ({ ...list, entries: list.entries.filter((each) => !each.retired) }));
  return { items: items.filter((list) => list.entries.length || list.pending !== null) };
}

// --- one explanation, by the part of the address after # ----------------------------------------------------

async function showExplanation() {
  const wanted = setting("explain"), section = byId("explained");
  section.hidden = !wanted;
  if (!wanted) { byId("story").replaceChildren(); return; }
  byId("h-explained").textContent = /^[0-9]+$/.test(wanted) ? `Explanation of decision ${wanted}` : `Explanation of ${wanted}`;
  let text;
  try {
    const found = /^[0-9]+$/.test(wanted) ? (await get(`v1/decisions/${wanted}`)).explanation
      : await get(`v1/explanations/${encodeURIComponent(wanted)}`);
    text = found.text.join("\n");
  } catch (error) {
    text = `no explanation: ${error.message}`;
  }
  renew(byId("story"), element("pre", text));
}

let leftAt = null; // the address of the link that led to the explanation

window.addEventListener("hashchange", async () => {
  show();
  const wasHidden = byId("explained").hidden;
  if (wasHidden) leftAt = document.activeElement?.getAttribute("href");
  await showExplanation();
  if (!byId("explained").hidden) byId("h-explained").focus();
  else if (!wasHidden) [...document.querySelectorAll("main a")].find((each) => each.getAttribute("href") === leftAt)?.focus();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && setting("explain")) location.hash = addressWith({ explain: "" });
});

// --- polling -----------------------------------------------------------------------------------------------

async function poll() {
  try {
    const [seen, samples, lists, decided, refusals, jobs] = await Promise.all([
      get("v1/snapshot"), newHistory(), get("v1/reclaims?limit=200&retired=true"), getAllowed("v1/decisions?limit=50", NOTHING),
      get("v1/refusals?limit=20"), get("v1/applications?limit=200")]);
    const [status, accounts, admissions, budgets, timeLost, report] = await Promise.all([getAllowed("v1/status", null),
      getAllowed("v1/accounts", NOTHING), getAllowed("v1/admissions?limit=50", NOTHING), get("v1/budgets?limit=50"),
      getAllowed("v1/time-lost", NOTHING), getAllowed("v1/report", null)]);
    last = { seen, status, samples, lists, decided, refusals, jobs, accounts, admissions, budgets, timeLost, report };
    show();
    byId("unreachable").hidden = true;
    lastAnswerAt = Date.now();
    pauseMs = POLL_MS;
  } catch (error) {
    pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    byId("state").textContent = "unreachable";
    byId("state").className = "badge unreachable";
    byId("why").replaceChildren();
    const since = lastAnswerAt === null ? "" : ` The data is ${span(Date.now() - lastAnswerAt)} old.`;
    byId("unreachable").textContent = `yarnctl does not answer (${error.message}).${since}`;
    byId("unreachable").hidden = false;
  }
}

let samples = [], polls = 0;

async function newHistory() {
  // New samples only; sometimes all, because the daemon thins out old samples and can restart.
  if (polls++ % 120 === 0 || !samples.length) samples = (await getAllowed("v1/occupancy", NOTHING)).items;
  else {
    const since = samples[samples.length - 1].at_ms + 1;
    samples = samples.concat((await get(`v1/occupancy?since_ms=${since}`)).items);
  }
  return samples;
}

// --- what a person does ----------------------------------------------------------------------------------------

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value.trim();
  poll();
});

byId("filter").addEventListener("input", () => {
  history.replaceState(null, "", addressWith({ filter: byId("filter").value }));
  show();
});

document.addEventListener("click", (event) => {
  // A column's head: down first, then up, then as it was.
  const { table, column } = event.target.closest("button.sort")?.dataset ?? {};
  if (!table) return;
  const [by, direction] = orderOf(table);
  const next = by !== column ? "down" : { down: "up", up: "" }[direction];
  location.hash = addressWith({ sort: next && `${table}:${column}:${next}` });
});

byId("pause-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const isPaused = last && last.seen.loop.loop_state === "paused";
  const why = byId("pause-why").value.trim() || "paused on the page";
  const secret = byId("pause-token").value.trim() || token;
  const headers = { "Content-Type": "application/json", ...withToken(secret) };
  try {
    const body = isPaused ? undefined : JSON.stringify({ why });
    await bodyOf(await fetch(isPaused ? "v1/loop/continue" : "v1/loop/pause", { method: "POST", headers, body }));
    byId("paused").textContent = isPaused ? "continues" : "paused";
    await poll();
  } catch (error) {
    const refused = secret ? "this token is wrong" : "type the operator's token";
    byId("paused").textContent = error.status === 401 ? refused : error.message;
  }
});

async function run() {
  await poll();
  setTimeout(run, pauseMs);
}

show();
run();
showExplanation();
