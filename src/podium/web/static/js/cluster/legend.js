// Which colour means whom, the largest first; each can be chosen.
import { square } from "../colours.js";
import { html, useMemo, useState } from "../dom.js";
import { number, workloadName } from "../format.js";
import { picture } from "./model.js";

const SHOWN = 12;

// The workloads or namespaces on the map with their number of pods, the largest first.
export function sizes(by) {
  const found = new Map();
  for (const node of picture.byRow.values()) {
    for (const pod of node.pods) {
      const each = picture.workloads[pod];
      const key = by === "workload" ? pod : each[0];
      const entry = found.get(key) || { each, label: by === "workload" ? workloadName(each) : each[0], count: 0 };
      entry.count += 1;
      found.set(key, entry);
    }
  }
  return [...found.values()].sort((a, b) => b.count - a.count);
}

export function Legend({ colour, version, verb, onChoose }) {
  const [all, setAll] = useState(false);
  const entries = useMemo(() => sizes(colour), [colour, version]);
  if (!entries.length) return null;
  const shown = all ? entries : entries.slice(0, SHOWN);
  return html`<ul class="legend" aria-label=${`Pods by ${colour}`}>
    ${shown.map(
      (entry) => html`<li key=${entry.each.join("/")}>
        <button type="button" class="plain" title=${`${verb} ${entry.label}`} onClick=${() => onChoose(entry)}>
          <span class="cell" style=${{ background: square(entry.each, colour) }}></span> ${entry.label} <span class="quiet">${number(entry.count)}</span>
        </button>
      </li>`,
    )}
    ${entries.length > SHOWN &&
    html`<li><button type="button" class="plain quiet" onClick=${() => setAll(!all)}>${all ? "fewer" : `${entries.length - SHOWN} more`}</button></li>`}
  </ul>`;
}
