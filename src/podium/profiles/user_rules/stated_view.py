"""The cluster as far as a rule states that it reads it; every other read fails.

Answers are kept until something changes that the rule states (`Rule.scope`, `Rule.kinds`,
`Rule.answer_key`). A rule that reads more gets stale answers, in rare states of a cluster. In a
test, `stated_view` makes that an error: a rule of single rows sees the rows that it is asked about,
and a rule of scope `NODE` sees no pods. Every rule sees only the kinds that it names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from podium.engine.framework.rule import ALL_KINDS, Scope, Watched
from podium.engine.state.node_columns import ImageNodes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from podium.engine.framework.rule import Rule
    from podium.engine.state.catalog import Catalog
    from podium.engine.state.disk_users import DiskUsers
    from podium.engine.state.pod_class import Incoming, PodClass, Port
    from podium.engine.state.view import View

#: Names and numbers of columns: they say nothing about any node.
_LAYOUT: Final = frozenset({"capacity", "resources", "resource"})
_NODE_FACTS: Final = frozenset(
    {"names", "objects", "labels", "known", "facts", "label_column", "images", "row_of"}
)
_NODE_NUMBERS: Final = frozenset({"allocatable", "allowed_pods", "numbers", "sizes", "all_offer"})
#: How pods are read, which no placed pod changes.
_READING_PODS: Final = frozenset({"accounting", "incoming", "class_of", "resource"})
_POD_NUMBERS: Final = frozenset({"requested", "nonzero_requested", "counts", "numbers"})
_PODS_OF_ROWS: Final = frozenset(
    {
        "residents",
        "ports",
        "port_rows",
        "conflicting_ports",
        "claim_users",
        "disk_users",
        "volume_rows",
        "reservations",
    }
)
#: What each scope lets a rule read of nodes and of pods, on its own rows; None: everything.
_OF_NODES: Final[Mapping[Scope, frozenset[str] | None]] = {
    Scope.NONE: _LAYOUT,
    Scope.NODE: _LAYOUT | _NODE_FACTS | _NODE_NUMBERS,
    Scope.RESOURCES: _LAYOUT | _NODE_NUMBERS,
    Scope.PODS: _LAYOUT | _NODE_FACTS | _NODE_NUMBERS,
    Scope.OBJECTS: None,
    Scope.CLUSTER: None,
}
_OF_PODS: Final[Mapping[Scope, frozenset[str] | None]] = {
    Scope.NONE: _READING_PODS,
    Scope.NODE: _READING_PODS,
    Scope.RESOURCES: _READING_PODS | _POD_NUMBERS,
    Scope.PODS: _READING_PODS | _POD_NUMBERS | _PODS_OF_ROWS,
    Scope.OBJECTS: _READING_PODS,
    Scope.CLUSTER: None,
}
#: What `Watched.TERMS` and `Watched.SELECTED_PODS` cover.
_CARRIED_TERMS: Final = frozenset(
    {"carried", "invalid_carried", "presence", "residents", "total", "unknown_nodes"}
)
_SELECTED_PODS: Final = frozenset({"presence", "tally", "tallies", "label_sets_with", "total"})
_WATCHED_KINDS: Final = frozenset(
    {"Namespace", "Service", "ReplicationController", "ReplicaSet", "StatefulSet"}
)
#: What is read of a shelf to see whether it changed.
_VERSIONS: Final = frozenset({"version", "changes_since"})
#: The same for several shelves.
_CATALOG_VERSIONS: Final = frozenset({"claim_changes", "selections"})


class UnstatedReadError(AssertionError):
    """A rule read something that its scope, its kinds and its key do not cover."""


class Statement:
    """What one rule states about the pods of one class, and the rows that it is asked about."""

    def __init__(self, rule: Rule, cls: PodClass, rows: Collection[int]) -> None:
        self.rule = rule
        self.scope = rule.scope(cls)
        self.rows = frozenset(rows)
        #: What its key reads beyond the scope: while the key stays, so do the answers.
        self.of_key: set[str] = set()
        #: Whether the key is being computed.
        self.notes_reads = False
        #: What the rule says that it watches, where it is asked about the whole decision.
        self.watched: Watched | None = None

    @property
    def of_rows(self) -> bool:
        """Whether the rule is asked about single rows."""
        return self.watched is None and self.scope.of_row

    def names(self, kind: str) -> bool:
        """Whether the rule may look up objects of a kind."""
        if self.watched is not None:
            covering = Watched.TERMS if kind == "Namespace" else Watched.SELECTORS
            return kind in _WATCHED_KINDS and bool(self.watched & covering)
        named = self.rule.kinds == ALL_KINDS or kind in self.rule.kinds
        return named and (not self.scope.of_row or self.covers(kind))

    def covers(self, what: str) -> bool:
        """Whether the key covers a read; while it is computed, every read becomes part of it."""
        if self.notes_reads:
            self.of_key.add(what)
        return what in self.of_key

    def refuse(self, what: str) -> UnstatedReadError:
        """The error for a read that nothing covers."""
        kinds = ", ".join(self.rule.kinds) or "no objects"
        stated = f"scope {self.scope.name} and {kinds}"
        if self.watched is not None:
            stated = f"that it watches {self.watched!r}"
        return UnstatedReadError(f"{self.rule.name} reads {what}, and states {stated}")


def stated_view(view: View, rule: Rule, pod: Incoming, rows: Collection[int]) -> View:
    """The view for one rule, one pod and some rows.

    What the rule keeps between decisions (`View.ledgers`) starts empty.
    """
    statement = Statement(rule, pod.cls, rows)
    nodes, pods = _OF_NODES[statement.scope], _OF_PODS[statement.scope]
    made = cast("View", _StatedView(view, statement, nodes, pods))
    statement.notes_reads = True
    rule.answer_key(pod, made)
    statement.notes_reads = False
    return made


def watched_view(view: View, rule: Rule, pod: Incoming) -> View:
    """The view for what a rule says of the whole decision (`activity`, `everywhere`, `group_keys`).

    It shows what the rule states in `Rule.watched`.
    """
    watched = rule.watched(pod.cls)
    if watched & Watched.ANYTHING:
        return view
    # While there are pods on nodes that do not exist, rules on affinity are always asked again.
    statement = Statement(rule, pod.cls, view.pods.unknown_nodes)
    statement.watched = watched
    nodes = None if watched & Watched.NODES else _LAYOUT
    pods = _READING_PODS
    if watched & Watched.TERMS:
        pods = pods | _CARRIED_TERMS
    if watched & Watched.SELECTED_PODS:
        pods = pods | _SELECTED_PODS
    return cast("View", _StatedView(view, statement, nodes, pods))


class _StatedView:
    def __init__(
        self,
        view: View,
        statement: Statement,
        nodes: frozenset[str] | None,
        pods: frozenset[str] | None,
    ) -> None:
        self._view, self._statement = view, statement
        self.nodes = _Part("nodes", view.nodes, nodes, statement)
        self.pods = _Part("pods", view.pods, pods, statement)
        self.catalog = _StatedCatalog(view.catalog, statement)
        self.journal, self.verdicts = view.journal, view.verdicts
        self.ledgers: dict[Any, Any] = {}

    @property
    def decided_at(self) -> float:
        statement = self._statement
        told = statement.watched is not None or statement.scope.of_row
        if told and not statement.covers("the time"):
            raise statement.refuse("the time")
        return self._view.decided_at

    def terms_selecting(self, labels: Any) -> Any:
        watched = self._statement.watched
        told = (
            self._statement.scope is Scope.CLUSTER if watched is None else watched & Watched.TERMS
        )
        if not told:
            raise self._statement.refuse("affinity terms of placed pods")
        return self._view.terms_selecting(labels)


class _Part:
    """Nodes, or pods: attributes with the stated rows only."""

    def __init__(
        self, name: str, part: Any, readable: frozenset[str] | None, statement: Statement
    ) -> None:
        self._name, self._part = name, part
        self._readable, self._statement = readable, statement
        self._made: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        statement = self._statement
        if self._readable is None or statement.covers(f"{self._name}.{name}"):
            return getattr(self._part, name)
        if name not in self._readable:
            raise statement.refuse(f"{self._name}.{name}")
        if name not in self._made:
            self._made[name] = self._restricted(name)
        return self._made[name]

    def _restricted(self, name: str) -> Any:
        real = getattr(self._part, name)
        if name == "residents":
            return _Column(self._statement, real)
        if not self._statement.of_rows or name in _LAYOUT | _READING_PODS:
            return real
        return _RESTRICTED.get(name, _Column)(self._statement, real)


class _Column:
    """A column, or a list with an entry per row; several lines of such columns as well."""

    def __init__(self, statement: Statement, column: Any) -> None:
        self._statement, self._column = statement, column

    def __getitem__(self, place: Any) -> Any:
        rows = place[-1] if isinstance(place, tuple) else place
        self._check(rows)
        return self._column[place]

    def _check(self, rows: Any) -> None:
        asked = None if isinstance(rows, slice) else np.asarray(rows).ravel().tolist()
        if asked is None or not self._statement.rows.issuperset(asked):
            raise self._statement.refuse("rows that it is not asked about")

    def item(self, row: int) -> Any:
        self._check(row)
        return self._column.item(row)

    def take(self, rows: Any) -> Any:
        self._check(rows)
        return self._column.take(rows)

    def __len__(self) -> int:
        return len(self._column)

    def __iter__(self) -> Iterator[Any]:
        raise self._statement.refuse("rows that it is not asked about")

    def __getattr__(self, name: str) -> Any:
        # Whatever else an array can do, it does to all rows.
        raise self._statement.refuse("rows that it is not asked about")


class _Interned:
    """A column of interned values: the values are names, and the rows are what is stated."""

    def __init__(self, statement: Statement, column: Any) -> None:
        self.ids = _Column(statement, column.ids)
        self.values, self.index = column.values, column.index

    def on(self, row: int) -> Any:
        return self.values[self.ids.item(row)]


class _Facts:
    def __init__(self, statement: Statement, facts: Any) -> None:
        for name, column in vars(facts).items():
            setattr(self, name, _Interned(statement, column))


def _label_column(statement: Statement, real: Callable[[str], Any]) -> Callable[[str], _Interned]:
    made: dict[str, _Interned] = {}

    def found(key: str) -> _Interned:
        if key not in made:
            made[key] = _Interned(statement, real(key))
        return made[key]

    return found


def _own_rows(statement: Statement, by_row: Mapping[int, Any]) -> dict[int, Any]:
    return {row: value for row, value in by_row.items() if row in statement.rows}


def _images(statement: Statement, images: Mapping[str, ImageNodes]) -> dict[str, ImageNodes]:
    """The images as the stated rows have them; the number of all nodes that do is not known."""
    found = {
        name: ImageNodes(image.size, _own_rows(statement, image.counts))
        for name, image in images.items()
    }
    return {name: image for name, image in found.items() if image.counts}


def _row_of(statement: Statement, row_of: Mapping[str, int]) -> dict[str, int]:
    return {name: row for name, row in row_of.items() if row in statement.rows}


def _lines(statement: Statement, lines: list[np.ndarray]) -> list[_Column]:
    return [_Column(statement, line) for line in lines]


def _all_offer(statement: Statement, real: Callable[[int], bool]) -> Callable[[int], bool]:  # noqa: ARG001
    return lambda _: False  # a short cut for all rows; each row says the same


def _port_rows(statement: Statement, rows: Mapping[Port, set[int]]) -> dict[Port, set[int]]:
    return {port: found & statement.rows for port, found in rows.items()}


def _claim_users(statement: Statement, users: Mapping[Any, Mapping[int, int]]) -> dict[Any, Any]:
    return {claim: _own_rows(statement, rows) for claim, rows in users.items()}


class _DiskUsers:
    def __init__(self, statement: Statement, users: DiskUsers) -> None:
        self._statement, self._users = statement, users

    def in_the_way(self, *asked: Any) -> Any:
        found = self._users.in_the_way(*asked)
        others = [row for row in range(len(found)) if row not in self._statement.rows]
        found[others] = 0
        return found


def _as_it_is(statement: Statement, real: Any) -> Any:  # noqa: ARG001
    return real


_RESTRICTED: Final[Mapping[str, Callable[[Statement, Any], Any]]] = {
    "facts": _Facts,
    "label_column": _label_column,
    "images": _images,
    "row_of": _row_of,
    "allocatable": _lines,
    "requested": _lines,
    "nonzero_requested": _lines,
    "all_offer": _all_offer,
    "port_rows": _port_rows,
    # Ports that are in use anywhere; `port_rows` says where.
    "conflicting_ports": _as_it_is,
    "claim_users": _claim_users,
    "disk_users": _DiskUsers,
    "volume_rows": _own_rows,
    # By the uid of a pod: only the pods of a row lead there.
    "reservations": _as_it_is,
}


class _StatedCatalog:
    """The shelves of the kinds that the rule names; none for a rule of single rows."""

    def __init__(self, catalog: Catalog, statement: Statement) -> None:
        self._catalog, self._statement = catalog, statement
        self._kinds = {id(shelf): kind for kind, shelf in catalog.shelves()}
        self._made: dict[str, _StatedShelf] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._catalog, name)
        kind = self._kinds.get(id(found))
        if kind is None:
            told = not self._statement.of_rows and self._statement.watched is None
            if not told and name not in _CATALOG_VERSIONS:
                raise self._statement.refuse(f"catalog.{name}")
            return found
        if name not in self._made:
            self._made[name] = _StatedShelf(found, kind, self._statement)
        return self._made[name]


class _StatedShelf:
    def __init__(self, shelf: Any, kind: str, statement: Statement) -> None:
        self._shelf, self._kind, self._statement = shelf, kind, statement

    def _check(self) -> None:
        if not self._statement.names(self._kind):
            raise self._statement.refuse(f"objects of kind {self._kind}")

    def __getattr__(self, name: str) -> Any:
        if name not in _VERSIONS:
            self._check()
        return getattr(self._shelf, name)

    def __iter__(self) -> Iterator[Any]:
        self._check()
        return iter(self._shelf)

    def __len__(self) -> int:
        self._check()
        return len(self._shelf)
