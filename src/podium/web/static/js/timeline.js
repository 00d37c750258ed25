// What happened to pods, the newest first.
import { useAnswer } from "./api.js";
import { html, useState } from "./dom.js";
import { asQuery, Filters, useFilters } from "./filters.js";
import { clock, number } from "./format.js";
import { useStamp } from "./live.js";
import { Empty, Failure, Loading } from "./notices.js";
import { atQuery, PastBar, useMoment } from "./past.js";
import { nodeLink, podLink, setParameters } from "./router.js";

const KINDS = ["placed", "bound", "unschedulable", "nominated", "evicted", "error", "created", "deleted"];

const PER_PAGE = 50;
const OUTCOMES = ["unschedulable", "error"];

// Entries that say the same of one pod and follow each other, as the newest of them with a count.
function collapsed(entries) {
  const found = [];
  const last = new Map();
  for (const each of entries) {
    const known = last.get(each.pod);
    if (known && OUTCOMES.includes(each.what) && known.what === each.what && known.text === each.text) {
      known.count += 1;
      known.first = each.at;
    } else {
      const made = { ...each, count: 1, first: each.at };
      found.push(made);
      last.set(each.pod, made);
    }
  }
  return found;
}

// Buttons that go from page to page; nothing where one page holds everything.
function Pages({ at, pages, go }) {
  if (pages < 2) return null;
  return html`<nav class="pages" aria-label="Pages of the timeline">
    <button type="button" aria-keyshortcuts="p" disabled=${at === 0} onClick=${() => go(at - 1)}>Newer</button>
    <span class="quiet">page ${number(at + 1)} of ${number(pages)}</span>
    <button type="button" aria-keyshortcuts="n" disabled=${at >= pages - 1} onClick=${() => go(at + 1)}>Older</button>
  </nav>`;
}

export function TimelinePage() {
  const [chosen, setAt] = useState(0);
  const filters = useFilters();
  const stamp = useStamp((pulse) => `${pulse.decided} ${pulse.placed} ${pulse.evicted} ${pulse.waiting}`, 1000);
  const past = useMoment() !== null;
  const { data, error, loading } = useAnswer(`${past ? "/past" : ""}/timeline?${asQuery(filters)}`, past ? 0 : stamp);
  const entries = data ? collapsed(data.entries) : [];
  const pages = Math.max(1, Math.ceil(entries.length / PER_PAGE));
  const at = Math.min(chosen, pages - 1);
  const shown = entries.slice(at * PER_PAGE, (at + 1) * PER_PAGE);
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
    html`<${Pages} at=${at} pages=${pages} go=${setAt} />
    <table class="list timeline">
      <thead><tr><th scope="col">Time</th><th scope="col">What</th><th scope="col">Pod</th><th scope="col">Node</th><th scope="col">Text</th></tr></thead>
      <tbody>${shown.map(
        (each, index) => html`<tr key=${`${each.at} ${each.pod} ${each.what} ${index}`}>
          <td><time datetime=${new Date(each.at * 1000).toISOString()}>${clock(each.at)}</time></td>
          <td data-label="What"><span class="chip">${each.what}</span>${each.count > 1 ? html` <span class="quiet" title=${`since ${clock(each.first)}`}>${number(each.count)} times</span>` : ""}</td>
          <td data-label="Pod"><a href=${`${podLink(each.pod)}${past ? atQuery(each.at) : ""}`}>${each.pod}</a></td>
          <td data-label="Node">${each.node ? html`<a href=${`${nodeLink(each.node)}${past ? atQuery(each.at) : ""}`}>${each.node}</a>` : ""}</td>
          <td class="reason">${each.text}</td></tr>`,
      )}</tbody></table>
    <${Pages} at=${at} pages=${pages} go=${setAt} />`}`;
}
