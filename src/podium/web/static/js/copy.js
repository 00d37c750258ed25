// A command with a button that copies it.
import { html, useState } from "./dom.js";

const SHOWN_MILLISECONDS = 1500;

export function Command({ text }) {
  const [copied, setCopied] = useState(false);
  if (!text) return null;
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), SHOWN_MILLISECONDS);
  };
  return html`<div class="copied"><pre class="command"><code>${text}</code></pre>
    ${navigator.clipboard && html`<button type="button" class="copy" aria-label="Copy the command" onClick=${copy}>${copied ? "Copied" : "Copy"}</button>`}</div>`;
}
