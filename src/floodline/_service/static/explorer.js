"use strict";
// Lists the operations of openapi.json and sends one when asked to. Text is set as text, never as
// markup, so nothing that a server answers can run here.

function element(name, text, parent) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function field(parameter, parent) {
  const label = element("label", `${parameter.name} (${parameter.in}) `, parent);
  const input = element("input", "", label);
  input.placeholder = parameter.description || "";
  return { parameter, input };
}

function example(operation) {
  const reference = operation.requestBody.content["application/json"].schema.$ref;
  return {
    "#/components/schemas/NewItems": '{"items": [{"role": "user", "content": "Hello"}]}',
    "#/components/schemas/Metadata": '{"metadata": {"topic": "demo"}}',
  }[reference] || "{}";
}

async function send(method, path, fields, body, output) {
  const query = new URLSearchParams();
  const headers = {};
  for (const { parameter, input } of fields) {
    if (!input.value) continue;
    if (parameter.in === "path") path = path.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
    else if (parameter.in === "query") query.set(parameter.name, input.value);
    else headers[parameter.name] = input.value;
  }
  const token = document.getElementById("token").value;
  if (token) headers.authorization = `Bearer ${token}`;
  if (body) headers["content-type"] = "application/json";
  const address = `.${path}${query.size ? `?${query}` : ""}`;
  try {
    const answer = await fetch(address, { method, headers, body: body ? body.value : undefined });
    const text = await answer.text();
    let shown = text;
    try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* not JSON: as it is */ }
    output.textContent = `${answer.status}\n${shown}`;
  } catch (error) {
    output.textContent = String(error);
  }
}

function show(method, path, operation, parent) {
  const details = element("details", "", parent);
  const summary = element("summary", "", details);
  element("b", method.toUpperCase(), summary);
  element("code", path, summary);
  element("span", `  ${operation.summary}`, summary);
  const fields = (operation.parameters || []).map((each) => field(each, details));
  let body = null;
  if (operation.requestBody) {
    body = element("textarea", "", element("label", "body", details));
    body.rows = 5;
    body.value = example(operation);
  }
  const button = element("button", "Send", details);
  const output = element("pre", "", details);
  button.addEventListener("click", () => send(method.toUpperCase(), path, fields, body, output));
}

fetch("openapi.json").then((answer) => answer.json()).then((api) => {
  const groups = {};
  for (const [path, operations] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const tag = operation.tags[0];
      if (!groups[tag]) {
        groups[tag] = element("section", "", document.getElementById("operations"));
        element("h2", tag, groups[tag]);
      }
      show(method, path, operation, groups[tag]);
    }
  }
});
