// The colour of a pod: by its workload or its namespace, numbered as they appeared.
import { ofNumber } from "../colours.js";
import { picture } from "./model.js";

const seen = new Map();

function namespaceNumber(namespace) {
  if (!seen.has(namespace)) seen.set(namespace, seen.size);
  return seen.get(namespace);
}

export function shade(workload, by) {
  if (by === "workload") return ofNumber(workload);
  return ofNumber(namespaceNumber(picture.workloads[workload][0]));
}

export const namespaces = () => [...new Set(picture.workloads.map((each) => each[0]))];
