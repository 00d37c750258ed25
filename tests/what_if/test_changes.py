"""The text form of changes."""

from __future__ import annotations

import pytest

from podium.errors import InputError
from podium.what_if.plan.changes import (
    AddNodes,
    Cordon,
    NodeSelection,
    ObjectName,
    Scale,
    SetTaint,
    parse_change,
)


@pytest.mark.parametrize(
    ("flag", "text", "change"),
    [
        ("add", "3:n1", AddNodes(3, "n1")),
        ("add", "2:pool/node.yaml", AddNodes(2, "pool/node.yaml")),
        ("uncordon", "n1", Cordon(NodeSelection("n1"), unschedulable=False)),
        ("scale", "deploy/web=0", Scale(ObjectName("deploy", "web"), 0)),
        ("scale", "deploy/shop/web=5", Scale(ObjectName("deploy", "web", "shop"), 5)),
        ("taint", "n1:k=v:NoExecute", SetTaint(NodeSelection("n1"), "k", "v", "NoExecute")),
        ("taint", "n1:k:NoSchedule", SetTaint(NodeSelection("n1"), "k", "", "NoSchedule")),
        ("taint", "pool=a:k-", SetTaint(NodeSelection(label="pool", value="a"), "k", remove=True)),
    ],
)
def test_a_change_is_read(flag: str, text: str, change: object) -> None:
    assert parse_change(flag, text) == change


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("drain", ""),
        ("lose", "=a"),
        ("add", "n1"),
        ("add", "0:n1"),
        ("add", "x:n1"),
        ("scale", "deploy/web"),
        ("scale", "deploy/web=many"),
        ("scale", "deploy/web=-1"),
        ("scale", "deploy/web=1000001"),
        ("add", "100001:n1"),
        ("scale", "web=3"),
        ("taint", "n1"),
        ("taint", "n1:k=v"),
        ("taint", "n1:k=v:Never"),
        ("delete", "web"),
        ("rollout", "deploy/a/b/c"),
        ("explode", "n1"),
    ],
)
def test_what_is_no_change_is_one_sentence_with_a_hint(flag: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_change(flag, text)

    assert "\n" not in str(caught.value)
    assert caught.value.hint
