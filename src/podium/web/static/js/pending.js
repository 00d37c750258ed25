// The pods that wait, and why.
import { useAnswer } from "./api.js";
import { Swatch } from "./colours.js";
import { html, useState } from "./dom.js";
import { asQuery, Filters, useFilters } from "./filters.js";
import { Fixes } from "./fixes.js";
import { age, clock, counted, number } from "./format.js";
import { useStamp } from "./live.js";
import { Empty, Failure, Loading } from "./notices.js";
import { groupLink, nodeLink, podLink } from "./router.js";

const POOLS = {
  active: ["about to be tried", "In line: it is tried as soon as it is its turn."],
  backoff: ["in backoff", "Tried; the next attempt waits for the end of its backoff."],
  unschedulable: ["waiting for a change", "Fits nowhere; it is tried again when something changes that could help."],
  gated: ["held back", "Something keeps it from being tried at all."],
  "in flight": ["being placed", "Being decided or bound right now."],
};

const [NAME, WORDS] = [0, 1];

// What would wake a pod: the events that its plugins wait for, and when it is tried without one.
export function Wakes({ waiting }) {
  if (!waiting) return null;
  const events = waiting.waitsFor || [];
  return html`<details class="wakes"><summary>What would wake it</summary>
    <ul>
      ${waiting.gatedBy && html`<li>${waiting.gatedBy} holds it back.</li>`}
      ${waiting.backoffUntil && html`<li>Its backoff ends at ${clock(Date.parse(waiting.backoffUntil) / 1000)}.</li>`}
      ${events.map((each) => html`<li key=${each.plugin}><strong>${each.plugin === "*" ? "any rule" : each.plugin}</strong>: ${each.events.join(", ")}</li>`)}
      ${waiting.retriedAt && html`<li>Without an event it is tried again at ${clock(Date.parse(waiting.retriedAt) / 1000)}.</li>`}
    </ul></details>`;
}

function Row({ each, now }) {
  const [open, setOpen] = useState(false);
  const pool = POOLS[each.pool] || [each.pool, ""];
  return html`<tr>
    <th scope="row"><${Swatch} each=${each} /><a href=${podLink(each.pod)}>${each.pod}</a>${each.priority ? html`<br /><span class="quiet">priority ${number(each.priority)}</span>` : null}</th>
    <td class="reason">${each.reason || html`<span class="quiet">not tried yet</span>`}
      ${each.group && html`<br /><span class="quiet">of the pod group <a href=${groupLink(each.group)}>${each.group}</a></span>`}
      ${each.nominated && html`<br /><span class="quiet">nominated to <a href=${nodeLink(each.nominated)}>${each.nominated}</a></span>`}
      <${Wakes} waiting=${each.waiting} />
      ${each.reason && html`<button type="button" class="asking" aria-expanded=${open} onClick=${() => setOpen(!open)}>What would make it fit?</button>`}</td>
    <td data-label="Queue"><span class="chip" title=${pool[WORDS]}>${pool[NAME]}</span></td>
    <td class="number" data-label="Attempts">${number(each.attempts)}</td>
    <td class="number" data-label="Waiting for" title=${`since ${clock(each.since)}`}>${age(now - each.since)}</td>
  </tr>${open && html`<tr class="wide-row"><td colspan="5"><${Fixes} pod=${each.pod} /></td></tr>`}`;
}

const workload = (pod) => (pod.kind === "Pod" ? pod.pod : `${pod.kind} ${pod.pod.split("/")[0]}/${pod.workload}`);

// Pods of one workload that wait for the same reason in the same queue, as one group.
function grouped(pods) {
  const found = new Map();
  for (const each of pods) {
    const key = [workload(each), each.reason, each.pool, each.nominated || ""].join("\n");
    if (found.has(key)) found.get(key).push(each);
    else found.set(key, [each]);
  }
  return [...found.values()];
}

// The pods of a group: the one that waits longest, and the others on demand.
function Group({ pods, now }) {
  const [open, setOpen] = useState(false);
  const [first, ...others] = pods;
  if (!others.length) return html`<${Row} each=${first} now=${now} />`;
  return html`<${Row} each=${first} now=${now} />
    <tr class="wide-row"><td colspan="5"><button type="button" class="asking" aria-expanded=${open} onClick=${() => setOpen(!open)}>${counted(others.length, "more pod")} of ${workload(first)} ${others.length === 1 ? "waits" : "wait"} for the same reason</button></td></tr>
    ${open && others.map((each) => html`<${Row} key=${each.pod} each=${each} now=${now} />`)}`;
}

export function PendingPage() {
  const filters = useFilters();
  const query = filters.q;
  const stamp = useStamp((pulse) => `${pulse.waiting} ${pulse.failed} ${pulse.placed} ${Math.floor(pulse.time / 5)}`);
  const { data, error, loading } = useAnswer(`/pending?${asQuery(filters)}`, stamp);
  const now = Date.now() / 1000;
  const waiting = data ? Object.entries(data.pools).filter(([, count]) => count > 0) : [];
  return html`<div class="heading"><h1>Pending pods</h1>
      <p class="quiet" aria-live="polite">${data ? counted(data.total, "pod") + (data.total === 1 ? " waits" : " wait") : ""}${waiting.length > 0 ? ": " : ""}${waiting.map(([pool, count]) => `${number(count)} ${(POOLS[pool] || [pool])[NAME]}`).join(", ")}</p>
    </div>
    <${Filters} filters=${filters} namespaces=${data ? data.namespaces : []} placeholder="Search pods and reasons" />
    ${error && html`<${Failure} error=${error} />`}
    ${loading && !data && html`<${Loading} what="Asking who waits…" />`}
    ${data && data.total === 0 && html`<${Empty} title="Nobody waits.">Every pod has a node. A pod that fits nowhere would be listed here with its reason.<//>`}
    ${data && data.total > 0 && !data.pods.length && html`<${Empty} title=${query ? `No waiting pod matches “${query}”.` : "No waiting pod matches."} />`}
    ${data &&
    data.pods.length > 0 &&
    html`<table class="list">
      <thead><tr><th scope="col">Pod</th><th scope="col">Why it is not placed</th><th scope="col">Queue</th><th scope="col" class="number">Attempts</th><th scope="col" class="number">Waiting for</th></tr></thead>
      <tbody>${grouped(data.pods).map((pods) => html`<${Group} key=${pods[0].pod} pods=${pods} now=${now} />`)}</tbody>
    </table>
    ${data.matching > data.pods.length && html`<p class="quiet">The first ${number(data.pods.length)} of ${number(data.matching)}; search to see others.</p>`}`}`;
}
