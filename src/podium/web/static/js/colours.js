// Colours of workloads: made from their names, so that they are the same everywhere and always.
import { html } from "./dom.js";

// Lightness tells more than hue to colour-blind eyes, so both differ. Each is at least three times
// as light or dark as the ground that it is drawn on.
const HUES = 20;
const LIGHTNESS = { light: [0.36, 0.47, 0.58], dark: [0.64, 0.75, 0.87] };
const CHROMA = 0.14;

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

export function colourOf(text) {
  if (!numbers.has(text)) numbers.set(text, hash(text));
  const number = numbers.get(text);
  const lightness = LIGHTNESS[isDark() ? "dark" : "light"][Math.floor(number / HUES) % 3];
  return `oklch(${lightness} ${CHROMA} ${((number % HUES) * 360) / HUES})`;
}

// The colour of a pod by its workload, which is [namespace, kind, name], or by its namespace.
export const shade = (workload, by = "workload") => colourOf(by === "workload" ? workload.join("/") : workload[0]);

// A small square in the colour of the workload of a pod; `each` has pod, kind and workload.
export const Swatch = ({ each }) =>
  html`<span class="cell" aria-hidden="true" title=${each.workload || undefined} style=${{ background: shade([each.pod.split("/")[0], each.kind, each.workload]) }}></span> `;

// A colour of the style sheet.
export const token = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();
