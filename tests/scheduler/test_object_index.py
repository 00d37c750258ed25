"""Changes between what a reflector reports, also when reporting one fails."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from podium.objects.kinds.pod import Pod
from podium.scheduler.state.object_index import ObjectIndex
from scheduler.fakes import waiting


class Handler:
    """Keeps the changes it is told, and raises for the pods it is set to fail for."""

    def __init__(self) -> None:
        self.failing: set[str] = set()
        self.told: list[tuple[str, str]] = []

    def __call__(self, old: Pod | None, new: Pod | None) -> None:
        name = (new or old or waiting()).name
        if name in self.failing:
            raise RuntimeError(name)
        kind = "added" if old is None else "deleted" if new is None else "changed"
        self.told.append((kind, name))


def version(name: str, number: int) -> Pod:
    made = waiting(name)
    return replace(made, metadata=replace(made.metadata, resource_version=str(number)))


@pytest.fixture
def handler() -> Handler:
    return Handler()


@pytest.fixture
def index(handler: Handler) -> ObjectIndex[Pod]:
    return ObjectIndex(handler)


def test_an_object_whose_handler_raised_is_reported_by_the_next_list(
    handler: Handler, index: ObjectIndex[Pod]
) -> None:
    handler.failing = {"a"}
    with pytest.raises(RuntimeError):
        index.put(version("a", 1))
    handler.failing = set()

    index.replace([version("a", 1)])
    index.replace([version("a", 1)])

    assert handler.told == [("added", "a")]


def test_a_change_whose_handler_raised_is_reported_by_the_next_list(
    handler: Handler, index: ObjectIndex[Pod]
) -> None:
    index.put(version("a", 1))
    handler.failing = {"a"}
    with pytest.raises(RuntimeError):
        index.put(version("a", 2))
    handler.failing = set()

    index.replace([version("a", 2)])

    assert handler.told == [("added", "a"), ("changed", "a")]


def test_a_deletion_whose_handler_raised_is_reported_by_the_next_list(
    handler: Handler, index: ObjectIndex[Pod]
) -> None:
    index.put(version("a", 1))
    handler.failing = {"a"}
    with pytest.raises(RuntimeError):
        index.drop(version("a", 2))
    handler.failing = set()

    index.replace([])

    assert handler.told == [("added", "a"), ("deleted", "a")]
    assert index.known == {}


def test_an_object_that_always_fails_does_not_hide_the_rest_of_a_list(
    handler: Handler, index: ObjectIndex[Pod], caplog: pytest.LogCaptureFixture
) -> None:
    handler.failing = {"a"}

    index.replace([version("a", 1), version("b", 1)])

    assert handler.told == [("added", "b")]
    assert caplog.text.count("Pod default/a: reported again after the next list") == 1


def test_what_was_answered_is_not_undone_by_earlier_versions(
    handler: Handler, index: ObjectIndex[Pod]
) -> None:
    index.put(version("a", 1))
    index.put_answered(version("a", 4))
    for number in (2, 3, 4):
        index.put(version("a", number))
    assert index.known["default/a"].metadata.resource_version == "4"
    assert handler.told == [("added", "a"), ("changed", "a")]

    index.put(version("a", 2))  # after a server was restored

    assert index.known["default/a"].metadata.resource_version == "2"
