"""Comparing, merging and pruning objects field by field, as ownership does.

Upstream: sigs.k8s.io/structured-merge-diff, typed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from podium.lab.api.status import JsonDict, bad_request
from podium.lab.patch.apply_shapes import (
    LEAF_SHAPE,
    FieldSet,
    Path,
    Shape,
    Step,
    is_leaf,
    parts,
    path_text,
)

_ABSENT: Any = object()
Trie = dict[Step, Any]


@dataclass(slots=True)
class Comparison:
    """Which fields a write removed, changed and added."""

    removed: set[Path] = field(default_factory=set)
    modified: set[Path] = field(default_factory=set)
    added: set[Path] = field(default_factory=set)

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.removed or self.modified or self.added)


def compare(shape: Shape, old: JsonDict, new: JsonDict) -> Comparison:
    """What became of each field."""
    found = Comparison()
    _compare(shape, old, new, (), found)
    return found


def _compare(shape: Shape, old: Any, new: Any, path: Path, found: Comparison) -> None:
    if old is not _ABSENT and new is not _ABSENT and _equal(old, new):
        return
    present = old if new is _ABSENT or (new is None and old is not _ABSENT) else new
    empty = not present and (old is _ABSENT or not old) and (new is _ABSENT or not new)
    mixed = _mixed(old, new)
    if is_leaf(shape, present) or empty or mixed:
        if old is _ABSENT:
            found.added.add(path)
        elif new is _ABSENT:
            found.removed.add(path)
        else:
            found.modified.add(path)
        return
    before = _by_step(shape, old)
    after = _by_step(shape, new)
    for step in [*before, *(step for step in after if step not in before)]:
        left, right = before.get(step), after.get(step)
        inner = (left or right or (None, LEAF_SHAPE))[1]
        one = left[0] if left else _ABSENT
        other = right[0] if right else _ABSENT
        _compare(inner, one, other, (*path, step), found)
    if old is _ABSENT:
        found.added.add(path)
    elif new is _ABSENT:
        found.removed.add(path)


def _mixed(old: Any, new: Any) -> bool:
    """Whether one is a list or object and the other is something else."""
    kinds = {type(value) for value in (old, new) if value is not _ABSENT and value is not None}
    return len(kinds) > 1 and bool(kinds & {dict, list})


def _by_step(shape: Shape, value: Any) -> dict[Step, tuple[Any, Shape]]:
    if value is _ABSENT or value is None:
        return {}
    return {step: (each, inner) for step, each, inner in parts(shape, value)}


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def merge(shape: Shape, live: Any, config: Any, path: Path = ()) -> Any:
    """The live object with the configuration laid over it."""
    if config is None or is_leaf(shape, config):
        return config
    if live is None or _mixed(live, config):
        live = type(config)()
    if isinstance(config, dict):
        result = dict(live)
        for step, each, inner in parts(shape, config):
            name = step[2:]
            result[name] = merge(inner, live.get(name), each, (*path, step))
        return result
    return _merge_lists(shape, live, config, path)


def _merge_lists(shape: Shape, live: list[Any], config: list[Any], path: Path) -> list[Any]:
    """Items in the configuration's order; those of others stay where they stood between them."""
    ours: dict[Step, Any] = {}
    for item in config:
        step = shape.step(item)
        if step in ours:
            where, key = path_text(path), path_text((step,))
            raise bad_request(f"{where}: duplicate entries for key {key}")
        ours[step] = item
    left, right = [(shape.step(item), item) for item in live], list(ours)
    # What is there twice cannot be merged with; it is replaced if the configuration has it.
    named = Counter(step for step, _ in left)
    theirs = {step: item for step, item in left if named[step] == 1}
    shared = [step for step in right if step in named]
    inner, result = shape.item(), []
    while left or right:
        if left and left[0][0] not in ours:
            result.append(left.pop(0)[1])
            continue
        if left and (left[0][0] not in right or (shared and shared[0] != left[0][0])):
            left.pop(0)  # is in already, or comes later, where the configuration has it
            continue
        step = right.pop(0)
        result.append(merge(inner, theirs.get(step), ours[step], (*path, step)))
        if left and left[0][0] == step:
            left.pop(0)
        if shared and shared[0] == step:
            shared.pop(0)
    return result


def trie_of(fields: FieldSet) -> Trie:
    """Fields as a tree; `.` marks a member that has members below it."""
    root: Trie = {}
    for path in sorted(fields, key=_sortable):
        here = root
        for step in path[:-1]:
            node = here.setdefault(step, {})
            here = node
        last = here.setdefault(path[-1], {})
        last["."] = {}
    return root


def _sortable(path: Path) -> list[tuple[int, str]]:
    return [("fkvi".index(step[0]), step[2:]) for step in path]


def in_order(fields: FieldSet) -> list[Path]:
    """Fields as they are listed: at each level first the members, then what is below."""
    found: list[Path] = []

    def walk(node: Trie, path: Path) -> None:
        steps = sorted((step for step in node if step != "."), key=lambda step: _sortable((step,)))
        found.extend((*path, step) for step in steps if "." in node[step])
        for step in steps:
            walk(node[step], (*path, step))

    walk(trie_of(fields), ())
    return found


def remove(shape: Shape, value: JsonDict, fields: FieldSet) -> JsonDict:
    """The object without these fields; what becomes empty by that is gone as well."""
    if not fields:
        return value
    found: JsonDict | None = _remove(shape, value, trie_of(fields))
    return found or {}


def _remove(shape: Shape, value: Any, trie: Trie) -> Any:
    if not value or is_leaf(shape, value):
        return value if not isinstance(value, dict | list) else None
    kept_items: list[Any] = []
    kept_fields: JsonDict = {}
    for step, each, inner in parts(shape, value):
        node = trie.get(step)
        left = each
        if node is not None:
            if "." in node:
                continue
            left = _remove(inner, each, node)
            if left is None:
                continue
        if isinstance(value, dict):
            kept_fields[step[2:]] = left
        else:
            kept_items.append(left)
    return (kept_fields if isinstance(value, dict) else kept_items) or None
