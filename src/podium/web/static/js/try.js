// Drop a pod here: what would be decided about a manifest, without creating anything.
import { sendText } from "./api.js";
import { Decision } from "./decision/decision.js";
import { html, useEffect, useState } from "./dom.js";
import { Asked, examplePod, FileButton, useQuestion } from "./questions.js";
import { createStore, useStore } from "./store.js";


// A file that was dropped anywhere: {name, text}.
export const dropped = createStore(null);
const kept = createStore({ text: examplePod("just-a-thought"), from: "" });

export function TryPage() {
  const file = useStore(dropped);
  const { text, from } = useStore(kept);
  const [over, setOver] = useState(false);
  const [state, ask] = useQuestion();
  const decide = (manifest) => ask(() => sendText("/explain", manifest));
  const take = (name, content) => {
    kept.set({ text: content, from: name });
    decide(content);
  };
  useEffect(() => {
    if (!file) return;
    dropped.set(null);
    take(file.name, file.text);
  }, [file]);
  const pressed = (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    decide(text);
  };
  return html`<div class="heading"><h1>Try a pod</h1><p class="quiet">See what would be decided about a manifest just now. Nothing is created.</p></div>
    <div class="try">
      <section class=${`drop ${over ? "over" : ""}`} aria-label="Manifest"
        onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)} onDrop=${() => setOver(false)}>
        <label class="editor">A Pod, or anything that makes pods: Deployment, StatefulSet, Job…
          <textarea rows="18" spellcheck="false" autocapitalize="off" value=${text} onKeyDown=${pressed} onInput=${(event) => kept.set({ text: event.target.value, from: "" })}></textarea></label>
        <div class="actions">
          <button type="button" class="primary" aria-keyshortcuts="s" disabled=${!text.trim() || state.at === "asking"} onClick=${() => decide(text)}>Decide <kbd>Ctrl ↵</kbd></button>
          <${FileButton} take=${take} />
        </div>
        <p class="quiet">${from ? `From ${from}. ` : ""}Files may also be dropped anywhere on the page.</p>
      </section>
      <section class="outcome" aria-label="The decision" aria-live="polite">
        ${state.at === "idle" && html`<p class="notice quiet">The decision appears here, with all scores and reasons.</p>`}
        <${Asked} state=${state} what="Deciding…" />
        ${state.at === "answered" && html`<${Decision} decision=${state.answer} />`}
      </section>
    </div>`;
}
