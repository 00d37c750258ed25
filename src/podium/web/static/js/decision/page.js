// How one pod was decided.
import { useAnswer } from "../api.js";
import { html, useRef } from "../dom.js";
import { useStamp } from "../live.js";
import { Empty, Failure, Loading } from "../notices.js";
import { Wakes } from "../pending.js";
import { Decision } from "./decision.js";

export function DecisionPage({ namespace, name, attempt }) {
  const settled = useRef(null);
  const changed = useStamp((pulse) => `${pulse.decided} ${pulse.placed}`, 1500);
  // A placed pod that is worked out again keeps the server busy: once is enough.
  const stamp = settled.current === null ? changed : settled.current;
  const query = attempt ? `?attempt=${encodeURIComponent(attempt)}` : "";
  const path = `/decisions/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}${query}`;
  const { data, error, loading } = useAnswer(path, stamp);
  if (data && data.source === "now" && data.actual) settled.current = stamp;
  if (error && error.status === 404) {
    return html`<${Empty} title=${`There is no pod ${namespace}/${name}.`}>It may have been deleted, or not have been created yet. <a href="#/">Back to the cluster</a><//>`;
  }
  if (error && !data) return html`<${Failure} error=${error} />`;
  if (loading || !data) return html`<${Loading} what=${`Asking why ${namespace}/${name} is where it is…`} />`;
  return html`<${Decision} decision=${data} /><${Wakes} waiting=${data.waiting} />`;
}
