// The pods that would be evicted so that the pod fits, and why on this node.
import { html } from "../dom.js";
import { counted, number } from "../format.js";
import { nodeLink, podLink } from "../router.js";

const SHOWN = 20;

function Candidate({ each, chosen }) {
  const victims = each.victims.slice(0, 8);
  const [violations, top, sum, count] = each.cost;
  return html`<tr class=${chosen ? "winner" : ""}>
    <th scope="row"><a href=${nodeLink(each.node)}>${each.node}</a>${chosen && html` <span class="chip win">chosen</span>`}</th>
    <td>${victims.length ? victims.map((victim) => html`<div><a href=${podLink(victim.pod)}>${victim.pod}</a> <span class="quiet">priority ${number(victim.priority)}${victim.why && html`; ${victim.why}`}</span></div>`) : html`<span class="quiet">none</span>`}
      ${count > victims.length && html`<div class="quiet">and ${number(count - victims.length)} more</div>`}</td>
    <td class="number">${number(violations)}</td><td class="number">${number(top)}</td><td class="number">${number(sum)}</td><td class="number">${number(count)}</td>
  </tr>`;
}

// Why evicting pods does not help on the other nodes.
function NoCandidates({ lines = [] }) {
  if (!lines.length) return null;
  return html`<ul class="causes" aria-label="Nodes without a candidate">${lines.map((line) => html`<li>${line.count > line.nodes.length ? `${line.nodes.join(", ")} and ${number(line.count - line.nodes.length)} more` : line.nodes.join(", ")}: ${line.text}</li>`)}</ul>`;
}

export function Preemption({ decision }) {
  const { preemption } = decision;
  const others = html`<${NoCandidates} lines=${(preemption && preemption.noCandidates) || []} />`;
  if (decision.hopeless && decision.outcome === "unschedulable") {
    return html`<section><h2>Preemption</h2><p>No pod is evicted: ${decision.hopeless}.</p>${others}</section>`;
  }
  if (!preemption || !preemption.candidates.length) return null;
  return html`<section aria-labelledby="preemption"><h2 id="preemption">Preemption</h2>
    ${preemption.node && html`<p>Pods are evicted from <a href=${nodeLink(preemption.node)}>${preemption.node}</a>: ${preemption.criterionWords}.</p>`}
    <p class="quiet">${counted(preemption.candidateCount, "node")} where evicting pods helps${preemption.candidateCount > SHOWN ? `; the ${SHOWN} cheapest` : ""}. Compared from left to right, the lowest number wins; in the sum every pod counts as something, even with a negative priority.</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Candidates"><table class="list wide">
      <thead><tr><th scope="col">Node</th><th scope="col">Pods to evict</th><th scope="col" class="number">PDB violations</th><th scope="col" class="number">Highest priority</th><th scope="col" class="number">Sum</th><th scope="col" class="number">Pods</th></tr></thead>
      <tbody>${preemption.candidates.slice(0, SHOWN).map((each) => html`<${Candidate} key=${each.node} each=${each} chosen=${each.node === preemption.node} />`)}</tbody>
    </table></div>
    ${others}
  </section>`;
}
