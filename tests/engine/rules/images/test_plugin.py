"""v1.36 ImageLocality: worked examples."""

from __future__ import annotations

import pytest

from builders import node, pod
from builders_v1_36 import scores
from podium.engine.rules.images import ImageLocality
from podium.objects.kinds.pod import ImageVolume, Volume

MEGABYTES = 1024 * 1024


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
