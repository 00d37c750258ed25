// The nodes of a decision: found, sorted, and each compared with the one that was chosen.
//
// The pages and the file of `podium explain -o html` have the same table. Only the rows in view are
// in the document, so that five thousand nodes scroll like twenty.
const FIRST = 20;
const ROW = 30;
const SPARE = 10;
const VALUES = { score: "score", weighted: "score × weight", raw: "raw score" };
const SHOWN = { fits: "nodes that fit", rejected: "rejected nodes", all: "all nodes" };
const whole = new Intl.NumberFormat("en");
const number = (value) => whole.format(value);
const short = (name) => name.replace(/Priority$/, "") || name;
// A place to break long names: before each capital.
const breakable = (name) => short(name).replace(/([a-z0-9])([A-Z])/g, "$1\u200b$2");

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child || child === 0).map((child) => (typeof child === "number" ? number(child) : child)));
  return made;
}

const choice = (options, value, onchange) => {
  const made = element("select", { onchange: (event) => onchange(event.target.value) }, ...Object.entries(options).map(([key, words]) => element("option", { value: key }, words)));
  made.value = value;
  return made;
};

const capital = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;

// What was said about the nodes that do not fit, one row each.
function rejected(decision) {
  const [rule] = decision.ruleNames;
  return decision.rejections.flatMap((group) => {
    const said = group.byRule
      ? group.byRule.map((each) => `${each.predicate}: ${each.reasons.join(", ")}`).join("; ")
      : `${group.predicate || rule}: ${group.reasons.join(", ")}`;
    const lines = group.causes || group.causeLines || [];
    const causes = (name) => lines.filter((line) => line.count === group.count || line.nodes.includes(name)).map((line) => line.text);
    return (group.nodes || []).map((name) => ({ name, fits: false, said, causes }));
  });
}

// The nodes that fit with their scores, the best first.
function scored(decision) {
  const best = new Set((decision.selection && decision.selection.best) || []);
  const { totals } = decision;
  const rows = (decision.feasible || []).map((name, at) => ({ name, fits: true, at, total: totals ? totals[at] : null, won: name === decision.node, tied: best.has(name) }));
  rows.sort((a, b) => b.total - a.total || b.won - a.won || a.at - b.at);
  rows.forEach((row, i) => { row.rank = i + 1; });
  return rows;
}

// Fills a place with the table. `nodeLink` gives the address of a node, where it has a page.
export function nodeTable(place, given, { nodeLink = null } = {}) {
  const state = { by: "total", up: false, value: "score", show: "fits", only: matchMedia("(max-width: 640px)").matches, all: false, query: "", row: null, column: null };
  let decision, columns, rows, winner, listed, pending;

  const find = element("input", { type: "search", placeholder: "node name", autocomplete: "off", spellcheck: "false", oninput: () => { state.query = find.value.trim(); draw(); } });
  const value = choice(VALUES, state.value, (next) => { state.value = next; draw(); });
  const show = choice(SHOWN, state.show, (next) => { state.show = next; draw(); });
  const only = element("input", { type: "checkbox", onchange: () => { state.only = only.checked; draw(); } });
  only.checked = state.only;
  const onlyLabel = element("label", {}, only, " only what made a difference");
  const valueLabel = element("label", {}, "Cells show ", value);
  const count = element("span", { class: "quiet", role: "status" });
  const head = element("thead");
  const body = element("tbody");
  const table = element("table", { role: "grid", "aria-label": "Nodes and their scores" }, head, body);
  const scroller = element("div", { class: "scroll heat-map", onscroll: () => { if (!pending) pending = requestAnimationFrame(() => { pending = 0; drawRows(); }); } }, table);
  const more = element("button", { type: "button", onclick: () => { state.all = !state.all; draw(); } });
  const same = element("p", { class: "quiet" });
  const details = element("aside", { class: "node-details", "aria-live": "polite" });
  place.replaceChildren(
    element("div", { class: "toolbar small" }, element("label", {}, "Find ", find), valueLabel, element("label", {}, "Show ", show), onlyLabel, count),
    element("div", { class: "node-table" }, element("div", {}, scroller, element("p", {}, more), same), details),
  );

  function take(next) {
    decision = next;
    const fitting = scored(decision);
    rows = [...fitting, ...rejected(decision)];
    winner = fitting.find((row) => row.won);
    columns = decision.totals ? decision.scores.map((column, index) => ({ ...column, index, same: column.scores.every((each) => each === column.scores[0]) })) : [];
    if (!fitting.length && state.show === "fits") state.show = show.value = "all";
    onlyLabel.hidden = !columns.some((column) => column.same) || columns.every((column) => column.same);
    valueLabel.hidden = !columns.length;
    draw();
  }

  const shownColumns = () => {
    const differing = columns.filter((column) => !column.same);
    return state.only && differing.length ? differing : [...differing, ...columns.filter((column) => column.same)];
  };

  const valueOf = (row, column) => (state.value === "raw" ? column.raw[row.at] : column.scores[row.at] * (state.value === "weighted" ? column.weight : 1));

  function compare(a, b) {
    if (state.by === "node") return a.name.localeCompare(b.name, "en", { numeric: true });
    if (!a.fits || !b.fits) return b.fits - a.fits;
    const key = (row) => (state.by === "total" ? row.total : valueOf(row, columns[state.by]));
    return key(b) - key(a) || a.rank - b.rank;
  }

  function draw() {
    const wanted = rows.filter((row) => (state.show === "all" || row.fits === (state.show === "fits")) && row.name.includes(state.query));
    wanted.sort(compare);
    if (state.up) wanted.reverse();
    listed = state.all ? wanted : wanted.slice(0, FIRST);
    count.textContent = `${number(wanted.length)} of ${number(rows.length)} nodes`;
    more.parentNode.hidden = wanted.length <= FIRST;
    more.textContent = state.all ? `Show the first ${FIRST}` : `Show all ${number(wanted.length)} nodes`;
    scroller.classList.toggle("tall", state.all);
    const shown = shownColumns();
    same.hidden = shown.length === columns.length;
    same.textContent = `The same for every node: ${columns.filter((column) => column.same).map((column) => `${short(column.priority)} ${number(column.scores[0])} ×${number(column.weight)}`).join(", ")}.`;
    if (!listed.some((row) => row.name === state.row)) state.row = listed.length ? listed[0].name : null;
    head.replaceChildren(element("tr", {}, heading("node", "Node"), ...shown.map((column) => heading(column.index, breakable(column.priority), column)), heading("total", columns.length ? "Total" : "Verdict")));
    table.setAttribute("aria-rowcount", String(listed.length + 1));
    drawRows();
    describe();
  }

  function heading(key, words, column) {
    const current = state.by === key;
    // Names go from a to z first, numbers from the highest.
    const rising = (key === "node") !== state.up;
    const sort = () => {
      Object.assign(state, { by: key, up: current && !state.up });
      draw();
      head.querySelector(`th[data-key="${key}"] button`).focus();
    };
    return element("th", { scope: "col", "data-key": key, class: `${key === "node" ? "" : "number"} ${column && column.same ? "same" : ""}`, title: column && column.same ? "The same for every node" : undefined, "aria-sort": current ? (rising ? "ascending" : "descending") : "none" },
      element("button", { type: "button", class: "plain", onclick: sort }, words, column && element("span", { class: "weight" }, ` ×${number(column.weight)}`), element("span", { class: "arrow", "aria-hidden": "true" }, current ? (rising ? "▲" : "▼") : "")));
  }

  function cell(row, column, chosen) {
    const heat = Math.max(0, Math.min(1, column.scores[row.at] / (decision.maxScore || 10)));
    const made = element("td", { class: `heat number ${heat > 0.86 ? "hot" : ""} ${heat > 0.7 ? "warm" : ""} ${column.same ? "same" : ""} ${chosen ? "asked" : ""}`, tabindex: "-1", "data-column": column.index, title: "How this score is computed" }, valueOf(row, column));
    made.style.setProperty("--heat", heat.toFixed(3));
    return made;
  }

  function line(row) {
    const chosen = row.name === state.row;
    const words = row.won ? "chosen" : row.tied ? "shares the best total" : "";
    const name = nodeLink ? element("a", { href: nodeLink(row.name), tabindex: "-1" }, row.name) : row.name;
    const first = element("th", { scope: "row" }, element("span", { class: "rank" }, row.rank || ""), element("span", { class: "mark-small", title: words, "aria-label": words || undefined }, row.won ? "★" : row.tied ? "=" : ""), name);
    const shown = shownColumns();
    const rest = row.fits
      ? [...shown.map((column) => cell(row, column, chosen && state.column === column.index)), element("td", { class: "number total" }, row.total === null ? "fits" : row.total)]
      : [element("td", { class: "said", colspan: String(shown.length + 1) }, row.said)];
    return element("tr", { class: `${row.won ? "winner" : ""} ${chosen ? "chosen" : ""} ${decision.asked && decision.asked.node === row.name ? "wanted" : ""}`, tabindex: chosen ? "0" : "-1", "data-name": row.name }, first, ...rest);
  }

  const space = (count) => {
    const made = element("tr", { class: "space", "aria-hidden": "true" });
    made.style.height = `${count * ROW}px`;
    return made;
  };

  // The rows in view, and room for the others.
  function drawRows() {
    const windowed = listed.length > 4 * FIRST;
    const from = windowed ? Math.max(0, Math.floor(scroller.scrollTop / ROW) - SPARE) : 0;
    const to = windowed ? Math.min(listed.length, from + Math.ceil((scroller.clientHeight || 600) / ROW) + 2 * SPARE) : listed.length;
    const focused = body.contains(document.activeElement) ? document.activeElement : null;
    const at = focused && [focused.closest("tr").dataset.name, focused.dataset.column];
    body.replaceChildren(...(from > 0 ? [space(from)] : []), ...listed.slice(from, to).map(line), ...(to < listed.length ? [space(listed.length - to)] : []));
    if (at) focus(at[0], at[1]);
  }

  function focus(name, column) {
    const found = body.querySelector(`tr[data-name="${CSS.escape(name)}"]`);
    const target = found && column !== undefined && column !== null ? found.querySelector(`td[data-column="${column}"]`) : found;
    if (target) target.focus({ preventScroll: true });
    return target;
  }

  function choose(name, column) {
    if (name === state.row && column === state.column) return;
    Object.assign(state, { row: name, column });
    for (const each of body.querySelectorAll("tr[data-name]")) {
      const chosen = each.dataset.name === name;
      each.classList.toggle("chosen", chosen);
      each.tabIndex = chosen ? 0 : -1;
      for (const one of each.querySelectorAll("td[data-column]")) one.classList.toggle("asked", chosen && one.dataset.column === String(column));
    }
    describe();
  }

  function describe() {
    const row = listed.find((each) => each.name === state.row);
    if (!row) {
      details.replaceChildren(element("p", { class: "quiet" }, rows.length ? `No such node has “${state.query}” in its name.` : "No node was looked at."));
      return;
    }
    const column = row.fits ? columns.find((each) => each.index === state.column) : null;
    details.replaceChildren(
      element("h3", {}, nodeLink ? element("a", { href: nodeLink(row.name) }, row.name) : row.name),
      ...(row.fits ? [compared(row)] : [element("p", { class: "compared" }, `Rejected by ${row.said}.`), ...row.causes(row.name).map((text) => element("p", {}, text))]),
      ...(column ? [formula(row, column)] : []),
      ...(row.fits && columns.length ? [comparison(row)] : []),
    );
  }

  function compared(row) {
    const name = element("strong", {}, row.name);
    if (row.won) return element("p", { class: "compared" }, name, ` is the one that was chosen${row.total === null ? "." : `, with a total of ${number(row.total)}.`}`);
    if (!winner || row.total === null) return element("p", { class: "compared" }, name, " fits.");
    const behind = winner.total - row.total;
    return element("p", { class: "compared" }, name, behind ? ` is ${number(behind)} behind ${winner.name}.` : ` has the same total as ${winner.name}, which won the tie.`);
  }

  // How the score in a cell is computed, with the numbers that were put in.
  function formula(row, column) {
    const told = (decision.scoreLines || []).find((each) => each.priority === column.priority);
    const here = told && told.nodes.find((each) => each.node === row.name);
    const score = column.scores[row.at];
    return element("div", { class: "formula" },
      element("p", {}, element("strong", {}, column.priority), ` on ${row.name}${told ? `: ${told.formula}` : ""}`),
      element("p", {}, `${here ? here.text : `score ${number(score)}`}; ${number(score)} × ${number(column.weight)} = ${number(score * column.weight)}`, !here && element("span", { class: "quiet" }, " (the numbers are told for the best nodes; --node of podium explain tells those of any)")));
  }

  // Score by score, with the node that was chosen.
  function comparison(row) {
    const heads = [[capital(decision.ruleNames[1]), ""], ["here", "number"], ["chosen", "number"], ["points", "number"]];
    const lines = columns.map((column) => {
      const [mine, theirs] = [column.scores[row.at], winner ? column.scores[winner.at] : column.scores[row.at]];
      const points = (mine - theirs) * column.weight;
      return element("tr", {}, element("th", { scope: "row" }, breakable(column.priority)), element("td", { class: "number" }, mine), element("td", { class: "number" }, theirs),
        element("td", { class: `number ${points > 0 ? "more" : points < 0 ? "less" : "quiet"}` }, points > 0 ? `+${number(points)}` : points < 0 ? `−${number(-points)}` : "0"));
    });
    return element("table", {}, element("thead", {}, element("tr", {}, ...heads.map(([words, kind]) => element("th", { scope: "col", class: kind }, words)))), element("tbody", {}, ...lines));
  }

  // Up and down go from node to node, right and left from score to score.
  body.addEventListener("keydown", (event) => {
    const index = listed.findIndex((row) => row.name === state.row);
    const down = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -listed.length, End: listed.length }[event.key];
    const right = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!down && !right) return;
    event.preventDefault();
    if (down) {
      const next = Math.max(0, Math.min(listed.length - 1, index + down));
      if (next * ROW < scroller.scrollTop || (next + 3) * ROW > scroller.scrollTop + scroller.clientHeight) {
        scroller.scrollTop = next * ROW - scroller.clientHeight / 2;
        drawRows();
      }
      choose(listed[next].name, listed[next].fits ? state.column : null);
    } else if (listed[index].fits) {
      const shown = shownColumns();
      const next = shown.findIndex((column) => column.index === state.column) + right;
      choose(state.row, next < 0 ? null : shown[Math.min(next, shown.length - 1)].index);
    }
    const target = focus(state.row, state.column);
    if (target) target.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  const pointed = (event) => {
    const row = event.target.closest("tr[data-name]");
    const one = event.target.closest("td[data-column]");
    if (row) choose(row.dataset.name, one ? Number(one.dataset.column) : null);
  };
  body.addEventListener("click", pointed);
  body.addEventListener("focusin", pointed);
  take(given);
  return { update: take };
}
