"""`-n NAMESPACE` and `-A` wherever a pod is named, and what the exit code says."""

from __future__ import annotations

import pytest

from cli.conftest import Files, Podium
from manifests import FIVE, node, pod


@pytest.fixture
def cluster(write: Files) -> str:
    return write([*FIVE, pod("a", namespace="one"), pod("a", cpu="32", namespace="two")])


@pytest.mark.parametrize("command", ["explain", "fix", "capacity"])
def test_a_namespace_says_which_pod_is_meant(podium: Podium, cluster: str, command: str) -> None:
    both = podium(command, "a", cluster)
    one = podium(command, "a", cluster, "-n", "one", "-o", "json")
    same = podium(command, "one/a", cluster, "-A", "-o", "json")
    other = podium(command, "one/a", cluster, "-n", "two")
    none = podium(command, "a", cluster, "--namespace", "three")

    assert both.code == 2
    assert "a is in 2 namespaces; name one: one/a, two/a" in both.err
    assert one.code == 0
    assert one.json == same.json
    assert (other.code, other.out) == (2, "")
    assert "one/a is not in the namespace two; leave out one" in other.err
    assert none.code == 2
    assert "there is no pod three/a" in none.err


def test_a_selector_looks_into_the_namespace_too(podium: Podium, write: Files) -> None:
    labelled = [pod("x", namespace=space, labels={"app": "web"}) for space in ("one", "two")]
    file = write([*FIVE, *labelled])

    assert "two/x goes to" in podium("explain", "app=web", file, "-n", "two").out
    missing = podium("explain", "app=web", file, "-n", "three")
    assert "no pod of the namespace three has the labels app=web" in missing.err


def test_pods_of_a_namespace_are_shown_and_all_are_placed(podium: Podium, write: Files) -> None:
    first, second = pod("a", "1", namespace="one"), pod("b", "1", namespace="two")
    file = write([node("n", cpu="1"), first, second])

    shown = podium("schedule", file, "-n", "two", "-o", "name")
    data = podium("schedule", file, "-n", "two", "-o", "json")

    assert shown.out == "two/b <none>\n"  # the other pod has taken the room
    assert [each["pod"] for each in data.json] == ["two/b"]
    assert podium("schedule", file, "-n", "one", "--exit-code").code == 0
    assert podium("schedule", file, "-n", "two", "--exit-code").code == 1
    assert podium("schedule", file, "-A", "-o", "name").out == "one/a n\ntwo/b <none>\n"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("schedule", "FILE"), 1),
        (("explain", "two/a", "FILE"), 1),
        (("explain", "one/a", "FILE"), 0),
        (("capacity", "two/a", "FILE"), 1),
        (("plan", "FILE", "--lose-each", "node"), 1),
        (("plan", "--exit-code", "FILE", "--drain", "n5"), 0),
    ],
)
def test_the_exit_code_is_an_answer_only_if_asked(
    podium: Podium, cluster: str, command: tuple[str, ...], code: int
) -> None:
    given = [cluster if each == "FILE" else each for each in command]

    assert podium(*(each for each in given if each != "--exit-code")).code == 0
    assert podium(*given, "--exit-code").code == code
