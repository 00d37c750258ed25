// What is shown: the page of the address, in its frame.
import { ClusterPage } from "./cluster/page.js";
import { DecisionPage } from "./decision/page.js";
import { GroupPage } from "./group.js";
import { html, render, useEffect } from "./dom.js";
import { address, Header, isCurrent, PAGES } from "./header.js";
import { Help, useShortcuts } from "./keys.js";
import { connected, follow } from "./live.js";
import { Empty } from "./notices.js";
import { PendingPage } from "./pending.js";
import { PlanPage } from "./plan/page.js";
import { PolicyPage } from "./policy/page.js";
import { go, useRoute } from "./router.js";
import { useStore } from "./store.js";
import { TimelinePage } from "./timeline.js";
import { dropped, TryPage } from "./try.js";

function Shown({ route }) {
  const [first = "", second, third, fourth] = route;
  if (first === "") return html`<${ClusterPage} />`;
  if (first === "nodes" && second) return html`<${ClusterPage} node=${second} />`;
  if (first === "pending") return html`<${PendingPage} />`;
  if (first === "timeline") return html`<${TimelinePage} />`;
  if (first === "policy") return html`<${PolicyPage} />`;
  if (first === "plan") return html`<${PlanPage} part=${second} />`;
  if (first === "try") return html`<${TryPage} />`;
  if (first === "groups" && third) return html`<${GroupPage} key=${`${second}/${third}`} namespace=${second} name=${third} />`;
  if (first === "pods" && third) return html`<${DecisionPage} key=${`${second}/${third}/${fourth}`} namespace=${second} name=${third} attempt=${fourth} />`;
  return html`<${Empty} title="There is no such page."><a href="#/">Back to the cluster</a><//>`;
}

function titleOf([first = "", second, third]) {
  if ((first === "pods" || first === "groups") && third) return `${second}/${third}`;
  if (first === "nodes" && second) return second;
  const page = PAGES.find((each) => isCurrent(each, first));
  return page ? page.title : "Not found";
}

function App() {
  const route = useRoute();
  const here = useStore(connected);
  useShortcuts(Object.fromEntries(PAGES.map((page) => [page.key, address(page)])));
  useEffect(() => {
    document.title = `${titleOf(route)} · Podium`;
  }, [route.join("/")]);
  return html`<${Header} first=${route[0] || ""} />
    ${here
      ? null
      : html`<p class="connection" role="alert">The connection to the server is lost; what you see may be old. Trying again…</p>`}
    <main id="main" tabindex="-1"><${Shown} route=${route} /></main>
    <${Help} pages=${PAGES} />`;
}

// A manifest may be dropped anywhere.
function acceptDrops() {
  window.addEventListener("dragover", (event) => {
    if ([...event.dataTransfer.types].includes("Files")) event.preventDefault();
  });
  window.addEventListener("drop", async (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    dropped.set({ name: file.name, text: await file.text() });
    go("#/try");
  });
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
follow();
acceptDrops();
render(html`<${App} />`, document.getElementById("app"));
