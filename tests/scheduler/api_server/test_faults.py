"""Whatever goes wrong: nothing is lost, nothing is bound twice, no node gets too full."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial

import pytest

from control_plane.bulk import compact, create_many, nodes, pods, revision
from control_plane.checker import assert_sound
from control_plane.harness import PODS, ControlPlane
from control_plane.proxy import Proxy
from scheduler.api_server.conftest import Podium
from waiting import until

pytestmark = pytest.mark.timeout(1200)  # the programs may have to be compiled first

BINDING = r"/binding$"


def fill(plane: ControlPlane, pods_wanted: int = 120, nodes_wanted: int = 15) -> int:
    """Nodes with room for just about all pods; where the history was before them."""
    since = revision(plane)
    create_many(plane, "/api/v1/nodes", nodes(nodes_wanted, cpu="1"))
    create_many(plane, PODS, pods(pods_wanted, cpu="120m"))
    return since


def waiting(plane: ControlPlane) -> list[str]:
    """Pods of ours without a node."""
    items = plane.get(f"{PODS}?fieldSelector=spec.nodeName%3D")["items"]
    return [each["metadata"]["name"] for each in items]


def all_placed(plane: ControlPlane, seconds: float = 90) -> None:
    until("all are placed", lambda: not waiting(plane), seconds=seconds, pause=0.25)


Trouble = Callable[[Proxy], object]
TROUBLES: dict[str, Trouble] = {
    "the API server answers 409": lambda p: p.answer("POST", BINDING, 409, times=20),
    "409 although it was carried out": lambda p: p.answer(
        "POST", BINDING, 409, times=20, carried_out=True
    ),
    "the API server answers 500": lambda p: p.answer("POST", BINDING, 500, times=20),
    "500 although it was carried out": lambda p: p.answer(
        "POST", BINDING, 500, times=20, carried_out=True
    ),
    "too many requests": lambda p: p.answer(
        "POST", BINDING, 429, times=20, headers={"Retry-After": "1"}
    ),
    "no answer": lambda p: p.swallow("POST", BINDING, times=5),
    "no answer although it was carried out": lambda p: p.swallow(
        "POST", BINDING, times=5, carried_out=True
    ),
    "statuses cannot be written": lambda p: p.answer("PATCH", r"/status$", 500, times=30),
    "events cannot be written": lambda p: p.answer("POST", r"/events$", 500, times=30),
}


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES.keys())
def test_a_binding_that_goes_wrong(plane: ControlPlane, podium: Podium, trouble: Trouble) -> None:
    since = fill(plane)

    with Proxy(plane) as proxy:
        trouble(proxy)
        with podium(url=proxy.url):
            all_placed(plane)

    assert_sound(plane, since)


def test_connections_are_cut_again_and_again(plane: ControlPlane, podium: Podium) -> None:
    since = fill(plane, 60)

    with Proxy(plane) as proxy, podium(url=proxy.url):
        for part in range(4):
            create_many(plane, PODS, pods(15, prefix=f"more{part}", cpu="120m"))
            until("the first is placed", partial(plane.node_of, f"more{part}-00000"))
            proxy.cut("watch=" if part % 2 else "")
        all_placed(plane)

    assert_sound(plane, since)


def test_the_api_server_is_killed_in_the_middle(plane: ControlPlane, podium: Podium) -> None:
    since = fill(plane, 110)
    with Proxy(plane) as proxy:
        proxy.delay("POST", BINDING, 0.2)
        with podium(url=proxy.url):
            until("some are placed", lambda: len(waiting(plane)) < 100)
            plane.restart_api_server()
            all_placed(plane)

    assert_sound(plane, since)


def test_the_past_is_compacted_away(plane: ControlPlane, podium: Podium) -> None:
    since = fill(plane, 30)
    with Proxy(plane) as proxy, podium(url=proxy.url):
        all_placed(plane)
        before = assert_sound(plane, since)
        proxy.refuse()
        create_many(plane, PODS, pods(30, prefix="meanwhile", cpu="120m"))
        plane.delete_pod("pod-00000")
        compact(plane)
        # Its watch cache would remember; a new one does not.
        plane.restart_api_server()
        since = revision(plane)
        proxy.heal()
        all_placed(plane)
        listed = [target for _, target in proxy.requests if "limit=500" in target]

    assert before.node_of("pod-00000")
    assert len([target for target in listed if "/api/v1/pods" in target]) > 1
    items = plane.get(PODS)["items"]
    assert len(items) == 59
    assert_sound(plane, since)


def test_the_leader_is_killed_and_another_takes_over(plane: ControlPlane, podium: Podium) -> None:
    since = fill(plane, 60)
    lease = ["--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s"]
    lease += ["--leader-elect-retry-period=500ms", "--leader-elect-resource-name=two-replicas"]
    with Proxy(plane) as slow:
        slow.delay("POST", BINDING, 0.3)
        with podium(*lease, url=slow.url, lease=True, name="first") as first:
            until("it begins", lambda: len(waiting(plane)) < 60)
            with podium(*lease, lease=True, name="second"):
                create_many(plane, PODS, pods(40, prefix="later", cpu="120m"))
                first.kill()
                all_placed(plane)
                holder = plane.get(LEASES + "/two-replicas")["spec"]

    assert holder["leaseTransitions"] == 1
    assert_sound(plane, since)


LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


def holder_of(plane: ControlPlane, name: str) -> str:
    listed = plane.get(LEASES)["items"]
    named = [each for each in listed if each["metadata"]["name"] == name]
    return str(named[0]["spec"]["holderIdentity"]) if named else ""


def test_a_signal_ends_it_when_what_is_under_way_is_done(
    plane: ControlPlane, podium: Podium
) -> None:
    since = fill(plane, 100)
    with Proxy(plane) as proxy:
        proxy.delay("POST", BINDING, 1.0)
        flags = ["--leader-elect-resource-name=drained"]
        with podium(*flags, url=proxy.url, lease=True) as program:
            until("bindings are under way", lambda: asked(proxy) >= 100)
            program.signal(signal.SIGTERM)
            code = program.wait(30)

    assert code == 0
    assert not waiting(plane)
    assert holder_of(plane, "drained") == ""
    assert_sound(plane, since)


def asked(proxy: Proxy) -> int:
    return sum(target.endswith("/binding") for _, target in proxy.requests)


def test_a_node_goes_between_decision_and_binding(plane: ControlPlane, podium: Podium) -> None:
    since = revision(plane)
    plane.add_node("gone", {}, cpu="4")
    with Proxy(plane) as proxy:
        # Each time that the binding is sent, until it is given up.
        fault = proxy.answer("POST", BINDING, 500, times=4)
        proxy.delay("GET", "/pods/a$", 1.0)
        with podium(url=proxy.url):
            plane.add_pod("a", "podium")
            until("it was decided", lambda: fault.hits)
            plane.call("DELETE", "/api/v1/nodes/gone")
            until("it waits again", lambda: plane.events_of("a"))
            plane.add_node("other", {}, cpu="4")
            until("it is placed", lambda: plane.node_of("a"))

    assert plane.node_of("a") == "other"
    assert_sound(plane, since)


def test_a_pod_goes_while_it_is_assumed(plane: ControlPlane, podium: Podium) -> None:
    since = revision(plane)
    plane.add_node("n", {}, cpu="1")
    with Proxy(plane) as proxy:
        proxy.delay("POST", "/pods/first/binding$", 2.0)
        with podium(url=proxy.url):
            plane.add_pod("first", "podium", cpu="800m")
            until("it is on its way", lambda: asked(proxy))
            plane.add_pod("second", "podium", cpu="800m")
            plane.delete_pod("first")
            until("its place is taken", lambda: plane.node_of("second"))
            # The same name again, with another uid.
            plane.add_pod("first", "podium", cpu="100m")
            until("it is placed", lambda: plane.node_of("first"))

    assert_sound(plane, since)
