"use strict";
(() => {
  const map = document.getElementById("map");
  if (!map) return;
  const decision = JSON.parse(document.getElementById("decision").textContent);
  const maxScore = decision.maxScore || 10;
  const scores = decision.scores || [];
  const totals = decision.totals || [];
  const feasible = decision.feasible || [];
  const CHUNK = 500;

  const rows = feasible.map((name, at) => ({ name, at, total: totals[at], fits: true }));
  for (const group of decision.rejections) {
    const causes = new Map();
    for (const cause of group.causes || []) {
      for (const name of cause.nodes) causes.set(name, [...(causes.get(name) || []), cause.text]);
    }
    for (const name of group.nodes || []) {
      rows.push({ name, fits: false, predicate: group.predicate, reasons: group.reasons.join(", "), causes: causes.get(name) || [] });
    }
  }
  const winner = rows.find((row) => row.fits && row.name === decision.node);
  const uneven = (list) => list.some((value) => value !== list[0]);
  const differing = scores.filter((column) => uneven(column.scores));
  const details = document.getElementById("details");
  const count = document.getElementById("count");
  const more = document.getElementById("more");
  const search = document.getElementById("search");
  const show = document.getElementById("show");
  const value = document.getElementById("value");
  const only = document.getElementById("only");

  const state = { sort: "total", descending: true, limit: CHUNK, row: 0, column: 0, shown: [] };
  const columns = () => (only.checked ? differing : scores);

  function element(tag, text, className) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  function cellValue(column, at) {
    if (value.value === "raw") return column.raw[at];
    return value.value === "weighted" ? column.scores[at] * column.weight : column.scores[at];
  }

  function share(column, at) {
    return Math.max(0, Math.min(1, column.scores[at] / maxScore));
  }

  const lowest = totals.reduce((a, b) => Math.min(a, b), Infinity);
  const highest = totals.reduce((a, b) => Math.max(a, b), -Infinity);
  const totalShare = (total) => (highest > lowest ? (total - lowest) / (highest - lowest) : 1);

  function sortKey(row) {
    if (state.sort === "node") return row.name;
    if (!row.fits) return -Infinity;
    if (state.sort === "total") return row.total === undefined ? 0 : row.total;
    const column = scores.find((each) => each.priority === state.sort);
    return column ? cellValue(column, row.at) : 0;
  }

  function compare(one, other) {
    const a = sortKey(one);
    const b = sortKey(other);
    if (a === b) {
      if (one === winner || other === winner) return one === winner ? -1 : 1;
      return 0;
    }
    return (a < b ? -1 : 1) * (state.descending ? -1 : 1);
  }

  function wanted(row) {
    if (show.value === "fits" && !row.fits) return false;
    if (show.value === "rejected" && row.fits) return false;
    return row.name.includes(search.value.trim());
  }

  function header(key, label, title) {
    const cell = element("th");
    cell.scope = "col";
    if (key === state.sort) cell.setAttribute("aria-sort", state.descending ? "descending" : "ascending");
    const button = element("button", label);
    button.type = "button";
    button.title = title;
    button.addEventListener("click", () => {
      state.descending = key === state.sort ? !state.descending : key !== "node";
      state.sort = key;
      draw();
      map.querySelector(`thead th:nth-child(${[...cell.parentNode.children].indexOf(cell) + 1}) button`).focus();
    });
    cell.append(button);
    return cell;
  }

  const spaced = (name) => name.replace(/Priority$/, "").replace(/([a-z])([A-Z])/g, "$1\n$2");

  function body(row, index) {
    const line = element("tr");
    line.dataset.index = index;
    if (row === winner) line.classList.add("chosen");
    if (decision.asked && decision.asked.node === row.name) line.classList.add("asked");
    const name = element("th", (row === winner ? "→ " : "") + row.name);
    name.scope = "row";
    line.append(name);
    if (!row.fits) {
      const reason = element("td", `${row.predicate}: ${row.reasons}`, "reason");
      reason.colSpan = columns().length + 1;
      line.append(reason);
    } else {
      for (const column of columns()) {
        const cell = element("td", cellValue(column, row.at), "score");
        cell.style.setProperty("--share", share(column, row.at));
        line.append(cell);
      }
      const total = element("td", row.total === undefined ? "fits" : row.total, "score");
      if (row.total !== undefined) total.style.setProperty("--share", totalShare(row.total));
      line.append(total);
    }
    for (const cell of line.children) cell.tabIndex = -1;
    return line;
  }

  function draw() {
    state.shown = rows.filter(wanted).sort(compare);
    const table = element("table");
    table.setAttribute("role", "grid");
    table.setAttribute("aria-label", "scores of every node by priority");
    const head = element("thead");
    const line = element("tr");
    line.append(header("node", "Node", "sort by name"));
    for (const column of columns()) {
      line.append(header(column.priority, `${spaced(column.priority)}\n×${column.weight}`, `sort by ${column.priority}`));
    }
    line.append(header("total", scores.length ? "Total" : "Verdict", "sort by total"));
    head.append(line);
    const rest = element("tbody");
    rest.append(...state.shown.slice(0, state.limit).map(body));
    table.append(head, rest);
    map.replaceChildren(table);
    count.textContent = `${state.shown.length} of ${rows.length} nodes`;
    more.hidden = state.shown.length <= state.limit;
    more.textContent = `show ${state.shown.length - state.limit} more`;
    state.row = Math.min(state.row, Math.max(0, rest.children.length - 1));
    mark(state.row, state.column, false);
  }

  function mark(row, column, focus) {
    const lines = map.querySelectorAll("tbody tr");
    if (!lines.length) {
      details.replaceChildren(element("p", "no node is called that", "faint"));
      return;
    }
    map.querySelectorAll("tr.current").forEach((line) => line.classList.remove("current"));
    map.querySelectorAll('tbody [tabindex="0"]').forEach((cell) => { cell.tabIndex = -1; });
    state.row = Math.max(0, Math.min(lines.length - 1, row));
    const cells = lines[state.row].children;
    state.column = Math.max(0, Math.min(cells.length - 1, column));
    lines[state.row].classList.add("current");
    const cell = cells[state.column];
    cell.tabIndex = 0;
    if (focus) {
      cell.focus();
      cell.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    describe(state.shown[state.row]);
  }

  function describe(row) {
    const parts = [element("h3", row.name)];
    if (!row.fits) {
      parts.push(element("p", `${row.predicate} rejected it: ${row.reasons}`));
      for (const cause of row.causes) parts.push(element("p", cause));
    } else if (row === winner || !winner || row.total === undefined) {
      parts.push(element("p", row === winner ? "the node that was chosen" : "it fits"));
    } else {
      const behind = winner.total - row.total;
      parts.push(element("p", behind ? `${behind} behind ${winner.name}` : `as good as ${winner.name}, which won the tie`));
    }
    if (row.fits && scores.length) parts.push(comparison(row));
    details.replaceChildren(...parts);
  }

  function comparison(row) {
    const table = element("table");
    const head = element("tr");
    for (const text of [decision.scoredBy, "here", "chosen", "points"]) head.append(element("th", text, text === decision.scoredBy ? "" : "number"));
    table.append(head);
    for (const column of scores) {
      const mine = column.scores[row.at];
      const theirs = winner ? column.scores[winner.at] : mine;
      const points = (mine - theirs) * column.weight;
      const line = element("tr");
      line.append(element("td", column.priority.replace(/Priority$/, "")), element("td", mine, "number"), element("td", theirs, "number"));
      line.append(element("td", points > 0 ? `+${points}` : points, `number ${points > 0 ? "plus" : points < 0 ? "minus" : "faint"}`));
      table.append(line);
    }
    return table;
  }

  map.addEventListener("keydown", (event) => {
    if (!event.target.closest("tbody")) return;
    const step = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -1000], End: [0, 1000],
    }[event.key];
    if (!step) return;
    event.preventDefault();
    mark(state.row + step[0], state.column + step[1], true);
  });
  map.addEventListener("click", (event) => {
    const cell = event.target.closest("tbody td, tbody th");
    if (cell) mark(Number(cell.parentNode.dataset.index), [...cell.parentNode.children].indexOf(cell), true);
  });
  for (const control of [search, show, value, only]) {
    control.addEventListener("input", () => { state.limit = CHUNK; draw(); });
  }
  more.addEventListener("click", () => { state.limit = Infinity; draw(); });
  only.checked = differing.length > 0;
  show.value = feasible.length ? "fits" : "all";
  draw();
})();
