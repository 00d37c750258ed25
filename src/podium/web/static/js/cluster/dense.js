// A zone of a large cluster: a small square per node, drawn on a canvas.
//
// The filled part of a square is the load; or each pod is a dot. One square has the keyboard's
// attention, moved with the arrow keys and read out below the canvas.
import { html, useEffect, useRef, useState } from "../dom.js";
import { shade, token } from "../colours.js";
import { percent, resourceName } from "../format.js";
import { CORDONED, GHOST, NOT_READY, picture, taintsOf } from "./model.js";
import { described, flagWords } from "./tiles.js";

const SIZE = 18;
const STEP = SIZE + 3;
const DOT = 3;
const MOST_PIXELS = 8000;

// What a plan changes on a node: a sign, and a frame around it; the other nodes fade.
function sign(context, mark, x, y, colours) {
  context.strokeStyle = mark.added ? colours.good : mark.gone ? colours.over : colours.mark;
  context.lineWidth = 2;
  context.strokeRect(x, y, SIZE, SIZE);
  const text = mark.gone ? "✕" : `${mark.leaving.length ? "−" : ""}${mark.arriving.length ? "+" : ""}`;
  context.fillStyle = colours.paper;
  context.fillRect(x + 2, y + 3, SIZE - 4, SIZE - 7);
  context.fillStyle = colours.mark;
  context.font = "bold 12px sans-serif";
  context.textAlign = "center";
  context.fillText(text === "−+" ? "±" : text, x + SIZE / 2, y + SIZE - 5);
}

function square(context, node, x, y, view, colour, colours) {
  context.globalAlpha = node.mark && node.mark.same ? 0.35 : 1;
  filled(context, node, x, y, view, colour, colours);
  context.globalAlpha = 1;
  if (node.mark && !node.mark.same) sign(context, node.mark, x, y, colours);
}

function filled(context, node, x, y, view, colour, colours) {
  context.fillStyle = colours.track;
  context.fillRect(x, y, SIZE, SIZE);
  if (view === "pods") dots(context, node, x, y, colour);
  else {
    const load = node.load[Number(view)] || 0;
    const height = load > 0 ? Math.max(2, Math.round((SIZE * Math.min(load, 1000)) / 1000)) : 0;
    context.fillStyle = load > 1000 ? colours.over : load > 900 ? colours.full : colours.fill;
    context.fillRect(x, y + SIZE - height, SIZE, height);
  }
  if (taintsOf(node).length) {
    context.fillStyle = colours.mark;
    context.beginPath();
    context.moveTo(x + SIZE, y);
    context.lineTo(x + SIZE - 7, y);
    context.lineTo(x + SIZE, y + 7);
    context.fill();
  }
  if (node.flags & (CORDONED | NOT_READY | GHOST)) {
    context.strokeStyle = colours.mark;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x + 2, y + 2);
    context.lineTo(x + SIZE - 2, y + SIZE - 2);
    context.stroke();
  }
}

function dots(context, node, x, y, colour) {
  const perLine = Math.floor((SIZE - 1) / (DOT + 1));
  const most = perLine * perLine;
  node.pods.slice(0, most).forEach((pod, i) => {
    context.fillStyle = shade(picture.workloads[pod], colour);
    context.fillRect(x + 1 + (i % perLine) * (DOT + 1), y + 1 + Math.floor(i / perLine) * (DOT + 1), DOT, DOT);
  });
}

function outline(context, index, perLine, colour) {
  if (index < 0) return;
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.strokeRect((index % perLine) * STEP + 1, Math.floor(index / perLine) * STEP + 1, SIZE + 2, SIZE + 2);
}

function draw(canvas, nodes, width, state) {
  const perLine = Math.max(1, Math.floor(width / STEP));
  const height = Math.ceil(nodes.length / perLine) * STEP + 4;
  const scale = Math.min(window.devicePixelRatio || 1, MOST_PIXELS / Math.max(height, width));
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  const colours = {
    track: token("--track"),
    fill: token("--fill"),
    full: token("--full"),
    over: token("--over"),
    mark: token("--ink"),
    good: token("--good"),
    paper: token("--paper"),
  };
  nodes.forEach((node, i) => {
    square(context, node, (i % perLine) * STEP + 2, Math.floor(i / perLine) * STEP + 2, state.view, state.colour, colours);
  });
  const chosen = nodes.findIndex((node) => node.name === state.selected);
  outline(context, chosen, perLine, token("--accent"));
  outline(context, state.hovered, perLine, token("--ink"));
  if (state.focused) outline(context, state.cursor, perLine, token("--focus"));
  return perLine;
}

function Tooltip({ node, at }) {
  const words = flagWords(node);
  const wide = window.innerWidth;
  const style = { left: `${Math.min(at.x + 14, wide - 190)}px`, top: `${at.y + 16}px` };
  return html`<div class="tooltip" style=${style} role="presentation">
    <strong>${node.name}</strong>${words.length > 0 && html` <span class="quiet">${words.join(", ")}</span>`}
    ${node.mark && node.mark.words && html`<div>${node.mark.words}</div>`}
    ${picture.resources.map((name, i) => node.load[i] !== null && html`<div>${resourceName(name)} <span>${percent(node.load[i] / 1000)}</span></div>`)}
  </div>`;
}

export function DenseZone({ nodes, version, colour, view, selected, onOpen }) {
  const canvas = useRef(null);
  const perLine = useRef(1);
  const [width, setWidth] = useState(0);
  const [hovered, setHovered] = useState({ index: -1, at: null });
  const [cursor, setCursor] = useState(0);
  const [focused, setFocused] = useState(false);
  useEffect(() => {
    const box = canvas.current.parentElement;
    const observer = new ResizeObserver(() => setWidth(box.clientWidth));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (!width) return undefined;
    const frame = requestAnimationFrame(() => {
      if (!canvas.current) return;
      perLine.current = draw(canvas.current, nodes, width, { view, colour, selected, hovered: hovered.index, cursor, focused });
    });
    return () => cancelAnimationFrame(frame);
  });
  const indexAt = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / STEP);
    const index = Math.floor((event.clientY - box.top) / STEP) * perLine.current + column;
    return column < perLine.current && index < nodes.length ? index : -1;
  };
  const pressed = (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: perLine.current, ArrowUp: -perLine.current, Home: -nodes.length, End: nodes.length };
    if (event.key === "Enter" || event.key === " ") onOpen(nodes[cursor].name);
    else if (steps[event.key]) setCursor(Math.max(0, Math.min(nodes.length - 1, cursor + steps[event.key])));
    else return;
    event.preventDefault();
  };
  const current = nodes[Math.min(cursor, nodes.length - 1)];
  const over = hovered.index >= 0 ? nodes[hovered.index] : null;
  return html`<div class="squares" data-version=${version}>
    <canvas ref=${canvas} tabindex="0" role="application" aria-roledescription="map of nodes"
      aria-label=${`${nodes.length} nodes; arrow keys move, Enter opens. ${focused && current ? described(current) : ""}`}
      onPointerMove=${(event) => setHovered({ index: indexAt(event), at: { x: event.clientX, y: event.clientY } })}
      onPointerLeave=${() => setHovered({ index: -1, at: null })}
      onClick=${(event) => indexAt(event) >= 0 && onOpen(nodes[indexAt(event)].name)}
      onFocus=${() => setFocused(canvas.current.matches(":focus-visible"))} onBlur=${() => setFocused(false)} onKeyDown=${pressed}></canvas>
    <p class="spoken" aria-live="polite">${focused && current ? described(current) : ""}</p>
    ${over && html`<${Tooltip} node=${over} at=${hovered.at} />`}
  </div>`;
}
