// Pods that a search finds by name, each leading to its decision.
import { useAnswer } from "../api.js";
import { Swatch } from "../colours.js";
import { html } from "../dom.js";
import { useStamp } from "../live.js";
import { podLink } from "../router.js";

const SHOWN = 8;

export function PodMatches({ query }) {
  // A pod that is created while its name stands in the search appears as soon as it is known.
  const stamp = useStamp((told) => `${told.version}/${told.waiting}`);
  const { data } = useAnswer(`/pods?q=${encodeURIComponent(query)}`, stamp);
  if (!data || !data.pods.length) return null;
  const more = data.pods.length - SHOWN;
  return html`<div class="matches" aria-label="Pods found">
    <span class="quiet">Pods:</span>
    <ul>
      ${data.pods.slice(0, SHOWN).map((each) => html`<li key=${each.pod}><${Swatch} each=${each} /><a href=${podLink(each.pod)}>${each.pod}</a> <span class="quiet">${each.node ? `on ${each.node}` : "pending"}</span></li>`)}
      ${more > 0 && html`<li class="quiet">and ${more}${data.pods.length === 50 ? " or more" : ""} others</li>`}
    </ul>
  </div>`;
}
