"""The node tree: zones in turn, cursors that persist, and what changes do to them."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import cases
from podium.cluster.cache.node_tree import ZONE_LABELS, NodeTree, zone_key

REGION = "failure-domain.beta.kubernetes.io/region"
ZONE = "failure-domain.beta.kubernetes.io/zone"
NEW_REGION = "topology.kubernetes.io/region"
NEW_ZONE = "topology.kubernetes.io/zone"


class NamedTree:
    """A tree whose rows are read as names; a new name gets the row that was freed last."""

    def __init__(self) -> None:
        self.tree = NodeTree()
        self.row_of: dict[str, int] = {}
        self.free: list[int] = []

    def add(self, name: str, zone: str) -> None:
        self.tree.add(name, zone, self.row(name))

    def update(self, name: str, zone: str) -> None:
        self.tree.update(name, zone, self.row(name))

    def row(self, name: str) -> int:
        if name not in self.row_of:
            self.row_of[name] = self.free.pop() if self.free else len(self.row_of)
        return self.row_of[name]

    def remove(self, name: str) -> bool:
        if name in self.row_of:
            self.free.append(self.row_of.pop(name))
        return self.tree.remove(name)

    def named(self, rows: np.ndarray) -> tuple[str, ...]:
        names = {row: name for name, row in self.row_of.items()}
        return tuple(names[row] for row in rows.tolist())

    def take(self, count: int) -> tuple[str, ...]:
        return self.named(self.tree.take(count))

    def peek(self, count: int) -> tuple[str, ...]:
        return self.named(self.tree.peek(count))

    def listed(self) -> tuple[str, ...]:
        return self.named(self.tree.round_robin_order())

    def restored(self) -> NamedTree:
        """The same tree, made of its position, with other rows."""
        made = NamedTree()
        made.row_of = {name: row for row, name in enumerate(reversed(self.row_of))}
        made.tree = NodeTree.restored(self.tree.position(), made.row_of)
        return made


def tree(*names: str) -> NamedTree:
    """A tree in which the first letter of a node's name is its zone."""
    made = NamedTree()
    for name in names:
        made.add(name, name[0])
    return made


def uneven() -> NamedTree:
    return tree("a1", "a2", "a3", "b1", "c1", "c2")


# --- zone keys ------------------------------------------------------------------------------


@cases(
    ("labels", "beta", "both"),
    {
        "a node without labels has the empty key": (None, "", ""),
        "other labels do not count": ({"x": "y"}, "", ""),
        "region, then zone": ({REGION: "r", ZONE: "z"}, "r:\0:z", "r:\0:z"),
        "a region alone is enough": ({REGION: "r"}, "r:\0:", "r:\0:"),
        "a zone alone is enough": ({ZONE: "z"}, ":\0:z", ":\0:z"),
        "empty values are like no labels": ({REGION: "", ZONE: ""}, "", ""),
        "the new labels count in newer versions": ({NEW_ZONE: "z"}, "", ":\0:z"),
        "the beta label goes before the new one, each on its own": (
            {ZONE: "old", NEW_ZONE: "new", NEW_REGION: "r"},
            ":\0:old",
            "r:\0:old",
        ),
        "a beta label hides the new one even if empty": ({ZONE: "", NEW_ZONE: "new"}, "", ""),
    },
)
def test_zone_key(labels: dict[str, str] | None, beta: str, both: str) -> None:
    assert zone_key(labels) == beta
    assert zone_key(labels, ZONE_LABELS) == both


# --- documented examples --------------------------------------------------------------------


def test_zones_take_turns_and_exhausted_ones_are_skipped() -> None:
    assert uneven().take(6) == ("a1", "b1", "c1", "a2", "c2", "a3")


def test_a_whole_pass_is_the_same_array_for_every_pod() -> None:
    nodes = uneven().tree

    passes = [nodes.take(len(nodes)) for _ in range(3)]

    assert passes[0] is passes[1] is passes[2]


def test_a_pod_that_stopped_early_shifts_the_phase_for_good() -> None:
    nodes = uneven()
    nodes.take(4)

    passes = [nodes.tree.take(6) for _ in range(3)]

    assert nodes.named(passes[0]) == ("c2", "a3", "a1", "b1", "c1", "a2")
    assert nodes.named(passes[1]) == nodes.named(passes[0])
    assert passes[1] is passes[2]


def test_the_ring_stays_and_only_the_place_moves() -> None:
    nodes = uneven().tree
    rows, place = nodes.ring()

    nodes.take(4)

    assert place == 0
    assert nodes.ring()[0] is rows
    assert nodes.ring()[1] == 4
    nodes.take(3)
    assert nodes.ring()[0] is rows
    assert nodes.ring()[1] == 1


def test_a_node_added_after_a_pass_comes_first_from_then_on() -> None:
    nodes = NamedTree()
    nodes.add("A", "")
    nodes.add("B", "")
    nodes.take(2)
    nodes.add("X", "")

    assert [nodes.take(3) for _ in range(3)] == [("X", "A", "B")] * 3


def test_the_pass_after_an_addition_can_meet_the_new_node_twice_and_miss_another() -> None:
    nodes = uneven()
    nodes.take(6)
    nodes.add("b2", "b")

    assert nodes.take(7) == ("b2", "a1", "b1", "c1", "a2", "b2", "c2")
    assert nodes.take(7) == ("a3", "a1", "b1", "c1", "a2", "b2", "c2")


def test_a_removal_skips_the_node_that_steps_into_the_freed_place() -> None:
    nodes = tree("a1", "a2", "a3", "a4")
    nodes.take(2)
    nodes.remove("a1")

    assert nodes.take(4) == ("a4", "a2", "a3", "a4")


def test_an_exhausted_zone_that_shrank_ignores_an_addition_until_the_next_pass() -> None:
    nodes = tree("a1", "a2", "b1", "b2")
    nodes.take(4)
    nodes.remove("a1")
    nodes.add("a3", "a")

    assert nodes.take(4) == ("a2", "b1", "a3", "b2")


def test_a_pass_later_the_shrunken_zone_is_like_any_other() -> None:
    nodes = tree("a1", "a2", "b1", "b2")
    nodes.take(4)
    nodes.remove("a1")
    nodes.take(3)
    nodes.add("a3", "a")

    assert nodes.take(4) == ("a3", "a2", "b1", "a3")


def test_the_last_node_takes_its_zone_along_but_the_turn_stays() -> None:
    nodes = tree("a1", "b1", "c1")
    nodes.take(1)
    nodes.remove("a1")

    assert nodes.take(3) == ("c1", "b1", "b1")


def test_a_zone_that_comes_back_goes_to_the_end() -> None:
    nodes = tree("a1", "b1")
    nodes.remove("a1")
    nodes.add("a1", "a")

    assert nodes.take(2) == ("b1", "a1")


def test_a_changed_zone_moves_a_node_to_the_end_of_the_new_one() -> None:
    nodes = tree("a1", "a2", "b1")
    nodes.update("a1", "b")

    assert nodes.take(3) == ("a2", "b1", "a1")


def test_the_same_zone_is_no_update() -> None:
    nodes = tree("a1", "a2")
    nodes.take(2)
    nodes.update("a1", "a")

    assert nodes.take(2) == ("a1", "a2")


def test_an_unknown_node_is_added_by_an_update() -> None:
    nodes = tree("a1")
    nodes.update("b1", "b")

    assert nodes.take(2) == ("a1", "b1")


def test_a_name_is_added_once() -> None:
    nodes = tree("a1", "a1")
    nodes.add("a1", "b")

    assert len(nodes.tree) == 1
    assert nodes.take(2) == ("a1", "a1")


def test_removing_an_unknown_name_changes_nothing() -> None:
    nodes = tree("a1")

    assert not nodes.remove("b1")
    assert nodes.remove("a1")
    assert "a1" not in nodes.tree


def test_a_tree_without_nodes_yields_nothing() -> None:
    nodes = NamedTree()

    assert nodes.take(3) == ()
    assert not len(nodes.tree.ring()[0])
    assert nodes.listed() == ()
    nodes.add("a1", "a")
    assert nodes.take(1) == ("a1",)
    assert nodes.listed() == ("a1",)


# --- the list of newer versions -------------------------------------------------------------


def test_the_list_is_one_of_each_zone_in_turn() -> None:
    assert uneven().listed() == ("a1", "b1", "c1", "a2", "c2", "a3")


def test_the_list_does_not_know_cursors() -> None:
    nodes = uneven()
    nodes.take(4)

    assert nodes.listed() == ("a1", "b1", "c1", "a2", "c2", "a3")


def test_a_mere_zone_change_keeps_the_list() -> None:
    nodes = tree("a1", "a2", "b1")
    before = nodes.tree.round_robin_order()
    nodes.update("a1", "b")

    assert nodes.tree.round_robin_order() is before
    nodes.add("c1", "c")
    assert nodes.listed() == ("a2", "b1", "c1", "a1")


def test_a_node_that_left_and_came_back_unseen_keeps_the_list() -> None:
    nodes = tree("a1", "a2")
    before = nodes.tree.round_robin_order()
    nodes.remove("a1")
    nodes.add("a1", "a")

    assert nodes.tree.round_robin_order() is before


def test_nodes_that_came_back_on_other_rows_keep_their_places_in_the_list() -> None:
    nodes = tree("a1", "a2", "b1")
    nodes.listed()
    nodes.remove("a1")
    nodes.remove("b1")
    nodes.add("a1", "a")
    nodes.add("b1", "b")

    assert nodes.row_of == {"a1": 2, "a2": 1, "b1": 0}
    assert nodes.listed() == ("a1", "b1", "a2")
    nodes.update("a2", "c")
    assert nodes.listed() == ("a1", "b1", "a2")


def test_a_removal_remakes_the_list() -> None:
    nodes = tree("a1", "a2", "b1")
    nodes.listed()
    nodes.remove("a1")

    assert nodes.listed() == ("a2", "b1")


# --- the cursors, against a literal walk -----------------------------------------------------


class LiteralTree:
    """`next()` word by word: every cursor moved by every call."""

    def __init__(self) -> None:
        self.zones: list[str] = []
        self.nodes: dict[str, list[str]] = {}
        self.last: dict[str, int] = {}
        self.turn = 0

    def add(self, name: str, zone: str) -> None:
        if any(name in names for names in self.nodes.values()):
            return
        if zone not in self.nodes:
            self.zones.append(zone)
            self.nodes[zone], self.last[zone] = [], 0
        self.nodes[zone].append(name)

    def remove(self, name: str) -> None:
        for zone, names in list(self.nodes.items()):
            if name in names:
                names.remove(name)
                if not names:
                    self.zones.remove(zone)
                    del self.nodes[zone], self.last[zone]

    def update(self, name: str, zone: str) -> None:
        if name not in self.nodes.get(zone, ()):
            self.remove(name)
            self.add(name, zone)

    def next(self) -> str:
        if not self.zones:
            return ""
        exhausted = 0
        while True:
            if self.turn >= len(self.zones):
                self.turn = 0
            zone = self.zones[self.turn]
            self.turn += 1
            if self.last[zone] < len(self.nodes[zone]):
                self.last[zone] += 1
                return self.nodes[zone][self.last[zone] - 1]
            exhausted += 1
            if exhausted >= len(self.zones):
                self.last = dict.fromkeys(self.zones, 0)
                self.turn = 0


NAMES = st.sampled_from(["n0", "n1", "n2", "n3", "n4", "n5"])
ZONES = st.sampled_from(["", "a", "b"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), NAMES, ZONES),
        st.tuples(st.just("update"), NAMES, ZONES),
        st.tuples(st.just("remove"), NAMES, st.just("")),
        st.tuples(st.just("pass"), st.just(""), st.just("")),
        st.tuples(st.just("pass"), st.just(""), st.just("")),
        st.tuples(st.sampled_from(["1", "2", "3", "5", "11"]), st.just(""), st.just("")),
    ),
    min_size=10,
    max_size=40,
)


@settings(max_examples=600, deadline=None)
@given(STEPS)
def test_peek_and_advance_are_that_many_calls_of_next(steps: list[tuple[str, str, str]]) -> None:
    real, literal = NamedTree(), LiteralTree()
    begin = [("add", f"n{number}", "ab"[number % 2]) for number in range(4)]
    for kind, name, zone in begin + steps:
        if kind in {"add", "update"}:
            getattr(real, kind)(name, zone)
            getattr(literal, kind)(name, zone)
        elif kind == "remove":
            real.remove(name)
            literal.remove(name)
        else:
            count = len(real.tree) if kind == "pass" else int(kind)
            rows, place = real.tree.ring()
            around = real.named(np.roll(rows, -place))
            assert around == real.peek(len(real.tree))
            assert real.restored().peek(len(real.tree)) == around
            peeked = real.take(count)
            assert peeked == tuple(filter(None, (literal.next() for _ in range(count))))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(NAMES, ZONES), max_size=12), st.integers(0, 25))
def test_calls_one_by_one_are_calls_at_once(nodes: list[tuple[str, str]], count: int) -> None:
    single, several = NamedTree(), NamedTree()
    for name, zone in nodes:
        single.add(name, zone)
        several.add(name, zone)

    names = tuple(name for _ in range(count) for name in single.take(1))

    assert several.take(count) == names
    assert single.peek(7) == several.peek(7)


class LiteralList:
    """The list of v1.36 word by word: made of all names whenever the set of them is another."""

    def __init__(self) -> None:
        self.tree = LiteralTree()
        self.names: tuple[str, ...] = ()

    def listed(self) -> tuple[str, ...]:
        present = {name for names in self.tree.nodes.values() for name in names}
        if present != set(self.names):
            zones = [self.tree.nodes[zone] for zone in self.tree.zones]
            in_turn = (name for names in zip_longest(*zones) for name in names)
            self.names = tuple(filter(None, in_turn))
        return self.names


@settings(max_examples=400, deadline=None)
@given(STEPS)
def test_the_list_is_made_anew_when_other_names_are_there(
    steps: list[tuple[str, str, str]],
) -> None:
    real, literal = tree("a0", "b1", "a2"), LiteralList()
    for name in ("a0", "b1", "a2"):
        literal.tree.add(name, name[0])
    for kind, name, zone in steps:
        if kind in {"add", "update"}:
            getattr(real, kind)(name, zone)
            getattr(literal.tree, kind)(name, zone)
        elif kind == "remove":
            real.remove(name)
            literal.tree.remove(name)
        elif kind == "pass":
            real = real.restored()
        else:
            assert real.listed() == literal.listed()
