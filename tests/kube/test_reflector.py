"""How a reflector waits, and how it reads a stream."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any, cast

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from control_plane.harness import ADMIN, ControlPlane
from control_plane.proxy import Proxy
from kube.reflecting import CONFIG_MAPS, Known, connected, following
from kube.scripted import answer, scripted
from podium.kube import reflector
from podium.kube.api import KubeApi
from podium.kube.errors import ApiError
from podium.kube.list_text import page_decoder
from podium.kube.reflector import Reflector
from podium.objects.kinds.meta import Object
from podium.objects.kinds.node import Node, NodeReports
from podium.objects.kinds.pod import Pod
from waiting import eventually


async def refuse(_: str, __: str, ___: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(answer(b'{"message": "not now"}', "503 Service Unavailable"))


def pauses(seed: int, count: int) -> list[float]:
    """How long a reflector waits for a server that never helps."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == count:
            raise asyncio.CancelledError

    async def run() -> None:
        async with scripted(refuse) as (client, _):
            decoder, rng = msgspec.json.Decoder(Object), random.Random(seed)  # noqa: S311
            following = Reflector(client, "/x", decoder, Known(), rng=rng, sleep=sleep)
            with pytest.raises(asyncio.CancelledError):
                await following.run()

    asyncio.run(run())
    return waited


def test_pauses_grow_and_differ_between_replicas() -> None:
    one, other = pauses(1, 10), pauses(2, 10)
    for number, seconds in enumerate(one):
        steady = min(0.25 * 2**number, 10)
        assert 0.5 * steady <= seconds <= 1.5 * steady
    assert all(a != b for a, b in zip(one, other, strict=True))


@given(
    lines=st.lists(st.binary(max_size=20).map(lambda text: text.replace(b"\n", b"")), max_size=10),
    cuts=st.lists(st.integers(0, 200), max_size=20),
)
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], cuts: list[int]) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})

    found: list[bytes] = []
    put_together = reflector.Lines(found.append)
    for start, end in pairwise(places):
        put_together.feed(whole[start:end])
    assert found == [line for line in lines if line]


class _GeneralWay(Reflector[Any]):
    """A reflector that takes every line through the decoder of events."""

    def _take_usual(self, line: bytes) -> bool:
        return False


class _Noting(Known):
    """Notes every call in order."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, Any]] = []

    def put(self, item: Any) -> None:
        self.calls.append(("put", item))

    def drop(self, item: Any) -> None:
        self.calls.append(("drop", item))


_NAMES = st.sampled_from(("a", "ü", "\U0001f600", 'q"\\', "}}", ""))
_METADATA = st.fixed_dictionaries(
    {"name": _NAMES},
    optional={
        "namespace": _NAMES,
        "resourceVersion": st.sampled_from(("", "7", "8", 9)),
        "labels": st.dictionaries(_NAMES, _NAMES, max_size=2) | st.just(7) | st.none(),
        "annotations": st.none() | st.dictionaries(_NAMES, _NAMES, max_size=1),
    },
)
_OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": _METADATA,
        "kind": st.just("Pod"),
        "apiVersion": st.just("v1"),
        "spec": st.sampled_from(
            ({}, None, 5, {"nodeName": "n", "containers": [{"name": "c"}]}, {"containers": 1})
        ),
        "unknown": st.recursive(
            st.none() | st.integers() | _NAMES, lambda inner: st.lists(inner, max_size=2)
        ),
        "code": st.just(410),
        "message": _NAMES,
    },
)
_TYPES = st.sampled_from(
    ("ADDED", "ADDED", "MODIFIED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "OTHER", 5)
)


@st.composite
def _event_lines(draw: st.DrawFn) -> bytes:
    """A line of a watch: mostly as API servers write it, or in another form, or damaged."""

    def written(value: Any) -> bytes:
        return json.dumps(
            value,
            ensure_ascii=draw(st.booleans()),
            separators=draw(st.sampled_from(((",", ":"), (", ", ": ")))),
        ).encode()

    item = draw(_OBJECTS | st.just(3) | st.none()) if draw(st.booleans()) else draw(_OBJECTS)
    kind = written(draw(_TYPES))
    usual = b'{"type":%b,"object":%b}' % (kind, written(item))
    form = draw(st.sampled_from(("usual",) * 6 + ("turned", "more", "twice", "type twice")))
    line = {
        "usual": usual,
        "turned": b'{"object":%b,"type":%b}' % (written(item), kind),
        "more": usual[:-1] + b',"more":{}}',
        "twice": usual[:-1] + b',"object":%b}' % written(draw(_OBJECTS)),
        "type twice": usual[:-1] + b',"type":"DELETED","x":{}}',
    }[form]
    damage = draw(st.sampled_from(("none",) * 6 + ("space", "cut", "brace", "byte", "return")))
    at = draw(st.integers(0, len(line)))
    return {
        "none": line,
        "space": b" " + line + b" ",
        "cut": line[:at],
        "brace": line + b"}",
        "byte": line[:at] + b"\xff" + line[at:],
        "return": line + b"\r",
    }[damage]


@settings(max_examples=400)
@given(lines=st.lists(_event_lines(), min_size=1, max_size=4), kind=st.sampled_from((Object, Pod)))
@example(lines=[b'{"type":"ADDED","object":{"kind":"\xffPod"},"object":{}}'], kind=Object)
def test_an_event_in_one_pass_is_as_in_the_general_way(
    lines: list[bytes], kind: type[Object]
) -> None:
    def taken(reflecting: type[Reflector[Any]]) -> tuple[object, ...]:
        known = _Noting()
        client: Any = None
        one = reflecting(client, "/x", msgspec.json.Decoder(kind), known, warn=known.told.append)
        one._pause, one.version = 5.0, "1"
        raised: list[tuple[object, ...]] = []
        for line in lines:
            try:
                one._take(line)
            except Exception as error:  # noqa: BLE001  what is raised is compared
                raised.append((type(error), str(error), getattr(error, "status", None)))
        return known.calls, known.told, raised, one.version, one._pause

    assert taken(Reflector) == taken(_GeneralWay)


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED"])
def test_the_usual_form_of_an_event_is_taken_in_one_pass(kind: str) -> None:
    """As an API server writes it, with an object that holds what looks like the end."""
    known = _Noting()
    client: Any = None
    reflector = Reflector(client, "/x", msgspec.json.Decoder(Object), known)
    text = b'{"type":"%b","object":{"metadata":{"name":"a","labels":{"x":"}}"}}}}'
    assert reflector._take_usual(text % kind.encode())
    assert [(call, item.name) for call, item in known.calls] == [("put", "a")]


def test_what_decodes_reports_is_told_of_deletions_and_lists() -> None:
    """It would keep what it knows of an object for ever otherwise."""
    reports = NodeReports()
    known = _Noting()
    client: Any = None
    node = msgspec.json.Decoder(Node)
    reflector = Reflector(client, "/x", node, known, reports=reports)
    text = b'{"metadata":{"name":"n","resourceVersion":"%d"},"status":{"images":[{"names":["a"]}]}}'
    for number, kind in enumerate((b"ADDED", b"MODIFIED")):
        reflector._take(b'{"type":"%b","object":%b}' % (kind, text % number))
    assert [*reports._known] == ["n"]
    assert known.calls == [("put", node.decode(text % number)) for number in range(2)]

    reflector._take(b'{"type":"DELETED","object":%b}' % (text % 2))
    assert not reports._known

    reflector._take(b'{"type":"ADDED","object":%b}' % (text % 3))

    class Empty:
        async def decoded_list(self, *_: Any) -> tuple[list[Any], str]:
            return [], "4"

    reflector._client = cast("Any", Empty())
    asyncio.run(reflector._list())
    assert not reports._known


async def test_a_deleted_object_that_cannot_be_decoded_is_found_by_a_new_list() -> None:
    lists = [
        b'{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"}}]}',
        b'{"metadata":{"resourceVersion":"3"},"items":[]}',
    ]
    deleted = (
        b'{"type":"DELETED","object":{"metadata":{"name":"a","resourceVersion":"2","labels":7}}}\n'
    )

    async def reply(_: str, target: str, __: bytes, writer: asyncio.StreamWriter) -> None:
        if "watch=1" not in target:
            writer.write(answer(lists.pop(0)))
        elif lists:
            writer.write(answer(deleted))
        else:
            await asyncio.sleep(60)

    async with scripted(reply) as (client, _), following(client, "/x", Object) as (known, _):
        await eventually(lambda: known.replaced == 2, seconds=5)
        assert known.objects == {}


async def test_a_watch_without_an_answer_is_opened_again(control_plane: ControlPlane) -> None:
    with Proxy(control_plane) as proxy:
        silent = proxy.swallow("GET", "watch=", times=1)
        options: Any = {"watch_seconds": 1, "grace_seconds": 0.1}
        async with (
            connected(control_plane.kubeconfig(ADMIN, url=proxy.url)) as client,
            following(client, CONFIG_MAPS, Object, **options) as (known, _),
        ):
            await eventually(lambda: silent.hits)
            await client.create(CONFIG_MAPS, {"metadata": {"name": "meanwhile"}})
            await eventually(lambda: "meanwhile" in known.objects)
            assert known.replaced == 1
            assert any("no answer in time" in line for line in known.told)
            await client.request("DELETE", CONFIG_MAPS)


class InPieces(KubeApi):
    """Answers the first list in pieces, and notes further requests, which it refuses."""

    def __init__(self, text: bytes, cuts: list[int]) -> None:
        places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
        self.pieces = [text[start:end] for start, end in pairwise(places)]
        self.asked: list[Mapping[str, str]] = []

    async def request(
        self, method: str, path: str, *, params: Mapping[str, str] | None = None, **_: Any
    ) -> bytes:
        self.asked.append(params or {})
        raise ApiError("no more", status=500)

    @asynccontextmanager
    async def reading(
        self, path: str, params: Mapping[str, str], **_: Any
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        self.asked.append(params)

        async def come() -> AsyncIterator[bytes]:
            for piece in self.pieces:
                yield piece

        yield come()

    def stream(self, path: str, params: Mapping[str, str], *, idle_seconds: float) -> Any:
        raise AssertionError("no watch is asked for")


#: Items with parts that look like the end of one item and the beginning of the next.
_NESTED = st.builds(
    lambda item, count: {
        "metadata": {"name": "x"},
        **item,
        "status": {"conditions": [{"metadata": {}, "type": "T"}] * count},
    },
    _OBJECTS,
    st.integers(0, 3),
)


@settings(max_examples=200)
@given(
    items=st.lists(_OBJECTS | _NESTED, max_size=6),
    compact=st.booleans(),
    turned=st.booleans(),
    cuts=st.lists(st.integers(0, 5000), max_size=12),
    span=st.integers(1, 400),
)
def test_a_list_that_is_decoded_as_it_comes_is_that_of_the_whole_text(
    items: list[Any], compact: bool, turned: bool, cuts: list[int], span: int
) -> None:
    parts = {"kind": "List", "metadata": {"resourceVersion": "7"}, "items": items}
    if turned:
        parts = dict(reversed(parts.items()))
    separators = (",", ":") if compact else (", ", ": ")
    text = json.dumps(parts, separators=separators).encode() + b"\n"
    general = _GeneralWay(InPieces(b"", []), "/x", msgspec.json.Decoder(Pod), _Noting())
    api = InPieces(text, cuts)
    one = Reflector(api, "/x", msgspec.json.Decoder(Pod), _Noting(), span_bytes=span)
    try:
        whole = [*filter(None, map(general._decoded, page_decoder.decode(text).items or ()))]
    except msgspec.ValidationError:
        with pytest.raises((msgspec.ValidationError, ApiError)):
            asyncio.run(one._first_page())
        return
    try:
        found, about = asyncio.run(one._first_page())
    except ApiError:
        assert turned, "a list as API servers write it is read"
        return

    assert (found, about.resource_version) == (whole, "7")
    assert api.asked == [{"limit": "500", "resourceVersion": "0"}]


async def test_the_first_list_is_put_into_the_order_of_etcd() -> None:
    """What an API server has in memory comes in any order."""
    names = (("b", "x"), ("a", "y"), ("a-1", "z"), ("a", "x"))
    parts = [{"metadata": {"namespace": space, "name": name}} for space, name in names]
    text = msgspec.json.encode({"metadata": {"resourceVersion": "7"}, "items": parts})
    known = Known()

    one = Reflector(InPieces(text, []), "/x", msgspec.json.Decoder(Pod), known)
    await one._list()
    assert list(known.objects) == ["z", "x", "y"], "a-1/z, a/x, a/y, b/x, of which the last is x"


def test_after_a_first_list_that_cannot_be_read_the_list_comes_in_pages() -> None:
    api, told = InPieces(b'{"items":[{"metadata":{}}]', []), list[str]()

    async def sleep(_: float) -> None:
        if len(api.asked) == 2:
            raise asyncio.CancelledError

    one = Reflector(
        api, "/x", msgspec.json.Decoder(Pod), _Noting(), warn=told.append, sleep=sleep, span_bytes=4
    )
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(one.run())

    assert api.asked == [{"limit": "500", "resourceVersion": "0"}, {"limit": "500"}]


class Expiring(KubeApi):
    """Refuses the first watches at once; later ones live for a minute, then their time is over."""

    def __init__(self, refused: int) -> None:
        self.refused, self.now = refused, 0.0

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        return b'{"metadata": {"resourceVersion": "1"}, "items": []}'

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], *, idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        if self.refused:
            self.refused -= 1
            raise ApiError("not now", status=500)

        async def expire() -> AsyncIterator[bytes]:
            self.now += 60.0
            yield b'{"type": "ERROR", "object": {"code": 410}}\n'

        yield expire()


def test_a_watch_that_lived_long_ends_the_growth_of_pauses() -> None:
    api = Expiring(refused=6)
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 8:
            raise asyncio.CancelledError

    reading = Reflector(
        api,
        "/x",
        msgspec.json.Decoder(Object),
        Known(),
        rng=random.Random(1),  # noqa: S311
        sleep=sleep,
        clock=lambda: api.now,
    )
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(reading.run())

    assert waited[5] >= 4.0
    assert max(waited[6:]) < 0.5


def test_a_failure_is_told_once_until_the_watch_works_again() -> None:
    """Six watches are refused, one lives for a minute, and three more are refused."""
    api, pauses = Expiring(refused=6), 0
    told: list[str] = []

    async def sleep(_: float) -> None:
        nonlocal pauses
        pauses += 1
        if pauses == 7:
            api.refused = 3
        elif pauses == 11:
            raise asyncio.CancelledError

    reading = Reflector(
        api,
        "/x",
        msgspec.json.Decoder(Object),
        Known(),
        warn=told.append,
        sleep=sleep,
        clock=lambda: api.now,
    )
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(reading.run())

    assert told == ["/x: not now; trying again"] * 2


class Lists(KubeApi):
    """Lists one object, whose resourceVersion never changes, and watches that last."""

    def __init__(self) -> None:
        self.lists = 0
        self.events: asyncio.Queue[bytes] = asyncio.Queue()

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        self.lists += 1
        item = b'{"metadata": {"name": "a", "resourceVersion": "1"}}'
        return b'{"metadata": {"resourceVersion": "1"}, "items": [%s]}' % item

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], *, idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        async def pieces() -> AsyncIterator[bytes]:
            while True:
                yield await self.events.get()

        yield pieces()


async def test_a_new_list_can_be_asked_for() -> None:
    """It begins at the next event, which is not lost: the list has it."""
    api, known = Lists(), Known()
    told: list[str] = []
    bookmark = b'{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "2"}}}\n'

    async def sleep(_: float) -> None:
        """Pass the pauses over."""

    reading = Reflector(
        api, "/x", msgspec.json.Decoder(Object), known, warn=told.append, sleep=sleep
    )
    task = asyncio.create_task(reading.run())
    await eventually(lambda: known.replaced == 1)
    await api.events.put(bookmark)
    await eventually(lambda: reading.version == "2")
    assert api.lists == 1

    reading.list_again()
    await api.events.put(bookmark)
    await eventually(lambda: known.replaced == 2)

    assert (api.lists, reading.version) == (2, "1")
    await api.events.put(bookmark)
    await eventually(lambda: reading.version == "2")
    assert api.lists == 2, "once is enough"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert told == [], "the handler that failed has told it"
