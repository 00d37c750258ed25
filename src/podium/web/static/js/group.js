// A pod group as one thing: its pods, what it needs, and what its last cycle found.
import { useAnswer } from "./api.js";
import { html } from "./dom.js";
import { clock, counted, number } from "./format.js";
import { useStamp } from "./live.js";
import { Empty, Failure, Loading } from "./notices.js";
import { Wakes } from "./pending.js";
import { nodeLink, podLink } from "./router.js";

const OUTCOMES = {
  placed: "got this node",
  notTried: "not tried",
  unschedulable: "fitted nowhere",
  error: "error",
};

const node = (name) => (name ? html`<a href=${nodeLink(name)}>${name}</a>` : html`<span class="quiet">–</span>`);

function Needs({ group }) {
  if (group.minCount === undefined) return html`<p class="note">The PodGroup itself is not there. Its pods wait until it is.</p>`;
  const rule = group.policy === "gang" ? `${number(group.minCount)} must have a node, or none gets one` : "Its pods are placed as far as they fit";
  const evicted = group.evictedTogether ? "; all of its pods are evicted, or none" : "";
  return html`<p>${rule}${evicted}. Priority ${number(group.priority)}.${group.missing > 0 && html` <strong>${counted(group.missing, "more pod")} needed.</strong>`}</p>`;
}

// A pod, where it is, and what the last cycle found for it.
function Member({ each, tried }) {
  const undone = tried && tried.outcome === "undone";
  return html`<tr>
    <th scope="row"><a href=${podLink(each.pod)}>${each.pod}</a></th>
    <td data-label="Node">${node(each.node)}</td>
    <td data-label="Last cycle">${undone ? html`fitted on ${node(tried.undoneNode)}, undone` : tried && OUTCOMES[tried.outcome]}</td>
    <td class="reason">${undone ? "" : each.reason}</td>
  </tr>`;
}

// How many are missing, what was undone, what preemption found, and when the group is tried again.
function Cycle({ cycle }) {
  if (!cycle) return html`<p class="quiet">No cycle of this group is known: it was not tried yet, or before this scheduler started.</p>`;
  const [headline, ...sentences] = cycle.told;
  return html`<section aria-labelledby="cycle"><h2 id="cycle">Last cycle <span class="quiet">attempt ${number(cycle.attempt)}, ${clock(cycle.at)}</span></h2>
    <p>${headline}</p>
    <ul>${sentences.map((each) => html`<li>${each}</li>`)}</ul></section>`;
}

export function GroupPage({ namespace, name }) {
  const stamp = useStamp((pulse) => `${pulse.decided} ${pulse.placed} ${pulse.waiting}`, 1500);
  const { data, error, loading } = useAnswer(`/groups/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`, stamp);
  if (error && error.status === 404) {
    return html`<${Empty} title=${`There is no pod group ${namespace}/${name}.`}>It may have been deleted, or the gate GenericWorkload is off. <a href="#/">Back to the cluster</a><//>`;
  }
  if (error && !data) return html`<${Failure} error=${error} />`;
  if (loading || !data) return html`<${Loading} what=${`Asking about the pod group ${namespace}/${name}…`} />`;
  const tried = new Map((data.cycle ? data.cycle.members : []).map((each) => [each.pod, each]));
  return html`<article class="decision group"><h1 class="headline">Pod group ${data.group}: ${number(data.placed)} of ${counted(data.members.length, "pod")} ${data.placed === 1 ? "has" : "have"} a node</h1>
    <${Needs} group=${data} />
    ${data.condition && html`<p class="quiet">PodGroupInitiallyScheduled is ${data.condition.status}: ${data.condition.reason}.</p>`}
    <table class="list"><thead><tr><th scope="col">Pod</th><th scope="col">Node</th><th scope="col">Last cycle</th><th scope="col">Why it is not placed</th></tr></thead>
      <tbody>${data.members.map((each) => html`<${Member} key=${each.pod} each=${each} tried=${tried.get(each.pod)} />`)}</tbody></table>
    <${Wakes} waiting=${data.waiting} />
    <${Cycle} cycle=${data.cycle} /></article>`;
}
