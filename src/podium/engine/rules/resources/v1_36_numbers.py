"""The v1.36 rules on resources as formulas of the plain numbers of one row, and loops over rows.

The formulas read a row as `RowNumbers`: a list where Python runs them, an array where a loop is
compiled to machine code (`engine.fast.compiled_rows`). What is compiled is kept on disk as long as
this file stays the same, so nothing here may depend on a constant or a function of another module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    #: Whole numbers in a list, a tuple or an array.
    Numbers = Any

#: Where the numbers are in a row, in the order that `RowNumbers` describes.
USED_CPU, USED_MEMORY, SCORED_CPU, SCORED_MEMORY = 0, 1, 3, 4
PODS, CPU, MEMORY, ALLOWED = 5, 6, 7, 9
LINES_OF_PODS, LINES = 6, 10


def missing_resources(wanted: Numbers, row: Numbers) -> int:
    """As `NodeResourcesFit.bits`, for a pod that wants these amounts of the first resources."""
    count = len(wanted)
    short = 1 if row[PODS] >= row[ALLOWED] else 0
    for i in range(count):
        allocatable = row[CPU + i]
        if wanted[i] > allocatable - row[i]:
            short |= 2 << i
            if wanted[i] > allocatable:
                short |= 2 << count
    return short


def least_allocated_score(wanted: Numbers, row: Numbers) -> int:
    """As `NodeResourcesFitScore.score` with the strategy LeastAllocated.

    *wanted* are the amounts of cpu and memory, and the weights of both. Doubles hold all numbers of
    ordinary size, and their quotients are cut off at the same integers: that takes less time in
    machine code than to divide integers.
    """
    total = 0
    left = row[CPU] - row[SCORED_CPU] - wanted[0]
    if left > 0:
        total += int(left * 100 / row[CPU]) * wanted[2]
    left = row[MEMORY] - row[SCORED_MEMORY] - wanted[1]
    if left > 0:
        total += int(left * 100 / row[MEMORY]) * wanted[3]
    return int(total / (wanted[2] + wanted[3]))


def balance_change_score(wanted: Numbers, row: Numbers) -> int:
    """As `NodeResourcesBalancedAllocation.score`; *wanted* are the amounts of cpu and memory."""
    cpu, memory = row[CPU], row[MEMORY]
    used_cpu, used_memory = row[USED_CPU], row[USED_MEMORY]
    before = abs(min(used_cpu / cpu, 1.0) - min(used_memory / memory, 1.0))
    after = abs(
        min((used_cpu + wanted[0]) / cpu, 1.0) - min((used_memory + wanted[1]) / memory, 1.0)
    )
    # 50 + (50 + the change of the balance in percent) / 2, and that is never below -50.
    return (int((1 - after / 2) * 100.0) - int((1 - before / 2) * 100.0) + 150) >> 1


def numbers_of(table: np.ndarray, row: int) -> Numbers:
    """The numbers of a row of the table of `copy_numbers`; machine code reads a tuple faster."""
    return (
        table[row, 0],
        table[row, 1],
        table[row, 2],
        table[row, 3],
        table[row, 4],
        table[row, 5],
        table[row, 6],
        table[row, 7],
        table[row, 8],
        table[row, 9],
    )


def lowest_of(scores: np.ndarray) -> int:
    """The lowest of all scores."""
    lowest: int = scores[0]
    for score in scores:
        lowest = min(lowest, score)
    return lowest


def copy_numbers(changed: Numbers, pods: np.ndarray, nodes: np.ndarray, table: np.ndarray) -> None:
    """Copy the numbers of changed rows into a table with the numbers of a row side by side.

    *changed* are entries of the journal; *pods* and *nodes* have a line of all rows for a number.
    """
    for entry in changed:
        row = entry if entry >= 0 else ~entry
        for line in range(LINES_OF_PODS):
            table[row, line] = pods[line, row]
        for line in range(LINES - LINES_OF_PODS):
            table[row, LINES_OF_PODS + line] = nodes[line, row]


#: What `evaluate_rows` calls.
FORMULAS: Final = (
    missing_resources,
    least_allocated_score,
    balance_change_score,
    numbers_of,
    lowest_of,
    copy_numbers,
)


#: Where the rules of a class of pods are in the array that `evaluate_rows` takes: how many amounts
#: `missing_resources` takes as wanted, and these; what the two scores take; the weights of both;
#: the largest number of ordinary size; what stands for a sum where the pod does not fit; and 1 if
#: rows have scores of their nodes, 0 if all have the same.
AMOUNTS, LEAST, BALANCE, WEIGHTS, LARGEST, UNFIT, NODES_DIFFER, RULES = 1, 4, 8, 10, 12, 13, 14, 15


def evaluate_rows(  # noqa: PLR0917 - machine code is called faster without tuples
    entries: Numbers,
    table: np.ndarray,
    newer: Numbers,
    pods: np.ndarray,
    nodes: np.ndarray,
    rules: Numbers,
    verdict_of: Numbers,
    columns: np.ndarray,
    changed: np.ndarray,
) -> int:
    """Evaluate rows for one class of pods: how many of them get another verdict, or -1.

    *entries* are those rows, in the order in which they changed. *table* is that of `copy_numbers`,
    which brings it up to date first, with the *newer* ones of all entries. *rules* is described
    above; *verdict_of* has the verdict for each answer of `missing_resources`, the first of them
    for rows that fit. *columns* has the lines of `AnswerColumns`, of which the verdicts and sums of
    all rules are written, and *changed* is for the rows with another verdict and their verdicts
    before. -1: a number is not of ordinary size, or a verdict is not known yet; then rules must be
    asked about all of these rows.
    """
    copy_numbers(newer, pods, nodes, table)
    wanted, least = rules[AMOUNTS : AMOUNTS + rules[0]], rules[LEAST:BALANCE]
    balance, largest, unfit = rules[BALANCE:WEIGHTS], rules[LARGEST], rules[UNFIT]
    weight, other_weight = rules[WEIGHTS], rules[WEIGHTS + 1]
    fitting = verdict_of[0]
    count = 0
    # All scores are read in order first: that takes little time, and then those of the rows below
    # come from the cache of the processor, wherever they are.
    scores = columns[3]
    all_fit = lowest_of(scores) > unfit
    for row in entries:
        numbers = numbers_of(table, row)
        # The bits of all numbers together: the sign of any, and a size that none exceeds.
        bits = 0
        for number in numbers:
            bits |= number
        if bits < 0 or bits > largest:
            return -1
        verdict = verdict_of[missing_resources(wanted, numbers)]
        if verdict < 0:
            return -1
        before = fitting
        if not all_fit and scores[row] == unfit:
            # Only rows that do not fit have other verdicts: those of the others are not read.
            verdict = min(verdict, columns[0, row])
            before = columns[1, row]
        if verdict != before:
            all_fit = False
            changed[count, 0], changed[count, 1] = row, before
            count += 1
            columns[1, row] = verdict
        if verdict != fitting:
            scores[row] = unfit
            continue
        total = columns[2, row * rules[NODES_DIFFER]]
        if weight:
            total += weight * least_allocated_score(least, numbers)
        if other_weight:
            total += other_weight * balance_change_score(balance, numbers)
        scores[row] = total
    return count
