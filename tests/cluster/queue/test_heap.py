"""The heaps of the queue: Go's container/heap, so that ties come out as they do there; or heapq."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cases import cases
from podium.cluster.queue.heap import DistinctHeap, KeyedHeap


def heap(*members: tuple[str, float]) -> KeyedHeap[str]:
    made: KeyedHeap[str] = KeyedHeap()
    for key, rank in members:
        made.put(key, key, (rank,))
    return made


def drained(members: KeyedHeap[str]) -> list[str | None]:
    return [members.pop() for _ in range(len(members))]


@cases(
    ("ranks", "order"),
    {
        "the lowest rank first": ({"a": 2, "b": 1, "c": 3}, "bac"),
        "two equals keep their order": ({"a": 1, "b": 1}, "ab"),
        "of three equals the last overtakes": ({"a": 1, "b": 1, "c": 1}, "acb"),
        "of four equals the first stays first": ({"a": 1, "b": 1, "c": 1, "d": 1}, "adcb"),
        "the first of many equals stays first, the rest come out reversed": (
            {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1},
            "agfedcb",
        ),
        "ties within each of two ranks": ({"a": 2, "b": 2, "c": 1, "d": 1}, "cdab"),
    },
)
def test_order_of_ties(ranks: dict[str, float], order: str) -> None:
    assert drained(heap(*ranks.items())) == list(order)


def test_a_replaced_member_moves_to_its_new_place() -> None:
    members = heap(("a", 1), ("b", 2), ("c", 3))

    members.put("c", "new c", (0,))
    members.put("a", "new a", (9,))

    assert drained(members) == ["new c", "b", "new a"]


def test_members_are_found_and_removed_by_key() -> None:
    members = heap(("a", 1), ("b", 2), ("c", 3))

    assert "b" in members
    assert members.get("b") == "b"
    assert members.remove("b") == "b"
    assert members.remove("b") is None
    assert members.get("b") is None
    assert sorted(members) == ["a", "c"]
    assert members.peek() == "a"


def test_an_empty_heap_gives_nothing() -> None:
    members = heap()

    assert members.peek() is None
    assert members.pop() is None


class GoHeap:
    """container/heap over a list of (rank, key), transcribed word by word."""

    def __init__(self) -> None:
        self.items: list[tuple[float, str]] = []

    def less(self, i: int, j: int) -> bool:
        return self.items[i][0] < self.items[j][0]

    def swap(self, i: int, j: int) -> None:
        self.items[i], self.items[j] = self.items[j], self.items[i]

    def up(self, j: int) -> None:
        while True:
            i = int((j - 1) / 2)
            if i == j or not self.less(j, i):
                return
            self.swap(i, j)
            j = i

    def down(self, start: int, size: int) -> bool:
        i = start
        while True:
            left = 2 * i + 1
            if left >= size:
                break
            j = left
            right = left + 1
            if right < size and self.less(right, left):
                j = right
            if not self.less(j, i):
                break
            self.swap(i, j)
            i = j
        return i > start

    def put(self, key: str, rank: float) -> None:
        for index, (_, found) in enumerate(self.items):
            if found == key:
                self.items[index] = (rank, key)
                if not self.down(index, len(self.items)):
                    self.up(index)
                return
        self.items.append((rank, key))
        self.up(len(self.items) - 1)

    def pop(self) -> str | None:
        if not self.items:
            return None
        last = len(self.items) - 1
        self.swap(0, last)
        self.down(0, last)
        return self.items.pop()[1]

    def remove(self, key: str) -> None:
        for index, (_, found) in enumerate(self.items):
            if found == key:
                last = len(self.items) - 1
                if last != index:
                    self.swap(index, last)
                    if not self.down(index, last):
                        self.up(index)
                self.items.pop()
                return


KEYS = st.sampled_from("abcdefghijkl")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.integers(0, 2)),
        st.tuples(st.just("remove"), KEYS, st.just(0)),
        st.tuples(st.just("pop"), st.just(""), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_every_history_gives_the_order_of_container_heap(steps: list[tuple[str, str, int]]) -> None:
    real, go = heap(), GoHeap()
    for kind, key, rank in steps:
        if kind == "put":
            real.put(key, key, (rank,))
            go.put(key, rank)
        elif kind == "remove":
            real.remove(key)
            go.remove(key)
        else:
            assert real.pop() == go.pop()
        assert list(real) == [key for _, key in go.items]


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_members_of_distinct_ranks_come_out_the_same_of_either_heap(
    steps: list[tuple[str, str, int]],
) -> None:
    """A rank ends in the place of the key, so that no two are equal; a put may repeat one."""
    slow, fast = heap(), DistinctHeap[str]()
    for number, (kind, key, rank) in enumerate(steps):
        if kind == "put":
            for each in (slow, fast):
                each.put(key, f"{key}{number}", (rank, ord(key)))
        elif kind == "remove":
            assert slow.remove(key) == fast.remove(key)
        else:
            assert slow.pop() == fast.pop()
        assert len(slow) == len(fast)
        for known in "abcdefghijkl":
            assert slow.get(known) == fast.get(known)
            assert (known in slow) == (known in fast)
    while len(slow):
        assert slow.pop() == fast.pop()
    assert fast.pop() is None


def test_entries_without_a_member_do_not_add_up() -> None:
    members = DistinctHeap[int]()
    for number in range(10_000):
        members.put("changing", number, (float(-number), 0.0))
        members.put(f"{number}", number, (float(number), 1.0))
        assert members.remove(f"{number}") == number

    assert len(members._entries) < 200
    assert members.pop() == 9_999
    assert not members
