// The heat map: nodes that fit down, priorities across with their weights, totals at the end.
//
// Only the rows in view are in the document, so five thousand nodes scroll like twenty.
import { html, useMemo, useRef, useState } from "../dom.js";
import { breakable, number, short } from "../format.js";
import { nodeLink } from "../router.js";
import { gaps, matrix, sorted, valueOf, VALUES } from "./scores.js";

const FIRST = 20;
const ROW = 30;
const SPARE = 10;

function Heading({ label, weight, column, by, setBy, numeric }) {
  const current = by.column === column;
  const direction = current ? (by.up ? "ascending" : "descending") : "none";
  const choose = () => setBy({ column, up: current ? !by.up : false });
  return html`<th scope="col" class=${`${numeric ? "number" : ""} ${column.same ? "same" : ""}`} title=${column.same ? "The same for every node" : undefined} aria-sort=${direction}>
    <button type="button" class="plain" onClick=${choose}>${label}${weight !== undefined && html` <span class="weight">×${number(weight)}</span>`}<span class="arrow" aria-hidden="true">${current ? (by.up ? "▲" : "▼") : ""}</span></button>
  </th>`;
}

function Cell({ row, column, shown, max, ask }) {
  const heat = Math.max(0, Math.min(1, row.scores[column.index] / max));
  return html`<td class=${`heat number ${heat > 0.86 ? "hot" : ""} ${heat > 0.7 ? "warm" : ""} ${column.same ? "same" : ""}`} style=${{ "--heat": heat.toFixed(3) }} title="How this score is computed" onClick=${() => ask(row, column)}>${number(valueOf(row, column, shown))}</td>`;
}

// How the score in a cell is computed, with the numbers that were put in.
function Formula({ asked, decision, close }) {
  if (!asked) return null;
  const { row, column } = asked;
  const line = (decision.scoreLines || []).find((each) => each.priority === column.name);
  const told = line && line.nodes.find((each) => each.node === row.name);
  const score = row.scores[column.index];
  return html`<div class="formula" role="status">
    <p><strong>${column.name}</strong> on <a href=${nodeLink(row.name)}>${row.name}</a>${line ? html`: ${line.formula}` : ""}</p>
    <p>${told ? told.text : `score ${number(score)}`}; ${number(score)} × ${number(column.weight)} = ${number(score * column.weight)}${told ? "" : html` <span class="quiet">(the numbers are told for the best nodes; --node of podium explain tells those of any)</span>`}</p>
    <button type="button" onClick=${close}>Close</button>
  </div>`;
}

function Row({ row, columns, shown, max, chosen, onChoose, ask }) {
  const mark = row.won ? "★" : row.tied ? "=" : "";
  const words = row.won ? "chosen" : row.tied ? "shares the best total" : "";
  return html`<tr class=${`${row.won ? "winner" : ""} ${chosen ? "chosen" : ""}`} tabindex=${chosen ? 0 : -1} data-name=${row.name} onClick=${() => onChoose(row.name)} onFocus=${() => onChoose(row.name)}>
    <th scope="row"><span class="rank">${number(row.rank)}</span><span class="mark-small" title=${words} aria-label=${words}>${mark}</span><a href=${nodeLink(row.name)} tabindex="-1">${row.name}</a></th>
    ${columns.map((column) => html`<${Cell} key=${column.index} row=${row} column=${column} shown=${shown} max=${max} ask=${ask} />`)}
    <td class="number total">${number(row.total)}</td>
  </tr>`;
}

function Compared({ row, winner, columns }) {
  if (!row || !winner) return null;
  if (row.won) return html`<p class="compared" aria-live="polite"><strong>${row.name}</strong> is the one that was chosen, with a total of ${number(row.total)}.</p>`;
  const behind = winner.total - row.total;
  const parts = gaps(row, winner, columns);
  return html`<p class="compared" aria-live="polite"><strong>${row.name}</strong> ${behind === 0 ? `has the same total as ${winner.name}` : `is ${number(behind)} behind ${winner.name}`}${parts.length ? ": " : "."}${parts.map((gap, i) => html`${i ? ", " : ""}${short(gap.name)} <b class=${gap.points > 0 ? "more" : "less"}>${gap.points > 0 ? "+" : "−"}${number(Math.abs(gap.points))}</b>`)}</p>`;
}

function useWindow(count, on) {
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const scrolled = (event) => {
    if (!on) return;
    setTop(event.currentTarget.scrollTop);
    setHeight(event.currentTarget.clientHeight);
  };
  if (!on) return { from: 0, to: count, scrolled };
  const from = Math.max(0, Math.floor(top / ROW) - SPARE);
  return { from, to: Math.min(count, from + Math.ceil(height / ROW) + 2 * SPARE), scrolled };
}

export function HeatMap({ decision }) {
  const found = useMemo(() => matrix(decision), [decision]);
  const [by, setBy] = useState({ column: "rank", up: false });
  const [shown, setShown] = useState("score");
  const [all, setAll] = useState(false);
  const [telling, setTelling] = useState(matchMedia("(max-width: 640px)").matches);
  const [chosen, setChosen] = useState(null);
  const [asked, setAsked] = useState(null);
  const [query, setQuery] = useState("");
  const scroller = useRef(null);
  const everyRow = useMemo(() => (found ? sorted(found.rows, by, shown) : []), [found, by, shown]);
  const rows = query ? everyRow.filter((row) => row.name.includes(query)) : everyRow;
  const listed = all ? rows : rows.slice(0, FIRST);
  const windowed = useWindow(listed.length, listed.length > 4 * FIRST);
  if (!found) return null;
  const same = found.columns.filter((column) => column.same);
  const differing = found.columns.filter((column) => !column.same);
  const columns = telling && differing.length ? differing : [...differing, ...same];
  const winner = found.rows.find((row) => row.won);
  const selected = listed.some((row) => row.name === chosen) ? chosen : (listed[0] && listed[0].name);
  const [, scoredBy] = decision.ruleNames;
  const pressed = (event) => {
    const index = listed.findIndex((row) => row.name === selected);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -listed.length, End: listed.length };
    if (event.target.tagName === "BUTTON" || !steps[event.key]) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(listed.length - 1, index + steps[event.key]));
    setChosen(listed[next].name);
    if (windowed.to < listed.length || windowed.from > 0) {
      const place = scroller.current;
      if (next * ROW < place.scrollTop || (next + 3) * ROW > place.scrollTop + place.clientHeight) place.scrollTop = next * ROW - place.clientHeight / 2;
    }
    requestAnimationFrame(() => {
      const row = scroller.current && scroller.current.querySelector(`tr[data-name="${CSS.escape(listed[next].name)}"]`);
      if (row) row.focus();
    });
  };
  return html`<section aria-labelledby="heat-map"><h2 id="heat-map">Scores <span class="quiet">${scoredBy === "priority" ? "priority × node" : "score plugin × node"}, 0 to ${decision.maxScore}; the stronger the colour, the better</span></h2>
    <div class="toolbar small">
      ${found.rows.length > 1 && html`<label>Find <input type="search" placeholder="node name" value=${query} onInput=${(event) => setQuery(event.target.value)} /></label>`}
      <label>Cells show <select value=${shown} onChange=${(event) => setShown(event.target.value)}>${Object.entries(VALUES).map(([key, words]) => html`<option value=${key}>${words}</option>`)}</select></label>
      ${same.length > 0 && differing.length > 0 && html`<label><input type="checkbox" checked=${telling} onChange=${() => setTelling(!telling)} /> only what made a difference</label>`}
    </div>
    <div class=${`scroll heat-map ${all ? "tall" : ""}`} ref=${scroller} onScroll=${windowed.scrolled} onKeyDown=${pressed}>
      <table role="grid" aria-rowcount=${listed.length + 1} aria-label="Scores of the nodes that fit">
        <thead><tr>
          <${Heading} label="Node" column="node" by=${by} setBy=${setBy} />
          ${columns.map((column) => html`<${Heading} key=${column.index} label=${breakable(short(column.name))} weight=${column.weight} column=${column} by=${by} setBy=${setBy} numeric />`)}
          <${Heading} label="Total" column="total" by=${by} setBy=${setBy} numeric />
        </tr></thead>
        <tbody>
          ${windowed.from > 0 && html`<tr class="space" aria-hidden="true" style=${{ height: `${windowed.from * ROW}px` }}></tr>`}
          ${listed.slice(windowed.from, windowed.to).map((row) => html`<${Row} key=${row.name} row=${row} columns=${columns} shown=${shown} max=${decision.maxScore} chosen=${row.name === selected} onChoose=${setChosen} ask=${(row, column) => setAsked({ row, column })} />`)}
          ${windowed.to < listed.length && html`<tr class="space" aria-hidden="true" style=${{ height: `${(listed.length - windowed.to) * ROW}px` }}></tr>`}
        </tbody>
      </table>
    </div>
    ${rows.length > FIRST && html`<p><button type="button" onClick=${() => setAll(!all)}>${all ? `Show the first ${FIRST}` : `Show all ${number(rows.length)} nodes`}</button></p>`}
    ${query && !rows.length && html`<p class="quiet">No node that fits has “${query}” in its name.</p>`}
    <${Formula} asked=${asked} decision=${decision} close=${() => setAsked(null)} />
    <${Compared} row=${listed.find((row) => row.name === selected)} winner=${winner} columns=${found.columns} />
    ${columns.length < found.columns.length && html`<p class="quiet">The same for every node: ${same.map((column) => `${short(column.name)} ${number(found.rows[0].scores[column.index])} ×${number(column.weight)}`).join(", ")}.</p>`}
  </section>`;
}
