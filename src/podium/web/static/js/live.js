// What the server tells by itself: numbers several times a second, and whether it is there.
import { BASE, getJson } from "./api.js";
import { useEffect, useState } from "./dom.js";
import { createStore, useStore } from "./store.js";

export const SECONDS = 300;
export const pulse = createStore(null);
export const connected = createStore(true);
// Rows of [second, decisions in it, pods waiting], oldest first.
export const history = createStore([]);

let counted = null;

function note(told) {
  const second = Math.floor(told.time);
  if (counted === null || told.decided < counted.decided) {
    counted = { second, decided: told.decided };
  }
  const rows = history.get();
  const last = rows[rows.length - 1];
  if (last && last[0] === second) {
    last[1] = told.decided - counted.decided;
    last[2] = told.waiting;
    history.set(rows);
    return;
  }
  counted = { second, decided: pulse.get() ? pulse.get().decided : told.decided };
  const next = [...rows, [second, told.decided - counted.decided, told.waiting]];
  history.set(next.slice(-SECONDS));
}

export function follow() {
  getJson("/history").then(
    (found) => {
      const known = history.get();
      const first = known.length ? known[0][0] : Infinity;
      history.set([...found.history.filter((row) => row[0] < first), ...known].slice(-SECONDS));
    },
    () => {},
  );
  const source = new EventSource(`${BASE}/stream`);
  source.addEventListener("pulse", (event) => {
    const told = JSON.parse(event.data);
    note(told);
    pulse.set(told);
    connected.set(true);
  });
  source.addEventListener("error", () => connected.set(false));
  source.addEventListener("open", () => connected.set(true));
  window.addEventListener("pagehide", () => source.close());
}

export const usePulse = () => useStore(pulse);

// A number that grows when `pick(pulse)` changes, but not more often than `milliseconds`.
export function useStamp(pick, milliseconds = 400) {
  const [stamp, setStamp] = useState(0);
  useEffect(() => {
    let seen = pulse.get() ? pick(pulse.get()) : null;
    let timer = null;
    const stop = pulse.subscribe((told) => {
      if (!told || pick(told) === seen || timer !== null) return;
      timer = setTimeout(() => {
        timer = null;
        seen = pick(pulse.get());
        setStamp((old) => old + 1);
      }, milliseconds);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);
  return stamp;
}
