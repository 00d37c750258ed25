// The head of every page: the navigation, the theme and the keys.
import { html } from "./dom.js";
import { number } from "./format.js";
import { openHelp } from "./keys.js";
import { usePulse } from "./live.js";
import { useStore } from "./store.js";
import { theme, toggleTheme } from "./theme.js";

// Path, title, and the key that leads there after g; those of a part are not in the navigation.
export const PAGES = [
  { path: "", also: ["nodes"], title: "Cluster", key: "c" },
  { path: "pending", title: "Pending", key: "p" },
  { path: "timeline", title: "Timeline", key: "l" },
  { path: "policy", title: "Rules", key: "r" },
  { path: "plan", title: "Plan", key: "w" },
  { path: "plan/compare", title: "Compare rules", key: "m", part: true },
  { path: "plan/capacity", title: "How many more fit", key: "f", part: true },
  { path: "try", title: "Try a pod", key: "t" },
  { path: null, title: "Help", key: "h" },
];

export const isCurrent = (page, first) => page.path === first || (page.also || []).includes(first);

// The address of a page; `root` leads to the first page from where one is.
export const address = (page, root = "") => (page.path === null ? `${root}podium/help/` : `${root}#/${page.path}`);

export function Header({ first, root = "" }) {
  const pulse = usePulse();
  const shown = useStore(theme);
  return html`<header class="top">
    <a class="brand" href=${address(PAGES[0], root)} aria-label="Podium, the cluster">
      <img src=${`${root}podium/static/podium.svg`} alt="" width="24" height="24" /> <span>Podium</span>
    </a>
    <nav aria-label="Pages">
      ${PAGES.filter((page) => !page.part).map(
        (page) => html`<a href=${address(page, root)} title=${`g ${page.key}`} aria-current=${isCurrent(page, first) ? "page" : undefined}>
          ${page.title}${page.path === "pending" && pulse && pulse.waiting > 0
            ? html` <span class="badge">${number(pulse.waiting)}</span>`
            : null}
        </a>`,
      )}
    </nav>
    <div class="tools">
      <button type="button" class="icon" title="Dark or light (d)" aria-label=${shown === "dark" ? "Use light colours" : "Use dark colours"} onClick=${toggleTheme}>
        <span aria-hidden="true">${shown === "dark" ? "☀" : "☾"}</span>
      </button>
      <button type="button" class="icon" title="Keyboard (?)" aria-label="Keyboard shortcuts" onClick=${openHelp}><span aria-hidden="true">?</span></button>
    </div>
  </header>`;
}
