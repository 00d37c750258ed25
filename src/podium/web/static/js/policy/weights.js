// How much each priority counts.
import { html } from "../dom.js";
import { breakable, number } from "../format.js";

const LARGEST = 1000000;

const asWeight = (text) => {
  const value = Number.parseInt(text, 10);
  return Number.isNaN(value) ? 0 : Math.max(0, Math.min(LARGEST, value));
};

function Weight({ each, value, onChange }) {
  const id = `weight-${each.name}`;
  const changed = value !== each.weight;
  return html`<div class=${`weight-row ${changed ? "changed" : ""}`}>
    <label for=${id}><strong>${breakable(each.name)}</strong> <span class="quiet">${each.description}</span></label>
    <span class="stepper">
      <button type="button" aria-label=${`Less ${each.name}`} disabled=${!each.editable || value === 0} onClick=${() => onChange(value - 1)}>−</button>
      <input id=${id} type="number" inputmode="numeric" min="0" max=${LARGEST} step="1" value=${value} disabled=${!each.editable} onInput=${(event) => onChange(asWeight(event.target.value))} />
      <button type="button" aria-label=${`More ${each.name}`} disabled=${!each.editable} onClick=${() => onChange(value + 1)}>+</button>
    </span>
    <span class="was quiet">${value === 0 ? "off" : changed ? `was ${number(each.weight)}` : ""}</span>
  </div>`;
}

export function Weights({ profile, weights, setWeights }) {
  const [, scores] = profile.ruleNames;
  if (!profile.priorities.length) return html`<p>No ${scores} is configured: every node that fits is as good as any other.</p>`;
  return html`<p class="quiet" id="weights-help">Each ${scores} gives a node 0 to ${profile.maxScore}; the weighted sum decides. 0 turns it off.</p>
  <div class="weights" role="group" aria-describedby="weights-help">
    ${profile.priorities.map((each) => html`<${Weight} key=${each.name} each=${each} value=${weights[each.name]} onChange=${(value) => setWeights({ ...weights, [each.name]: value })} />`)}
  </div>`;
}
