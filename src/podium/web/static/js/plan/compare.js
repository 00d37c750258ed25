// The pods of the cluster placed anew by the rules that run and by others.
import { useAnswer } from "../api.js";
import { html } from "../dom.js";
import { counted } from "../format.js";
import { Failure } from "../notices.js";
import { Asked, FileButton, useComparison } from "../questions.js";
import { podLink } from "../router.js";
import { createStore, useStore } from "../store.js";
import { legend, List, NodeMap, place } from "./map.js";

const OWN = "own";
const words = ({ name, release }) => (name === release ? `the default of ${name}` : `${name} (${release})`);
const MOST_SEEDS = 20;

const kept = createStore({ name: OWN, text: null, from: "", seeds: "1" });

function Measures({ result }) {
  const names = result.configurations.map((each) => each.name);
  return html`<table class="list labelled measures" aria-label="Measures">
    <thead><tr><th scope="col">Measure</th>${names.map((name) => html`<th scope="col">By ${name}</th>`)}</tr></thead>
    <tbody>${result.measures.map(([name, ...values]) => html`<tr key=${name} class=${new Set(values).size > 1 ? "differs" : ""}><th scope="row">${name}</th>${values.map((value, i) => html`<td data-label=${`By ${names[i]}`}>${value}</td>`)}</tr>`)}</tbody>
  </table>`;
}

function Answer({ result }) {
  const changed = new Set(result.changedNodes);
  const names = [...new Set(result.configurations.flatMap((each) => each.nodes.map((node) => node.name)))].sort();
  const heads = ["Pod", ...result.configurations.map((each) => `By ${each.name}`)];
  const rows = result.differences.map((each) => [html`<a href=${podLink(each.pod)}>${each.pod}</a>`, ...each.nodes.map(place)]);
  return html`<h2>${result.summary}</h2>
    ${result.notes.map((note) => html`<p class="note">${note}</p>`)}
    <div class="plan-maps">${result.configurations.map((each) => html`<${NodeMap} key=${each.name} title=${`By ${each.name} (${each.profile})`} names=${names} usages=${new Map(each.nodes.map((node) => [node.name, node]))} changed=${changed} />`)}</div>
    <p class="quiet">${legend(names.length, "of its cpu is requested")} Outlined ones do not have the same pods by both.</p>
    <${Measures} result=${result} />
    ${result.hopeless.length > 0 && html`<p class="quiet">The nodes needed are counted without ${counted(result.hopeless.length, "pod")} that neither finds a place for: ${result.hopeless.slice(0, 3).join(", ")}${result.hopeless.length > 3 ? " and others" : ""}.</p>`}
    <${List} title="Placements that differ" heads=${heads} rows=${rows} total=${result.differing} />
    <p class="quiet">All pods but those of daemon sets are placed from scratch on today's nodes, by both; so today's rules may place some elsewhere than where they run.</p>`;
}

export function CompareForm() {
  const form = useStore(kept);
  const { data, error } = useAnswer("/profile");
  const [state, compare] = useComparison("/compare");
  const change = (values) => kept.set({ ...form, ...values });
  const text = form.text === null ? (data ? data.text : "") : form.text;
  const submitted = (event) => {
    event.preventDefault();
    compare({ ...(form.name === OWN ? { text } : { name: form.name }), seeds: Number(form.seeds) });
  };
  return html`<form class="plan-form" onSubmit=${submitted} aria-label="Rules to compare">
      <label>Compare what runs now with <select value=${form.name} onChange=${(event) => change({ name: event.target.value })}><option value=${OWN}>a text of your own</option>${data && data.named.map((each) => html`<option key=${each.name} value=${each.name}>${words(each)}</option>`)}</select></label>
      <label>Orders of arrival to pack nodes by <input type="number" min="0" max=${MOST_SEEDS} value=${form.seeds} onInput=${(event) => change({ seeds: event.target.value })} aria-describedby="seeds-help" /></label>
      <button type="submit" class="primary" aria-keyshortcuts="s" disabled=${state.at === "asking" || (form.name === OWN && !text.trim())}>Compare</button>
      ${form.name === OWN && html`<${FileButton} take=${(from, content) => change({ text: content, from })} />`}
      <p class="quiet wide" id="seeds-help">For each order, nodes are taken away until the pods no longer fit: how many do the rules need? 0 leaves it out.</p>
      ${form.name === OWN && html`<label class="editor wide">A Policy or a KubeSchedulerConfiguration, YAML or JSON${form.from ? ` (from ${form.from})` : ""}
        <textarea rows="12" spellcheck="false" autocapitalize="off" value=${text} onInput=${(event) => change({ text: event.target.value, from: "" })}></textarea></label>`}
    </form>
    ${error && html`<${Failure} error=${error} />`}
    <section class="outcome" aria-label="What differs" aria-live="polite">
      <${Asked} state=${state} what="Placing the pods anew: step" />
      ${state.at === "answered" && html`<${Answer} result=${state.answer.result} />`}
    </section>`;
}
