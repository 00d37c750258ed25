// Colours of workloads: made from their names, so that they are the same everywhere and always.
import { html } from "./dom.js";

// Lightness tells more than hue to colour-blind eyes, so both differ. Each stands out from the ground
// that it is drawn on, by three to one at least. Most squares have two shades of a hue, since there
// are more workloads than colours that can be told apart.
const LIGHTNESS = { light: [0.36, 0.47, 0.58], dark: [0.64, 0.75, 0.87] };
const SHADES = 3;
const CHROMA = 0.14;
// Degrees of the line between two shades, and which other shade comes after it.
const SPLITS = [null, [135, 1], [135, 2], [90, 1], [90, 2], [180, 1], [180, 2]];

export const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

// 32 bits in which names that differ little differ much.
function hash(text) {
  let found = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) found = Math.imul(found ^ text.charCodeAt(i), 0x01000193);
  found = Math.imul(found ^ (found >>> 16), 0x85ebca6b);
  found = Math.imul(found ^ (found >>> 13), 0xc2b2ae35);
  return (found ^ (found >>> 16)) >>> 0;
}

const numbers = new Map();

function numberOf(text) {
  if (!numbers.has(text)) numbers.set(text, hash(text));
  return numbers.get(text);
}

function colour(number, further = 0) {
  const lightness = LIGHTNESS[isDark() ? "dark" : "light"][(number + further) % SHADES];
  return `oklch(${lightness} ${CHROMA} ${Math.round(((number >>> 16) * 360) / 65536)})`;
}

// A workload is [namespace, kind, name]; pods are coloured by it, or by their namespace.
const named = (workload, by) => numberOf(by === "workload" ? workload.join("/") : workload[0]);

// The one colour of a pod, for dots and frames.
export const shade = (workload, by = "workload") => colour(named(workload, by));

// The square of a pod, as a background.
export function square(workload, by = "workload") {
  const number = named(workload, by);
  const split = SPLITS[Math.floor(number / SHADES) % SPLITS.length];
  if (!split) return colour(number);
  return `linear-gradient(${split[0]}deg, ${colour(number)} 50%, ${colour(number, split[1])} 50%)`;
}

// A small square for the workload of a pod; `each` has pod, kind and workload.
export const Swatch = ({ each }) =>
  html`<span class="cell" aria-hidden="true" title=${each.workload || undefined} style=${{ background: square([each.pod.split("/")[0], each.kind, each.workload]) }}></span> `;

// A colour of the style sheet.
export const token = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();
