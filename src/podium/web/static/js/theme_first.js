// Before anything is drawn: the theme that was chosen the last time, so that nothing flashes.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("podium-theme");
  } catch {
    // Storage may be off; then the system decides.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
