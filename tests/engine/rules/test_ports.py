"""v1.13 PodFitsHostPorts: ports, protocols and addresses."""

from __future__ import annotations

import pytest

from builders import (
    PortLike,
    container,
    judged,
    node,
    pod,
    view,
)
from podium.engine.rules.ports import PodFitsHostPorts

PORTS = ("node(s) didn't have free ports for the requested pod ports",)
ANY = "0.0.0.0"  # noqa: S104  nothing is bound
ONE, TWO = "10.0.0.1", "10.0.0.2"


@pytest.mark.parametrize(
    ("used", "wanted", "fits"),
    [
        pytest.param([], [80], True, id="a free port"),
        pytest.param([80], [], True, id="no port wanted"),
        pytest.param([80], [80], False, id="the same port"),
        pytest.param([80], [81], True, id="another port"),
        pytest.param([80], [81, 80], False, id="one of several"),
        pytest.param([80], [("", "UDP", 80)], True, id="another protocol"),
        pytest.param([80], [("", "TCP", 80)], False, id="TCP is the default"),
        pytest.param([(ONE, "", 80)], [(TWO, "", 80)], True, id="another address"),
        pytest.param([(ONE, "", 80)], [(ONE, "", 80)], False, id="the same address"),
        pytest.param([(ONE, "", 80)], [80], False, id="all addresses are wanted"),
        pytest.param([80], [(ONE, "", 80)], False, id="all addresses are used"),
        pytest.param([(ANY, "TCP", 80)], [(TWO, "TCP", 80)], False, id="the wildcard by name"),
        pytest.param([0, -1], [0, -1], True, id="numbers below one are no ports"),
    ],
)
def test_host_ports(used: list[PortLike], wanted: list[PortLike], fits: bool) -> None:
    columns = view(node("n"), pod("x", node="n", ports=used))

    assert judged(PodFitsHostPorts(), pod(ports=wanted), columns)["n"] == (() if fits else PORTS)


def test_ports_of_one_pod_do_not_conflict_and_init_containers_have_none() -> None:
    columns = view(node("n"), pod("x", node="n", init=[container(ports=[80])]))

    assert judged(PodFitsHostPorts(), pod(ports=[80, 80]), columns)["n"] == ()


def test_used_ports_are_a_set() -> None:
    # Two pods hold the port (both were bound by hand); when one leaves, the port is free.
    columns = view(node("n"), pod("x", node="n", ports=[80]), pod("y", node="n", ports=[80]))

    columns.remove_pod("default/x")
    assert judged(PodFitsHostPorts(), pod(ports=[80]), columns)["n"] == ()

    columns.remove_pod("default/y")
    assert judged(PodFitsHostPorts(), pod(ports=[80]), columns)["n"] == ()


def test_a_port_freed_by_one_of_two_stays_used_elsewhere() -> None:
    columns = view(
        node("n"),
        node("m"),
        pod("x", node="n", ports=[80]),
        pod("y", node="n", ports=[80]),
        pod("z", node="m", ports=[80]),
    )

    columns.remove_pod("default/x")

    assert judged(PodFitsHostPorts(), pod(ports=[80]), columns) == {"n": (), "m": PORTS}
