// The cluster as the browser keeps it: whole once, then only what changed.
import { getJson } from "../api.js";
import { pulse } from "../live.js";
import { createStore } from "../store.js";

export const CORDONED = 1;
export const NOT_READY = 2;
export const GHOST = 4;

const collator = new Intl.Collator("en", { numeric: true });
const LEAST_WAIT = 200;

class Picture {
  constructor() {
    this.cursor = "";
    this.byRow = new Map();
    this.zones = [];
    this.workloads = [];
    this.taints = [];
    this.resources = [];
    this.totals = { nodes: 0, pods: 0, load: {} };
    // Zones in the order of their names, each with its nodes in the order of theirs.
    this.groups = [];
    this.version = 0;
  }

  take(told) {
    if (told.whole) this.byRow = new Map();
    const [zones, workloads, taints] = told.words.from;
    this.zones.splice(zones, Infinity, ...told.words.zones);
    this.workloads.splice(workloads, Infinity, ...told.words.workloads);
    this.taints.splice(taints, Infinity, ...told.words.taints);
    this.resources = told.resources;
    this.totals = told.totals;
    this.cursor = told.cursor;
    this.takeNodes(told.nodes);
    if (told.whole) this.group();
    this.version += 1;
  }

  takeNodes(columns) {
    columns.row.forEach((row, i) => {
      const node = this.byRow.get(row) || { row };
      const moved = node.zone !== undefined && node.zone !== columns.zone[i];
      node.name = columns.name[i];
      node.zone = columns.zone[i];
      node.taints = columns.taints[i];
      node.flags = columns.flags[i];
      node.load = columns.load.map((each) => each[i]);
      node.pods = columns.pods[i];
      this.byRow.set(row, node);
      if (moved) this.group();
    });
  }

  group() {
    const zones = new Map();
    for (const node of this.byRow.values()) {
      if (!zones.has(node.zone)) zones.set(node.zone, []);
      zones.get(node.zone).push(node);
    }
    this.groups = [...zones].map(([zone, nodes]) => ({
      zone,
      name: this.zones[zone],
      nodes: nodes.sort((a, b) => collator.compare(a.name, b.name)),
    }));
    this.groups.sort((a, b) => collator.compare(a.name.join("/"), b.name.join("/")));
  }
}

export const picture = new Picture();

export const taintsOf = (node) => picture.taints[node.taints] || [];
// Raised with every change, so that components draw again.
export const drawn = createStore({ version: 0, error: null, past: null });

// The moment that the picture shows, in seconds since 1970; null for now, which goes on changing.
let moment = null;
let pictured = null;
let followers = 0;
let asking = false;
let told = null;

async function refresh() {
  if (asking || !followers) return;
  const version = pulse.get() ? pulse.get().version : "";
  const asked = moment;
  if (picture.version && pictured === asked && (asked !== null || version === told)) return;
  asking = true;
  const began = performance.now();
  try {
    const since = pictured === null && picture.cursor ? `?since=${picture.cursor}` : "";
    const found = await getJson(asked === null ? `/cluster${since}` : `/past/cluster?at=${asked}`);
    picture.take(found);
    told = version;
    pictured = asked;
    drawn.set({ version: picture.version, error: null, past: asked === null ? null : found });
  } catch (error) {
    if (asked !== null) pictured = asked;
    drawn.set({ ...drawn.get(), version: picture.version, error });
  }
  // A large cluster that changes as a whole is asked for less often.
  const wait = asked === null ? Math.max(LEAST_WAIT, 3 * (performance.now() - began)) : 0;
  setTimeout(() => {
    asking = false;
    refresh();
  }, wait);
}

pulse.subscribe(refresh);

// Show the cluster as it was at a moment of the recorded past, or as it is.
export function showMoment(at) {
  if (at === moment) return;
  moment = at;
  refresh();
}

// Keep the picture up to date until the result is called.
export function followCluster() {
  followers += 1;
  refresh();
  return () => {
    followers -= 1;
  };
}

// Which nodes a search means: by name, zone, taint, or what runs there. Words are ANDed.
export function matcher(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return null;
  const tests = words.map((word) => {
    const numbers = (values) =>
      new Set(values.flatMap((value, i) => (String(value).toLowerCase().includes(word) ? [i] : [])));
    const zones = numbers(picture.zones);
    const taints = numbers(picture.taints.map((list) => list.map((taint) => taint.join(" "))));
    const workloads = numbers(picture.workloads.map((each) => `${each[0]}/${each[2]}`));
    return (node) =>
      node.name.toLowerCase().includes(word) ||
      zones.has(node.zone) ||
      taints.has(node.taints) ||
      (word === "cordoned" && (node.flags & CORDONED) !== 0) ||
      node.pods.some((pod) => workloads.has(pod));
  });
  return (node) => tests.every((test) => test(node));
}
