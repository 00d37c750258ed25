"""A snapshot holds all that plans need: the plan of a snapshot is the plan of the whole dump."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from podium.objects.kinds.registry import KINDS
from podium.objects.snapshots.anonymization import anonymize
from podium.objects.snapshots.kept_fields import trimmed
from podium.objects.snapshots.pseudonyms import VALUE, Pseudonyms
from podium.what_if.plan.results import Plan
from what_if.clusters import Item, planned
from what_if.messy_cluster import messy_cluster

#: Changes, with the names that an anonymized snapshot has others for in braces.
CHANGES = [
    "drain {n1}",
    "drain {n3}",
    "lose topology.kubernetes.io/zone={a}",
    "rollout deployment/{web}",
    "scale deployment/{idle}=4",
    "scale statefulset/{db}=5",
    "delete job/{sum}",
]


def snapshot(items: list[Item]) -> list[Item]:
    lines = [
        trimmed(each["kind"], each["apiVersion"], msgspec.json.encode(each))
        for each in items
        if each["kind"] in KINDS
    ]
    return [json.loads(line) for line in lines if line is not None]


def anonymous(items: list[Item]) -> tuple[list[Item], Callable[[str], str]]:
    """The snapshot under other names, and what gives the new name of each."""
    found, names = snapshot(items), Pseudonyms()
    for each in found:
        anonymize(each["kind"], each, names)
    names.assign()
    for each in found:
        anonymize(each["kind"], each, names)
    return found, lambda text: names.name(VALUE, text)


def with_names(change: str, new: Callable[[str], str] = str) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: new(match[1]), change)


def essence(found: Plan, new: Callable[[str], str] = str) -> dict[str, Any]:
    """The answer without names of pods, and with *new* names of nodes."""
    return {
        "moved": sorted((new(m.from_node), new(m.to_node), m.interrupted) for m in found.moved),
        "created": sorted(new(each.node) for each in found.created),
        "pending": sorted((new(each.from_node), each.unknown) for each in found.pending),
        "gone": sorted((new(each.node), each.wanted) for each in found.gone),
        "blocked": sorted(new(each.node) for each in found.blocked),
        "asked": len(found.changes[0].notes),
        "seconds": found.seconds,
        "anyway": sorted((each.at, each.what) for each in found.anyway),
        "notes": found.notes,
    }


@pytest.mark.parametrize("change", CHANGES)
def test_the_plan_of_a_snapshot_is_that_of_the_whole_dump(change: str) -> None:
    items = messy_cluster()
    hidden, new = anonymous(items)

    whole = planned(items, with_names(change), is_whole=True)
    of_snapshot = planned(snapshot(items), with_names(change), is_whole=True)
    of_anonymous = planned(hidden, with_names(change, new), is_whole=True)

    assert whole.moved or whole.created or whole.gone
    assert whole.anyway, "pods leave the unreachable node"
    assert essence(of_snapshot) == essence(whole)
    assert essence(of_anonymous) == essence(whole, new)


def test_a_snapshot_has_no_words_that_nothing_reads() -> None:
    items = messy_cluster()
    secret = {"name": "PASSWORD", "value": "acme"}
    for each in items:
        spec = each.get("spec") or {}
        for holder in (spec, (spec.get("template") or {}).get("spec") or {}):
            for container in holder.get("containers") or ():
                container |= {"env": [secret], "command": ["acme"]}
        each["metadata"].setdefault("annotations", {})["acme"] = "acme"

    assert "acme" not in json.dumps(snapshot(items))
