// Filters by namespace and labels. They are part of the address, so that a link shows the same.
import { html } from "./dom.js";
import { setParameters, useParameters } from "./router.js";

export function useFilters() {
  const found = useParameters();
  return { q: found.get("q") || "", namespace: found.get("namespace") || "", labels: found.get("labels") || "", what: found.get("what") || "", at: found.get("at") || "" };
}

export const asQuery = (filters) =>
  Object.entries(filters)
    .filter(([, value]) => value.trim())
    .map(([name, value]) => `${name}=${encodeURIComponent(value.trim())}`)
    .join("&");

export function Filters({ filters, namespaces, placeholder, children }) {
  const set = (name) => (event) => setParameters({ ...filters, [name]: event.target.value });
  const known = filters.namespace && !namespaces.includes(filters.namespace) ? [filters.namespace, ...namespaces] : namespaces;
  return html`<div class="toolbar" role="search">
    <label class="search"><span class="hidden">${placeholder}</span>
      <input type="search" placeholder=${`${placeholder}  ( / )`} value=${filters.q} onInput=${set("q")} autocomplete="off" spellcheck="false" /></label>
    <label>Namespace <select value=${filters.namespace} onChange=${set("namespace")}>
      <option value="">all</option>${known.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label>
    <label>Labels <input type="text" placeholder="app=web" value=${filters.labels} onChange=${set("labels")} autocomplete="off" spellcheck="false" /></label>
    ${children}</div>`;
}
