// The map: zones with their nodes, as tiles with names or, of many nodes, as small squares.
import { html } from "../dom.js";
import { counted, number, zoneName } from "../format.js";
import { DenseZone } from "./dense.js";
import { TileZone } from "./tiles.js";

// Up to so many nodes are shown as tiles; more of them as squares.
export const TILES = 300;

// Groups are {zone, name, nodes, all}: all counts the nodes that are not shown, too. With `onZone`,
// a zone can be chosen by its heading.
export function Zones({ groups, dense, chosenZone = null, onZone = null, ...rest }) {
  const Zone = dense ? DenseZone : TileZone;
  const words = (group) => `${group.name[0] && group.name[1] ? `${group.name[0]} · ` : ""}${group.nodes.length < group.all ? `${number(group.nodes.length)} of ` : ""}${counted(group.all, "node")}`;
  return html`<div class=${`zones ${dense ? "dense" : ""}`}>
    ${groups.map(
      (group) => html`<section key=${group.zone} class="zone" aria-label=${`Zone ${zoneName(group.name)}`}>
        <h2>${onZone && group.name[1] ? html`<button type="button" aria-pressed=${chosenZone === group.name[1]} title="Choose the zone" onClick=${() => onZone(group)}>${zoneName(group.name)}</button>` : zoneName(group.name)} <span class="quiet">${words(group)}</span></h2>
        <${Zone} nodes=${group.nodes} ...${rest} />
      </section>`,
    )}
  </div>`;
}
