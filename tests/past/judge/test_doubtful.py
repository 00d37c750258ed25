"""Matrices of placements that differ are kept within a limit of bytes."""

from __future__ import annotations

from builders import node, pod
from past.judge.test_shadow import PROFILE, Beside
from podium.past.judge.agreement import Doubtful, Judgement, matrix_bytes


def judgement(uid: str, nodes: int, recording: bool = True) -> Judgement:
    """A judgement of a decision about this many nodes."""
    beside = Beside(*(node(f"n{number}") for number in range(nodes)))
    asked = pod(uid, requests={"cpu": "1"})
    decision = beside.judge.decided(asked, recording=recording)
    return Judgement(asked, 1, None, decision, PROFILE, 0.0)


def test_the_oldest_lose_their_matrix_first() -> None:
    whole, plain = judgement("a", 40), judgement("a", 40, recording=False)
    assert whole.decision is not None
    assert plain.decision is not None
    size = matrix_bytes(whole.decision)
    assert size > 40 * 8
    kept = Doubtful(budget_bytes=3 * size)

    for number in range(100):
        kept.put(str(number), whole, plain.decision)

    assert len(kept) == 100, "no judgement is lost"
    assert kept.size == 3 * size
    found = [kept.pop(str(number)) for number in range(100)]
    with_matrix = [each is not None and each.decision is whole.decision for each in found]
    assert with_matrix == [False] * 97 + [True] * 3
    assert all(each is not None and each.decision is not None for each in found)
    assert (len(kept), kept.size) == (0, 0)
    assert kept.pop("0") is None


def test_a_judgement_that_is_replaced_is_counted_once() -> None:
    whole, plain = judgement("a", 10), judgement("a", 10, recording=False)
    assert whole.decision is not None
    assert plain.decision is not None
    kept = Doubtful()

    for _ in range(5):
        kept.put("a", whole, plain.decision)

    assert kept.size == matrix_bytes(whole.decision)


def test_a_judge_keeps_what_it_doubts_there() -> None:
    beside = Beside(node("small", cpu="2", memory="2Gi"), node("large", cpu="64", memory="64Gi"))
    waiting = pod(requests={"cpu": "1", "memory": "1Gi"})

    beside.places(waiting, "small")

    assert isinstance(beside.judge._doubtful, Doubtful)
    assert beside.judge._doubtful.size == 0, "its binding was followed"
    [difference] = beside.shadow.agreement().differences
    assert "NodeResourcesFit" in {gap.priority for gap in difference.gaps}
