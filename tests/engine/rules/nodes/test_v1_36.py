"""NodeDeclaredFeatures and ImageLocality: worked examples."""

from __future__ import annotations

import msgspec
import pytest

from builders import container, node, pod
from builders_v1_36 import declaring, judged, scores
from podium.engine.rules.images.v1_36 import ImageLocality
from podium.engine.rules.nodes.v1_36 import NodeDeclaredFeatures
from podium.objects.kinds.pod import ImageVolume, RestartRule, Volume

RESTARTS, SPACES = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
MISSING = "node(s) didn't match Pod's required features"
MEGABYTES = 1024 * 1024


@pytest.mark.parametrize(
    ("declared", "seen"),
    [
        pytest.param((RESTARTS,), True, id="alone"),
        pytest.param((RESTARTS, SPACES), True, id="in order"),
        pytest.param(("A", RESTARTS), True, id="after one that nobody knows"),
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


@pytest.mark.parametrize(
    ("size", "score"),
    [
        pytest.param(0, 0, id="nothing"),
        pytest.param(22 * MEGABYTES, 0, id="less than the least that counts"),
        pytest.param(400 * MEGABYTES, 100, id="more than the most, which is nothing"),
    ],
)
def test_images_of_a_pod_without_containers(size: int, score: int) -> None:
    image = Volume("i", image=ImageVolume("img:v1"))

    found = scores(
        ImageLocality(), pod(containers=[], volumes=[image]), node("n", images={"img:v1": size})
    )

    assert found == {"n": score}
