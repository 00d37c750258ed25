// What can be done with the node, zone or workload that was chosen on the map.
import { Swatch } from "../colours.js";
import { html, useLayoutEffect, useRef, useState } from "../dom.js";
import { counted, number, workloadName } from "../format.js";
import { CORDONED, picture } from "../cluster/model.js";

const SCALED = ["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"];
const RESTARTED = ["Deployment", "StatefulSet", "DaemonSet"];

export const canScale = ([, kind]) => SCALED.includes(kind);
export const canRestart = ([, kind]) => RESTARTED.includes(kind);

// deployment/shop/web, as changes name it.
export const objectName = ([namespace, kind, name]) => `${kind.toLowerCase()}/${namespace}/${name}`;

const nodeNamed = (name) => [...picture.byRow.values()].find((node) => node.name === name);

const podsOf = (workload) => {
  const same = (pod) => picture.workloads[pod].join("/") === workload.join("/");
  return [...picture.byRow.values()].reduce((sum, node) => sum + node.pods.filter(same).length, 0);
};

function NodeChoice({ name, act, choose }) {
  const node = nodeNamed(name);
  if (!node) return html`<span>Node <strong>${name}</strong> is not there now.</span>`;
  const workloads = [...new Set(node.pods)].map((pod) => picture.workloads[pod]).filter(([, kind, what]) => kind !== "Pod" && what);
  const cordoned = node.flags & CORDONED;
  return html`<span class="what">Node <strong>${name}</strong> <span class="quiet">${counted(node.pods.length, "pod")}</span></span>
    <button type="button" onClick=${() => act("drain", name)}>Drain</button>
    <button type="button" onClick=${() => act("lose", name)}>Lose</button>
    <button type="button" onClick=${() => act("add", `1:${name}`)}>Add one like it</button>
    <button type="button" onClick=${() => act(cordoned ? "uncordon" : "cordon", name)}>${cordoned ? "Uncordon" : "Cordon"}</button>
    ${workloads.length > 0 && html`<span class="its-workloads"><span class="quiet">Its workloads:</span>
      ${workloads.map((each) => html`<button key=${each.join("/")} type="button" class="plain" onClick=${() => choose({ kind: "workload", workload: each })}><${Swatch} each=${{ pod: `${each[0]}/`, kind: each[1], workload: each[2] }} />${workloadName(each)}</button>`)}</span>`}`;
}

const ZoneChoice = ({ group, selector, act }) =>
  html`<span class="what">Zone <strong>${group.name[1]}</strong> <span class="quiet">${counted(group.nodes.length, "node")}</span></span>
    <button type="button" onClick=${() => act("drain", selector)}>Drain all of it</button>
    <button type="button" onClick=${() => act("lose", selector)}>Lose all of it</button>`;

function WorkloadChoice({ workload, act }) {
  const pods = podsOf(workload);
  const [count, setCount] = useState(String(pods));
  const object = objectName(workload);
  return html`<span class="what">${workload[1]} <strong>${workloadName(workload)}</strong> <span class="quiet">${number(pods)} placed</span></span>
    ${canScale(workload) && html`<label>Replicas <input type="number" min="0" value=${count} onInput=${(event) => setCount(event.target.value)} /></label>
      <button type="button" disabled=${count === ""} onClick=${() => act("scale", `${object}=${count}`)}>Scale</button>`}
    ${canRestart(workload) && html`<button type="button" onClick=${() => act("rollout", object)}>Restart</button>`}
    <button type="button" onClick=${() => act("delete", object)}>Delete</button>`;
}

// The actions for a choice; the focus comes here, and goes back to where it was.
export function Choice({ choice, zoneSelector, act, choose }) {
  const place = useRef(null);
  const key = JSON.stringify([choice.kind, choice.name || choice.workload || choice.group.zone]);
  useLayoutEffect(() => {
    const before = document.activeElement;
    const first = place.current.querySelector("button, input");
    if (first) first.focus({ preventScroll: true });
    return () => setTimeout(() => before && before.isConnected && document.activeElement === document.body && before.focus({ preventScroll: true }));
  }, [key]);
  const pressed = (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    choose(null);
  };
  return html`<div class="choice" role="group" aria-label="What to do with it" ref=${place} onKeyDown=${pressed}>
    ${choice.kind === "node" && html`<${NodeChoice} key=${key} name=${choice.name} act=${act} choose=${choose} />`}
    ${choice.kind === "zone" && html`<${ZoneChoice} key=${key} group=${choice.group} selector=${zoneSelector(choice.group)} act=${act} />`}
    ${choice.kind === "workload" && html`<${WorkloadChoice} key=${key} workload=${choice.workload} act=${act} />`}
    <button type="button" class="icon" aria-label="Close (Esc)" title="Close (Esc)" onClick=${() => choose(null)}><span aria-hidden="true">✕</span></button>
  </div>`;
}
