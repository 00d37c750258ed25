// What follows from changes: chosen on the map of nodes or by name, and drawn on the same map.
import { sendJson, useAnswer } from "../api.js";
import { Legend, sizes } from "../cluster/legend.js";
import { drawn, followCluster, picture } from "../cluster/model.js";
import { TILES, Zones } from "../cluster/zones.js";
import { html, useEffect, useMemo, useRef, useState } from "../dom.js";
import { counted } from "../format.js";
import { Failure, Loading } from "../notices.js";
import { useParameters } from "../router.js";
import { createStore, useStore } from "../store.js";
import { theme } from "../theme.js";
import { Homeless, Lists, Notes } from "./answer.js";
import { canRestart, canScale, Choice, objectName } from "./choice.js";
import { after } from "./marks.js";

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
const ZONE_LABELS = ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"];

// The changes that were chosen, and what followed from them; kept while other pages are shown.
const kept = createStore([]);
const answered = createStore(null);

// The label by which a zone is named: that of the first node that has a zone.
function useZoneSelector() {
  const group = picture.groups.find((each) => each.name[1]);
  const { data } = useAnswer(group ? `/nodes/${encodeURIComponent(group.nodes[0].name)}` : null);
  const label = (data && ZONE_LABELS.find((each) => each in (data.labels || {}))) || ZONE_LABELS[0];
  return (zone) => `${label}=${zone.name[1]}`;
}

// What the text of a change may be, from what is on the map.
function completions(flag, zoneSelector) {
  const nodes = picture.groups.flatMap((group) => group.nodes.map((node) => node.name));
  const zones = picture.groups.filter((group) => group.name[1]).map(zoneSelector);
  const workloads = sizes("workload").filter(({ each }) => each[1] !== "Pod" && each[2]);
  if (flag === "scale") return workloads.filter(({ each }) => canScale(each)).map(({ each, count }) => `${objectName(each)}=${count}`);
  if (flag === "rollout") return workloads.filter(({ each }) => canRestart(each)).map(({ each }) => objectName(each));
  if (flag === "delete") return workloads.map(({ each }) => objectName(each));
  if (flag === "add") return nodes.map((name) => `1:${name}`);
  if (flag === "taint") return nodes.map((name) => `${name}:`);
  return flag === "replace" ? zones : [...zones, ...nodes];
}

// Questions that most clusters have: their words, and their changes.
function presets(zoneSelector) {
  const nodes = [...picture.byRow.values()].sort((a, b) => b.load[0] - a.load[0]);
  const zones = picture.groups.filter((group) => group.name[1]).sort((a, b) => b.nodes.length - a.nodes.length);
  const largest = sizes("workload").find(({ each }) => canScale(each) && canRestart(each));
  const found = [];
  if (nodes.length) found.push([`Drain ${nodes[0].name}, the fullest node`, ["drain", nodes[0].name]]);
  if (zones.length > 1) found.push([`Lose zone ${zones[0].name[1]}`, ["lose", zoneSelector(zones[0])]]);
  if (nodes.length) found.push([`One more node like ${nodes[0].name}`, ["add", `1:${nodes[0].name}`]]);
  if (largest) {
    found.push([`Twice as many ${largest.label}`, ["scale", `${objectName(largest.each)}=${2 * largest.count}`]]);
    found.push([`Restart ${largest.label}`, ["rollout", objectName(largest.each)]]);
  }
  return found;
}

function PlanMap({ plan, version, choice, choose }) {
  const [shown, setShown] = useState("after");
  const [only, setOnly] = useState(false);
  useStore(theme);
  const then = useMemo(() => plan && after(plan), [plan, version]);
  const groups = (plan && shown === "after" ? then : picture.groups.map((group) => ({ ...group, all: group.nodes.length })))
    .map((group) => ({ ...group, nodes: plan && only && shown === "after" ? group.nodes.filter((node) => !node.mark.same) : group.nodes }))
    .filter((group) => group.nodes.length);
  const dense = groups.reduce((sum, group) => sum + group.nodes.length, 0) > TILES;
  const changed = plan ? then.reduce((sum, group) => sum + group.nodes.filter((node) => !node.mark.same).length, 0) : 0;
  const option = (value, words) => html`<label><input type="radio" name="shown" aria-keyshortcuts=${value[0]} value=${value} checked=${shown === value} onChange=${() => setShown(value)} /> ${words}</label>`;
  return html`${plan && html`<div class="toolbar small" role="group" aria-label="What the map shows">
      ${option("before", "Before")} ${option("after", "After")}
      <label><input type="checkbox" checked=${only} disabled=${shown === "before"} onChange=${() => setOnly(!only)} /> only the ${counted(changed, "node")} that ${changed === 1 ? "changes" : "change"}</label>
      ${shown === "after" && html`<span class="keys quiet">${dense ? "− pods leave, + pods come, ✕ lost, a green frame: new" : html`<span class="cell leaving" aria-hidden="true"></span> leaves <span class="cell leaving evicted" aria-hidden="true"></span> evicted by preemption <span class="cell arriving" aria-hidden="true"></span> comes`}</span>`}
    </div>
    ${shown === "after" && html`<${Homeless} plan=${plan} />`}`}
    <${Legend} colour="workload" version=${version} verb="Choose" onChoose=${(entry) => choose({ kind: "workload", workload: entry.each })} />
    <${Zones} groups=${groups} dense=${dense} version=${version} colour="workload" view="0" selected=${choice && choice.kind === "node" ? choice.name : null} onOpen=${(name) => choose({ kind: "node", name })}
      chosenZone=${choice && choice.kind === "zone" ? choice.group.name[1] : null} onZone=${(group) => choose({ kind: "zone", group })} />`;
}

const written = (change) => change.join(" ");

export function ChangesForm() {
  const { version, error: lost } = useStore(drawn);
  const changes = useStore(kept);
  const plan = useStore(answered);
  const asked = useParameters().get("node");
  const [flag, setFlag] = useState("drain");
  const [text, setText] = useState("");
  const [choice, choose] = useState(asked ? { kind: "node", name: asked } : null);
  const [state, setState] = useState({ at: "idle" });
  const field = useRef(null);
  const heading = useRef(null);
  useEffect(followCluster, []);
  const zoneSelector = useZoneSelector();
  const given = text.trim() ? [flag, text.trim()] : null;
  const all = given ? [...changes, given] : changes;
  // A change that is refused stays where it was written, with the sentence beside it.
  const show = async (wanted) => {
    setState({ at: "asking" });
    try {
      answered.set(await sendJson("POST", "/plan", { changes: wanted }));
      kept.set(wanted);
      setText("");
      choose(null);
      setState({ at: "idle" });
      requestAnimationFrame(() => heading.current && heading.current.focus());
    } catch (error) {
      const bad = wanted.findLast((each) => error.message.includes(`--${written(each)}`)) || null;
      const own = given !== null && (bad === given || !bad);
      setState({ at: "refused", error, bad: own ? "field" : bad && written(bad) });
      if (own) requestAnimationFrame(() => field.current && field.current.focus());
    }
  };
  const put = (next) => {
    kept.set(next);
    setState({ at: "idle" });
  };
  const act = (name, what) => {
    if (!changes.some((each) => written(each) === `${name} ${what}`)) put([...changes, [name, what]]);
    choose(null);
  };
  const submitted = (event) => {
    event.preventDefault();
    if (all.length && state.at !== "asking") show(all);
  };
  const refused = state.at === "refused" ? html`<p class="refused" role="alert" id="refused">${state.error.message}</p>` : null;
  const inField = refused && state.bad === "field";
  return html`<p class="quiet">Choose a node, a zone or a workload on the map and what to do with it, or one of these:</p>
    <div class="presets" role="group" aria-label="Presets">${version > 0 && presets(zoneSelector).map(([words, change]) => html`<button key=${words} type="button" disabled=${state.at === "asking"} onClick=${() => show([change])}>${words}</button>`)}</div>
    <form class="plan-form" id="plan-form" onSubmit=${submitted} aria-label="A change by name">
      <label>Change <select value=${flag} onChange=${(event) => setFlag(event.target.value)}>${CHANGES.map(([name, words]) => html`<option value=${name}>${words}</option>`)}</select></label>
      <label class="what">What <input type="text" size="40" ref=${field} list="plan-names" value=${text} placeholder=${CHANGES.find((each) => each[0] === flag)[2]} autocomplete="off" spellcheck="false" aria-invalid=${inField ? "true" : undefined} aria-describedby=${inField ? "refused" : undefined} onInput=${(event) => setText(event.target.value)} /></label>
      <datalist id="plan-names">${version > 0 && completions(flag, zoneSelector).map((each) => html`<option key=${each} value=${each}></option>`)}</datalist>
      <button type="button" disabled=${!given} onClick=${() => { put(all); setText(""); }}>Add another</button>
      ${inField && refused}
    </form>
    <section class="outcome" aria-label="What follows" aria-live="polite">
      ${state.at === "asking" && html`<${Loading} what="Making the changes on a copy of the cluster…" />`}
      ${plan && html`<h2 tabindex="-1" ref=${heading} class=${plan.leavesPods ? "leaves" : ""}>${plan.summary}</h2><${Notes} plan=${plan} />`}
    </section>
    ${lost && html`<${Failure} error=${lost} />`}
    ${version === 0 && !lost && html`<${Loading} what="Asking for the cluster…" />`}
    ${version > 0 && html`<${PlanMap} plan=${plan} version=${version} choice=${choice} choose=${choose} />`}
    ${plan && html`<section class="outcome" aria-label="Pods that it concerns"><${Lists} plan=${plan} /></section>`}
    <div class="plan-bar" role="region" aria-label="Changes to try">
      ${choice && html`<${Choice} choice=${choice} zoneSelector=${zoneSelector} act=${act} choose=${choose} />`}
      <ol class="chosen">${changes.map((each) => html`<li key=${written(each)} class=${state.bad === written(each) ? "bad" : ""}><code>${written(each)}</code> <button type="button" class="plain" aria-label=${`Remove ${written(each)}`} onClick=${() => put(changes.filter((other) => other !== each))}>✕</button></li>`)}</ol>
      ${refused && !inField && refused}
      <div class="buttons">
        ${plan && html`<button type="button" onClick=${() => { put([]); answered.set(null); }}>Start again</button>`}
        <button type="submit" form="plan-form" class="primary" aria-keyshortcuts="s" disabled=${!all.length || state.at === "asking"}>Show what follows</button>
      </div>
    </div>`;
}
