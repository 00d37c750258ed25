// The cluster: zones, nodes with their load, pods as small cells; one node opened beside it.
import { html, useEffect, useMemo, useState } from "../dom.js";
import { ThroughputChart } from "../chart.js";
import { moment, number, percent, resourceName } from "../format.js";
import { history, usePulse } from "../live.js";
import { Empty, Failure, Loading } from "../notices.js";
import { atQuery, PastBar, useMoment } from "../past.js";
import { go, nodeLink } from "../router.js";
import { useStore } from "../store.js";
import { theme } from "../theme.js";
import { Legend } from "./legend.js";
import { drawn, followCluster, matcher, picture, showMoment } from "./model.js";
import { NodePanel } from "./node_panel.js";
import { PodMatches } from "./pod_matches.js";
import { TILES, Zones } from "./zones.js";

// Decisions are counted over so many whole seconds.
const SPEED_SECONDS = 3;

function Numbers() {
  const pulse = usePulse();
  const rows = useStore(history);
  const now = pulse ? Math.floor(pulse.time) : 0;
  const last = rows.filter((row) => row[0] >= now - SPEED_SECONDS && row[0] < now);
  const speed = last.reduce((sum, row) => sum + row[1], 0) / SPEED_SECONDS;
  const load = pulse ? pulse.load : {};
  const shown = (value) => (pulse ? value : "–");
  return html`<dl class="numbers">
    <div><dt>Nodes</dt><dd>${shown(pulse && number(pulse.nodes))}</dd></div>
    <div><dt>Pods placed</dt><dd>${shown(pulse && number(pulse.pods))}</dd></div>
    <div><dt>Pending</dt><dd><a href="#/pending">${shown(pulse && number(pulse.waiting))}</a></dd></div>
    <div><dt>Decisions/s</dt><dd>${number(Math.round(speed))}</dd></div>
    ${["cpu", "memory"].map(
      (name) => html`<div><dt>${name} requested</dt><dd>${shown(percent(load[name] || 0))}</dd></div>`,
    )}
  </dl>`;
}

// The numbers of a moment of the recorded past.
function PastNumbers({ past }) {
  const { nodes, pods, load } = past.totals;
  return html`<dl class="numbers">
    <div><dt>Time</dt><dd class="time">${moment(past.at)}</dd></div>
    <div><dt>Nodes</dt><dd>${number(nodes)}</dd></div>
    <div><dt>Pods placed</dt><dd>${number(pods)}</dd></div>
    <div><dt>Pending</dt><dd>${number(past.pending)}</dd></div>
    ${["cpu", "memory"].map((name) => html`<div><dt>${name} requested</dt><dd>${percent(load[name] || 0)}</dd></div>`)}
  </dl>`;
}

function Toolbar({ query, setQuery, colour, setColour, dense, view, setView }) {
  return html`<div class="toolbar" role="search">
    <label class="search"><span class="hidden">Search nodes, zones, taints, workloads, pods</span>
      <input type="search" placeholder="Search: node, zone, taint, workload, pod  ( / )" value=${query} onInput=${(event) => setQuery(event.target.value)} autocomplete="off" spellcheck="false" />
    </label>
    <label>Colour pods by
      <select value=${colour} onChange=${(event) => setColour(event.target.value)}>
        <option value="workload">workload</option>
        <option value="namespace">namespace</option>
      </select>
    </label>
    ${dense &&
    html`<label>Squares show
      <select value=${view} onChange=${(event) => setView(event.target.value)}>
        ${picture.resources.map((name, i) => html`<option value=${i}>${resourceName(name)} load</option>`)}
        <option value="pods">pods</option>
      </select>
    </label>`}
  </div>`;
}

export function ClusterPage({ node = null }) {
  const { version, error, past } = useStore(drawn);
  const at = useMoment();
  const [query, setQuery] = useState("");
  const [colour, setColour] = useState("workload");
  const [view, setView] = useState("0");
  useStore(theme);
  useEffect(followCluster, []);
  useEffect(() => showMoment(at), [at]);
  useEffect(() => () => showMoment(null), []);
  const matches = useMemo(() => matcher(query), [query, version]);
  const dense = picture.byRow.size > TILES;
  const groups = picture.groups
    .map((group) => ({ ...group, all: group.nodes.length, nodes: matches ? group.nodes.filter(matches) : group.nodes }))
    .filter((group) => group.nodes.length);
  const open = (name) => go(`${nodeLink(name)}${atQuery(at)}`);
  return html`<h1 class="hidden">Cluster</h1>
    <section class="overview" aria-label="At a glance">
      ${at !== null && past ? html`<${PastNumbers} past=${past} />` : html`<${Numbers} /><${ThroughputChart} />`}</section>
    <${PastBar} />
    ${at !== null && html`<p class="notice was" role="status">The cluster as it was at ${moment(at)}. <a href=${node ? nodeLink(node) : "#/"}>Back to now</a></p>`}
    <${Toolbar} ...${{ query, setQuery, colour, setColour, dense, view, setView }} />
    ${error && html`<${Failure} error=${error} />`}
    ${version === 0 && !error && html`<${Loading} what="Asking for the cluster…" />`}
    ${version > 0 && html`<${Legend} colour=${colour} version=${version} verb="Search for" onChoose=${(entry) => setQuery(entry.label.replace(/ \(.*/, ""))} />
      <p class="hint quiet">${dense ? "Each square is a node, filled by its load; a marked corner is a taint, a stroke means that it takes no new pods." : "Each bar is what pods request of what a node has, each small square one pod."} Choose a node to see its pods, and a pod to see why it is there.</p>`}
    ${version > 0 && !picture.byRow.size && html`<${Empty} title="There are no nodes yet.">Nodes appear here as soon as they are created, for example with kubectl apply.<//>`}
    ${matches && !groups.length && html`<${Empty} title=${`No node matches “${query}”.`}>Names, zones, taints and workloads were searched.<//>`}
    ${query.trim().length > 1 && html`<${PodMatches} query=${query.trim()} />`}
    <${Zones} groups=${groups} dense=${dense} version=${version} colour=${colour} view=${view} selected=${node} onOpen=${open} />
    ${node && html`<${NodePanel} name=${node} at=${at} />`}`;
}
