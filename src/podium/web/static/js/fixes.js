// What would make a pending pod fit, and what would be decided then.
import { Command } from "./copy.js";
import { sendJson, useAnswer } from "./api.js";
import { Decision } from "./decision/decision.js";
import { html } from "./dom.js";
import { Failure, Loading } from "./notices.js";
import { Asked, useQuestion } from "./questions.js";
import { nodeLink } from "./router.js";

function OneFix({ path, fix }) {
  const [state, ask] = useQuestion();
  const attempt = () => ask(() => sendJson("POST", path, { edits: fix.edits }));
  return html`<li>
    <p><strong>${fix.sentence}</strong> <span class="quiet">cost ${fix.cost}</span></p>
    ${fix.edits.map((edit) => html`<${Command} key=${edit.command} text=${edit.command} />`)}
    <button type="button" disabled=${state.at === "asking"} onClick=${attempt}>Try it</button>
    <div aria-live="polite">
      <${Asked} state=${state} what="Deciding…" />
      ${state.at === "answered" && html`<p class="tried">${state.answer.node ? html`It would go to <a href=${nodeLink(state.answer.node)}>${state.answer.node}</a>.` : "It would still fit nowhere: the cluster has changed."} <span class="quiet">Decided on a copy; nothing was changed.</span></p>
        <details><summary>The decision</summary><${Decision} decision=${state.answer} /></details>`}
    </div>
  </li>`;
}

export function Fixes({ pod }) {
  const path = `/fixes/${pod.split("/").map(encodeURIComponent).join("/")}`;
  const { data, error, loading } = useAnswer(path);
  if (error) return html`<${Failure} error=${error} />`;
  if (loading || !data) return html`<${Loading} what="Trying changes on a copy of the cluster…" />`;
  if (data.node) return html`<p>It fits on <a href=${nodeLink(data.node)}>${data.node}</a> now; nothing needs to change.</p>`;
  return html`<div class="fixes">
    ${data.plain && html`<p class="plain">${data.plain}</p>`}
    ${(data.notes || []).map((note) => html`<p class="note">${note}</p>`)}
    ${data.preempts && html`<p>The scheduler itself would evict ${data.preempts.pods.join(", ")} from <a href=${nodeLink(data.preempts.node)}>${data.preempts.node}</a>.</p>`}
    ${data.fixes.length ? html`<ol>${data.fixes.map((fix) => html`<${OneFix} key=${fix.sentence} path=${path} fix=${fix} />`)}</ol>` : html`<p>No edit of the kinds that are known, and no two of them, would help.</p>`}
    ${!data.complete && html`<p class="quiet">Not everything was tried: the cluster is large.</p>`}
  </div>`;
}
