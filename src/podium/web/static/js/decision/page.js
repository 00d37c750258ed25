// How one pod was decided.
import { useAnswer } from "../api.js";
import { html } from "../dom.js";
import { useStamp } from "../live.js";
import { Empty, Failure, Loading } from "../notices.js";
import { Decision } from "./decision.js";

export function DecisionPage({ namespace, name }) {
  const stamp = useStamp((pulse) => `${pulse.decided} ${pulse.placed}`, 1000);
  const path = `/decisions/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const { data, error, loading } = useAnswer(path, stamp);
  if (error && error.status === 404) {
    return html`<${Empty} title=${`Nothing is known of a pod ${namespace}/${name}.`}>It may have been deleted, or not have been created yet. <a href="#/">Back to the cluster</a><//>`;
  }
  if (error && !data) return html`<${Failure} error=${error} />`;
  if (loading || !data) return html`<${Loading} what=${`Asking why ${namespace}/${name} is where it is…`} />`;
  return html`<${Decision} decision=${data} />`;
}
