"""v1.36 NodeDeclaredFeatures: worked examples."""

from __future__ import annotations

import msgspec
import pytest

from builders import container, node, pod
from builders_v1_36 import declaring, judged
from podium.engine.rules.nodes import NodeDeclaredFeatures
from podium.objects.kinds.pod import RestartRule

RESTARTS, SPACES = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
MISSING = "node(s) didn't match Pod's required features"


@pytest.mark.parametrize(
    ("declared", "seen"),
    [
        pytest.param((RESTARTS,), True, id="alone"),
        pytest.param((RESTARTS, SPACES), True, id="in order"),
        pytest.param(("A", RESTARTS), True, id="after an unknown one"),
        pytest.param((SPACES, RESTARTS), False, id="out of order"),
        pytest.param(("Z", RESTARTS), False, id="after an unknown one that sorts behind it"),
        pytest.param((), False, id="not at all"),
    ],
)
def test_features_are_seen_in_a_sorted_list_only(declared: tuple[str, ...], seen: bool) -> None:
    restarting = msgspec.structs.replace(
        container(), restart_policy_rules=[RestartRule("RestartAllContainers")]
    )

    found = judged(
        NodeDeclaredFeatures(), pod(containers=[restarting]), declaring(node("n"), *declared)
    )

    assert found == {"n": () if seen else (MISSING,)}
