// Elements, numbers and tables. Text from the cluster is set as text, never as markup.
"use strict";

const byId = (id) => document.getElementById(id);

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = isolated(text);
  if (className) made.className = className;
  return made;
}

const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const isolated = (text) => String(text).replace(BIDI, "\ufffd"); // a name must not turn the words beside it

function renew(place, ...made) {
  // Replaces the content, unless it is the same. The focus stays where it was, by its position.
  const next = element("div");
  next.append(...made);
  if (next.innerHTML === place.innerHTML) return;
  const focusable = "a, button";
  const at = [...place.querySelectorAll(focusable)].indexOf(document.activeElement);
  place.replaceChildren(...next.childNodes);
  if (at >= 0) place.querySelectorAll(focusable)[at]?.focus({ preventScroll: true });
}

// --- numbers, spans, instants ------------------------------------------------------------------------

const counts = (states) => Object.entries(states).map(([name, n]) => `${n} ${name.replace("_", " ")}`).join(", ");
const ago = (then, now) => (then === null ? "-" : span(Math.max(0, now - then)));
const gib = (size) => `${(size.memory_mib / 1024).toFixed(size.memory_mib < 10_240 ? 1 : 0)} GiB`;
function gibHours(mibMs) {
  // A small loss is not shown as none.
  const found = mibMs / 1024 / 3600000;
  return `${found && found < 0.01 ? "< 0.01" : +found.toFixed(2)} GiB h`;
}

const tokens = (mtokens) => (mtokens / 1000).toLocaleString([], { maximumFractionDigits: 3 });
const short = (queue) => queue.replace(/^root\./, "");

function span(ms) {
  if (ms < 0) return "?";
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 120_000) return `${Math.round(ms / 1000)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  return `${(ms / 3_600_000).toFixed(1)} h`;
}

function instant(ms) {
  // Local time; the element's title has the date.
  return new Date(ms).toLocaleTimeString([], { hour12: false });
}

function timeOf(ms) {
  const made = element("time", instant(ms));
  made.dateTime = new Date(ms).toISOString();
  made.title = new Date(ms).toLocaleString();
  return sortable(made, ms);
}

function sortable(made, value) {
  made.dataset.sort = value;
  return made;
}

const spanOf = (ms) => sortable(element("span", span(ms)), ms);

// --- tables --------------------------------------------------------------------------------------------

function tableOf(name, columns, rows, caption) {
  // Columns: names, with "#" for numbers. Rows: texts or elements; a row can have a class. The filter and the
  // order (of the part of the address after #) apply to every table.
  const table = element("table"), head = element("tr", null, "head"), box = element("div", null, "scroll");
  if (caption) table.append(caption);
  const [by, direction] = orderOf(name);
  for (const column of columns) {
    const title = titleOf(column), cell = element("th", null, classOf(column));
    cell.scope = "col";
    cell.append(sortButton(name, title, by === title ? direction : ""));
    if (by === title) cell.ariaSort = direction === "up" ? "ascending" : "descending";
    head.append(cell);
  }
  if (rows.length) table.append(head);
  const shown = rows.map(({ cells, className }) => rowOf(cells, columns, className)).filter(isWanted);
  const column = columns.findIndex((each) => titleOf(each) === by);
  if (column >= 0) shown.sort((one, other) => compared(one, other, column) * (direction === "up" ? 1 : -1));
  table.append(...shown);
  box.append(table);
  if (rows.length && !shown.length) box.append(element("p", "No row matches the filter.", "quiet"));
  return box;
}

const titleOf = (column) => column.replace("#", "");
const classOf = (column) => (column.startsWith("#") ? "number" : "");

function rowOf(cells, columns, className) {
  const row = element("tr", null, className);
  cells.forEach((cell, i) => {
    const place = element("td", null, classOf(columns[i]));
    place.dataset.label = titleOf(columns[i]); // on a phone it precedes the value
    place.append(cell instanceof Node ? cell : isolated(cell ?? "-"));
    row.append(place);
  });
  return row;
}

function isWanted(row) {
  const wanted = setting("filter").toLowerCase();
  return !wanted || row.textContent.toLowerCase().includes(wanted);
}

function compared(one, other, column) {
  const [a, b] = [one, other].map((row) => {
    const cell = row.children[column];
    return cell.querySelector("[data-sort]")?.dataset.sort ?? cell.textContent;
  });
  return a.localeCompare(b, [], { numeric: true });
}

function sortButton(table, column, direction) {
  const made = element("button", column, "sort");
  made.type = "button";
  made.dataset.table = table;
  made.dataset.column = column;
  if (direction) made.append(element("span", direction === "up" ? " ▲" : " ▼"));
  return made;
}

function orderOf(table) {
  // The column and the direction of a table: "sort=taken:lost:down".
  const [name, column, direction] = setting("sort").split(":");
  return name === table ? [column, direction] : ["", ""];
}

// --- the address: what is shown stands after #, so that it can be kept and sent ----------------------------

const settings = () => new URLSearchParams(location.hash.slice(1));
const setting = (name) => settings().get(name) ?? "";

function addressWith(changes) {
  const now = settings();
  for (const [name, value] of Object.entries(changes)) if (value) now.set(name, value); else now.delete(name);
  return `#${now}`;
}

function linkTo(id, text) {
  // A long id can wrap at its underscores and still copies as one word.
  const made = element("a", null, id.startsWith("o-") ? "short" : "");
  if (text === undefined) id.split(/(?<=_)/).forEach((part, i) => made.append(...(i ? [element("wbr")] : []), isolated(part)));
  else made.textContent = isolated(text);
  if (text === "why") made.ariaLabel = `why ${id}`;
  made.href = addressWith({ explain: id });
  made.title = `explain ${id}`;
  return made;
}

function outside(href, text) {
  // A page of the cluster, in a tab of its own. Only http and https: the address comes from the daemon.
  const made = element("a", text);
  if (/^https?:\/\//.test(href)) Object.assign(made, { href, target: "_blank", rel: "noopener noreferrer" });
  return made;
}
