// The rejected nodes, grouped by rule and reason.
import { html } from "../dom.js";
import { breakable, counted, number, percent } from "../format.js";
import { nodeLink } from "../router.js";

const SHOWN = 200;

// The reasons, each with a link to what it means, if the documentation has it.
function Reasons({ group }) {
  const links = group.anchors || [];
  return group.reasons.map((reason, i) => html`${i > 0 && ", "}${links[i] ? html`<a class="reason" href=${`podium/help/reasons.md#${links[i]}`} title="What this means, and what to change">${reason}</a>` : reason}`);
}

function Group({ group, total, rule }) {
  const names = group.nodes || [];
  return html`<li class="rejection">
    <div class="what"><strong>${breakable(group.byRule ? group.byRule.map((each) => each.predicate).join(", ") : group.predicate || rule)}</strong>
      <span>${group.byRule ? group.byRule.map((each) => `${each.predicate}: ${each.reasons.join(", ")}`).join("; ") : html`<${Reasons} group=${group} />`}</span>
      ${group.curable && html`<span class="chip" title="Evicting pods from the node could change the answer">evicting could help</span>`}</div>
    <div class="how-many"><span class="track"><span class="fill" style=${{ width: percent(group.count / Math.max(1, total)) }}></span></span>
      <span>${counted(group.count, "node")}</span></div>
    ${(group.causeLines || []).length > 0 &&
    html`<ul class="causes" aria-label="Causes">${group.causeLines.map((line) => html`<li>${line.text}${line.count < group.count && html` <span class="quiet">${line.count <= line.nodes.length ? line.nodes.join(", ") : counted(line.count, "node")}</span>`}</li>`)}</ul>`}
    ${names.length > 0 &&
    html`<details><summary>${names.length === 1 ? names[0] : `${names.slice(0, 3).join(", ")}${names.length > 3 ? ` and ${number(names.length - 3)} more` : ""}`}</summary>
      <p class="names">${names.slice(0, SHOWN).map((name) => html`<a href=${nodeLink(name)}>${name}</a> `)}${names.length > SHOWN && html`<span class="quiet">and ${number(names.length - SHOWN)} more</span>`}</p>
    </details>`}
  </li>`;
}

export function Rejections({ decision }) {
  const groups = decision.rejections;
  const [rule] = decision.ruleNames;
  if (decision.refused) {
    return html`<section><h2>Rejected before any node was examined</h2><p><strong>${decision.refused.plugin}</strong>: ${decision.refused.reason}</p></section>`;
  }
  if (!groups.length) {
    return decision.node ? html`<section><h2>Rejected</h2><p class="quiet">No node was rejected.</p></section>` : null;
  }
  return html`<section aria-labelledby="rejected"><h2 id="rejected">Rejected <span class="quiet">by ${rule}</span></h2>
    <ul class="rejections">${groups.map((group, i) => html`<${Group} key=${i} group=${group} total=${decision.nodes.total} rule=${rule} />`)}</ul>
  </section>`;
}
