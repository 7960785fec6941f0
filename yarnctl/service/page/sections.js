// The sections of the page, one function each. `known` and `ended` name the applications.
"use strict";

const open = new Set(["ordered", "suspending", "checkpointed", "freed", "simulated"]);
const none = (text) => element("p", text, "quiet");
const RECENT_MS = 60_000;
const CLASSES = { preempting: "production", preemptable: "research", other: "other" };
const CAUSES = {
  masters: "limits on application masters", limit: "limits of the queue or the user", budget: "no loss budget is left",
  repeats: "tasks were killed as often as allowed", late: "levers would take too long",
  worth: "to wait for tasks costs less than a lever",
  unwrapped: "research jobs without a task runner", nothing: "nothing can be taken", reserved: "reservations of YARN",
  "in-flight": "as many orders as allowed are open", lever: "ordered containers are being freed",
  governor: "the governor holds levers back", others: "YARN gives containers to others", grant: "YARN grants at heartbeats",
};
let known = new Map(); // application id -> its item of GET /v1/applications
let ended = new Map(); // application id -> [name, user, queue] of the decisions and orders shown
let resourceManager = ""; // its address, for links

function jobName(id) {
  // The name and user of a job, of an ended one also its queue; its id is shown beside it.
  const job = known.get(id), [name, user, queue] = ended.get(id) || [];
  if (job) return `${job.name || "unnamed job"} (${job.user})`;
  return user === undefined ? "ended job" : `${name || "unnamed job"} (${user}, ${short(queue)})`;
}

function applicationLinks(id) {
  // Its explanation, and its page at the ResourceManager, which leads to Spark's and Flink's own pages.
  const made = element("span");
  made.append(linkTo(id));
  if (resourceManager) made.append(" ", outside(`${resourceManager}/cluster/app/${id}`, "YARN"));
  return made;
}

// --- health, and what yarnctl changed ----------------------------------------------------------------

function showLoop(seen) {
  const loop = seen.loop;
  byId("state").textContent = loop.loop_state;
  byId("state").className = `badge ${loop.loop_state}`;
  byId("mode").textContent = !loop.enforce ? "observes only" : loop.loop_state === "running" ? "sends orders" : "sends no orders now";
  const whys = [loop.why, ...loop.aside.map((each) => each.reason.text)].filter(Boolean);
  if (!loop.reachable) whys.push("the ResourceManager does not answer");
  const failed_ms = loop.last_error_at_ms === null ? Infinity : seen.now_ms - loop.last_error_at_ms;
  if (failed_ms < RECENT_MS) whys.push(`a tick failed ${span(failed_ms)} ago: ${loop.last_error}`);
  byId("why").className = loop.reachable && failed_ms >= RECENT_MS ? "" : "bad";
  renew(byId("why"), ...whys.map((why) => element("li", why)));
  const cluster = seen.cluster;
  byId("cluster").textContent = cluster ? `${cluster.node_count} nodes, epoch ${cluster.epoch}` : "no cluster observed yet";
}

function showHealth(seen, status) {
  const loop = seen.loop, leads = { true: "this daemon leads", false: "another daemon leads", null: "not needed to observe" };
  const failed = loop.tick_errors ? `${loop.tick_errors} ticks failed, the last ${ago(loop.last_error_at_ms, seen.now_ms)} ago: ` +
    loop.last_error : "none since the start";
  const unreachable = seen.unreachable.length ? seen.unreachable.join(", ") : "none";
  const rows = [["Lock", leads[status.leads]], ["Started", `${ago(loop.started_at_ms, seen.now_ms)} ago, yarnctl ${status.yarnctl}`],
    ["Last look", seen.snapshot_at_ms === null ? "none yet" : `${ago(seen.snapshot_at_ms, seen.now_ms)} before the last tick`],
    ["Errors", failed], ["Silent masters", unreachable], ["Open orders", String(seen.open_orders)]];
  renew(byId("health"), ...rows.flatMap(([name, text]) => [element("dt", name), element("dd", text)]));
  byId("pause").textContent = loop.loop_state === "paused" ? "Continue" : "Pause";
  byId("pause-why").parentElement.hidden = loop.loop_state === "paused";
}

function showChanges(status) {
  const rows = status.changes.map((each) => ({ cells: [each.kind, each.target, each.text, each.by_hand || "-"] }));
  renew(byId("changes"), rows.length ? tableOf("changes", ["kind", "of", "change", "restored by hand with"], rows)
    : none("yarnctl holds no setting lowered."));
}

// --- the cluster and its queues -----------------------------------------------------------------------

function showGlance(seen) {
  const place = byId("glance");
  if (!seen.total) { place.textContent = "nothing observed yet"; return; }
  const part = (name) => `${CLASSES[name]} ${gib(seen[name].used)} in ${seen[name].containers} containers` +
    (seen[name].pending ? ` (${seen[name].pending} requested)` : "");
  place.textContent = `${part("preempting")} · ${part("preemptable")} · ${part("other")} · of ${gib(seen.total)}; ` +
    `observed ${ago(seen.snapshot_at_ms, seen.now_ms)} before the last tick` +
    `${seen.quiet ? "; no preempting application has pending requests" : ""}`;
}

function showQueues(seen) {
  const total = seen.total ? seen.total.memory_mib : 0;
  const rows = seen.queues.map((queue) => ({ cells: [short(queue.queue), CLASSES[queue.role], barOf(queue, total),
    sized(queue.used), sized(queue.guaranteed), sized(queue.maximum), queue.pending, queue.applications] }));
  renew(byId("queues"), rows.length ? tableOf("queues",
    ["queue", "class", "bar", "#used", "#guarantee", "#maximum", "#requested", "#applications"], rows) : none("None observed yet."));
}

const sized = (size) => sortable(element("span", gib(size), "short"), size.memory_mib);

function barOf(queue, total) {
  // Lengths are parts of the cluster's memory.
  const bar = element("div", null, "bar"), part = (size) => `${total ? Math.min(100, (100 * size.memory_mib) / total) : 0}%`;
  const lay = (name, size, at) => {
    const made = element("div", null, name);
    made.style[at] = part(size);
    bar.append(made);
  };
  lay("maximum", queue.maximum, "width");
  lay(`used ${queue.role}`, queue.used, "width");
  lay("guaranteed", queue.guaranteed, "left");
  if (queue.pending) bar.append(element("span", `+${queue.pending}`, "pending"));
  bar.role = "img";
  bar.ariaLabel = `used ${gib(queue.used)}, guarantee ${gib(queue.guaranteed)}, maximum ${gib(queue.maximum)}, ${queue.pending} requested`;
  return sortable(bar, queue.used.memory_mib);
}

// --- production: who waits, for what, from whom -----------------------------------------------------------

function waitReason(job) {
  // The one reason why a job waits; "" if it does not wait, or no observation shows it yet.
  return job && job.waiting ? job.waiting.text.replace(/\bapplication_\d+_\d+\b/g, (id) => (known.has(id) ? jobName(id) : id)) : "";
}

function showWaiting(lists) {
  const giving = new Map(lists.items.map((list) => [list.application, list.entries.filter((each) => open.has(each.state))]));
  const waiting = [...known.values()].filter((job) => job.pending > 0 && job.role === "preempting");
  waiting.sort((one, other) => one.queue.localeCompare(other.queue) || one.rank - other.rank);
  const rows = waiting.map((job) => {
    const from = new Set((giving.get(job.application) || []).map((each) => jobName(each.victim)));
    return { cells: [job.name || "-", job.user, short(job.queue), job.pending, job.expected, waitReason(job) || "-",
      [...from].join(", ") || "-", helpOf(job), foretold(job, "starts", "ends"), applicationLinks(job.application)] };
  });
  const columns = ["job", "user", "queue", "#requested", "#coming", "waits because", "gives", "what would help", "expected", "application"];
  renew(byId("waiting"), rows.length ? tableOf("waiting", columns, rows) : none("No preempting application has pending requests."));
}

function foretold(job, ...wanted) {
  // The 90 % intervals; "-" if nothing like it has run before.
  const found = wanted.map((what) => [what, job.when && job.when[what]]).filter(([, instants]) => instants);
  if (!found.length) return "-";
  const texts = found.map(([what, each]) => `${what} ${instant(each.least_at_ms)} to ${instant(each.most_at_ms)}`);
  const made = element("span", texts.join(", "));
  made.title = `90 %, from ${found[0][1].runs} earlier applications`;
  return sortable(made, found[0][1].middle_at_ms);
}

function helpOf(job) {
  const steps = job.waiting ? [job.waiting.reason.next, ...job.waiting.not_chosen.map((each) => each.next)] : [];
  if (job.when) steps.push(job.when.sooner);
  return [...new Set(steps.filter(Boolean))].join("; ") || "-";
}

const COLUMNS = ["order", "from", "attempt", "state", "ordered", "#keys kept", "#time left", "given to"];

function showReclaims(page) {
  const tables = page.items.map((list) =>
    tableOf("reclaims", COLUMNS, list.entries.slice(-100).map(reclaimRow), element("caption", captionOf(list))));
  if (!tables.length) tables.push(none("No preempting application has pending requests, and no order is open."));
  renew(byId("reclaims"), ...tables);
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

function reclaimRow(entry) {
  const left = entry.remaining_ms === null ? "-" : spanOf(entry.remaining_ms);
  const cells = [linkTo(entry.order), linkTo(entry.victim, jobName(entry.victim)), linkTo(entry.attempt), stateOf(entry),
    timeOf(entry.ordered_at_ms), entry.keys_done, left, entry.receiver_application && jobName(entry.receiver_application)];
  return { cells: cells.map((cell) => cell || (cell === 0 ? 0 : "-")), className: open.has(entry.state) ? "" : "settled" };
}

// --- research: what was taken, and what comes back -----------------------------------------------------------

function showTaken(page) {
  const entries = page.items.flatMap((list) => list.entries).sort((one, other) => other.ordered_at_ms - one.ordered_at_ms);
  const rows = entries.slice(0, 200).map((entry) => ({ className: open.has(entry.state) ? "" : "settled", cells: [
    timeOf(entry.ordered_at_ms), linkTo(entry.victim, jobName(entry.victim)), linkTo(entry.attempt), whatBecame(entry),
    jobName(entry.requester), linkTo(entry.order, "why"), entry.keys_done === null ? "-" : `${entry.keys_done} keys`,
    entry.lost_work_ms === null ? "-" : spanOf(entry.lost_work_ms), comesBack(entry)] }));
  const columns = ["ordered", "job", "task", "what", "for", "reason", "kept", "#lost", "resumes"];
  renew(byId("taken"), rows.length ? tableOf("taken", columns, rows) : none("Nothing was taken."));
}

function whatBecame(entry) {
  if (entry.state !== "granted") return `${entry.verb}: ${stateOf(entry)}`;
  return `${entry.verb}: ${entry.receiver_application ? jobName(entry.receiver_application) : "its requester"} has the container`;
}

function comesBack(entry) {
  if (entry.observed) return "was not taken";
  if (entry.cost_ms !== null) return `resumed, for ${span(entry.cost_ms)}`;
  if (!["freed", "granted", "completed"].includes(entry.state)) return entry.state === "killed" ? "runs again" : "-";
  if (entry.verb === "kill") return "runs again from its start";
  return entry.verb === "drain" ? "when its application gets a container" : "resumes when its job gets a container";
}

// --- applications ------------------------------------------------------------------------------------------

function suspendable(job) {
  if (!job.runner) return `no: ${job.why_not}`;
  if (job.master_only_ms !== null) return `all tasks suspended for ${span(job.master_only_ms)}; its application master stays`;
  const whys = Object.values(job.left_alone);
  const reduces = whys.length === 1 ? "reduce" : "reduces";
  return whys.length ? `yes, except ${whys.length} ${reduces}: ${[...new Set(whys)].join("; ")}` : "yes";
}

function showApplications(page, view) {
  const role = { production: "preempting", research: "preemptable" }[view];
  const rows = page.items.filter((job) => job.role === role || job.role === "other").map((job) => ({ cells: [job.name || "-",
    job.user, short(job.queue), job.containers, job.pending, job.suspending, job.role === "preempting" ? "-" : suspendable(job),
    foretold(job, "ends"), applicationLinks(job.application)] }));
  const columns = ["job", "user", "queue", "#containers", "#pending", "#suspending", "can be suspended", "expected", "application"];
  const more = page.total > page.items.length ? [none(`${page.total - page.items.length} more; run yarnctl apps`)] : [];
  renew(byId("applications"), rows.length ? tableOf("applications", columns, rows) : none("None."), ...more);
}

function showEnded(entries, view) {
  // By the orders that are kept: what an ended application received or gave.
  const side = view === "research" ? "victim" : "requester", sums = new Map();
  const counts = (entry) => entry.freed_at_ms !== null && (view === "research" || entry.receiver_application === entry.requester);
  for (const entry of entries) {
    if (known.has(entry[side]) || entry.observed) continue;
    const sum = sums.get(entry[side]) || { orders: 0, containers: 0, last: 0 };
    sums.set(entry[side], { orders: sum.orders + 1, containers: sum.containers + (counts(entry) ? entry.serves : 0),
      last: Math.max(sum.last, entry.ordered_at_ms) });
  }
  const rows = [...sums].map(([id, sum]) => {
    const [name, user, queue] = ended.get(id) || ["", "-", "-"];
    return { cells: [name || "unnamed job", user, short(queue), sum.orders, sum.containers, timeOf(sum.last), applicationLinks(id)] };
  });
  const columns = ["job", "user", "queue", "#orders", view === "research" ? "#containers given" : "#containers received", "last order", "application"];
  renew(byId("ended"), rows.length ? tableOf("ended", columns, rows) : none("None of which an order is kept."));
}

// --- budgets, time, report -----------------------------------------------------------------------------------

function showBudgets(page) {
  byId("losses").dataset.empty = String(!page.items.length);
  const owner = (each) => (each.application ? `job of ${each.user}` : each.queue ? `queue ${short(each.queue)}` : `user ${each.user}`);
  const rows = page.items.map((each) => ({ className: "", cells: [
    each.application ? linkTo(each.application, owner(each)) : owner(each), `${+(each.may_lose_ratio * 100).toFixed(3)} %`,
    spanOf(each.window_ms), spanOf(each.lost_ms), `${span(each.left_ms)} of ${gib({ memory_mib: each.container_mib })} containers`,
    each.bought.containers, spanOf(each.bought.waiting_saved_ms)] }));
  renew(byId("budgets"), tableOf("budgets", ["budget of", "#may lose", "#window", "#lost", "#left", "#containers", "#wait saved"], rows));
}

function showTimeLost(page) {
  byId("lost-time").dataset.empty = String(!page.items.length);
  const rows = [...page.items].sort((a, b) => b.waited_ms - a.waited_ms).map((each) => ({ className: "", cells: [
    CAUSES[each.cause], spanOf(each.waited_ms), each.saves ?? "-"] }));
  renew(byId("time-lost"), tableOf("time-lost", ["cause", "#container time", "would have saved it"], rows));
}

const interval = (less) => (less.estimated ? `${span(less.estimate_ms)} (${span(less.least_ms)} to ${span(less.most_ms)})` : "-");

function showReport(report) {
  byId("report").dataset.empty = String(!report.gains.length);
  const waited = report.would ? "Production would wait less" : "Production waited less";
  const sum = (name) => gibHours(report.losses.reduce((all, each) => all + each[name], 0));
  byId("gain").textContent = `${waited}: ${interval(report.waited_less)} of container time (an estimate and its 90 % interval). ` +
    `Research lost ${sum("lost_mib_ms")} and kept ${sum("kept_mib_ms")}.`;
  const gains = report.gains.map((each) => ({ className: "", cells: [short(each.queue), each.user || "-", each.decisions,
    each.ordered, each.received, each.unmet, interval(each.waited_less)] }));
  renew(byId("gains"), tableOf("gains", ["production", "user", "#decisions", "#ordered", "#received", "#not found", "#waited less"], gains));
  const losses = report.losses.map((each) => ({ className: "", cells: [short(each.queue), each.user || "-", each.containers,
    gibHours(each.kept_mib_ms), gibHours(each.lost_mib_ms)] }));
  renew(byId("given"), losses.length ? tableOf("given", ["research", "user", "#containers", "#kept", "#lost"], losses) : "");
}

// --- decisions and rejected requests ---------------------------------------------------------------------------

function showDecisions(page) {
  const rows = page.items.map((each) => ({ className: "", cells: [linkTo(String(each.id)), timeOf(each.at_ms),
    `${jobName(each.application)} in ${short(each.queue)}`, `${each.chosen} of ${each.shortfall}`,
    each.victims.map(jobName).join(", ") || "no job", becameOf(each), each.why] }));
  const columns = ["#decision", "at", "for", "#containers", "from", "became", "reason"];
  renew(byId("decisions"), rows.length ? tableOf("decisions", columns, rows) : none("None yet."));
}

function becameOf(each) {
  return each.withheld === each.chosen && each.chosen ? `would order ${each.withheld}` : counts(each.states) || "-";
}

function showRefusals(page) {
  const rows = page.items.map((each) => {
    const jobs = each.refused_jobs.map((job) => `${jobName(job.application)}: ${job.meaning || job.why}`);
    return { cells: [timeOf(each.at_ms), jobName(each.trigger.application), short(each.trigger.queue), each.trigger.shortfall,
      each.why, jobs.join("; ") || "-", linkTo(each.trigger.application)] };
  });
  const columns = ["at", "job", "queue", "#pending", "reason", "jobs considered", "application"];
  renew(byId("refusals"), rows.length ? tableOf("refusals", columns, rows) : none("None."));
}

// --- sold deadlines ------------------------------------------------------------------------------------

function outcome(each) {
  // A promise is met or late once its job has ended.
  const late = each.changed_at_ms - each.plan.deadline_at_ms;
  if (each.state === "ended") return late > 0 ? `late by ${span(late)}` : `met, ${span(-late)} early`;
  if (each.state === "waiting" && each.plan.price_mtokens !== null) return "promised";
  return each.state === "admitted" ? "promised" : each.state;
}

function showMarket(accounts, admissions) {
  byId("market").dataset.empty = String(!accounts.items.length);
  const balances = accounts.items.map((each) => ({ cells: [each.name, tokens(each.balance_mtokens),
    tokens(each.given_mtokens), tokens(each.spent_mtokens),
    each.daily_mtokens ? `${tokens(each.daily_mtokens)} a day up to ${tokens(each.cap_mtokens)}` : "-"] }));
  const paid = admissions.items.filter((each) => each.plan.price_mtokens !== null);
  const promises = paid.map((each) => ({ cells: [linkTo(each.id), each.request.name, each.request.user, each.request.account,
    tokens(each.plan.price_mtokens), tokens(each.refunded_mtokens), timeOf(each.plan.deadline_at_ms), outcome(each),
    each.plan.because.map(([term, amount]) => `${term} ${tokens(amount)}`).join(", ")],
    className: each.state === "admitted" || each.state === "running" ? "" : "settled" }));
  renew(byId("accounts"), tableOf("accounts", ["account", "#tokens", "#credited", "#spent", "refill"], balances));
  const columns = ["admission", "job", "user", "account", "#tokens", "#refunded", "deadline", "promise", "price terms"];
  renew(byId("promises"), promises.length ? tableOf("promises", columns, promises) : element("p", "No deadline has been sold yet.", "quiet"));
}

// --- placed applications -----------------------------------------------------------------------------------

function showPlacement(page) {
  const pools = page.gate ? page.gate.pools : [];
  byId("placement").dataset.empty = String(!pools.length);
  renew(byId("pools"), ...pools.map(poolTable));
  const placed = page.items.filter((each) => each.placement).map((each) => placedRow(each, each.placement));
  const columns = ["admission", "application", "user", "runs as", "starts", "ends by", "deadline", "#tokens",
    "#predicted", "#run time", "state", "reason", "not chosen"];
  renew(byId("placed"), placed.length ? tableOf("placed", columns, placed) : element("p", "No application has been placed yet.", "quiet"));
}

function poolTable(pool) {
  const accepts = pool.kinds.length ? `accepts ${pool.kinds.join(", ")}` : "accepts all";
  const most = pool.hourly_mtokens === null ? "" : `, at most ${tokens(pool.hourly_mtokens)} an hour`;
  const caption = element("caption", `${pool.name}: ${pool.capacity} containers of ${pool.queues.join(", ")}, ${accepts}; ` +
    `${tokens(pool.cost_mtokens)} tokens a container-second${most}${pool.reserved.length ? "" : "; no reservations"}`);
  const rows = pool.reserved.map((held) => ({ cells: [held.admission && linkTo(held.admission), held.kind, held.containers,
    timeOf(held.from_ms), timeOf(held.until_ms), held.application && linkTo(held.application)] }));
  return tableOf("pools", ["reserved for", "kind", "#containers", "from", "until", "application"], rows, caption);
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
