// The rules: change weights or the whole text, see which placements would change, then apply.
import { getJson, sendJson, useAnswer } from "../api.js";
import { html, useState } from "../dom.js";
import { Failure, Loading } from "../notices.js";
import { breakable } from "../format.js";
import { Asked, useComparison } from "../questions.js";
import { Difference } from "./difference.js";
import { Weights } from "./weights.js";

const weightsOf = (profile) => Object.fromEntries(profile.priorities.map((each) => [each.name, each.weight]));

function Tabs({ tab, setTab, kind }) {
  const pressed = (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    const next = tab === "weights" ? "text" : "weights";
    setTab(next);
    requestAnimationFrame(() => document.getElementById(`tab-${next}`).focus());
  };
  return html`<div class="tabs" role="tablist" aria-label="How to change the rules" onKeyDown=${pressed}>
    ${[["weights", "Weights"], ["text", `${kind} text`]].map(
      ([key, label]) => html`<button type="button" role="tab" id=${`tab-${key}`} aria-controls="tab-panel" aria-selected=${tab === key} tabindex=${tab === key ? 0 : -1} onClick=${() => setTab(key)}>${label}</button>`,
    )}
  </div>`;
}

function Editor({ text, setText, kind }) {
  return html`<label class="editor">A Policy or a KubeSchedulerConfiguration, YAML or JSON
    <textarea rows="20" spellcheck="false" autocapitalize="off" value=${text} onInput=${(event) => setText(event.target.value)} aria-describedby="editor-help"></textarea></label>
    <p id="editor-help" class="quiet">This is what runs now, written as a ${kind}. Keep a copy: it works with every other command as well.</p>`;
}

function RulesForm({ found, profile, onApplied }) {
  const [tab, setTab] = useState("weights");
  const [weights, setWeights] = useState(weightsOf(profile));
  const [text, setText] = useState(found.text);
  const [state, compare, setState] = useComparison("/what-if");
  const current = weightsOf(profile);
  const changed = Object.fromEntries(Object.entries(weights).filter(([name, weight]) => weight !== current[name]));
  const wish = tab === "weights" ? { weights: changed, scheduler: profile.scheduler } : { text };
  const asked = JSON.stringify(wish);
  const touched = tab === "weights" ? Object.keys(changed).length > 0 : text !== found.text;
  const reset = () => {
    setWeights(current);
    setText(found.text);
    setState({ at: "idle" });
  };
  const apply = async () => {
    try {
      const next = await sendJson("PUT", "/profile", wish);
      onApplied(next);
    } catch (error) {
      setState({ at: "failed", error });
    }
  };
  const ready = state.at === "answered" && state.about === asked;
  return html`<div class="rules">
    <section class="edit" aria-label="The rules">
      <${Tabs} tab=${tab} setTab=${setTab} kind=${found.kind} />
      <div id="tab-panel" role="tabpanel" aria-labelledby=${`tab-${tab}`}>
        ${tab === "weights"
          ? html`<${Weights} profile=${profile} weights=${weights} setWeights=${setWeights} />`
          : html`<${Editor} text=${text} setText=${setText} kind=${found.kind} />`}
      </div>
      <div class="actions">
        <button type="button" class="primary" aria-keyshortcuts="s" disabled=${!touched || state.at === "asking"} onClick=${() => compare(wish, asked)}>See what would change</button>
        ${found.readOnly ? html`<span class="quiet">These pages are read-only.</span>` : html`<button type="button" disabled=${!ready} onClick=${apply}>Apply</button>`}
        <button type="button" disabled=${!touched} onClick=${reset}>Reset</button>
      </div>
      <p class="quiet">${ready ? "Applying decides the next pods by these rules; nothing that runs is moved." : touched ? "Nothing is applied before you have seen what would change." : "Change something to compare it with what runs now."}</p>
    </section>
    <section class="outcome" aria-label="What would change" aria-live="polite">
      <${Asked} state=${state} what="Placing the pods again:" />
      ${state.at === "answered" && html`<${Difference} result=${state.answer.result} stale=${!ready} text=${state.answer.text} />`}
      ${state.at === "idle" && html`<${Predicates} profile=${profile} />`}
    </section>
  </div>`;
}

function Predicates({ profile }) {
  const [filters] = profile.ruleNames;
  return html`<h2>${profile.name}</h2>
    <p class="quiet">Scores from 0 to ${profile.maxScore}; ${profile.preemption ? "pods may be evicted for more important ones" : "no pod is evicted"}; among equals: ${profile.ties}.</p>
    ${profile.notes.map((note) => html`<p class="note">${note}</p>`)}
    ${profile.extenders.length > 0 && html`<p>Extenders: ${profile.extenders.join(", ")}</p>`}
    <h3>Nodes are rejected by (${filters}s, in order)</h3>
    <ol class="predicates">${profile.predicates.map((each) => html`<li key=${each.name}><strong>${breakable(each.name)}</strong> <span class="quiet">${each.description}</span></li>`)}</ol>`;
}

export function PolicyPage() {
  const { data, error, loading } = useAnswer("/profile");
  const [applied, setApplied] = useState(null);
  const [note, setNote] = useState("");
  const [chosen, setChosen] = useState(0);
  const found = applied || data;
  const profile = found && (found.profiles[chosen] || found.profiles[0]);
  const take = (next) => {
    setApplied(next);
    setNote(`Applied. The next pods are decided by ${next.profiles[0].name}.`);
    getJson("/profile").then(setApplied, () => {});
  };
  return html`<div class="heading"><h1>Rules</h1><p class="quiet">What turns nodes down, what scores them, and how much each counts</p></div>
    ${error && html`<${Failure} error=${error} />`}
    ${loading && !found && html`<${Loading} what="Asking for the rules…" />`}
    <p class="applied" role="status">${note}</p>
    ${found && found.profiles.length > 1 && html`<p><label>Profile <select value=${chosen} onChange=${(event) => setChosen(Number(event.target.value))}>${found.profiles.map((each, i) => html`<option value=${i}>${each.scheduler}</option>`)}</select></label></p>`}
    ${found && html`<${RulesForm} key=${`${profile.scheduler} ${found.text}`} found=${found} profile=${profile} onApplied=${take} />`}`;
}
