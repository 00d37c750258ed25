// The recorded past: a chart of it, and a slider that chooses the moment that is shown.
//
// The moment is part of the address (#/?at=1790000000), so that a link shows the same.
import { getJson } from "./api.js";
import { TimeChart } from "./chart.js";
import { html, useEffect, useRef, useState } from "./dom.js";
import { moment as momentText } from "./format.js";
import { setParameters, useParameters } from "./router.js";
import { createStore, useStore } from "./store.js";

const ASK_MILLISECONDS = 4000;
const MORE_MILLISECONDS = 100;
// The address follows the slider at most so often: browsers limit how often it may change.
const ADDRESS_MILLISECONDS = 200;
const FRAME_MILLISECONDS = 500;
const FRAMES = 60;

// What the server tells of the past; null before it did, and `recorded` says whether there is any.
export const recorded = createStore(null);

// The moment in the address, in seconds since 1970; null for now.
export function useMoment() {
  const text = useParameters().get("at");
  const at = text === null || text === "" ? NaN : Number(text);
  return Number.isFinite(at) ? at : null;
}

export const atQuery = (at) => (at === null ? "" : `?at=${at}`);

function useRecorded() {
  const found = useStore(recorded);
  useEffect(() => {
    let timer = null;
    let alive = true;
    const ask = () =>
      getJson("/past").then(
        (told) => {
          if (!alive) return;
          recorded.set(told);
          if (told.recorded) timer = setTimeout(ask, told.complete ? ASK_MILLISECONDS : MORE_MILLISECONDS);
        },
        () => alive && (timer = setTimeout(ask, ASK_MILLISECONDS)),
      );
    ask();
    return () => {
      alive = false;
      clearTimeout(timer);
    };
  }, []);
  return found;
}

// Points without anything in between are drawn as what they are: nothing decided, the queue as before.
function columns(told) {
  const times = [];
  const rows = [[], [], []];
  const put = (time, values) => {
    times.push(time);
    values.forEach((value, i) => rows[i].push(value));
  };
  told.times.forEach((time, i) => {
    const before = times.length ? times[times.length - 1] : null;
    if (before !== null && time > before + told.step) {
      const queue = told.pending[i - 1];
      put(before + told.step, [0, queue, 0]);
      if (time > before + 2 * told.step) put(time - told.step, [0, queue, 0]);
    }
    put(time, [told.decisions[i], told.pending[i], told.evicted[i]]);
  });
  return [times, ...rows];
}

function PastChart({ told, at, choose }) {
  const [times, decisions, queue, evicted] = columns(told);
  return html`<${TimeChart} label="Queue length, decisions and evictions over the recorded time" height=${110} times=${times} at=${at} choose=${choose}
    series=${[
      { kind: "first", label: told.step > 1 ? `decisions/${told.step} s` : "decisions/s", values: decisions, filled: true },
      { kind: "second", label: "queue length", values: queue, right: true },
      { kind: "third", label: "evictions", values: evicted, right: true, dots: true },
    ]} />`;
}

// The chart, and below it the slider; nothing where nothing is recorded.
export function PastBar({ keep = {} }) {
  const told = useRecorded();
  const at = useMoment();
  const [playing, setPlaying] = useState(false);
  const [sliding, setSliding] = useState(null);
  const timer = useRef(null);
  const kept = useRef(keep);
  kept.current = keep;
  const show = (time) => setParameters({ ...kept.current, at: time === null ? "" : String(time) });
  const slide = (time) => {
    setSliding(time);
    if (timer.current !== null) return;
    timer.current = setTimeout(() => {
      timer.current = null;
      setSliding((last) => {
        if (last !== null) show(last);
        return last;
      });
    }, ADDRESS_MILLISECONDS);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  const first = told && told.recorded ? Math.floor(told.from) : 0;
  const last = told && told.recorded ? Math.ceil(told.to) : 0;
  useEffect(() => {
    if (!playing) return undefined;
    const step = Math.max(1, Math.round((last - first) / FRAMES));
    const next = setTimeout(() => {
      const time = (at === null ? first : at) + step;
      if (time >= last) {
        setPlaying(false);
        show(null);
      } else show(time);
    }, FRAME_MILLISECONDS);
    return () => clearTimeout(next);
  }, [playing, at, last]);
  if (!told || !told.recorded || last <= first) return null;
  const shown = sliding === null ? (at === null ? last : at) : sliding;
  return html`<section class="past" aria-label="The recorded past">
    <${PastChart} told=${told} at=${at} choose=${(time) => show(Math.round(Math.min(last, Math.max(first, time))))} />
    <div class="slider">
      <button type="button" aria-keyshortcuts="k" onClick=${() => { if (at === null) show(first); setPlaying(!playing); }} aria-pressed=${playing}>${playing ? "Pause" : "Play"}</button>
      <label class="time"><span class="hidden">Time</span>
        <input type="range" min=${first} max=${last} step="1" value=${Math.min(shown, last)} aria-valuetext=${momentText(shown)}
          onInput=${(event) => { setPlaying(false); slide(Number(event.target.value)); }}
          onChange=${(event) => { setSliding(null); show(Number(event.target.value)); }} /></label>
      <output>${at === null && sliding === null ? "now" : momentText(shown)}</output>
      <button type="button" aria-keyshortcuts="0" disabled=${at === null} onClick=${() => { setPlaying(false); setSliding(null); show(null); }}>Now</button>
    </div>
    ${!told.complete && html`<p class="quiet">Older parts are still being read…</p>`}
  </section>`;
}
