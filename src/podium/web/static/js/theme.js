// Light, dark, or whatever the system says; remembered.
import { isDark } from "./colours.js";
import { createStore } from "./store.js";

const KEY = "podium-theme";

// "light" or "dark": what is shown now. Canvases follow it.
export const theme = createStore(isDark() ? "dark" : "light");

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
  theme.set(isDark() ? "dark" : "light"),
);

export function toggleTheme() {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Not remembered, then.
  }
  theme.set(next);
}
