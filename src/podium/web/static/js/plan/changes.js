// What follows from changes: a form, and the answer drawn on the map of nodes before anything is applied.
import { sendJson } from "../api.js";
import { html, useState } from "../dom.js";
import { Failure, Loading } from "../notices.js";
import { createStore, useStore } from "../store.js";
import { legend, List, NodeMap, place } from "./map.js";

// Flag, what a person calls it, the form of its text.
const CHANGES = [
  ["drain", "Drain a node", "node name, or LABEL=VALUE"],
  ["lose", "Lose nodes", "node name, or topology.kubernetes.io/zone=VALUE"],
  ["scale", "Scale a workload", "deployment/NAME=5"],
  ["rollout", "Restart a workload", "deployment/NAME"],
  ["add", "Add nodes", "2:NODE"],
  ["cordon", "Cordon a node", "node name"],
  ["uncordon", "Uncordon a node", "node name"],
  ["taint", "Taint a node", "NODE:KEY=VALUE:NoSchedule"],
  ["delete", "Delete an object", "deployment/NAME"],
  ["replace", "Replace nodes", "LABEL=VALUE"],
];

const kept = createStore([]);

function Maps({ plan }) {
  const before = new Map(plan.before.nodes.map((each) => [each.name, each]));
  const after = new Map(plan.after.nodes.map((each) => [each.name, each]));
  const names = [...new Set([...before.keys(), ...after.keys()])].sort();
  const changed = new Set(names.filter((name) => JSON.stringify(before.get(name)) !== JSON.stringify(after.get(name))));
  return html`<div class="plan-maps">
    <${NodeMap} title="Now" names=${names} usages=${before} changed=${changed} />
    <${NodeMap} title="After the changes" names=${names} usages=${after} changed=${changed} />
  </div>
  <p class="quiet">${legend(names.length, "of its cpu is requested")} Outlined ones change.</p>`;
}

function Answer({ plan }) {
  const notes = [...plan.notes, ...plan.changes.flatMap((change) => change.notes)];
  const blocked = plan.changes.flatMap((change) => change.blocked);
  return html`<h2 class=${plan.leavesPods ? "leaves" : ""}>${plan.summary}</h2>
    <${Maps} plan=${plan} />
    ${notes.length > 0 && html`<ul>${notes.slice(0, 20).map((note) => html`<li>${note}</li>`)}</ul>`}
    <${List} title="Blocked evictions" heads=${["Pod", "Node", "Because"]} rows=${blocked.map((each) => [each.pod, place(each.node), each.reason])} />
    <${List} title="Without a node" heads=${["Pod", "Was on", "Reason"]} rows=${plan.pending.map((each) => [each.pod, each.wasPending ? "pending before" : place(each.fromNode), each.message])} />
    <${List} title="Gone and not created anew" heads=${["Pod", "From", "Because"]} rows=${plan.gone.filter((each) => !each.wanted).map((each) => [each.pod, place(each.node), each.reason])} />
    <${List} title="Moved" heads=${["Pod", "From", "To", "New pod"]} rows=${plan.moved.map((each) => [each.pod, place(each.fromNode), each.toNode, each.newPod === each.pod ? "" : each.newPod])} />
    <${List} title="New" heads=${["Pod", "Node"]} rows=${plan.created.map((each) => [each.pod, each.node])} />
    <${List} title="Pod groups" heads=${["Group", "Needs", "On a node", "Why"]} rows=${plan.groups.map((each) => [each.group, each.minCount, `${Object.keys(each.placed).length} of ${Object.keys(each.placed).length + each.withoutNode.length}`, each.why.join("; ")])} />
    <${List} title="Evicted" heads=${["Pod", "From", "For"]} rows=${plan.evicted.map((each) => [each.pod, place(each.node), each.preemptor])} />
    <details><summary>What happens, in virtual time</summary><ol class="timeline">${plan.timeline.slice(0, 500).map((event) => html`<li><span class="quiet">${event.at.toFixed(1)} s</span> ${event.text}</li>`)}</ol></details>`;
}

export function ChangesForm() {
  const changes = useStore(kept);
  const [flag, setFlag] = useState("drain");
  const [text, setText] = useState("");
  const [state, setState] = useState({ at: "idle" });
  const form = CHANGES.find((each) => each[0] === flag)[2];
  const all = text.trim() ? [...changes, [flag, text.trim()]] : changes;
  const show = async () => {
    kept.set(all);
    setText("");
    setState({ at: "asking" });
    try {
      setState({ at: "answered", plan: await sendJson("POST", "/plan", { changes: all }) });
    } catch (error) {
      setState({ at: "failed", error });
    }
  };
  const submitted = (event) => {
    event.preventDefault();
    if (all.length) show();
  };
  return html`<form class="plan-form" onSubmit=${submitted} aria-label="Changes">
      ${changes.length > 0 && html`<ol class="chosen">${changes.map((each, i) => html`<li key=${i}><code>${each[0]} ${each[1]}</code> <button type="button" class="plain" aria-label=${`Remove ${each[0]} ${each[1]}`} onClick=${() => kept.set(changes.filter((_, other) => other !== i))}>remove</button></li>`)}</ol>`}
      <label>Change <select value=${flag} onChange=${(event) => setFlag(event.target.value)}>${CHANGES.map(([name, words]) => html`<option value=${name}>${words}</option>`)}</select></label>
      <label>What <input type="text" size="40" value=${text} placeholder=${form} autocomplete="off" spellcheck="false" onInput=${(event) => setText(event.target.value)} /></label>
      <button type="button" disabled=${!text.trim()} onClick=${() => { kept.set(all); setText(""); }}>Add another</button>
      <button type="submit" class="primary" disabled=${!all.length || state.at === "asking"}>Show what follows</button>
    </form>
    <section class="outcome" aria-label="What follows" aria-live="polite">
      ${state.at === "asking" && html`<${Loading} what="Making the changes on a copy of the cluster…" />`}
      ${state.at === "failed" && html`<${Failure} error=${state.error} />`}
      ${state.at === "answered" && html`<${Answer} plan=${state.plan} />`}
    </section>`;
}
