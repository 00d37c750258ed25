// A chart over time: lines on two axes, and below them the numbers at the pointer, or the last ones.
import { html, useEffect, useRef, useState } from "./dom.js";
import { clock, number } from "./format.js";
import { history, SECONDS, usePulse } from "./live.js";
import { useStore } from "./store.js";

const SIDE = 46;
const TOP = 8;
const FOOT = 20;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];
const LABEL_WIDTH = 90;

// Whole numbers from 0 up to the highest value, four steps at most.
function levels(highest) {
  const size = 10 ** Math.floor(Math.log10(highest / 4));
  const step = Math.max(1, [1, 2, 5, 10].map((n) => n * size).find((each) => highest / each <= 4));
  return Array.from({ length: Math.floor(highest / step) + 1 }, (_, i) => i * step);
}

function moments(first, last, most) {
  const step = STEPS.find((each) => (last - first) / each <= most) || last - first || 1;
  const start = Math.ceil(first / step) * step;
  return Array.from({ length: Math.max(0, Math.floor((last - start) / step) + 1) }, (_, i) => start + i * step);
}

// A path through the points; a value of null interrupts it.
function path(points) {
  let open = false;
  return points.map(([x, y]) => {
    const step = y === null ? "" : `${open ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    open = y !== null;
    return step;
  }).join("");
}

function useWidth(place) {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(160, Math.floor(entry.contentRect.width))));
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  return width;
}

// Each of the `series` has a kind, a label and values; those on the `right` have the axis there. `at` is
// a time that is marked; `choose` is called with a time that is clicked.
export function TimeChart({ label, times, series, height, at = null, choose = null }) {
  const place = useRef(null);
  const width = useWidth(place);
  const [pointed, setPointed] = useState(null);
  const [hidden, setHidden] = useState([]);
  const [first, last] = [times[0], times[times.length - 1]];
  const right = width - SIDE;
  const x = (time) => SIDE + ((right - SIDE) * (time - first)) / Math.max(1, last - first);
  const highest = (side) => Math.max(1, ...series.flatMap((each) => (Boolean(each.right) === side ? each.values : []))) * 1.1;
  const tops = { false: highest(false), true: highest(true) };
  const y = (value, side) => height - FOOT - ((height - FOOT - TOP) * value) / tops[side];
  const timeAt = ({ clientX }) => {
    const across = clientX - place.current.getBoundingClientRect().left;
    return first + ((last - first) * (across - SIDE)) / Math.max(1, right - SIDE);
  };
  const point = (event) => {
    const time = timeAt(event);
    setPointed(times.reduce((best, each, i) => (Math.abs(each - time) < Math.abs(times[best] - time) ? i : best), 0));
  };
  const shown = pointed === null || pointed >= times.length ? times.length - 1 : pointed;
  const drawn = series.filter((each) => !hidden.includes(each.label));
  const line = (each) => path(times.map((time, i) => [x(time), each.values[i] === null ? null : y(each.values[i], Boolean(each.right))]));
  const area = (each) => {
    const points = times.flatMap((time, i) => (each.values[i] === null ? [] : [[x(time), y(each.values[i], false)]]));
    return points.length ? path([[points[0][0], y(0, false)], ...points, [points[points.length - 1][0], y(0, false)]]) : "";
  };
  const toggle = (name) => setHidden(hidden.includes(name) ? hidden.filter((each) => each !== name) : [...hidden, name]);
  return html`<figure class="chart" aria-label=${label}>
    <div ref=${place} style=${{ height: `${height}px` }}>${width > 0 && times.length > 0 && html`<svg width=${width} height=${height} aria-hidden="true"
      onPointerMove=${point} onPointerLeave=${() => setPointed(null)} onClick=${(event) => choose && choose(timeAt(event))}>
      ${[false, true].map((side) => levels(tops[side]).map((value) => html`
        ${!side && html`<path class="grid" d=${`M${SIDE} ${y(value, side)}H${right}`} />`}
        <text class=${side ? "" : "left"} x=${side ? right + 5 : SIDE - 5} y=${y(value, side) + 4}>${number(value)}</text>`))}
      ${moments(first, last, (right - SIDE) / LABEL_WIDTH).map((time) => html`
        <path class="grid" d=${`M${x(time)} ${TOP}V${height - FOOT}`} />
        <text class="middle" x=${x(time)} y=${height - 5}>${clock(time)}</text>`)}
      ${drawn.map((each) => html`
        ${each.filled && html`<path class="area" d=${area(each)} />`}
        <path class=${`line ${each.kind}`} d=${line(each)} />
        ${each.dots && times.map((time, i) => each.values[i] > 0 && html`<circle class=${each.kind} cx=${x(time)} cy=${y(each.values[i], Boolean(each.right))} r="2.5" />`)}`)}
      ${at !== null && html`<path class="moment" d=${`M${x(at)} ${TOP}V${height - FOOT}`} />`}
      ${pointed !== null && html`<path class="pointed" d=${`M${x(times[shown])} ${TOP}V${height - FOOT}`} />`}</svg>`}</div>
    <p class="values">${times.length > 0 && html`<span>time <b>${clock(times[shown])}</b></span>`}
      ${series.map((each) => html`<button type="button" class=${each.kind} aria-pressed=${!hidden.includes(each.label)} onClick=${() => toggle(each.label)}>
        ${each.label} <b>${each.values.length && each.values[shown] !== null ? number(each.values[shown]) : "–"}</b></button>`)}</p>
  </figure>`;
}

// The last seconds: each second, the decisions in it, and the pods that waited.
function lastSeconds(rows) {
  const last = rows.length ? rows[rows.length - 1][0] : Math.floor(Date.now() / 1000);
  const known = new Map(rows.map((row) => [row[0], row]));
  const times = Array.from({ length: SECONDS }, (_, i) => last - SECONDS + 1 + i);
  let waiting = null;
  const found = times.map((second) => {
    const row = known.get(second);
    if (row) waiting = row[2];
    return [row ? row[1] : waiting === null ? null : 0, waiting];
  });
  return [times, found.map(([decided]) => decided), found.map(([, waited]) => waited)];
}

export function ThroughputChart() {
  usePulse(); // the row of the present second changes in its place
  const [times, decided, waiting] = lastSeconds(useStore(history));
  return html`<${TimeChart} label="Decisions per second and pending pods over the last five minutes" height=${120} times=${times}
    series=${[{ kind: "first", label: "decisions/s", values: decided, filled: true }, { kind: "second", label: "pending", values: waiting, right: true }]} />`;
}
