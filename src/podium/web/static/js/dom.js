// The few words that every component is written in.
import { h, render, Fragment } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export * from "../vendor/preact-hooks.js";
export const html = htm.bind(h);
export { h, render, Fragment };
