"""Long lists in the binary form are those in JSON."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

from control_plane.harness import ADMIN, ControlPlane
from kube.binary_form import binary_list, binary_status, envelope, field, number
from kube.reflecting import connected, following
from kube.scripted import answer, scripted
from podium.kube.api import BINARY_OR_JSON, KubeApi
from podium.kube.errors import refusal
from podium.kube.protobuf import columns
from podium.kube.protobuf.columns import MODELS, model_of
from podium.kube.protobuf.lists import BinaryList
from podium.lab.schema import api_types
from podium.objects.kinds.meta import Object
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.objects.protobuf.field_numbers import field_numbers
from podium.objects.protobuf.wire import MalformedError
from podium.scheduler.state.begun_lists import begin_lists
from waiting import eventually

LONG_KINDS = [Pod, Node]


# --- any object -----------------------------------------------------------------------------------


class Place(NamedTuple):
    """Where a field of a model is, and whether it is a pointer."""

    numbers: tuple[int, ...]
    pointer: bool


def places_in(model: str) -> dict[str, Place]:
    """The places of all fields of a model, those of its parts too."""
    found: dict[str, Place] = {}
    for number_, known in field_numbers()[model].items():
        if known.part:
            found |= {
                name: Place((number_, *place.numbers), place.pointer)
                for name, place in places_in(known.part).items()
            }
        else:
            found[known.name] = Place((number_,), known.pointer)
    return found


TEXTS = ["", "a", "\x00", "ü", "0\x00ß", "n" * 200, "node", "true"]
NUMBERS = [0, 1, -1, 127, 128, 300, 2**31 - 1, -(2**31)]
QUANTITIES = ["1", "250m", "1Gi", "0", "-5", "1e3"]


def some_value(rng: Random, of: Any, model_type: api_types.FieldType) -> Any:
    """A value of a type, as JSON has it."""
    one = api_types.FieldType(model_type.of)
    if isinstance(of, inspect.UnionType):
        made = some_value(rng, of.types[0], model_type)
    elif isinstance(of, inspect.ListType):
        made = [some_value(rng, of.item_type, one) for _ in range(rng.randint(1, 3))]
    elif isinstance(of, inspect.DictType):
        keys = rng.sample(TEXTS, rng.randint(1, 3))
        made = {key: some_value(rng, of.value_type, one) for key in keys}
    elif isinstance(of, inspect.StructType):
        made = some_object(rng, of)
    elif model_type.of == api_types.TIME:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=rng.randint(-(10**9), 10**10))
        made = f"{moment:%Y-%m-%dT%H:%M:%SZ}"
    elif model_type.of == api_types.QUANTITY:
        made = rng.choice(QUANTITIES)
    elif model_type.of == api_types.BOOLEAN:
        made = rng.random() < 0.5
    elif model_type.of in {api_types.INTEGER, api_types.LONG}:
        made = rng.choice(NUMBERS)
    else:
        made = rng.choice(TEXTS)
    return made


def some_object(rng: Random, info: Any) -> dict[str, Any]:
    """An object of a value class, without the zeros that API servers leave out of JSON."""
    model = model_of(info.cls)
    types, places = api_types.model(model).fields, places_in(model)
    made: dict[str, Any] = {}
    for each in info.fields:
        name = each.encode_name
        if name not in places:
            continue
        # A message that is no pointer is always there.
        is_single_model = types[name].is_model and types[name].container == api_types.SINGLE
        is_always = is_single_model and not places[name].pointer
        if is_always or rng.random() < 0.3:
            value = some_value(rng, each.type, types[name])
            if places[name].pointer or value not in ("", 0):
                made[name] = value
    return made


def some_objects(rng: Random, kind: type[Any]) -> list[dict[str, Any]]:
    """Objects of a kind, of which some are equal in many parts."""
    info = inspect.type_info(kind)
    made = [some_object(rng, info) for _ in range(rng.randint(0, 4))]
    alike = [{**each, "metadata": {"name": rng.choice(TEXTS[1:])}} for each in made[:2]]
    return made + alike


def decoded(kind: type[Any], data: bytes, cuts: list[int] | None = None, span: int = 1) -> Any:
    """The list, which comes in pieces."""
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts or [])})
    coming = BinaryList(kind, span)
    for start, end in pairwise(places):
        coming.feed(data[start:end])
    return coming.result()


@pytest.mark.parametrize("kind", LONG_KINDS)
@pytest.mark.parametrize("seed", range(40))
def test_a_binary_list_is_the_list_in_json(kind: type[Any], seed: int) -> None:
    rng = Random(seed)  # noqa: S311  nothing secret
    objects = some_objects(rng, kind)
    cuts = [rng.randrange(10**6) for _ in range(rng.randint(0, 8))]
    data = binary_list(kind.__name__, objects, "7", "next")

    found, about = decoded(kind, data, cuts, span=rng.randint(1, 2000))

    assert found == msgspec.convert(objects, list[kind])  # type: ignore[valid-type]
    assert (about.resource_version, about.continue_) == ("7", "next")


@pytest.mark.parametrize("seed", range(20))
def test_an_object_is_the_same_whatever_was_read_before(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """What is remembered of parts that were read changes nothing, nor does forgetting it."""
    rng = Random(seed)  # noqa: S311  nothing secret
    monkeypatch.setattr(columns, "_MOST_SHARED_BYTES", rng.choice([0, 100, 1000]))
    monkeypatch.setattr(columns, "_ENOUGH_TO_JUDGE", rng.choice([0, 1, 1000]))
    objects = some_objects(rng, Pod)

    found, _ = decoded(Pod, binary_list("Pod", objects), [*range(0, 10**5, 500)], 300)

    assert found == [decoded(Pod, binary_list("Pod", [each]))[0][0] for each in objects]


def test_equal_parts_are_read_once() -> None:
    pods = [
        {
            "metadata": {"name": name, "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "web", "resources": {}}]},
            "status": {},
        }
        for name in ("a", "b")
    ]

    (first, second), _ = decoded(Pod, binary_list("Pod", pods))

    assert first.metadata.labels is second.metadata.labels
    assert first.spec.containers is second.spec.containers
    assert (first.name, second.name) == ("a", "b")


@settings(max_examples=300)
@given(
    at=st.integers(0, 10**6),
    byte=st.integers(0, 255),
    cut=st.integers(0, 10**6) | st.none(),
)
def test_damaged_lists_are_refused_or_read(at: int, byte: int, cut: int | None) -> None:
    """No bytes make the reader fail in a way of its own."""
    status = {"startTime": "2026-01-31T12:00:00Z", "phase": "Running"}
    whole = bytearray(binary_list("Pod", [FULL_POD, {**FULL_POD, "status": status}]))
    whole[at % len(whole)] = byte
    with suppress(MalformedError, UnicodeDecodeError):
        decoded(Pod, bytes(whole if cut is None else whole[: cut % len(whole)]))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not the binary form"),
        (b"k8s\x00", "cut off"),
        (binary_list("Node", []), "a PodList was asked for, and NodeList came"),
        (binary_list("Pod", [{"metadata": {"name": "a"}}])[:-20], "cut off"),
        (envelope("PodList", number(9, 1)), "not one of a list"),
        (envelope("PodList", field(2, field(1, b"\x0a\x7fshort"))), "cut off"),
        (envelope("PodList", field(2, b"\x0b\x00")), "wire type"),
        (envelope("PodList", field(2, b"\xed\x07abc")), "cut off"),
        (envelope("PodList", field(2, b"\x0a" + b"\xff" * 11)), "cut off"),
    ],
)
def test_what_is_no_list_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(MalformedError, match=said):
        decoded(Pod, data)


@pytest.mark.parametrize("byte", [b"8", b"\xff"])
def test_numbers_of_a_fixed_size_are_skipped(byte: bytes) -> None:
    fixed = b"\xe9\x07" + byte * 8 + b"\xed\x07" + byte * 4 + number(1000, 3)
    (pod,), _ = decoded(
        Pod, envelope("PodList", field(2, fixed + field(1, field(1, b"a") + fixed)))
    )

    assert pod == Pod(metadata=msgspec.structs.replace(Pod().metadata, name="a"))


def test_fields_of_a_list_that_are_not_known_are_skipped() -> None:
    (pod,), about = decoded(
        Pod, envelope("PodList", field(1, field(2, b"7")) + field(9, b"x") + field(2, b""))
    )

    assert (pod, about.resource_version) == (Pod(), "7")


def test_value_classes_are_those_of_their_models() -> None:
    """The number of a field is looked up in the model that the API has for the class."""
    seen: set[str] = set()

    def check(info: Any, model: str) -> None:
        if info.cls.__name__ in seen:
            return
        seen.add(info.cls.__name__)
        looked_up, right = places_in(model_of(info.cls)), places_in(model)
        types = api_types.model(model).fields
        for each in info.fields:
            if issubclass(info.cls, Object) and each.name in {"api_version", "kind"}:
                continue
            name = each.encode_name
            assert looked_up[name] == right[name], f"{info.cls.__name__} is not {model}"
            assert _is_time(each.type) == (types[name].of == api_types.TIME), name
            for nested in _structs(each.type):
                check(nested, types[name].of)

    for kind in LONG_KINDS:
        check(inspect.type_info(kind), f"V1{kind.__name__}")
    assert MODELS.keys() <= seen


def _structs(of: Any) -> list[Any]:
    if isinstance(of, inspect.UnionType):
        return [found for each in of.types for found in _structs(each)]
    if isinstance(of, inspect.ListType):
        return _structs(of.item_type)
    return [of] if isinstance(of, inspect.StructType) else []


def _is_time(of: Any) -> bool:
    if isinstance(of, inspect.UnionType):
        return any(map(_is_time, of.types))
    return isinstance(of, inspect.Metadata)


# --- an API server --------------------------------------------------------------------------------

TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
FULL_POD: dict[str, Any] = {
    "metadata": {
        "name": "full",
        "labels": {"app": "wéb", "tier": ""},
        "annotations": {"note": "größer"},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w", "uid": "1"}
            | {"controller": True}
        ],
    },
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "web:1",
                "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "1"}},
                "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1"}],
            },
            {"name": "other", "image": "other"},
        ],
        "initContainers": [{"name": "first", "image": "first"}],
        "volumes": [
            {"name": "claim", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "empty", "emptyDir": {}},
            {"name": "disk", "gcePersistentDisk": {"pdName": "d", "readOnly": True}},
            {"name": "rbd", "rbd": {"monitors": ["a", "b"], "image": "i"}},
        ],
        "nodeSelector": {"disk": "ssd"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "zone", "operator": "In", "values": ["a", "b"]}
                            ],
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": ["n"]}
                            ],
                        }
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 5,
                        "preference": {
                            "matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]
                        },
                    }
                ],
            },
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 7, "podAffinityTerm": TERM}
                ]
            },
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]},
        },
        "tolerations": [
            {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
            {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
        ],
        "topologySpreadConstraints": [
            {
                "maxSkew": 2,
                "topologyKey": "zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {
                    "matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]
                },
            }
        ],
        "schedulerName": "nobody",
        "hostNetwork": False,
        "terminationGracePeriodSeconds": 0,
    },
}


FULL_NODE: dict[str, Any] = {
    "metadata": {"name": "binary-lists", "labels": {"zone": "a"}},
    "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
    "status": {
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "allocatable": {"cpu": "3900m", "memory": "7Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "images": [{"names": ["a:1", "b:1"], "sizeBytes": 5_000_000_000}],
    },
}


async def test_lists_of_an_api_server_are_the_same_in_both_forms(
    control_plane: ControlPlane,
) -> None:
    nodes, pods = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
    # A pod on a node is not gone at once when it is deleted.
    metadata = {**FULL_POD["metadata"], "labels": {"app": "web", "tier": ""}}
    full = {"metadata": metadata, "spec": {**FULL_POD["spec"], "nodeName": "binary-lists"}}
    plain = {"metadata": {"name": "plain"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    status = {"conditions": [{"type": "PodScheduled", "status": "True", "reason": "Why"}]}

    async with connected(control_plane.kubeconfig(ADMIN)) as client:
        await client.create(nodes, FULL_NODE)
        await client.create(pods, full)
        await client.create(pods, plain)
        await client.patch_pod_status("default", "full", {"status": status})
        await client.delete(f"{pods}/full", {"gracePeriodSeconds": 100})

        assert await in_both_forms(client, Node, nodes) >= {"binary-lists"}
        assert await in_both_forms(client, Pod, pods) >= {"full", "plain"}

        for path in (f"{pods}/full", f"{pods}/plain", f"{nodes}/binary-lists"):
            await client.delete(path, {"gracePeriodSeconds": 0})


async def in_both_forms(client: KubeApi, kind: type[Any], path: str) -> set[str]:
    """The names of the objects of a list, which is the same in the binary form and in JSON."""
    async with client.reading(path, {}, seconds=20, accept=BINARY_OR_JSON) as pieces:
        data = b"".join([piece async for piece in pieces])
    assert data.startswith(b"k8s\x00"), "the API server did not answer in the binary form"
    found, about = decoded(kind, data)
    text = await client.get(path)
    plain = [msgspec.convert(each, kind) for each in text["items"]]
    assert sorted(found, key=lambda each: each.key) == sorted(plain, key=lambda each: each.key)
    assert int(about.resource_version) <= int(text["metadata"]["resourceVersion"])
    return {each.name for each in found}


# --- reflectors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 7, 100_000])
async def test_a_reflector_takes_the_binary_form(size: int) -> None:
    data = binary_list("Pod", [{"metadata": {"name": name}} for name in "ba"], "5")

    async def reply(_: str, target: str, __: bytes, writer: asyncio.StreamWriter) -> None:
        if "watch=1" in target:
            await asyncio.sleep(60)
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(data)}\r\n\r\n".encode())
        for start in range(0, len(data), size):
            writer.write(data[start : start + size])
            await writer.drain()
            await asyncio.sleep(0)

    async with (
        scripted(reply) as (client, _),
        following(client, may_be_binary=True) as (known, reflector),
    ):
        await eventually(reflector.synced.is_set)
        assert ([*known.objects], reflector.version) == (["a", "b"], "5")


async def test_after_a_binary_list_that_cannot_be_read_the_list_comes_in_pages_of_json() -> None:
    text = b'{"metadata":{"resourceVersion":"6"},"items":[{"metadata":{"name":"a"}}]}'

    async def reply(_: str, target: str, __: bytes, writer: asyncio.StreamWriter) -> None:
        if "watch=1" in target:
            await asyncio.sleep(60)
        is_first = "resourceVersion=0" in target
        writer.write(answer(binary_list("Pod", [{}])[:-9] if is_first else text))
        await writer.drain()

    async with (
        scripted(reply) as (client, script),
        following(client, "/x", may_be_binary=True) as (known, reflector),
    ):
        await eventually(reflector.synced.is_set)
        assert [*known.objects] == ["a"]
        assert known.told == ["/x: the list is cut off; listing again"]
        assert ["protobuf" in head for head in script.heads[:2]] == [True, False]


def test_a_refusal_in_the_binary_form_is_told_in_its_words() -> None:
    body = binary_status("pods is forbidden", "Forbidden", 403, retry_after=9)

    error = refusal(403, {}, body, "GET /x")

    assert (error.message, error.reason, error.status) == ("pods is forbidden", "Forbidden", 403)
    assert error.retry_after == 9
    assert refusal(500, {}, body[:30], "GET /x").message == "GET /x: answered with code 500"


async def test_an_api_server_refuses_a_binary_list_in_words(control_plane: ControlPlane) -> None:
    async with connected(control_plane.kubeconfig(ADMIN)) as client:
        params = {"fieldSelector": "spec.nothing=1"}
        reading = client.reading("/api/v1/pods", params, seconds=20, accept=BINARY_OR_JSON)
        with pytest.raises(Exception, match=r"spec\.nothing") as refused:
            async with reading:
                pytest.fail("it was not refused")
        assert "k8s" not in str(refused.value)


async def test_the_long_lists_are_asked_for_in_the_binary_form() -> None:
    async def reply(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"{}"))
        await writer.drain()

    async with scripted(reply) as (client, script):
        await begin_lists(client)
        await eventually(lambda: len(script.heads) == 2)
        for head in script.heads:
            assert f"\r\nAccept: {BINARY_OR_JSON}\r\n" in head
