"""Tolerations against taints."""

import pytest

from podium.objects.kinds.node import Taint
from podium.objects.kinds.pod import Toleration
from podium.objects.taints import tolerated, tolerates

GPU = Taint(key="gpu", value="a100", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        pytest.param(Toleration("gpu", "Equal", "a100", "NoSchedule"), True, id="everything equal"),
        pytest.param(Toleration("gpu", "", "a100"), True, id="no operator means Equal"),
        pytest.param(Toleration("gpu", "Equal", "t4"), False, id="another value"),
        pytest.param(Toleration("gpu", "Exists", "t4"), True, id="Exists ignores the value"),
        pytest.param(Toleration("cpu", "Exists"), False, id="another key"),
        pytest.param(Toleration("gpu", "Exists", "", "NoExecute"), False, id="another effect"),
        pytest.param(Toleration("", "Exists"), True, id="no key covers every key"),
        pytest.param(Toleration("", "Equal", "a100"), True, id="no key with Equal, by value"),
        pytest.param(Toleration(), False, id="the empty toleration needs an empty value"),
        pytest.param(Toleration("gpu", "exists", "a100"), False, id="operators have case"),
    ],
)
def test_one_toleration(toleration: Toleration, covers: bool) -> None:
    assert tolerates(toleration, GPU) is covers


def test_the_empty_toleration_covers_taints_without_value() -> None:
    assert tolerates(Toleration(), Taint(key="anything", effect="NoExecute"))


def test_any_toleration_will_do() -> None:
    assert tolerated([Toleration("x", "Exists"), Toleration("gpu", "Exists")], GPU)
    assert not tolerated([], GPU)
    assert not tolerated(None, GPU)
