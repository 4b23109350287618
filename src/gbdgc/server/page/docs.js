// The API's own description, openapi.json, written out for people.

const openapi = await (await fetch("openapi.json")).json();

function element(kind, content, name = "") {
  const made = document.createElement(kind);
  made.className = name;
  made.append(...[content].flat());
  return made;
}

const resolve = (schema) => (schema?.$ref ? openapi.components.schemas[schema.$ref.split("/").pop()] : schema);

function kind(schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(kind).join(" or ");
  if (schema.prefixItems) return `(${schema.prefixItems.map(kind).join(", ")})`;
  if (schema.type === "array") return `list of ${kind(schema.items ?? { type: "values" })}`;
  if (schema.format === "binary") return "file";
  return schema.type === "object" && schema.additionalProperties ? `{name: ${kind(schema.additionalProperties)}}` : schema.type;
}

function fields(schema) {
  const rows = Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const inner = [field, ...(field.anyOf ?? [])].map(resolve).find((part) => part?.properties);
    const row = element("tr", [element("td", element("code", name)), element("td", kind(field)), element("td", field.description ?? "")]);
    const nested = Object.entries(inner?.properties ?? {}).map(([key, part]) =>
      element("tr", [element("td", element("code", `${name}.${key}`)), element("td", kind(part)), element("td", part.description ?? "")]));
    return [row, ...nested];
  });
  return element("div", element("table", rows), "scroll");
}

function example(method, path) {
  const address = new URL(path.slice(1), document.baseURI);
  return method === "post" ? `curl -F image=@street.jpg -F 'zones={"door": [[0, 0], [200, 0], [200, 300]]}' ${address}` : `curl ${address}`;
}

for (const [path, methods] of Object.entries(openapi.paths)) {
  for (const [method, route] of Object.entries(methods)) {
    const part = element("section", [
      element("h2", [element("span", method.toUpperCase(), "method"), " ", element("code", path)]),
      element("p", route.description ?? ""),
      element("pre", example(method, path)),
    ]);
    const form = route.requestBody?.content["multipart/form-data"].schema;
    if (form) part.append(element("h3", "Fields"), fields(resolve(form)));
    const answer = resolve(route.responses[200].content["application/json"]?.schema);
    if (answer?.properties) part.append(element("h3", "Answer"), fields(answer));
    const problems = Object.entries(route.responses).filter(([status]) => status !== "200");
    if (problems.length) {
      const rows = problems.map(([status, { description }]) => element("tr", [element("td", element("code", status)), element("td", description)]));
      part.append(element("h3", "Otherwise"), element("table", rows));
    }
    document.getElementById("routes").append(part);
  }
}
