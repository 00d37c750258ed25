// A decision on one page: the sentence, the nodes, the tie, the rejections, the preemption.
import { html, useEffect, useRef } from "../dom.js";
import { clock, moment, number } from "../format.js";
import { atQuery } from "../past.js";
import { groupLink, nodeLink, podLink } from "../router.js";
import { nodeTable } from "./node_table.js";
import { player } from "./player.js";
import { Preemption } from "./preemption.js";
import { Rejections } from "./rejections.js";

const EQUALS = 40;
const ATTEMPTS = 8;

const SOURCES = {
  now: "This is what would be decided now. The decision itself is not kept here: it was made before, or by another scheduler.",
  "dry-run": "A dry run on the cluster as it is now. Nothing was created.",
};

const MARKS = { placed: "✓", nominated: "⇄", unschedulable: "✕", held: "‖", error: "!" };
const WORDS = { placed: "placed", nominated: "nominated", unschedulable: "not placed", held: "held back", error: "failed" };

const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}` : "");

function Funnel({ decision }) {
  const { total, feasible } = decision.nodes;
  const examined = Math.max(decision.nodes.examined, feasible); // a promised node is looked at alone
  const steps = [
    ["nodes", total],
    ["looked at", examined],
    ["fit", feasible],
  ];
  if (decision.selection && decision.selection.tied > 1) steps.push(["share the best total", decision.selection.tied]);
  if (decision.node) steps.push(["chosen", 1]);
  return html`<ol class="funnel" aria-label="From all nodes to the one">
    ${steps.map(([what, count]) => html`<li><strong>${number(count)}</strong> <span>${what}</span></li>`)}
  </ol>`;
}

// The other attempts at the pod, each a page of its own; the newest first.
function Attempts({ decision }) {
  const { attempts = [] } = decision;
  if (attempts.length < 2) return null;
  const shown = attempts.slice(0, ATTEMPTS);
  return html`<p class="chips" aria-label="Attempts">
    ${shown.map((each, i) => html`<a class=${`chip ${each.id === decision.id ? "here" : ""}`} aria-current=${each.id === decision.id ? "true" : undefined} href=${i ? `${podLink(decision.pod)}/${each.id}` : podLink(decision.pod)}>attempt ${number(each.number)}, ${clock(each.at)}: ${WORDS[each.outcome]}</a>`)}
    ${attempts.length > ATTEMPTS && html`<span class="quiet">and ${number(attempts.length - ATTEMPTS)} earlier ones</span>`}
  </p>`;
}

// The attempts told in order; equal ones that follow each other are one line with a count.
function Story({ decision }) {
  const lines = decision.story || [];
  if (!lines.length) return null;
  const time = (text) => clock(Date.parse(text) / 1000);
  return html`<section aria-labelledby="story"><h2 id="story">What happened</h2><ol class="story">
    ${lines.map((line) => html`<li class=${line.outcome}><span class="quiet">${time(line.from)}${line.count > 1 ? ` to ${time(line.to)}` : ""}</span> <strong>${line.count > 1 ? `attempts ${number(line.attempts[0])} to ${number(line.attempts[1])}, ${number(line.count)} times` : `attempt ${number(line.attempts[0])}`}</strong>: ${line.text}
      ${(line.victims.length || line.more.length) > 0 && html`<ul>
        ${line.victims.map((each) => html`<li><a href=${podLink(each.pod)}>${each.pod}</a> <span class="quiet">(${each.workload && `${each.workload}, `}priority ${number(each.priority)})</span> is evicted${each.why && `: ${each.why}`}${each.endedAt && `; gone at ${time(each.endedAt)}`}</li>`)}
        ${line.more.map((text) => html`<li>${text}</li>`)}
      </ul>`}</li>`)}
  </ol></section>`;
}

function Source({ decision }) {
  if (decision.source === "history") {
    return html`<p class="quiet">From the recorded history: attempt ${number(decision.attempt)}, decided at ${moment(decision.at)} with ${decision.profile}. <a href=${`#/${atQuery(decision.at)}`}>The cluster at that moment</a> · <a href=${podLink(decision.pod)}>The pod as it is now</a></p>`;
  }
  if (decision.source !== "recorded") return html`<p class="quiet">${SOURCES[decision.source]}</p>`;
  return html`<p class="quiet">Attempt ${number(decision.attempt)}, decided at ${clock(decision.at)} with ${decision.profile}.</p>
    <${Attempts} decision=${decision} />`;
}

// The equals in node order, with their places; of many the first ones and the one taken.
function shownEquals(names, taken) {
  const placed = names.map((name, i) => [name, i + 1]);
  return placed.filter(([name, place]) => place <= EQUALS || name === taken);
}

function Tie({ decision }) {
  const { selection } = decision;
  if (!selection || selection.tied < 2) return null;
  return html`<section><h2>The tie</h2>
    <p>${decision.tie}</p>
    ${selection.best && html`<ol class="chips tied">${shownEquals(selection.best, decision.node).map(([name, place]) => html`<li value=${place}><a class=${`chip ${name === decision.node ? "win" : ""}`} href=${nodeLink(name)}><span class="quiet">${number(place)}</span> ${name}</a></li>`)}${selection.best.length > EQUALS ? html`<li class="quiet">${number(selection.best.length - EQUALS)} more</li>` : null}</ol>`}
  </section>`;
}

function Unscored({ decision }) {
  if (decision.totals || !decision.node || decision.nodes.feasible !== 1) return null;
  return html`<section><h2>Scores</h2><p class="quiet">Nothing was scored: with one node that fits there is nothing to compare.</p></section>`;
}

// How each score is computed, and the numbers behind those of the two best nodes.
function Formulas({ lines = [] }) {
  if (!lines.length) return null;
  return html`<section><details class="formulas"><summary>How the scores come about</summary><dl>
    ${lines.map((line) => html`<dt><strong>${line.priority}</strong> × ${number(line.weight)}: ${line.formula}</dt>${line.nodes.slice(0, 2).map((each) => html`<dd><a href=${nodeLink(each.node)}>${each.node}</a>: ${each.text}</dd>`)}`)}
  </dl></details></section>`;
}

function Volumes({ volumes }) {
  if (!volumes) return null;
  const bound = Object.entries(volumes.bind);
  if (!bound.length && !volumes.provision.length) return null;
  return html`<section><h2>Volumes</h2><ul>
    ${bound.map(([claim, volume]) => html`<li>claim ${claim} gets the volume ${volume}</li>`)}
    ${volumes.provision.map((claim) => html`<li>a volume is made for claim ${claim}</li>`)}
  </ul></section>`;
}

function Devices({ claims }) {
  if (!claims || !claims.length) return null;
  return html`<section><h2>Devices</h2><ul>
    ${claims.map(({ claim, devices }) => devices.length
      ? devices.map((each) => html`<li>claim ${claim}, request ${each.request}: ${each.driver}/${each.pool}/${each.device}</li>`)
      : html`<li>claim ${claim} had its devices before</li>`)}
  </ul></section>`;
}

// The decision, played; the script is that of the page which `podium explain -o html` writes.
function Player({ decision }) {
  const place = useRef(null);
  const nodes = decision.nodes.examined;
  const key = `${decision.pod} ${decision.id || decision.at || ""} ${decision.outcome}`;
  const known = (decision.feasible || []).length || (decision.rejections || []).some((group) => (group.nodes || []).length);
  useEffect(() => {
    if (!place.current) return undefined;
    const running = player(place.current, decision);
    return running.stop;
  }, [key]);
  if (!nodes || !known) return null;
  return html`<section><details class="play"><summary aria-keyshortcuts="k">Step by step</summary><div ref=${place}></div></details></section>`;
}

// All nodes with their scores or reasons; the script is that of the same page, too.
function Nodes({ decision }) {
  const place = useRef(null);
  const shown = useRef(null);
  const known = (decision.feasible || []).length > 0 || decision.rejections.some((group) => (group.nodes || []).length > 0);
  useEffect(() => {
    if (!place.current) shown.current = null;
    else if (shown.current) shown.current.update(decision);
    else shown.current = nodeTable(place.current, decision, { nodeLink });
  }, [decision, known]);
  if (!known) return null;
  const [, scoredBy] = decision.ruleNames;
  const words = decision.totals ? html`Scores <span class="quiet">${scoredBy === "priority" ? "priority × node" : "score plugin × node"}, 0 to ${decision.maxScore}; the stronger the colour, the better</span>` : "Nodes";
  return html`<section aria-labelledby="heat-map"><h2 id="heat-map">${words}</h2><div ref=${place}></div></section>`;
}

function Headline({ decision }) {
  const rest = decision.headline.startsWith(decision.pod) ? decision.headline.slice(decision.pod.length) : `: ${decision.headline}`;
  const [before, after] = decision.node && rest.includes(decision.node) ? rest.split(decision.node) : [rest, null];
  return html`<h1 class="headline"><span class=${`mark ${decision.outcome}`} title=${WORDS[decision.outcome]} aria-hidden="true">${MARKS[decision.outcome]}</span>
    <span>${decision.pod}${before}${after !== null && html`<a href=${nodeLink(decision.node)}>${decision.node}</a>${after}`}</span></h1>`;
}

export function Decision({ decision }) {
  const because = decision.outcome === "placed" ? decision.because : decision.message || decision.because;
  return html`<article class="decision" data-source=${decision.source}>
    <${Headline} decision=${decision} />
    ${decision.plain && html`<p class="plain">${sentence(decision.plain)}</p>`}
    ${because && html`<p class="because">${sentence(because)}</p>`}
    ${decision.actually && html`<p>${sentence(decision.actually)}</p>`}
    ${(decision.notes || []).map((note) => html`<p class="note">${sentence(note)}</p>`)}
    ${decision.group && html`<p>It belongs to the pod group <a href=${groupLink(decision.group)}>${decision.group}</a>, whose pods are tried together.</p>`}
    <${Source} decision=${decision} />
    ${decision.outcome !== "held" && decision.outcome !== "error" && html`<${Funnel} decision=${decision} />`}
    ${decision.stoppedEarly && html`<p class="quiet">${sentence(decision.stoppedEarly)}</p>`}
    <${Story} decision=${decision} />
    <${Player} decision=${decision} />
    <${Preemption} decision=${decision} />
    <${Unscored} decision=${decision} />
    <${Nodes} decision=${decision} />
    <${Formulas} lines=${decision.scoreLines} />
    <${Tie} decision=${decision} />
    <${Devices} claims=${decision.claims} />
    <${Rejections} decision=${decision} />
    <${Volumes} volumes=${decision.volumes} />
  </article>`;
}
