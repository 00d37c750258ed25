"""A kind that is declared in one place is read, checked, watched, looked up and snapshotted."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from builders import node, profile, simulation
from kube.scripted import answer, scripted
from podium.cluster.wakeups.wakeups import Added, resource
from podium.engine.framework.rule import ALL_KINDS, FilterRule
from podium.errors import InputError
from podium.kube.discovery import discover
from podium.library.snapshots.writing import Listed, list_objects
from podium.objects.completing.defaults import with_defaults
from podium.objects.kinds.defaults import Admission
from podium.objects.kinds.kind import Kind
from podium.objects.kinds.meta import Object, RawQuantity, Value
from podium.objects.kinds.registry import KINDS
from podium.objects.reading.collection import Objects, label
from podium.objects.reading.decoding import decode
from podium.objects.reading.validation import validate
from podium.objects.snapshots.anonymization import anonymize
from podium.objects.snapshots.kept_fields import trimmed
from podium.objects.snapshots.pseudonyms import NODE, Pseudonyms
from podium.profiles.watched_kinds import watched_kinds
from podium.scheduler.state.behaviour import OF_CONFIGURATIONS
from podium.scheduler.state.cluster_state import ClusterState
from podium.scheduler.state.informers import Informers


class GpuSliceSpec(Value, frozen=True):
    memory: RawQuantity = 0
    node_name: str = ""
    mode: str = ""


class GpuSlice(Object, frozen=True):
    spec: GpuSliceSpec = GpuSliceSpec()


def with_mode(item: GpuSlice, _: Admission) -> GpuSlice:
    mode = item.spec.mode or "Shared"
    return msgspec.structs.replace(item, spec=msgspec.structs.replace(item.spec, mode=mode))


def without_mode(item: GpuSlice) -> GpuSlice:
    return msgspec.structs.replace(item, spec=msgspec.structs.replace(item.spec, mode=""))


GPU_SLICE = Kind(
    "GPUSlice",
    GpuSlice,
    ("gpu.example.com/v2", "gpu.example.com/v1"),
    apply_defaults=with_mode,
    trim=without_mode,
    renamed={"spec": {"nodeName": NODE}},
)
MANIFEST = """
apiVersion: gpu.example.com/v1
kind: GPUSlice
metadata: {name: a, namespace: team, labels: {app: web}}
spec: {memory: 4Gi, nodeName: n1, ignored: true}
"""
PATH = "/apis/gpu.example.com/v1/gpuslices"


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, GPU_SLICE.name, GPU_SLICE)


def read(text: str = MANIFEST) -> Objects:
    return decode(text, "slices.yaml")


def test_it_is_read() -> None:
    [found] = read().of(GPU_SLICE)

    assert found.spec == GpuSliceSpec(memory="4Gi", node_name="n1")
    assert label("GPUSlice", found.namespace, found.name) == "GPUSlice team/a"


def test_without_the_declaration_it_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(KINDS, GPU_SLICE.name)

    assert read().unknown_kinds == {"GPUSlice.gpu.example.com": 1}


@pytest.mark.parametrize(
    ("wrong", "right", "expected"),
    [
        ("memory: -1", "memory: 4Gi", "spec.memory: -1 is negative; use zero or more"),
        ("memory: {}", "memory: 4Gi", "spec.memory: expected a quantity, got a mapping"),
        ("name: A_B", "name: a,", "metadata.name: 'A_B' is not a legal name"),
    ],
)
def test_it_is_checked(wrong: str, right: str, expected: str) -> None:
    text = MANIFEST.replace(right, wrong + ("," if right.endswith(",") else ""))

    with pytest.raises(InputError) as error:
        validate(read(text))

    assert "slices.yaml: " in str(error.value)
    assert "GPUSlice team/" in str(error.value)
    assert expected in str(error.value)


def test_two_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="GPUSlice team/a: appears twice"):
        validate(read(f"{MANIFEST}---{MANIFEST}"))


def test_defaults_are_applied() -> None:
    [found] = with_defaults(read()).of(GPU_SLICE)

    assert found.spec.mode == "Shared"


def test_rules_look_it_up_in_a_simulation() -> None:
    made = simulation()
    made.load(read())

    [found] = made.cache.columns.catalog.shelf("GPUSlice")

    assert made.cache.columns.catalog.shelf("GPUSlice").get("a", "team") == found


def test_it_is_an_event_under_its_own_name() -> None:
    [found] = read().of(GPU_SLICE)

    assert resource(Added(found)) == "GPUSlice"


class AnyRule(FilterRule):
    """A rule that may look up every kind, as users' rules may."""

    name = "Any"
    kinds = ALL_KINDS


def test_it_is_watched_for_a_rule_that_may_look_up_every_kind() -> None:
    assert "GPUSlice" in watched_kinds([profile(AnyRule())])
    assert "GPUSlice" not in watched_kinds([profile()])


SERVED = {
    "/apis": {"groups": [{"versions": [{"groupVersion": "gpu.example.com/v1"}]}]},
    "/api/v1": {"resources": []},
    "/apis/gpu.example.com/v1": {
        "resources": [{"name": "gpuslices", "kind": "GPUSlice", "verbs": ["list", "watch"]}]
    },
    PATH: {
        "metadata": {"resourceVersion": "7"},
        "items": [
            {
                "metadata": {"name": "a", "namespace": "team", "uid": "u", "resourceVersion": "6"},
                "spec": {"memory": "4Gi", "nodeName": "n1", "mode": "Shared"},
            }
        ],
    },
}


async def reply(_: str, target: str, __: bytes, writer: asyncio.StreamWriter) -> None:
    path, _, query = target.partition("?")
    if "watch=" in query:
        await asyncio.Event().wait()
    writer.write(answer(json.dumps(SERVED[path]).encode()))


def test_it_is_discovered_and_watched() -> None:
    state = ClusterState({"default-scheduler": profile()}, OF_CONFIGURATIONS, lambda: 0.0)

    async def run() -> None:
        async with scripted(reply) as (client, _):
            assert (await discover(client)).path("GPUSlice", "team") == PATH.replace(
                "gpuslices", "namespaces/team/gpuslices"
            )
            informers = Informers(client, state)
            await informers.start({"GPUSlice"})
            assert informers.kinds == {"GPUSlice"}
            await informers.stop()

    asyncio.run(run())

    [found] = state.cache.columns.catalog.shelf("GPUSlice")
    assert found.spec.node_name == "n1"


def test_it_is_in_snapshots(tmp_path: Path) -> None:
    async def run() -> Listed:
        async with scripted(reply) as (client, _):
            return await list_objects(client.access, tmp_path)

    assert asyncio.run(run()).counts["GPUSlice"] == 1

    [line] = (tmp_path / "GPUSlice").read_bytes().splitlines()
    [found] = decode(line).of(GPU_SLICE)
    assert (found.api_version, found.kind) == ("gpu.example.com/v1", "GPUSlice")
    assert (found.spec.node_name, found.spec.mode) == ("n1", ""), "trimmed as declared"


def test_it_is_anonymized() -> None:
    names, items = Pseudonyms(), [("Node", node("n1")), ("GPUSlice", read().of(GPU_SLICE)[0])]
    lines = [trimmed(kind, "v1", msgspec.json.encode(item)) for kind, item in items]
    plain = [msgspec.json.decode(line) for line in lines if line is not None]
    for (kind, _), item in zip(items, plain, strict=True):
        anonymize(kind, item, names)
    names.assign()
    for (kind, _), item in zip(items, plain, strict=True):
        anonymize(kind, item, names)

    assert plain[1]["spec"]["nodeName"] == plain[0]["metadata"]["name"] != "n1"
    assert plain[1]["metadata"]["name"] != "a"
