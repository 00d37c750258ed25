// Shortcuts for the whole page, and moving through grids with the arrow keys.
//
// What has a key of its own on one page says so by aria-keyshortcuts, which screen readers tell.
import { html, useEffect, useLayoutEffect, useRef } from "./dom.js";
import { createStore, useStore } from "./store.js";
import { toggleTheme } from "./theme.js";

const helpOpen = createStore(false);

export const openHelp = () => helpOpen.set(true);

const NOT_TYPED = /^(radio|checkbox|range|button|submit|file)$/;

export const isTyping = (element) =>
  element && (element.isContentEditable || /^(TEXTAREA|SELECT)$/.test(element.tagName) || (element.tagName === "INPUT" && !NOT_TYPED.test(element.type)));

// What has a key on this page and can be reached now.
const keyed = () => [...document.querySelectorAll("[aria-keyshortcuts]")].filter((each) => !each.disabled && each.checkVisibility());

let afterG = false;

function pressed(event, places) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const place = afterG && places[event.key];
  afterG = false;
  if (event.key === "?") helpOpen.set(!helpOpen.get());
  else if (document.querySelector("dialog[open]")) return;
  else if (place) location.href = place;
  else if (event.key === "g") afterG = true;
  else if (event.key === "d") toggleTheme();
  else if (event.key === "/") {
    const search = document.querySelector("input[type=search]");
    if (!search) return;
    search.focus();
  } else {
    const found = keyed().find((each) => each.getAttribute("aria-keyshortcuts") === event.key);
    if (!found) return;
    found.click();
  }
  event.preventDefault();
}

// Places are the addresses that g and a key lead to. Keys are heard as soon as the head is there.
export function useShortcuts(places) {
  useLayoutEffect(() => {
    const heard = (event) => pressed(event, places);
    window.addEventListener("keydown", heard);
    return () => window.removeEventListener("keydown", heard);
  }, []);
}

// The element to move to within a grid of elements that wrap into lines; null to stay.
export function neighbour(elements, current, key) {
  const index = elements.indexOf(current);
  if (key === "Home") return elements[0];
  if (key === "End") return elements[elements.length - 1];
  if (key === "ArrowRight") return elements[index + 1] || null;
  if (key === "ArrowLeft") return elements[index - 1] || null;
  if (key !== "ArrowUp" && key !== "ArrowDown") return null;
  const here = current.getBoundingClientRect();
  const middle = here.left + here.width / 2;
  const way = key === "ArrowDown" ? 1 : -1;
  let best = null;
  let line = null;
  for (let i = index + way; i >= 0 && i < elements.length; i += way) {
    const box = elements[i].getBoundingClientRect();
    if (Math.abs(box.top - here.top) < 2) continue;
    if (line === null) line = box.top;
    if (Math.abs(box.top - line) > 2) break;
    const distance = Math.abs(box.left + box.width / 2 - middle);
    if (best === null || distance < best.distance) best = { element: elements[i], distance };
  }
  return best && best.element;
}

const SHORTCUTS = [
  ["/", "search"],
  ["← ↑ ↓ →", "move through nodes and tables"],
  ["Enter", "open what has the focus"],
  ["Esc", "close, or leave a field"],
  ["d", "dark or light"],
  ["?", "this list"],
];

const nameOf = (element) => element.getAttribute("aria-label") || (element.closest("label") || element).textContent.replace(/Ctrl ↵/, "").trim();

const Keys = ({ title, rows }) =>
  rows.length > 0 && html`<h3>${title}</h3><dl>${rows.map(([keys, what]) => html`<div><dt><kbd>${keys}</kbd></dt><dd>${what}</dd></div>`)}</dl>`;

// The list of all keys; pages are {title, key}.
export function Help({ pages }) {
  const open = useStore(helpOpen);
  const dialog = useRef(null);
  useEffect(() => {
    const element = dialog.current;
    if (open && !element.open) element.showModal();
    if (!open && element.open) element.close();
  }, [open]);
  return html`<dialog ref=${dialog} class="help" aria-labelledby="help-title" onClose=${() => helpOpen.set(false)}>
    <h2 id="help-title">Keyboard</h2>
    <${Keys} title="On this page" rows=${open ? keyed().map((each) => [each.getAttribute("aria-keyshortcuts"), nameOf(each)]) : []} />
    <${Keys} title="To another page" rows=${pages.map((page) => [`g ${page.key}`, page.title])} />
    <${Keys} title="Everywhere" rows=${SHORTCUTS} />
    <button type="button" class="primary" onClick=${() => helpOpen.set(false)}>Close</button>
  </dialog>`;
}
