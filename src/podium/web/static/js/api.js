// Asking the server. What goes wrong is an Error with one sentence to show.
import { useEffect, useState } from "./dom.js";

// Relative to the page, which may be behind the proxy of an API server.
export const BASE = new URL("podium/v1", document.baseURI).pathname;

export class Refusal extends Error {
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(`${BASE}${path}`, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("The server does not answer. Is it still running?", 0);
  }
  if (!response.ok) throw new Refusal(await sentence(response), response.status);
  return response;
}

async function sentence(response) {
  if (response.status === 401 || response.status === 403) {
    return "This page may not ask the server: open the address that was printed at the start, with its token.";
  }
  try {
    const found = await response.json();
    if (found.error || found.message) return found.error || found.message;
  } catch {
    // Not JSON: the status has to do.
  }
  return `The server answered ${response.status}.`;
}

export const getJson = async (path, options) => (await ask(path, options)).json();

export const sendJson = async (method, path, value) =>
  (
    await ask(path, {
      method,
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(value),
    })
  ).json();

export const sendText = async (path, text) =>
  (
    await ask(path, { method: "POST", headers: { "Content-Type": "application/yaml" }, body: text })
  ).json();

// A request that is answered line by line; `tell` hears each of them.
export async function sendForLines(path, value, tell, signal) {
  const response = await ask(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(value),
    signal,
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value: part } = await reader.read();
    if (done) return;
    const lines = (rest + part).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) tell(JSON.parse(line));
  }
}

// The answer to a path, asked again whenever `stamp` changes; the old answer stays until then.
export function useAnswer(path, stamp = 0) {
  const [state, setState] = useState({ path: null, data: null, error: null });
  useEffect(() => {
    if (path === null) return undefined;
    let current = true;
    getJson(path).then(
      (data) => current && setState({ path, data, error: null }),
      (error) =>
        current &&
        setState((old) => ({ path, data: old.path === path ? old.data : null, error })),
    );
    return () => {
      current = false;
    };
  }, [path, stamp]);
  const fresh = state.path === path;
  return { data: fresh ? state.data : null, error: fresh ? state.error : null, loading: !fresh };
}
