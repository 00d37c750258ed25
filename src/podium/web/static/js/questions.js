// What forms ask the server: a question, a comparison that says how far it is, a manifest to ask about.
import { sendForLines } from "./api.js";
import { html, useEffect, useRef, useState } from "./dom.js";
import { number } from "./format.js";
import { Failure, Loading } from "./notices.js";

// `state.at` is idle, asking, answered or failed.
export function useQuestion() {
  const [state, setState] = useState({ at: "idle" });
  const ask = async (send) => {
    setState({ at: "asking" });
    try {
      setState({ at: "answered", answer: await send() });
    } catch (error) {
      setState({ at: "failed", error });
    }
  };
  return [state, ask];
}

// The same for what is answered line by line; the last line has the result. `about` stays with the answer.
export function useComparison(path) {
  const [state, setState] = useState({ at: "idle" });
  const abort = useRef(null);
  const stop = () => abort.current && abort.current.abort();
  useEffect(() => stop, []);
  const compare = async (wish, about = null) => {
    abort.current = new AbortController();
    setState({ at: "asking", done: 0, total: 0, stop });
    let last = null;
    try {
      await sendForLines(path, wish, (line) => {
        last = line;
        if (line.total !== undefined) setState({ at: "asking", stop, ...line });
      }, abort.current.signal);
      if (last && last.error) throw new Error(last.error);
      if (!last || !last.result) throw new Error("The comparison ended without a result.");
      setState({ at: "answered", answer: last, about });
    } catch (error) {
      setState(error.name === "AbortError" ? { at: "idle" } : { at: "failed", error });
    }
  };
  return [state, compare, setState];
}

// How far a question is, or why it has no answer.
export function Asked({ state, what }) {
  if (state.at === "failed") return html`<${Failure} error=${state.error} />`;
  if (state.at !== "asking") return null;
  if (!state.stop) return html`<${Loading} what=${what} />`;
  return html`<p role="status" class="running"><progress max=${Math.max(1, state.total)} value=${state.done}></progress> ${what} ${number(state.done)} of ${number(state.total)} <button type="button" onClick=${state.stop}>Stop</button></p>`;
}

// Opens a file; `take` gets its name and its text.
export const FileButton = ({ take }) =>
  html`<label class="button">Open a file…<input type="file" class="hidden" accept=".yaml,.yml,.json" onChange=${async (event) => {
    const [chosen] = event.target.files;
    if (chosen) take(chosen.name, await chosen.text());
    event.target.value = "";
  }} /></label>`;

export const examplePod = (name) => `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
spec:
  containers:
  - name: main
    image: nginx
    resources:
      requests:
        cpu: 500m
        memory: 256Mi
`;
