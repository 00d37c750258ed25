"""Ten minutes of random faults between `podium run` and a real API server: nothing is lost."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable

import pytest

from control_plane.bulk import create_many, nodes, pods, revision
from control_plane.checker import assert_sound
from control_plane.harness import PODS, ControlPlane
from control_plane.proxy import Proxy
from scheduler.api_server.conftest import Podium
from waiting import until

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

SECONDS = 600.0
SEED = 14
#: Method and path of the requests that go wrong.
REQUESTS = {
    "bind": ("POST", r"/binding$"),
    "status": ("PATCH", r"/status$"),
    "event": ("*", r"/events"),
    "get": ("GET", r"/pods/[^/]+$"),
    "list": ("GET", r"\?limit="),
    "watch": ("GET", r"watch=1"),
}
CODES = (403, 404, 409, 410, 429, 500, 503)
#: Pods are removed before there are more than the nodes have room for.
MOST_PODS = 400


def one_fault(proxy: Proxy, rng: random.Random) -> str:
    """Let something go wrong from now on; its name."""
    name = rng.choice(tuple(REQUESTS))
    method, pattern = REQUESTS[name]
    times = rng.choice((1, 5, 20))

    def refuse() -> str:
        code = rng.choice(CODES)
        headers = {"Retry-After": "1"} if code in {429, 503} and rng.random() < 0.5 else {}
        proxy.answer(method, pattern, code, times=times, headers=headers)
        return f"{name} {code}"

    def answer_after_the_write() -> str:
        proxy.answer(method, pattern, rng.choice((409, 500)), times=times, carried_out=True)
        return f"{name} wrong answer"

    def lose() -> str:
        proxy.swallow(method, pattern, times=min(times, 5), carried_out=rng.random() < 0.5)
        return f"{name} no answer"

    def delay() -> str:
        proxy.delay(method, pattern, rng.choice((0.1, 1.0, 4.0)), times=times)
        return f"{name} slow"

    def cut() -> str:
        proxy.cut(rng.choice(("", "watch=")))
        return "connections cut"

    def hang_up() -> str:
        proxy.refuse()
        return "connections refused"

    acts: tuple[Callable[[], str], ...] = (
        *(refuse, refuse, refuse, answer_after_the_write, lose, delay, cut),
        hang_up,
    )
    return rng.choice(acts)()


def names(plane: ControlPlane) -> list[str]:
    return [each["metadata"]["name"] for each in plane.get(PODS)["items"]]


def waiting(plane: ControlPlane) -> list[str]:
    items = plane.get(f"{PODS}?fieldSelector=spec.nodeName%3D")["items"]
    return [each["metadata"]["name"] for each in items]


def test_ten_minutes_of_random_faults(
    plane: ControlPlane, podium: Podium, record_property: Callable[[str, object], None]
) -> None:
    rng = random.Random(SEED)  # noqa: S311
    since = revision(plane)
    create_many(plane, "/api/v1/nodes", nodes(60, cpu="1"))
    faults: Counter[str] = Counter()
    made = 0
    with Proxy(plane) as proxy, podium(url=proxy.url) as program:
        end = time.monotonic() + SECONDS
        restarts = [end - SECONDS / 3, end - 2 * SECONDS / 3]
        while time.monotonic() < end:
            if rng.random() < 0.3:
                proxy.heal()
            faults[one_fault(proxy, rng)] += 1
            count = rng.randint(1, 20)
            create_many(plane, PODS, pods(count, prefix=f"p{made}", cpu="120m"))
            made += count
            there = names(plane)
            for name in rng.sample(there, max(len(there) - MOST_PODS, rng.randint(0, 5), 0)):
                plane.delete_pod(name)
            if restarts and time.monotonic() > restarts[-1]:
                restarts.pop()
                plane.restart_api_server()
                faults["API server restarted"] += 1
            time.sleep(rng.uniform(0.2, 2.0))
            program.check()
        proxy.heal()
        until("all are placed", lambda: not waiting(plane), seconds=300, pause=0.5)
        program.check()

    told = assert_sound(plane, since)
    record_property("pods created", made)
    record_property("pods bound", len(told.bindings))
    for what, count in sorted(faults.items()):
        record_property(what, count)
    assert made > 100
