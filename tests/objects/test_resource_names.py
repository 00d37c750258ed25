"""Classes of resource names."""

from collections.abc import Callable

from cases import cases
from podium.objects.names import is_extended, is_native, is_prefixed_native, is_scalar


@cases(
    ("name", "classes"),
    {
        "cpu is counted elsewhere": ("cpu", {"native"}),
        "an unknown native one is not counted": ("foo", {"native"}),
        "extended": ("example.com/gpu", {"extended", "scalar"}),
        "an illegal domain is not extended": ("Example.com/gpu", set()),
        "a quota name is not extended": ("requests.example.com/gpu", set()),
        "prefixed native": ("kubernetes.io/x", {"native", "prefixed", "scalar"}),
        "native by its letters": ("notkubernetes.io/x", {"native", "prefixed", "scalar"}),
        "huge pages": ("hugepages-2Mi", {"native", "scalar"}),
        "attachable volumes": ("attachable-volumes-aws-ebs", {"native", "scalar"}),
        "two slashes": ("a/b/c", set()),
    },
)
def test_classes(name: str, classes: set[str]) -> None:
    tests: dict[str, Callable[[str], bool]] = {
        "native": is_native,
        "prefixed": is_prefixed_native,
        "extended": is_extended,
        "scalar": is_scalar,
    }

    assert {each for each, test in tests.items() if test(name)} == classes
