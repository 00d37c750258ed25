// How many more pods of a manifest fit, where, and what runs out first.
import { sendJson } from "../api.js";
import { html } from "../dom.js";
import { counted } from "../format.js";
import { Asked, examplePod, FileButton, useQuestion } from "../questions.js";
import { createStore, useStore } from "../store.js";
import { legend, List, LoadMap } from "./map.js";

const NAMES = 8;

const kept = createStore({ text: examplePod("one-more"), from: "" });

const some = (names) => `${names.slice(0, NAMES).join(", ")}${names.length > NAMES ? ` and ${names.length - NAMES} more` : ""}`;

function Answer({ found }) {
  const most = Math.max(1, ...Object.values(found.perNode));
  const nodes = found.names.map((name) => {
    const count = found.perNode[name] || 0;
    return { name, words: count ? `${counted(count, "pod")} more` : "none", load: count / most, missing: !count, changed: false };
  });
  return html`<h2 class=${found.pods ? "" : "leaves"}>${found.sentence}</h2>
    <div class="plan-maps"><${LoadMap} title="Where they fit" nodes=${nodes} /></div>
    <p class="quiet">${legend(nodes.length, "of these pods it takes")} Dashed ones take none.</p>
    ${found.kinds.length > 1 && html`<${List} title="Kinds" heads=${["Kind", "In ratio", "Pods"]} rows=${found.kinds.map((each) => [each.name, each.ratio, each.pods])} />`}
    <${List} title="What runs out first" heads=${["Reason", "Nodes", "Pods", "Which"]} rows=${found.exhausted.map((each) => [each.reasons.join(", "), each.nodes.length, each.pods, some(each.nodes)])} />
    <${List} title="What one more node adds" heads=${["A node like", "More pods", "Such nodes now"]} rows=${found.oneMoreNode.map((each) => [each.like, each.pods, each.nodesLikeIt])} />
    <p class="quiet">Running pods stay, nothing is evicted, and pods that are pending do not count.</p>`;
}

export function CapacityForm() {
  const { text, from } = useStore(kept);
  const [state, ask] = useQuestion();
  const count = (event) => {
    event.preventDefault();
    ask(() => sendJson("POST", "/capacity", { manifest: text }));
  };
  return html`<form class="plan-form" onSubmit=${count} aria-label="Pods to count">
      <label class="editor wide">A Pod, or anything that makes pods; several are placed in the ratio of their replicas${from ? ` (from ${from})` : ""}
        <textarea rows="12" spellcheck="false" autocapitalize="off" value=${text} onInput=${(event) => kept.set({ text: event.target.value, from: "" })}></textarea></label>
      <button type="submit" class="primary" aria-keyshortcuts="s" disabled=${!text.trim() || state.at === "asking"}>Count</button>
      <${FileButton} take=${(name, content) => kept.set({ text: content, from: name })} />
    </form>
    <section class="outcome" aria-label="How many fit" aria-live="polite">
      <${Asked} state=${state} what="Placing copies until one fits nowhere…" />
      ${state.at === "answered" && html`<${Answer} found=${state.answer} />`}
    </section>`;
}
