// What follows from a plan, in words: what stands in the way, and every pod that it concerns.
import { square } from "../colours.js";
import { html } from "../dom.js";
import { counted, workloadName } from "../format.js";
import { List, place } from "./map.js";
import { workloadOf } from "./marks.js";

const EVENTS = 500;
const NOTES = 20;

export function Lists({ plan }) {
  const blocked = plan.changes.flatMap((change) => change.blocked);
  return html`<${List} title="Blocked evictions" heads=${["Pod", "Node", "Because"]} rows=${blocked.map((each) => [each.pod, place(each.node), each.reason])} />
    <${List} title="Without a node" heads=${["Pod", "Was on", "Reason"]} rows=${plan.pending.map((each) => [each.pod, each.wasPending ? "pending before" : place(each.fromNode), each.message])} />
    <${List} title="Gone and not created anew" heads=${["Pod", "From", "Because"]} rows=${plan.gone.filter((each) => !each.wanted).map((each) => [each.pod, place(each.node), each.reason])} />
    <${List} title="Moved" heads=${["Pod", "From", "To", "New pod"]} rows=${plan.moved.map((each) => [each.pod, place(each.fromNode), place(each.toNode), each.newPod === each.pod ? "" : each.newPod])} />
    <${List} title="New" heads=${["Pod", "Node"]} rows=${plan.created.map((each) => [each.pod, place(each.node)])} />
    <${List} title="Pod groups" heads=${["Group", "Needs", "On a node", "Why"]} rows=${plan.groups.map((each) => [each.group, each.minCount, `${Object.keys(each.placed).length} of ${Object.keys(each.placed).length + each.withoutNode.length}`, each.why.join("; ")])} />
    <${List} title="Evicted" heads=${["Pod", "From", "For"]} rows=${plan.evicted.map((each) => [each.pod, place(each.node), each.preemptor])} />
    <details><summary>What happens, in virtual time</summary><ol class="timeline">${plan.timeline.slice(0, EVENTS).map((event) => html`<li><span class="quiet">${event.at.toFixed(1)} s</span> ${event.text}</li>`)}</ol></details>`;
}

export function Notes({ plan }) {
  const notes = [...plan.notes, ...plan.changes.flatMap((change) => change.notes)];
  return notes.length > 0 && html`<ul class="notes">${notes.slice(0, NOTES).map((note) => html`<li>${note}</li>`)}</ul>`;
}

// The pods that have no node after the plan, beside the map: a square each, by workload.
export function Homeless({ plan }) {
  if (!plan.pending.length) return null;
  const found = new Map();
  for (const each of plan.pending) {
    const workload = workloadOf(each);
    const name = workload[2] ? workloadName(workload) : each.pod;
    if (!found.has(name)) found.set(name, { workload, name, count: 0, before: 0 });
    found.get(name).count += 1;
    if (each.wasPending) found.get(name).before += 1;
  }
  return html`<section class="homeless" aria-label="Pods without a node after the changes"><h3>${counted(plan.pending.length, "pod")} without a node</h3>
    <ul>${[...found.values()].map((each) => html`<li key=${each.name}><span class="cell" aria-hidden="true" style=${{ background: square(each.workload) }}></span> ${each.name} <strong>${each.count}</strong>${each.before > 0 && html` <span class="quiet">(${each.before === each.count ? "pending before" : `${each.before} pending before`})</span>`}</li>`)}</ul>
  </section>`;
}
