// What a plan changes on the map: the pods that leave and come, node by node, and the load then.
import { counted } from "../format.js";
import { picture } from "../cluster/model.js";

const byName = (usages) => new Map(usages.map((each) => [each.name, each]));

// [namespace, kind, name] of what a plan calls "Deployment/shop/web"; of a single pod, its key.
export function workloadOf(each) {
  const [kind, namespace, name] = each.workload ? each.workload.split("/") : ["Pod", each.pod.split("/")[0], ""];
  return [namespace, kind, name];
}

// Node -> the pods that leave it and those that come, each as its workload and the kind of its square.
function moves(plan) {
  const found = new Map();
  const note = (node, way, each) => {
    if (!node) return;
    if (!found.has(node)) found.set(node, { leaving: [], arriving: [] });
    found.get(node)[way].push({ workload: workloadOf(each), kind: way, pod: each.pod });
  };
  for (const each of plan.moved) {
    note(each.fromNode, "leaving", each);
    note(each.toNode, "arriving", each);
  }
  for (const each of plan.pending) note(each.fromNode, "leaving", each);
  for (const each of plan.gone) note(each.node, "leaving", each);
  for (const each of plan.created) note(each.node, "arriving", each);
  for (const { pod, node } of plan.evicted) {
    // A pod without a node is named as the new one, so that its workload has to tell.
    const rest = ((found.get(node) || {}).leaving || []).filter((each) => each.kind === "leaving");
    const own = rest.find((each) => each.pod === pod) || rest.find(({ workload: [namespace, , name] }) => pod.startsWith(`${namespace}/${name}-`));
    if (own) own.kind = "leaving evicted";
  }
  return found;
}

// The numbers of workloads on a node without those that leave.
function staying(pods, leaving) {
  const rest = [...pods];
  for (const { workload: [namespace, kind, name] } of leaving) {
    const same = (pod) => picture.workloads[pod][0] === namespace && picture.workloads[pod][1] === kind && (kind === "Pod" || picture.workloads[pod][2] === name);
    const at = rest.findIndex(same);
    if (at >= 0) rest.splice(at, 1);
  }
  return rest;
}

// Thousandths of what the node has; null of what a plan does not say.
const loads = (usage) =>
  picture.resources.map((name) => {
    if (!usage || !(name in usage.requested)) return name === "pods" ? null : 0;
    return usage.allocatable[name] ? Math.round((1000 * usage.requested[name]) / usage.allocatable[name]) : 0;
  });

function words({ gone, added, leaving, arriving }) {
  const parts = [];
  if (gone) parts.push("lost");
  if (added) parts.push("new");
  const evicted = leaving.filter((each) => each.kind === "leaving evicted").length;
  if (leaving.length) parts.push(`${counted(leaving.length, "pod")} ${leaving.length === 1 ? "leaves" : "leave"}${evicted ? ` (${evicted} evicted)` : ""}`);
  if (arriving.length) parts.push(`${counted(arriving.length, "pod")} ${arriving.length === 1 ? "comes" : "come"}`);
  return parts.join(", ") || "changes";
}

// The zones of the map as they are after the plan; nodes that change have a mark.
export function after(plan) {
  const [before, then] = [byName(plan.before.nodes), byName(plan.after.nodes)];
  const moved = moves(plan);
  const marked = (node) => {
    const [was, is] = [before.get(node.name), then.get(node.name)];
    const { leaving, arriving } = moved.get(node.name) || { leaving: [], arriving: [] };
    if (!was && !is) return { ...node, mark: { same: true } };
    const load = loads(is);
    const old = loads(was);
    const mark = { gone: !is, added: !was, leaving, arriving, was: was && is ? old : undefined };
    mark.same = was && is && !leaving.length && !arriving.length && load.join() === old.join();
    return { ...node, load, pods: staying(node.pods, leaving), mark: mark.same ? { same: true } : { ...mark, words: words(mark) } };
  };
  const groups = picture.groups.map((group) => ({ ...group, nodes: group.nodes.map(marked) }));
  for (const name of then.keys()) if (!before.has(name)) place(groups, marked({ name, taints: -1, flags: 0, pods: [], load: [] }));
  return groups.map((group) => ({ ...group, all: group.nodes.length }));
}

// A new node comes to the zone of the node that it is like: worker-1-new-1 is like worker-1.
function place(groups, node) {
  const like = node.name.replace(/-new-\d+$/, "");
  const group = groups.find((each) => each.nodes.some((other) => other.name === like));
  if (group) group.nodes.push(node);
  else groups.push({ zone: "new", name: ["", ""], nodes: [node] });
}
