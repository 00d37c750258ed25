// Plays a decision step by step: forward, back, pause, by buttons, slider and keys.
//
// Nodes fall out rule by rule, nominated pods come for pass one and go for pass two, scores are
// rescaled by Reduce and add up to totals, and the pointer of the tie moves. A decision without a
// trace is played from its rejections and scores. Many nodes are shown as groups.

const MOST_TILES = 40;
const MOST_SCORED = 12;
const SECONDS = 1.6;
const NAMED = 3;

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
// An amount as Kubernetes writes it: thousandths of a cpu, bytes, or a number.
function amountText(resource, amount) {
  if (resource === "cpu") return amount % 1000 ? `${amount}m` : String(amount / 1000);
  if (resource !== "memory" && resource !== "ephemeral-storage") return String(amount);
  const units = ["", "Ki", "Mi", "Gi", "Ti"];
  let scaled = amount;
  let unit = 0;
  while (scaled >= 1024 && unit < units.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  return `${Number(scaled.toPrecision(4))}${units[unit]}`;
}

const listed = (names, limit = NAMED) => (names.length <= limit ? names.join(", ") : `${names.slice(0, limit).join(", ")} and ${names.length - limit} more`);

// What the filters did, in order: from the trace, or from the rejections.
function filterSteps(decision) {
  if (decision.trace) {
    const rejectedBy = (rule) => (decision.rejections || []).filter((group) => (group.predicate || "PreFilter") === rule).flatMap((group) => group.nodes || []);
    return decision.trace.filters.filter((step) => step.checks && step.asked).map((step) => ({ ...step, nodes: step.nodes.length ? step.nodes : rejectedBy(step.rule) }));
  }
  const steps = new Map();
  let left = decision.nodes.examined;
  for (const group of decision.rejections || []) {
    const rule = group.predicate || "PreFilter";
    const step = steps.get(rule) || { rule, nodes: [], rejected: 0, reasons: [] };
    step.nodes.push(...(group.nodes || []));
    step.rejected += group.count === undefined ? (group.nodes || []).length : group.count;
    for (const reason of group.reasons) step.reasons.push([reason, group.count]);
    steps.set(rule, step);
  }
  return [...steps.values()].map((step) => {
    left -= step.rejected;
    return { ...step, left };
  });
}

// Why each node was rejected.
function reasonsByNode(decision) {
  const found = new Map();
  for (const group of decision.rejections || []) {
    for (const name of group.nodes || []) found.set(name, group.reasons.join(", "));
  }
  return found;
}

function examinedNodes(decision) {
  const names = new Set(decision.feasible || []);
  for (const group of decision.rejections || []) for (const name of group.nodes || []) names.add(name);
  if (!names.size && decision.node) names.add(decision.node);
  return [...names];
}

// The steps as functions of a state that is made anew for each position.
function stepsOf(decision) {
  const trace = decision.trace;
  const feasible = decision.feasible || [];
  const place = new Map(feasible.map((name, at) => [name, at]));
  const scored = decision.totals ? decision.scores || [] : [];
  const reasonsOf = reasonsByNode(decision);
  const steps = [];
  const asked = decision.nodes.examined || examinedNodes(decision).length;
  steps.push({ title: `${counted(asked, "node")}`, text: `${decision.pod} is to get one of ${counted(asked, "node")}.`, change() {} });
  if (trace && trace.prepared.length) {
    const facts = trace.prepared.map((each) => `${each.rule}: ${each.name} ${each.resource ? `${each.resource} ${amountText(each.resource, each.amount)}` : each.value}`);
    steps.push({ title: "Prepared", text: `Prepared once for all nodes. ${facts.join("; ")}.`, change() {} });
  }
  for (const pass of trace ? trace.passes : []) {
    const pods = pass.nominated.map((each) => each.pod);
    const failed = (answers) => answers.find((answer) => answer.fits === false);
    const first = failed(pass.first);
    steps.push({
      title: `Pass one: ${pass.node}`,
      text: `${pass.node} is asked about with the pods nominated to it, ${pods.join(", ")}: ${first ? `${first.rule} rejects it, ${first.reasons.join(", ")}` : "it passes"}.`,
      change(state) { state.nominated.set(pass.node, pods); if (first) state.verdict.set(pass.node, `pass one: ${first.reasons.join(", ")}`); },
    });
    const second = failed(pass.second);
    steps.push({
      title: `Pass two: ${pass.node}`,
      text: first ? `Pass one failed, so there is no pass two; the nominated pods are taken off ${pass.node} again.` : `${pass.node} is asked about without them: ${second ? `${second.rule} rejects it, ${second.reasons.join(", ")}` : "it passes"}.`,
      change(state) { state.nominated.delete(pass.node); if (second) state.verdict.set(pass.node, `pass two: ${second.reasons.join(", ")}`); },
    });
  }
  for (const step of filterSteps(decision)) {
    const reasons = step.reasons.map(([reason, count]) => (count ? `${count} ${reason}` : reason)).join(", ");
    steps.push({
      title: step.rule,
      text: step.rejected ? `${step.rule} rejects ${counted(step.rejected, "node")}, ${listed(step.nodes)}: ${reasons}. ${counted(step.left, "node")} left.` : `${step.rule} rejects no node; ${counted(step.left, "node")} left.`,
      change(state) {
        for (const name of step.nodes) if (!state.out.has(name)) state.out.set(name, { rule: step.rule, reasons: reasonsOf.get(name) || reasons });
        state.left = step.left;
      },
    });
  }
  for (const column of scored) {
    const differs = column.raw.some((value, at) => value !== column.scores[at]);
    if (differs) {
      steps.push({
        title: `${column.priority}: Map`,
        text: `${column.priority} gives each node a raw score, ${Math.min(...column.raw)} to ${Math.max(...column.raw)}.`,
        change(state) { state.now = { name: column.priority, values: column.raw, most: Math.max(1, ...column.raw.map(Math.abs)), what: "raw" }; },
      });
    }
    const workings = trace ? (trace.scores.find((each) => each.rule === column.priority) || { nodes: [] }).nodes : [];
    const example = workings.find((each) => each.reduce || each.map);
    const formula = example ? example.reduce || example.map : "";
    const shown = formula && formula !== String(example.score) ? ` On ${example.node}: ${formula} = ${example.score}.` : "";
    steps.push({
      title: `${column.priority}${differs ? ": Reduce" : ""} × ${column.weight}`,
      text: `${column.priority} ${differs ? "rescales to" : "gives"} ${Math.min(...column.scores)} to ${Math.max(...column.scores)}, times ${column.weight}.${shown}`,
      change(state) {
        state.now = { name: column.priority, values: column.scores, most: decision.maxScore || 10, what: "score" };
        state.added.push(column);
      },
    });
  }
  if (decision.totals) {
    const best = Math.max(...decision.totals);
    steps.push({ title: "The sum", text: `Scores times weights add up; the best total is ${best}.`, change(state) { state.now = null; state.summed = true; } });
  }
  const selection = decision.selection;
  if (decision.node && selection) {
    const names = selection.best || [decision.node];
    for (let at = 0; selection.tied > 1 && at <= Math.min(names.indexOf(decision.node), 8); at += 1) {
      steps.push({ title: "The tie", text: `${counted(selection.tied, "node")} share the best total. The counter is at ${selection.cursor || 0}; the pointer is at ${names[at]}.`, change(state) { state.pointer = names[at]; state.summed = true; } });
    }
    steps.push({ title: `Chosen: ${decision.node}`, text: `${decision.pod} goes to ${decision.node}.`, change(state) { state.pointer = null; state.chosen = decision.node; state.summed = true; } });
  } else if (decision.node) {
    steps.push({ title: `Chosen: ${decision.node}`, text: `${decision.pod} goes to ${decision.node}.`, change(state) { state.chosen = decision.node; } });
  }
  for (const walk of trace ? trace.evictions : []) {
    steps.push({ title: `Evict from ${walk.node}?`, text: `${listed(walk.takenOff, 5) || "Nothing"} taken off ${walk.node}: ${walk.still.length ? `it does not fit even then, ${walk.still.join(", ")}` : "it fits"}.`, change(state) { state.evicted.set(walk.node, [...walk.takenOff]); } });
    for (const tried of walk.putBack) {
      steps.push({
        title: `${tried.pod} back on ${walk.node}?`,
        text: tried.stays ? `${tried.pod} is put back on ${walk.node} and stays.` : `With ${tried.pod} back it does not fit (${tried.reasons.join(", ")}): ${tried.pod} is a victim.`,
        change(state) { if (tried.stays) state.evicted.set(walk.node, state.evicted.get(walk.node).filter((name) => name !== tried.pod)); },
      });
    }
  }
  for (const step of trace ? trace.criteria : []) {
    steps.push({ title: step.name, text: `${step.name}: ${step.costs.map(([node, cost]) => `${node} ${cost}`).slice(0, 5).join(", ")}; left: ${listed(step.left)}.`, change(state) { state.candidates = new Set(step.left); } });
  }
  if (!decision.node) {
    const node = decision.preemption && decision.preemption.node;
    steps.push({ title: node ? `Nominated: ${node}` : "No node", text: node ? `${decision.pod} is nominated to ${node}, where pods are evicted.` : decision.message || decision.error || `${decision.pod} fits nowhere.`, change(state) { state.chosen = node || null; } });
  }
  return { steps, place };
}

function stateAt(steps, at) {
  const state = { out: new Map(), nominated: new Map(), verdict: new Map(), evicted: new Map(), added: [], now: null, summed: false, pointer: null, chosen: null, candidates: null, left: null };
  for (const step of steps.slice(0, at + 1)) step.change(state);
  return state;
}

function tile(name, state, decision, place) {
  const made = element("li", "tile");
  const out = state.out.get(name);
  made.classList.toggle("out", Boolean(out));
  made.classList.toggle("chosen", state.chosen === name);
  made.classList.toggle("pointed", state.pointer === name);
  made.classList.toggle("fading", Boolean(state.candidates && !state.candidates.has(name)));
  made.append(element("strong", "", name));
  if (state.pointer === name) made.append(element("span", "pointer", "◀"));
  if (state.chosen === name) made.append(element("span", "mark", "✓"));
  for (const pod of state.nominated.get(name) || []) made.append(element("span", "guest", `+ ${pod}`));
  for (const pod of state.evicted.get(name) || []) made.append(element("span", "gone", `− ${pod}`));
  const verdict = state.verdict.get(name);
  if (out) made.append(element("span", "why", `✕ ${out.rule}: ${out.reasons}`));
  else if (verdict) made.append(element("span", "why", `✕ ${verdict}`));
  const at = place.get(name);
  if (!out && at !== undefined && (state.added.length || state.now)) {
    if (state.now) {
      const bar = element("span", "bar");
      bar.style.setProperty("--share", String(Math.max(0, Math.min(1, state.now.values[at] / state.now.most))));
      made.append(bar, element("span", "value", `${state.now.what} ${state.now.values[at]}`));
    }
    const stack = element("span", "stack");
    state.added.forEach((column, i) => {
      const part = element("span", `part p${i % 6}`);
      part.style.setProperty("--share", String(Math.max(0, column.scores[at]) / (decision.maxScore || 10) / Math.max(1, (decision.scores || []).length)));
      part.title = `${column.priority} ${column.scores[at]} × ${column.weight}`;
      stack.append(part);
    });
    const total = state.summed ? decision.totals[at] : state.added.reduce((sum, column) => sum + column.scores[at] * column.weight, 0);
    made.append(stack, element("span", "value", `${state.summed ? "total" : "so far"} ${total}`));
  }
  return made;
}

// Many nodes: those that were rejected by what rejected them, those that are left by their total.
function groupTiles(names, state, decision, place) {
  const groups = new Map();
  const single = new Set([decision.node, state.pointer, ...state.nominated.keys(), ...state.evicted.keys()].filter(Boolean));
  const left = names.filter((name) => !state.out.has(name));
  const ranked = state.added.length || state.summed ? [...left].sort((a, b) => (decision.totals || [])[place.get(b)] - (decision.totals || [])[place.get(a)]) : left;
  for (const name of ranked.slice(0, MOST_SCORED)) single.add(name);
  const tiles = [...single].filter((name) => names.includes(name)).map((name) => tile(name, state, decision, place));
  let others = 0;
  for (const name of names) {
    if (single.has(name)) continue;
    const out = state.out.get(name);
    if (!out) { others += 1; continue; }
    const key = `✕ ${out.rule}: ${out.reasons}`;
    const group = groups.get(key) || [];
    group.push(name);
    groups.set(key, group);
  }
  if (others) {
    const made = element("li", "tile group");
    made.append(element("strong", "", `${others} more that are left`));
    tiles.push(made);
  }
  for (const [text, members] of groups) {
    const made = element("li", "tile group out");
    made.append(element("strong", "", counted(members.length, "node")), element("span", "why", text), element("span", "value", listed(members)));
    tiles.push(made);
  }
  return tiles;
}

export function player(container, decision) {
  const { steps, place } = stepsOf(decision);
  const names = examinedNodes(decision);
  let at = 0;
  let timer = null;
  container.classList.add("player");
  container.setAttribute("role", "group");
  container.setAttribute("aria-label", "The decision, step by step");
  const bar = element("div", "buttons");
  const button = (label, text, act) => {
    const made = element("button", "", text);
    made.type = "button";
    made.setAttribute("aria-label", label);
    made.addEventListener("click", act);
    bar.append(made);
    return made;
  };
  const slider = element("input", "slider");
  slider.type = "range";
  slider.min = "0";
  slider.max = String(steps.length - 1);
  slider.setAttribute("aria-label", "Step");
  const position = element("span", "position");
  const say = element("p", "say");
  say.setAttribute("aria-live", "polite");
  const title = element("h3", "");
  const tiles = element("ul", "tiles");
  tiles.setAttribute("aria-label", "Nodes");

  function show(next) {
    at = Math.max(0, Math.min(steps.length - 1, next));
    const state = stateAt(steps, at);
    slider.value = String(at);
    slider.setAttribute("aria-valuetext", `${at + 1} of ${steps.length}: ${steps[at].title}`);
    position.textContent = `${at + 1} / ${steps.length}`;
    title.textContent = steps[at].title;
    say.textContent = steps[at].text;
    const many = names.length > MOST_TILES;
    tiles.replaceChildren(...(many ? groupTiles(names, state, decision, place) : names.map((name) => tile(name, state, decision, place))));
    back.disabled = at === 0;
    forward.disabled = at === steps.length - 1;
    if (at === steps.length - 1) pause();
  }
  function pause() {
    clearInterval(timer);
    timer = null;
    play.textContent = "▶";
    play.setAttribute("aria-label", "Play");
  }
  function start() {
    if (at === steps.length - 1) show(0);
    timer = setInterval(() => show(at + 1), SECONDS * 1000);
    play.textContent = "❚❚";
    play.setAttribute("aria-label", "Pause");
  }
  const first = button("To the beginning", "|‹", () => { pause(); show(0); });
  const back = button("Back", "‹", () => { pause(); show(at - 1); });
  const play = button("Play", "▶", () => (timer === null ? start() : pause()));
  const forward = button("Forward", "›", () => { pause(); show(at + 1); });
  const last = button("To the end", "›|", () => { pause(); show(steps.length - 1); });
  first.classList.add("end");
  last.classList.add("end");
  slider.addEventListener("input", () => { pause(); show(Number(slider.value)); });
  container.addEventListener("keydown", (event) => {
    if (event.target === slider || event.altKey || event.ctrlKey || event.metaKey) return;
    const moves = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: steps.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    pause();
    show(moves[event.key]);
  });
  bar.append(slider, position);
  container.replaceChildren(bar, title, say, tiles);
  show(0);
  return { stop: pause };
}
