// What would follow: from changes, from other rules, from more pods. Nothing is applied.
import { html } from "../dom.js";
import { CapacityForm } from "./capacity.js";
import { ChangesForm } from "./changes.js";
import { CompareForm } from "./compare.js";

const PARTS = [
  ["", "Changes", ChangesForm],
  ["compare", "Compare rules", CompareForm],
  ["capacity", "How many more fit", CapacityForm],
];

export function PlanPage({ part = "" }) {
  const [current, , Form] = PARTS.find(([path]) => path === part) || PARTS[0];
  return html`<div class="heading"><h1>Plan</h1><p class="quiet">What would follow. It is tried on a copy of the cluster; nothing is applied.</p></div>
    <nav class="parts" aria-label="Plans">${PARTS.map(
      ([path, title]) => html`<a href=${path ? `#/plan/${path}` : "#/plan"} aria-current=${path === current ? "page" : undefined}>${title}</a>`,
    )}</nav>
    <${Form} key=${current} />`;
}
