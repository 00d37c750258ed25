"""Classes of resource names."""

from collections.abc import Callable

import pytest

from podium.objects.names import is_extended, is_native, is_prefixed_native, is_scalar


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        pytest.param("cpu", {"native"}, id="cpu is counted elsewhere"),
        pytest.param("foo", {"native"}, id="an unknown native one is not counted"),
        pytest.param("example.com/gpu", {"extended", "scalar"}, id="extended"),
        pytest.param("Example.com/gpu", set(), id="an illegal domain is not extended"),
        pytest.param("requests.example.com/gpu", set(), id="a quota name is not extended"),
        pytest.param("kubernetes.io/x", {"native", "prefixed", "scalar"}, id="prefixed native"),
        pytest.param(
            "notkubernetes.io/x", {"native", "prefixed", "scalar"}, id="native by its letters"
        ),
        pytest.param("hugepages-2Mi", {"native", "scalar"}, id="huge pages"),
        pytest.param("attachable-volumes-aws-ebs", {"native", "scalar"}, id="attachable volumes"),
        pytest.param("a/b/c", set(), id="two slashes"),
    ],
)
def test_classes(name: str, classes: set[str]) -> None:
    tests: dict[str, Callable[[str], bool]] = {
        "native": is_native,
        "prefixed": is_prefixed_native,
        "extended": is_extended,
        "scalar": is_scalar,
    }

    assert {each for each, test in tests.items() if test(name)} == classes
