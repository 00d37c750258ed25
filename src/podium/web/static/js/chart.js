// Decisions per second and waiting pods, over the last minutes.
import { html, useEffect, useRef } from "./dom.js";
import { token } from "./colours.js";
import { history, SECONDS } from "./live.js";
import { useStore } from "./store.js";
import { theme } from "./theme.js";

const HEIGHT = 120;

function columns(rows) {
  const last = rows.length ? rows[rows.length - 1][0] : Math.floor(Date.now() / 1000);
  const known = new Map(rows.map((row) => [row[0], row]));
  const seconds = Array.from({ length: SECONDS }, (_, i) => last - SECONDS + 1 + i);
  let waiting = null;
  const decided = [];
  const waited = [];
  for (const second of seconds) {
    const row = known.get(second);
    if (row) waiting = row[2];
    decided.push(row ? row[1] : waiting === null ? null : 0);
    waited.push(waiting);
  }
  return [seconds, decided, waited];
}

function options(width) {
  const axis = { stroke: token("--quiet"), grid: { stroke: token("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  const whole = (_, values) => values.map((value) => (Number.isInteger(value) ? value.toLocaleString("en") : ""));
  return {
    width,
    height: HEIGHT,
    padding: [8, 0, 0, 0],
    cursor: { y: false, points: { size: 6 } },
    legend: { show: true, live: true },
    scales: {
      x: { time: true },
      y: { range: (_, __, high) => [0, Math.max(high, 1) * 1.1] },
      waiting: { range: (_, __, high) => [0, Math.max(high, 1) * 1.1] },
    },
    axes: [
      { ...axis, size: 22, values: (_, ticks) => ticks.map((tick) => new Date(tick * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" })) , space: 90 },
      { ...axis, size: 44, values: whole },
      { ...axis, size: 44, side: 1, scale: "waiting", grid: { show: false }, values: whole },
    ],
    series: [
      { value: (_, value) => (value === null ? "–" : new Date(value * 1000).toLocaleTimeString("en-GB")), label: "time" },
      { label: "decisions/s", stroke: token("--series-1"), fill: token("--series-1-fill"), width: 1.5, points: { show: false } },
      { label: "pending", scale: "waiting", stroke: token("--series-2"), width: 1.5, dash: [4, 3], points: { show: false } },
    ],
  };
}

export function ThroughputChart() {
  const place = useRef(null);
  const plot = useRef(null);
  const shown = useStore(theme);
  useEffect(() => {
    let alive = true;
    let observer = null;
    let stop = () => {};
    import("../vendor/uplot.js").then(({ default: UPlot }) => {
      if (!alive || !place.current) return;
      const { current: box } = place;
      const width = () => Math.max(160, box.clientWidth);
      plot.current = new UPlot(options(width()), columns(history.get()), box);
      const tellLast = () => plot.current && plot.current.cursor.idx == null && plot.current.setLegend({ idx: SECONDS - 1 }, false);
      tellLast();
      observer = new ResizeObserver(() => plot.current && plot.current.setSize({ width: width(), height: HEIGHT }));
      observer.observe(box);
      let due = false;
      stop = history.subscribe((rows) => {
        if (due) return;
        due = true;
        setTimeout(() => {
          due = false;
          if (!plot.current) return;
          plot.current.setData(columns(rows));
          tellLast();
        }, 500);
      });
    });
    return () => {
      alive = false;
      stop();
      if (observer) observer.disconnect();
      if (plot.current) plot.current.destroy();
      plot.current = null;
    };
  }, [shown]);
  return html`<figure class="chart" aria-label="Decisions per second and pending pods over the last five minutes">
    <div class="plot" ref=${place}></div>
  </figure>`;
}
