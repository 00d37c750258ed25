"""A trace of a user in two CSV files: nodes, and pods with times and requests.

A column is a field (`name`, `arrives`, …), `label:KEY` for a label, or the name of a resource
(`cpu`, `memory`, `pods`, `example.com/gpu`) with quantities as Kubernetes writes them.
`docs/sweeps.md` lists the columns.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from podium.engine.state.accounting import NATIVE
from podium.errors import InputError
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.objects.quantity import QuantityError, nano
from podium.objects.reading.encoding import text_of
from podium_research.traces.trace import Trace, TraceNode, TracePod

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table."""

    where: str
    line: int
    values: dict[str, str]

    def has(self, column: str) -> bool:
        """Whether the table has the column and the line a value in it."""
        return bool(self.values.get(column))

    def text(self, column: str) -> str:
        """The value of a column, which must not be empty."""
        found = self.values.get(column)
        if not found:
            raise self.error(column, "has no value")
        return found

    def whole(self, column: str) -> int:
        """The value of a column as a whole number that is not negative."""
        text = self.text(column)
        if not text.isdecimal():
            raise self.error(column, f"is {text!r}, expected a whole number, 0 or more")
        return int(text)

    def number(self, column: str) -> float:
        """The value of a column as a number that is not negative."""
        text = self.text(column)
        try:
            found = float(text)
        except ValueError:
            found = -1.0
        if not 0 <= found < float("inf"):
            raise self.error(column, f"is {text!r}, expected a number, 0 or more")
        return found

    def error(self, column: str, what: str) -> InputError:
        """An error about the value of a column."""
        return InputError(what, where=self.where, path=f"line {self.line}: {column}")


class CsvTable:
    """A CSV file with a line of column names; gzip is unpacked."""

    def __init__(self, where: str, content: bytes) -> None:
        self.where = where
        if content.startswith(_GZIP):
            try:
                content = gzip.decompress(content)
            except (OSError, EOFError, zlib.error) as error:
                raise InputError(f"is not a whole gzip file: {error}", where=where) from None
        try:
            self._text = text_of(content)
        except InputError as error:
            raise error.located(where=where) from None
        self.columns: tuple[str, ...] = tuple(next(csv.reader(io.StringIO(self._text)), ()))

    def needs(self, *columns: str) -> None:
        """Refuse the table if it lacks one of these columns."""
        missing = [column for column in columns if column not in self.columns]
        if missing:
            hint = f"its first line names the columns: {', '.join(self.columns) or 'none'}"
            raise InputError(f"has no column {missing[0]}", where=self.where, hint=hint)

    def rows(self) -> Iterator[Row]:
        """The lines after the first."""
        lines = csv.reader(io.StringIO(self._text))
        next(lines, None)
        for values in lines:
            if not values:
                continue
            if len(values) > len(self.columns):
                what = f"has {len(values)} values for {len(self.columns)} columns"
                raise InputError(what, where=self.where, path=f"line {lines.line_num}")
            pairs = zip(self.columns, values, strict=False)
            yield Row(self.where, lines.line_num, {k: v.strip() for k, v in pairs})


LABEL, SELECTOR = "label:", "selector:"
_NODE_FIELDS = frozenset({"name", "arrives", "leaves", "taints"})
_POD_FIELDS = frozenset(
    {"name", "namespace", "arrives", "seconds", "leaves", "priority", "tolerations", "scheduler"}
)
_NATIVE = frozenset({*NATIVE, "pods"})
_PARTS_OF_TAINT = 2


def read_csv(name: str, nodes: CsvTable, pods: CsvTable) -> Trace:
    """The trace in a list of nodes and a list of pods."""
    joined = read_nodes(nodes)
    _check_columns(pods, _POD_FIELDS, (LABEL, SELECTOR))
    arriving = [
        TracePod(
            _pod(row), _time(row, "arrives") or 0.0, _time(row, "seconds"), _time(row, "leaves")
        )
        for row in pods.rows()
    ]
    _check_names(pods, (each.pod.key for each in arriving))
    return Trace(name, joined, tuple(sorted(arriving, key=lambda each: each.arrives)))


def read_nodes(table: CsvTable) -> tuple[TraceNode, ...]:
    """The nodes of a list, in the order in which they join."""
    _check_columns(table, _NODE_FIELDS, (LABEL,))
    joined = [
        TraceNode(_node(row), _time(row, "arrives") or 0.0, _time(row, "leaves"))
        for row in table.rows()
    ]
    _check_names(table, (each.node.name for each in joined))
    return tuple(sorted(joined, key=lambda each: each.arrives))


def _check_columns(table: CsvTable, fields: frozenset[str], prefixes: tuple[str, ...]) -> None:
    table.needs("name")
    for column in table.columns:
        known = column in fields or column in _NATIVE or "/" in column.partition(":")[0]
        if not known and not column.startswith(prefixes):
            hint = f"known: {', '.join(sorted(fields))}, {', '.join(prefixes)}KEY, and resources"
            raise InputError(f"has an unknown column {column!r}", where=table.where, hint=hint)


def _check_names(table: CsvTable, names: Iterable[str]) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise InputError(f"has {name} twice", where=table.where)
        seen.add(name)


def _time(row: Row, column: str) -> float | None:
    return row.number(column) if row.has(column) else None


def _resources(row: Row) -> dict[str, str]:
    found = {}
    for column, value in row.values.items():
        is_resource = column in _NATIVE or ("/" in column and ":" not in column)
        if not is_resource or not value:
            continue
        try:
            nano(value)
        except QuantityError:
            raise row.error(column, f"is {value!r}, expected a quantity such as 500m") from None
        found[column] = value
    return found


def _prefixed(row: Row, prefix: str) -> dict[str, str]:
    values = row.values.items()
    return {
        key.removeprefix(prefix): text for key, text in values if key.startswith(prefix) and text
    }


def _node(row: Row) -> Node:
    name, resources = row.text("name"), _resources(row)
    labels = {"kubernetes.io/hostname": name, **_prefixed(row, LABEL)}
    taints = [_taint(row, each) for each in row.values.get("taints", "").split()]
    return msgspec.convert(
        {
            "metadata": {"name": name, "uid": name, "labels": labels},
            "spec": {"taints": taints} if taints else {},
            "status": {"capacity": resources, "allocatable": resources},
        },
        Node,
    )


def _taint(row: Row, text: str) -> dict[str, str]:
    """A taint as `kubectl taint` writes it: `key=value:Effect`."""
    parts = text.rsplit(":", 1)
    if len(parts) != _PARTS_OF_TAINT or parts[1] not in {
        "NoSchedule",
        "PreferNoSchedule",
        "NoExecute",
    }:
        raise row.error("taints", f"has {text!r}, expected key=value:NoSchedule")
    key, _, value = parts[0].partition("=")
    return {"key": key, "value": value, "effect": parts[1]}


def _pod(row: Row) -> Pod:
    name, namespace = row.text("name"), row.values.get("namespace") or "default"
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "resources": {"requests": _resources(row)}}],
        "schedulerName": row.values.get("scheduler") or "default-scheduler",
    }
    if row.has("priority"):
        spec["priority"] = _priority(row)
    if chosen := _prefixed(row, SELECTOR):
        spec["nodeSelector"] = chosen
    if row.has("tolerations"):
        spec["tolerations"] = [
            {"key": key, "operator": "Exists"} for key in row.text("tolerations").split()
        ]
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}"}
    return msgspec.convert(
        {"metadata": {**metadata, "labels": _prefixed(row, LABEL)}, "spec": spec}, Pod
    )


def _priority(row: Row) -> int:
    text = row.text("priority")
    try:
        return int(text)
    except ValueError:
        raise row.error("priority", f"is {text!r}, expected a whole number") from None
