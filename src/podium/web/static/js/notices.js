// What is shown while there is nothing to show: loading, nothing there, something wrong.
import { html } from "./dom.js";

export const Loading = ({ what }) =>
  html`<p class="notice quiet" role="status"><span class="dots" aria-hidden="true"></span> ${what}</p>`;

export const Empty = ({ title, children }) =>
  html`<div class="notice"><p><strong>${title}</strong></p>${children && html`<p>${children}</p>`}</div>`;

export const Failure = ({ error }) =>
  html`<div class="notice bad" role="alert"><p><strong>That did not work.</strong></p><p>${error.message}</p></div>`;
