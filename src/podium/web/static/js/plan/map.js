// A map of nodes, which shows how full each is; outlined ones change.
import { html } from "../dom.js";
import { counted, percent } from "../format.js";
import { nodeLink } from "../router.js";

const share = (usage) => {
  const there = usage.allocatable.cpu || 0;
  return there ? (usage.requested.cpu || 0) / there : 0;
};

const described = (usage) =>
  usage ? `${counted(usage.pods, "pod")}, ${percent(share(usage))} of cpu` : "not there";

// Up to so many nodes are boxes with their names; more are squares.
const NAMED = 48;

function Node({ name, words, load, missing, changed, named }) {
  const part = Math.min(load, 1);
  const style = missing ? "" : `--load: ${Math.round(named ? 100 * part : 8 + 92 * part)}%`;
  const classes = `${missing ? "missing" : ""} ${changed ? "changed" : ""}`;
  return html`<li class=${classes} style=${style} title=${`${name}: ${words}`}>
    ${named ? html`<strong>${name}</strong> <span>${words}</span>` : html`<span class="hidden">${name}: ${words}</span>`}</li>`;
}

// Nodes are {name, words, load, missing, changed}.
export function LoadMap({ title, nodes }) {
  const named = nodes.length <= NAMED;
  return html`<figure><figcaption>${title}</figcaption>
    <ul class=${`plan-map ${named ? "named" : ""}`}>${nodes.map((each) => html`<${Node} key=${each.name} ...${each} named=${named} />`)}</ul></figure>`;
}

export const legend = (count, what) =>
  count <= NAMED ? `Each box is a node: the longer its bar, the more ${what}.` : `Each square is a node: the darker, the more ${what}.`;

export function NodeMap({ title, names, usages, changed }) {
  const nodes = names.map((name) => {
    const usage = usages.get(name);
    return { name, words: described(usage), load: usage ? share(usage) : 0, missing: !usage, changed: changed.has(name) };
  });
  return html`<${LoadMap} title=${title} nodes=${nodes} />`;
}

export const place = (name) => (name ? html`<a href=${nodeLink(name)}>${name}</a>` : html`<span class="quiet">nowhere</span>`);

const SHOWN = 200;

export function List({ title, heads, rows, total = rows.length }) {
  if (!rows.length) return null;
  const shown = Math.min(SHOWN, rows.length);
  return html`<h3>${title}</h3><div class="scroll" tabindex="0" role="region" aria-label=${title}><table class="list labelled">
    <thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
    <tbody>${rows.slice(0, shown).map((row) => html`<tr>${row.map((cell, i) => (i ? html`<td data-label=${heads[i]}>${cell}</td>` : html`<th scope="row">${cell}</th>`))}</tr>`)}</tbody>
  </table></div>${total > shown && html`<p class="quiet">The first ${shown} of ${total}.</p>`}`;
}
