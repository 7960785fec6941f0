// The API's description, made of openapi.json. Text is set as text; no other host gets a request.
"use strict";

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = String(text);
  if (className) made.className = className;
  return made;
}

function kindOf(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.enum) return schema.enum.join(" | "); // the spaces let a long type wrap
  if (schema.anyOf) return schema.anyOf.map(kindOf).join(" or ");
  if (schema.type === "array") return `list of ${kindOf(schema.items)}`;
  if (schema.additionalProperties) return `${schema.type} of ${kindOf(schema.additionalProperties)}`;
  return schema.type || "";
}

function table(columns, rows) {
  const made = element("table"), head = element("tr"), box = element("div", null, "scroll");
  for (const name of columns) head.append(element("th", name));
  made.append(head);
  for (const cells of rows) {
    const row = element("tr");
    for (const cell of cells) row.append(element("td", cell));
    made.append(row);
  }
  box.append(made);
  return box;
}

function operation(path, method, about) {
  const made = element("section");
  made.append(element("h2", `${method.toUpperCase()} ${path}`), element("p", about.description || about.summary));
  const parameters = about.parameters || [];
  if (parameters.length) {
    made.append(table(["parameter", "in", "type", "meaning"],
      parameters.map((each) => [each.name, each.in, kindOf(each.schema), each.description || ""])));
  }
  const answers = Object.entries(about.responses).map(([status, answer]) => {
    const kinds = Object.values(answer.content || {}).map((each) => kindOf(each.schema));
    return [status, kinds.join(", "), answer.description];
  });
  made.append(table(["status", "body", ""], answers));
  return made;
}

function schema(name, about) {
  const made = element("section");
  made.append(element("h2", name), element("p", about.description || ""));
  made.append(table(["field", "type"],
    Object.entries(about.properties || {}).map(([field, each]) => [field, kindOf(each)])));
  return made;
}

async function show() {
  const api = await (await fetch("openapi.json")).json();
  const parts = [element("section")];
  parts[0].append(element("pre", api.info.description));
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, about] of Object.entries(methods)) parts.push(operation(path, method, about));
  }
  for (const [name, about] of Object.entries(api.components.schemas)) parts.push(schema(name, about));
  document.getElementById("api").replaceChildren(...parts);
}

show().catch((error) => {
  document.getElementById("api").replaceChildren(element("p", `openapi.json cannot be read: ${error.message}`));
});
