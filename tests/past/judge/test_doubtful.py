"""Placements that are doubtful keep every verdict and every score, within a limit."""

from __future__ import annotations

from msgspec.structs import replace

from builders import node, pod
from past.judge.test_shadow import PROFILE, Beside
from podium.objects.kinds.pod import Pod
from podium.past.judge.agreement import Judgement
from podium.past.judge.judge import MOST_MATRICES


class Keeping(Beside):
    """Keeps the judgements that it is told."""

    def __init__(self) -> None:
        small, large = node("small", cpu="64", memory="64Gi"), node("large", cpu="640")
        super().__init__(small, large)
        self.told: list[Judgement] = []
        self.judge._report = self.told.append


def bound(waiting: Pod) -> Pod:
    return replace(waiting, spec=replace(waiting.spec, node_name="small"))


def test_the_oldest_lose_their_matrix_first() -> None:
    """The first pod is bound last: all others wait for it, and are judged at once."""
    beside = Keeping()
    pods = [pod(f"p{at}", uid=f"u{at}", requests={"cpu": "1"}) for at in range(MOST_MATRICES + 8)]
    beside.places(pod("first"), "large")
    changes: list[tuple[str, Pod | None, Pod]] = [("Pod", None, each) for each in pods]
    changes += [("Pod", each, bound(each)) for each in reversed(pods)]

    for change in changes:
        beside.seen(*change)
        beside.time -= 1.0  # all at once: no pod is given up, and no scheduler was silent

    found = {each.pod.uid: each for each in beside.told}
    assert len(found) == len(pods) + 1, "no judgement is lost"
    decisions = [found[each.uid].decision for each in pods]
    assert all(each is not None and each.node == "large" for each in decisions)
    with_matrix = [bool(each and each.scores) for each in decisions]
    assert with_matrix == [False] * 8 + [True] * MOST_MATRICES


def test_a_difference_has_its_scores() -> None:
    beside = Keeping()
    waiting = pod(requests={"cpu": "1"})
    beside.seen("Pod", None, waiting)
    beside.seen("Pod", waiting, bound(waiting))

    [told] = beside.told
    assert told.profile is PROFILE
    assert told.decision is not None
    assert told.decision.scores
    assert told.comparison is not None
    assert "NodeResourcesFit" in {gap.priority for gap in told.comparison.gaps}
