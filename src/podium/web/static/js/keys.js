// Shortcuts for the whole page, and moving through grids with the arrow keys.
import { html, useEffect, useRef } from "./dom.js";
import { go } from "./router.js";
import { createStore, useStore } from "./store.js";
import { toggleTheme } from "./theme.js";

const PAGES = { c: "#/", p: "#/pending", r: "#/policy", t: "#/try" };
const helpOpen = createStore(false);

export const openHelp = () => helpOpen.set(true);

export const isTyping = (element) =>
  element && (element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName));

let wentAt = 0;

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const afterG = Date.now() - wentAt < 1500;
  wentAt = 0;
  if (event.key === "?") helpOpen.set(!helpOpen.get());
  else if (event.key === "g") wentAt = Date.now();
  else if (afterG && PAGES[event.key]) go(PAGES[event.key]);
  else if (event.key === "d") toggleTheme();
  else if (event.key === "/") {
    const search = document.querySelector("input[type=search]");
    if (!search) return;
    search.focus();
  } else return;
  event.preventDefault();
}

export function useShortcuts() {
  useEffect(() => {
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
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
  ["g c", "the cluster"],
  ["g p", "pending pods"],
  ["g r", "the rules (policy)"],
  ["g t", "try a pod"],
  ["/", "search"],
  ["← ↑ ↓ →", "move through nodes and tables"],
  ["Enter", "open what has the focus"],
  ["Esc", "close, or leave a field"],
  ["d", "dark or light"],
  ["?", "this list"],
];

export function Help() {
  const open = useStore(helpOpen);
  const dialog = useRef(null);
  useEffect(() => {
    const element = dialog.current;
    if (open && !element.open) element.showModal();
    if (!open && element.open) element.close();
  }, [open]);
  return html`<dialog ref=${dialog} class="help" aria-labelledby="help-title" onClose=${() => helpOpen.set(false)}>
    <h2 id="help-title">Keyboard</h2>
    <dl>
      ${SHORTCUTS.map(([keys, what]) => html`<div><dt><kbd>${keys}</kbd></dt><dd>${what}</dd></div>`)}
    </dl>
    <button type="button" class="primary" onClick=${() => helpOpen.set(false)}>Close</button>
  </dialog>`;
}
