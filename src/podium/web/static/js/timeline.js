// What happened to pods, the newest first.
import { useAnswer } from "./api.js";
import { html } from "./dom.js";
import { asQuery, Filters, useFilters } from "./filters.js";
import { clock, number } from "./format.js";
import { useStamp } from "./live.js";
import { Empty, Failure, Loading } from "./notices.js";
import { atQuery, PastBar, useMoment } from "./past.js";
import { nodeLink, podLink, setParameters } from "./router.js";

const KINDS = ["placed", "bound", "unschedulable", "nominated", "evicted", "error", "created", "deleted"];

export function TimelinePage() {
  const filters = useFilters();
  const stamp = useStamp((pulse) => `${pulse.decided} ${pulse.placed} ${pulse.evicted} ${pulse.waiting}`, 1000);
  const past = useMoment() !== null;
  const { data, error, loading } = useAnswer(`${past ? "/past" : ""}/timeline?${asQuery(filters)}`, past ? 0 : stamp);
  return html`<div class="heading"><h1>Timeline</h1>
      <p class="quiet" aria-live="polite">${data ? `${number(data.matching)} entries, the newest first` : ""}</p></div>
    <${PastBar} keep=${filters} />
    <${Filters} filters=${filters} namespaces=${data ? data.namespaces : []} placeholder="Search pods and texts">
      <label>What <select value=${filters.what} onChange=${(event) => setParameters({ ...filters, what: event.target.value })}>
        <option value="">everything</option>${KINDS.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label>
    <//>
    ${error && html`<${Failure} error=${error} />`}
    ${loading && !data && html`<${Loading} what="Asking what happened…" />`}
    ${data && !data.entries.length && html`<${Empty} title="Nothing happened that matches." />`}
    ${data &&
    data.entries.length > 0 &&
    html`<table class="list timeline">
      <thead><tr><th scope="col">Time</th><th scope="col">What</th><th scope="col">Pod</th><th scope="col">Node</th><th scope="col">Text</th></tr></thead>
      <tbody>${data.entries.map(
        (each, index) => html`<tr key=${`${each.at} ${each.pod} ${each.what} ${index}`}>
          <td><time datetime=${new Date(each.at * 1000).toISOString()}>${clock(each.at)}</time></td>
          <td data-label="What"><span class="chip">${each.what}</span></td>
          <td data-label="Pod"><a href=${`${podLink(each.pod)}${past ? atQuery(each.at) : ""}`}>${each.pod}</a></td>
          <td data-label="Node">${each.node ? html`<a href=${`${nodeLink(each.node)}${past ? atQuery(each.at) : ""}`}>${each.node}</a>` : ""}</td>
          <td class="reason">${each.text}</td></tr>`,
      )}</tbody></table>`}`;
}
