// Colours that stay apart for colour-blind eyes (after Okabe and Ito), light and dark.
const LIGHT = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7f00", "#6a5acd", "#7a7a7a", "#a0522d"];
const DARK = ["#4aa8e0", "#f0b429", "#2fc495", "#e29ac4", "#8fd0f5", "#f58442", "#d8cc3c", "#a99cf0", "#a8a8a8", "#cf8a5b"];

export const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

export const palette = () => (isDark() ? DARK : LIGHT);

export const ofNumber = (index) => {
  const colours = palette();
  return colours[index % colours.length];
};

// A colour of the style sheet.
export const token = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();
