// How one pod was decided.
import { useAnswer } from "../api.js";
import { html, useRef } from "../dom.js";
import { useStamp } from "../live.js";
import { Empty, Failure, Loading } from "../notices.js";
import { atQuery, useMoment } from "../past.js";
import { Wakes } from "../pending.js";
import { podLink } from "../router.js";
import { Decision } from "./decision.js";

export function DecisionPage({ namespace, name, attempt }) {
  const settled = useRef(null);
  const changed = useStamp((pulse) => `${pulse.decided} ${pulse.placed}`, 1500);
  // A placed pod that is worked out again keeps the server busy: once is enough.
  const stamp = settled.current === null ? changed : settled.current;
  const at = useMoment();
  const query = attempt ? `?attempt=${encodeURIComponent(attempt)}` : "";
  const pod = `/decisions/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const { data, error, loading } = useAnswer(at === null ? `${pod}${query}` : `/past${pod}${atQuery(at)}`, at === null ? stamp : 0);
  if (data && data.actual) settled.current = stamp;
  if (error && error.status === 404 && at !== null) {
    return html`<${Empty} title=${error.message}>Its placement may be older than the record, or another scheduler's. <a href=${podLink(`${namespace}/${name}`)}>As it is now</a><//>`;
  }
  if (error && error.status === 404) {
    return html`<${Empty} title=${`There is no pod ${namespace}/${name}.`}>It may have been deleted, or not have been created yet. <a href="#/">Back to the cluster</a><//>`;
  }
  if (error && !data) return html`<${Failure} error=${error} />`;
  if (loading || !data) return html`<${Loading} what=${`Asking why ${namespace}/${name} is where it is…`} />`;
  return html`<${Decision} decision=${data} /><${Wakes} waiting=${data.waiting} />`;
}
