"""A leader and its lease: what keeps it, and what a former leader does not do any more."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from urllib.request import urlopen

from control_plane.bulk import create_many
from control_plane.harness import PODS, ControlPlane, free_port
from control_plane.proxy import Proxy
from manifests import Manifest, pod
from scheduler.api_server.conftest import Podium
from waiting import until

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
TIMES = (
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
)
#: A predicate that takes long about one pod, until a file is there.
SLOW = """
import time
from functools import partial
from pathlib import Path

from podium.rules import predicate

ENDS, BEGUN = Path({ends!r}), Path({begun!r})


@predicate("Slow")
def slow(pod, node):
    if pod.name == "slow":
        BEGUN.touch()
        while not ENDS.exists():
            time.sleep(0.01)
    return True
"""


def spec_of(plane: ControlPlane, name: str) -> dict[str, str]:
    listed = plane.get(LEASES)["items"]
    named = [each for each in listed if each["metadata"]["name"] == name]
    found: dict[str, str] = named[0]["spec"] if named else {}
    return found


def renewals(plane: ControlPlane, name: str, count: int) -> None:
    """Wait until the lease was renewed so often."""
    seen = {spec_of(plane, name)["renewTime"]}

    def all_seen() -> bool:
        seen.add(spec_of(plane, name)["renewTime"])
        return len(seen) > count

    until(f"{count} renewals", all_seen, 30)


def all_hang(proxy: Proxy, method: str, end: str) -> bool:
    """Whether as many requests of a kind were sent as may be at a time."""
    return sum(each[0] == method and each[1].endswith(end) for each in proxy.requests) >= 24


def small(name: str, cpu: str = "1m") -> Manifest:
    return pod(name, cpu, schedulerName="podium")


def test_writes_that_hang_do_not_cost_the_lease(plane: ControlPlane, podium: Podium) -> None:
    """As with a webhook that does not answer: bindings and status patches use every connection."""
    plane.add_node("n1", {})
    name = "hanging"
    with (
        Proxy(plane) as proxy,
        podium(
            *TIMES, f"--leader-elect-resource-name={name}", url=proxy.url, lease=True
        ) as program,
    ):
        leader = program.wait_for("it leads", lambda: spec_of(plane, name).get("holderIdentity"))
        proxy.swallow("POST", "/pods/[^/]+/binding")
        proxy.swallow("PATCH", "/pods/[^/]+/status")
        create_many(plane, PODS, [small(f"fits-{number}") for number in range(60)])
        create_many(plane, PODS, [small(f"large-{number}", "64") for number in range(60)])
        for sent in (("POST", "/binding"), ("PATCH", "/status")):
            program.wait_for(f"{sent} hang", partial(all_hang, proxy, *sent))

        renewals(plane, name, 12)
        program.check()

        assert spec_of(plane, name)["holderIdentity"] == leader
        program.kill()  # it would wait for what hangs


def test_neither_the_lease_nor_the_probes_wait_for_a_decision(
    plane: ControlPlane, podium: Podium, tmp_path: Path
) -> None:
    plane.add_node("n1", {})
    ends, begun, rules = tmp_path / "ends", tmp_path / "begun", tmp_path / "slow.py"
    rules.write_text(SLOW.format(ends=str(ends), begun=str(begun)))
    port, name = free_port(), "long"
    flags = (f"--leader-elect-resource-name={name}", f"--port={port}", "--rules", rules)
    with podium(
        *TIMES, *flags, "--provider", "DefaultProvider", "--scheduler-name=podium", lease=True
    ) as program:
        program.wait_for("it leads", lambda: spec_of(plane, name).get("holderIdentity"))
        plane.post(PODS, small("slow"))
        program.wait_for("it decides", begun.exists)

        renewals(plane, name, 12)
        for probe in ("livez", "readyz"):
            with urlopen(f"http://127.0.0.1:{port}/{probe}", timeout=5) as answer:
                assert answer.status == 200
        ends.touch()
        program.wait_for("it is bound", lambda: plane.node_of("slow"))


def test_a_former_leader_writes_nothing(
    plane: ControlPlane, podium: Podium, tmp_path: Path
) -> None:
    """Another replica leads since the decision began: it must end without any write."""
    plane.add_node("n1", {})
    ends, begun, rules = tmp_path / "ends", tmp_path / "begun", tmp_path / "slow.py"
    rules.write_text(SLOW.format(ends=str(ends), begun=str(begun)))
    name = "former"
    flags = (f"--leader-elect-resource-name={name}", "--rules", rules)
    with (
        Proxy(plane) as proxy,
        podium(
            *(*TIMES, *flags, "--provider", "DefaultProvider", "--scheduler-name=podium"),
            url=proxy.url,
            lease=True,
        ) as program,
    ):
        program.wait_for("it leads", lambda: spec_of(plane, name).get("holderIdentity"))
        plane.post(PODS, small("slow"))
        plane.post(PODS, small("next"))
        plane.post(PODS, small("large", "64"))
        program.wait_for("it decides", begun.exists)
        lease = plane.get(f"{LEASES}/{name}")
        # Until the API server takes it: the leader renews its lease at the same time.
        until("another leads", lambda: taken(plane, name))
        assert lease["spec"]["holderIdentity"] != "another"
        program.wait_for("it is read", lambda: lease_was_read(proxy, name))
        before = len(proxy.requests)
        ends.touch()

        assert program.wait(30) == 1

    written = [each for each in proxy.requests[before:] if each[0] != "GET"]
    assert written == []
    assert plane.get(PODS + "/next")["spec"].get("nodeName", "") == ""


def taken(plane: ControlPlane, name: str) -> bool:
    """Take the lease away; False if it was renewed at that moment."""
    lease = plane.get(f"{LEASES}/{name}")
    lease["spec"]["holderIdentity"] = "another"
    lease["spec"]["leaseDurationSeconds"] = 3600
    try:
        plane.call("PUT", f"{LEASES}/{name}", lease)
    except OSError:
        return False
    return True


def lease_was_read(proxy: Proxy, name: str) -> bool:
    """Whether the former leader has read the lease again after a write that was refused."""
    return proxy.requests[-1] == ("GET", f"{LEASES}/{name}")
