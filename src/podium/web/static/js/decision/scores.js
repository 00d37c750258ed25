// The matrix of a decision, ready to be sorted and shown: one entry per node that fits.

export const VALUES = { score: "score", weighted: "score × weight", raw: "raw score" };

export function matrix(decision) {
  if (!decision.totals || !decision.feasible) return null;
  const best = new Set((decision.selection && decision.selection.best) || []);
  const rows = decision.feasible.map((name, i) => ({
    name,
    total: decision.totals[i],
    scores: decision.scores.map((column) => column.scores[i]),
    raw: decision.scores.map((column) => column.raw[i]),
    won: name === decision.node,
    tied: best.has(name),
    place: i,
  }));
  rows.sort((a, b) => b.total - a.total || b.won - a.won || a.place - b.place);
  rows.forEach((row, i) => {
    row.rank = i + 1;
  });
  const columns = decision.scores.map((column, i) => {
    const values = column.scores;
    return { name: column.priority, weight: column.weight, index: i, same: values.every((value) => value === values[0]) };
  });
  return { rows, columns };
}

export function valueOf(row, column, shown) {
  if (shown === "raw") return row.raw[column.index];
  return row.scores[column.index] * (shown === "weighted" ? column.weight : 1);
}

export function sorted(rows, by, shown) {
  if (by.column === "rank") return by.up ? [...rows].reverse() : rows;
  const value = by.column === "node" ? null : (row) => (by.column === "total" ? row.total : valueOf(row, by.column, shown));
  const found = [...rows];
  if (value) found.sort((a, b) => value(b) - value(a) || a.rank - b.rank);
  else found.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  return by.up ? found.reverse() : found;
}

// What separates a node from the one that won: points per priority, the weightiest first.
export function gaps(row, winner, columns) {
  return columns
    .map((column) => ({ name: column.name, points: (row.scores[column.index] - winner.scores[column.index]) * column.weight }))
    .filter((gap) => gap.points !== 0)
    .sort((a, b) => Math.abs(b.points) - Math.abs(a.points));
}
