// Which placements other rules would change.
import { html } from "../dom.js";
import { counted, number } from "../format.js";
import { place } from "../plan/map.js";
import { podLink } from "../router.js";

const SHOWN = 200;

function Counts({ result }) {
  const boxes = [
    ["moved", result.moved, "go to another node"],
    ["placed", result.placed, "find a place at last"],
    ["lost", result.lost, "find no place any more"],
    ["same", result.unchanged, "stay as they are"],
  ];
  return html`<dl class="counts">${boxes.map(([key, count, words]) => html`<div class=${`${key} ${count ? "" : "none"}`}><dd>${number(count)}</dd><dt>${words}</dt></div>`)}</dl>`;
}

function About({ result }) {
  const limits = result.leftOut ? ` The oldest ${number(result.leftOut)} stay where they are.` : "";
  return html`<p class="quiet">Both times ${counted(result.pods, "pod")} are placed again on today's nodes, in the order of their binding; ${counted(result.fixed, "pod")} of daemons and other schedulers stay.${limits}
    ${result.replayed > 0 && ` By today's rules, ${number(result.asNow)} of ${number(result.replayed)} end up where they run now: the others were placed when the cluster looked different.`}</p>`;
}

export function Difference({ result, stale, text }) {
  const changed = result.moved + result.placed + result.lost;
  return html`<div class=${stale ? "stale" : ""}>
    <h2>${changed ? `${counted(changed, "placement")} would change` : "No placement would change"}</h2>
    ${stale && html`<p class="note">The form has changed since; compare again.</p>`}
    <${Counts} result=${result} />
    ${result.changes.length > 0 &&
    html`<div class="scroll" tabindex="0" role="region" aria-label="Placements that would change"><table class="list difference">
      <thead><tr><th scope="col">Pod</th><th scope="col">By today's rules</th><th scope="col"><span class="hidden">becomes</span></th><th scope="col">By the new ones</th></tr></thead>
      <tbody>${result.changes.slice(0, SHOWN).map((each) => html`<tr key=${each.pod} class=${each.kind}>
        <th scope="row"><a href=${podLink(each.pod)}>${each.pod}</a></th><td>${place(each.before)}</td><td aria-hidden="true">→</td>
        <td title=${each.reason}>${place(each.after)}</td></tr>`)}</tbody>
    </table></div>`}
    ${changed > SHOWN && html`<p class="quiet">The first ${number(Math.min(SHOWN, result.changes.length))} of ${number(changed)}.</p>`}
    ${result.nodes.length > 0 &&
    html`<h3>Pods per node</h3><ul class="per-node">${result.nodes.map((each) => html`<li key=${each.node}>${place(each.node)} <span>${number(each.before)} → ${number(each.after)}</span></li>`)}</ul>`}
    <${About} result=${result} />
    <details><summary>The new rules as text</summary><pre tabindex="0">${text}</pre></details>
  </div>`;
}
