"""v1.13 rules on taints, by effect and toleration."""

from __future__ import annotations

from builders import (
    Said,
    judged,
    node,
    pod,
    scored,
    taint,
    tolerates,
    view,
)
from cases import cases
from podium.engine.framework.rule import FilterRule
from podium.engine.rules.taints import (
    PodToleratesNodeTaints,
    TaintTolerationPriority,
)
from podium.objects.kinds.node import Node, Taint
from podium.objects.kinds.pod import Pod, Toleration

TAINTS = ("node(s) had taints that the pod didn't tolerate",)


def said(predicate: FilterRule, wanted: Pod, one: Node) -> Said:
    return judged(predicate, wanted, view(one))[one.name]


@cases(
    ("effect", "reasons"),
    {
        "NoSchedule": ("NoSchedule", TAINTS),
        "NoExecute": ("NoExecute", TAINTS),
        "a soft taint never rejects": ("PreferNoSchedule", ()),
        "an unknown effect never rejects": ("Other", ()),
    },
)
def test_taints_by_effect(effect: str, reasons: Said) -> None:
    one = node(taints=[taint(effect=effect)])

    assert said(PodToleratesNodeTaints(), pod(), one) == reasons


SOFT = "PreferNoSchedule"


@cases(
    ("taints", "tolerations", "expected"),
    {
        "no taints": ([[], [], []], [], [10, 10, 10]),
        "the worked value": ([0, 1, 2], [], [10, 5, 0]),
        "thirds, truncated before they are turned over": ([0, 1, 3], [], [10, 7, 0]),
        "all alike is all bad": ([1, 1, 1], [], [0, 0, 0]),
        "tolerated ones": ([0, 1, 2], [tolerates("t0", "Exists")], [10, 10, 0]),
        "a toleration of another effect is no help": (
            [0, 1, 2],
            [tolerates("t0", "Exists", effect="NoSchedule")],
            [10, 5, 0],
        ),
        "hard taints are another rule's matter": (
            [[taint("x")], [taint("y", effect="NoExecute")], []],
            [],
            [10, 10, 10],
        ),
    },
)
def test_soft_taints(
    taints: list[int | list[Taint]], tolerations: list[Toleration], expected: list[int]
) -> None:
    columns = view(
        *(
            node(
                f"n{i}",
                taints=given
                if isinstance(given, list)
                else [taint(f"t{j}", effect=SOFT) for j in range(given)],
            )
            for i, given in enumerate(taints)
        )
    )

    found = scored(TaintTolerationPriority(), pod(tolerations=tolerations), columns)

    assert list(found.values()) == expected
