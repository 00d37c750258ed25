// A zone of a small cluster: a tile per node, with bars for load and a cell for each pod.
import { shade, square } from "../colours.js";
import { html } from "../dom.js";
import { counted, percent, resourceName, taintText, workloadName } from "../format.js";
import { neighbour } from "../keys.js";
import { CORDONED, GHOST, NOT_READY, picture, taintsOf } from "./model.js";

export function flagWords(node) {
  const words = [];
  if (node.flags & GHOST) words.push("unknown node");
  if (node.flags & NOT_READY) words.push("not ready");
  if (node.flags & CORDONED) words.push("cordoned");
  return words;
}

export const fullness = (thousandths) => (thousandths > 1000 ? "over" : thousandths > 900 ? "full" : "");

function Bar({ name, load, was = load }) {
  const share = Math.min(load / 1000, 1);
  return html`<span class=${`bar ${fullness(load)}`}>
    <span class="what">${resourceName(name)}</span>
    <span class="track"><span class="fill" style=${{ width: percent(share) }}></span></span>
    <span class="share">${was === load ? "" : `${percent(was / 1000)} → `}${percent(load / 1000)}</span>
  </span>`;
}

export function described(node) {
  const taints = taintsOf(node);
  const parts = [
    `Node ${node.name}`,
    ...(node.mark && node.mark.words ? [node.mark.words] : []),
    ...flagWords(node),
    ...picture.resources.flatMap((name, i) => (node.load[i] === null ? [] : [`${resourceName(name)} ${percent(node.load[i] / 1000)}`])),
    counted(node.pods.length, "pod"),
  ];
  if (taints.length) parts.push(`taints ${taints.map(taintText).join(", ")}`);
  return parts.join(", ");
}

const Cell = ({ workload, colour, kind = "" }) =>
  html`<span class=${`cell ${kind}`} style=${kind.startsWith("leaving") ? { borderColor: shade(workload, colour) } : { background: square(workload, colour) }} title=${`${workloadName(workload)}${kind && `, ${kind}`}`}></span>`;

function Tile({ node, colour, tabbable, selected, onOpen }) {
  const taints = taintsOf(node).filter((taint) => taint[0] !== "node.kubernetes.io/unschedulable" || !(node.flags & CORDONED));
  const words = flagWords(node);
  const { mark = { same: true } } = node;
  const state = mark.same ? "" : `changed ${mark.gone ? "gone" : ""} ${mark.added ? "added" : ""}`;
  return html`<button type="button" class=${`tile ${words.length ? "away" : ""} ${state}`} tabindex=${tabbable ? 0 : -1} data-node=${node.name} aria-pressed=${selected} onClick=${() => onOpen(node.name)}>
    <span class="name">${node.name}</span>
    ${mark.words && html`<span class="mark-words">${mark.words}</span>`}
    ${(words.length > 0 || taints.length > 0) &&
    html`<span class="chips">
      ${words.map((word) => html`<span class="chip warn">${word}</span>`)}
      ${taints.slice(0, 2).map((taint) => html`<span class="chip" title=${taintText(taint)}>${taint[0].replace(/^.*\//, "")}${taint[1] ? `=${taint[1]}` : ""}</span>`)}
      ${taints.length > 2 && html`<span class="chip">+${taints.length - 2}</span>`}
    </span>`}
    <span class="bars">
      ${picture.resources.map((name, i) => node.load[i] !== null && (i < 2 || name === "pods" || node.load[i] > 0) && html`<${Bar} key=${name} name=${name} load=${node.load[i]} was=${mark.was ? mark.was[i] : undefined} />`)}
    </span>
    <span class="hidden">${counted(node.pods.length, "pod")}</span>
    <span class="cells" aria-hidden="true">
      ${node.pods.map((pod) => html`<${Cell} workload=${picture.workloads[pod]} colour=${colour} />`)}
      ${[...(mark.leaving || []), ...(mark.arriving || [])].map((each) => html`<${Cell} ...${each} colour=${colour} />`)}
    </span>
  </button>`;
}

// One tile of all can be reached with Tab; the arrow keys go on from there, across zones.
function moved(event) {
  const all = [...document.querySelectorAll(".zones .tile")];
  const current = document.activeElement;
  if (!all.includes(current)) return;
  const next = neighbour(all, current, event.key);
  if (!next) return;
  event.preventDefault();
  for (const each of all) each.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

export function TileZone({ nodes, colour, selected, onOpen }) {
  return html`<div class="tiles" role="group" onKeyDown=${moved}>
    ${nodes.map(
      (node, i) => html`<${Tile} key=${node.name} node=${node} colour=${colour} selected=${selected === node.name} onOpen=${onOpen}
        tabbable=${i === 0} />`,
    )}
  </div>`;
}
