// The head and the keys of the documentation, as every page has them.
import { html, render } from "./dom.js";
import { address, Header, PAGES } from "./header.js";
import { Help, useShortcuts } from "./keys.js";

const { root } = document.body.dataset;

function Frame() {
  useShortcuts(Object.fromEntries(PAGES.map((page) => [page.key, address(page, root)])));
  return html`<${Header} first=${null} root=${root} /><${Help} pages=${PAGES} />`;
}

const place = document.getElementById("top");
place.replaceChildren();
render(html`<${Frame} />`, place);

// The headers of the pages let no form send itself; the address of the results can be opened.
document.querySelector(".help-search").addEventListener("submit", (event) => {
  event.preventDefault();
  const query = new URLSearchParams(new FormData(event.target));
  location.href = `${root}podium/help/?${query}`;
});
