// One node, opened beside the cluster: room, pods, taints, labels.
import { useAnswer } from "../api.js";
import { Swatch } from "../colours.js";
import { html, useLayoutEffect, useRef } from "../dom.js";
import { counted, percent, taintText } from "../format.js";
import { isTyping } from "../keys.js";
import { useStamp } from "../live.js";
import { Failure, Loading } from "../notices.js";
import { atQuery } from "../past.js";
import { go, podLink } from "../router.js";

function Room({ room }) {
  return html`<table class="room">
    <caption class="hidden">Room on the node</caption>
    <thead><tr><th scope="col">Resource</th><th scope="col" class="number">Requested</th><th scope="col" class="number">Allocatable</th><th scope="col">Load</th></tr></thead>
    <tbody>
      ${room.filter((each) => each.used !== "0" || each.allocatable !== "0").map(
        (each) => html`<tr key=${each.resource}>
          <th scope="row">${each.resource}</th>
          <td class="number">${each.used}</td>
          <td class="number">${each.allocatable}</td>
          <td><span class=${`bar ${each.load > 1 ? "over" : each.load > 0.9 ? "full" : ""}`}>
            <span class="track"><span class="fill" style=${{ width: percent(Math.min(1, each.load)) }}></span></span>
            <span class="share">${percent(each.load)}</span></span></td>
        </tr>`,
      )}
    </tbody>
  </table>`;
}

function Pods({ pods, at }) {
  if (!pods.length) return html`<p class="quiet">No pod runs here.</p>`;
  return html`<ul class="pods">
    ${pods.map(
      (each) => html`<li key=${each.pod}>
        <${Swatch} each=${each} /><a href=${`${podLink(each.pod)}${atQuery(at)}`} title="Why is it here?">${each.pod}</a>
        <span class="quiet">${Object.entries(each.requests).map(([name, amount]) => `${name} ${amount}`).join(", ") || "asks for nothing"}${each.priority ? ` · priority ${each.priority}` : ""}${each.leaving ? " · leaving" : ""}</span>
      </li>`,
    )}
  </ul>`;
}

function About({ node, at }) {
  const bad = Object.entries(node.conditions || {}).filter(([type, status]) => (type === "Ready") !== (status === "True"));
  return html`
    ${!node.known && html`<p class="notice bad">Pods say that they run here, but there is no such node.</p>`}
    <p class="chips">
      ${node.unschedulable && html`<span class="chip warn">cordoned</span>`}
      ${bad.map(([type, status]) => html`<span class="chip warn">${type} ${status}</span>`)}
      ${(node.taints || []).map((taint) => html`<span class="chip">${taintText([taint.key, taint.value, taint.effect])}</span>`)}
    </p>
    <${Room} room=${node.room} />
    ${node.nominated.length > 0 && html`<p>Promised to ${node.nominated.map((key) => html`<a href=${`${podLink(key)}${atQuery(at)}`}>${key}</a> `)}</p>`}
    <h3>${counted(node.pods.length, "pod")}</h3>
    <${Pods} pods=${node.pods} at=${at} />
    <details><summary>${counted(Object.keys(node.labels || {}).length, "label")}</summary>
      <dl class="labels">${Object.entries(node.labels || {}).map(([key, value]) => html`<div><dt>${key}</dt><dd>${value}</dd></div>`)}</dl>
    </details>`;
}

export function NodePanel({ name, at = null }) {
  const stamp = useStamp((pulse) => pulse.version, 500);
  const path = `/nodes/${encodeURIComponent(name)}`;
  const { data, error, loading } = useAnswer(at === null ? path : `/past${path}${atQuery(at)}`, at === null ? stamp : 0);
  const closed = `#/${atQuery(at)}`;
  const panel = useRef(null);
  useLayoutEffect(() => {
    panel.current.focus();
    // Back where one came from when it closes.
    return () => {
      const tile = document.querySelector(`[data-node="${CSS.escape(name)}"]`);
      if (tile) setTimeout(() => tile.isConnected && tile.focus());
    };
  }, [name]);
  // Wherever the focus is, unless something else is there to be closed or left first.
  useLayoutEffect(() => {
    const pressed = (event) => {
      const busy = isTyping(event.target) || document.querySelector("dialog[open]");
      if (event.key === "Escape" && !busy) go(closed);
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [closed]);
  return html`<aside class="panel" tabindex="-1" ref=${panel} aria-labelledby="panel-title">
    <div class="panel-head">
      <h2 id="panel-title">${name} ${data && data.zone && html`<span class="quiet">${data.zone}</span>`}</h2>
      <a class="icon" href=${closed} aria-label="Close (Esc)" title="Close (Esc)"><span aria-hidden="true">✕</span></a>
    </div>
    ${error && html`<${Failure} error=${error} />`}
    ${loading && html`<${Loading} what="Asking for the node…" />`}
    ${data && at === null && html`<p><a href=${`#/plan?node=${encodeURIComponent(name)}`}>Plan a change of it</a></p>`}
    ${data && html`<${About} node=${data} at=${at} />`}
  </aside>`;
}
