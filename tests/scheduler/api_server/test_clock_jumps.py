"""The wall clock is set while pods are placed: nothing is lost, and one replica leads at a time."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from control_plane.bulk import create_many, pods
from control_plane.checker import assert_sound
from control_plane.harness import PODS, ControlPlane, MissingError
from control_plane.proxy import Proxy
from control_plane.wall_clock import WallClock
from scheduler.api_server.conftest import Podium
from scheduler.api_server.test_faults import BINDING, LEASES, all_placed, fill, holder_of, waiting
from waiting import until

pytestmark = pytest.mark.timeout(1200)  # the programs may have to be compiled first

HOUR = 3600
#: No further back: the API server's certificate is an hour old when it is made.
JUMPS = {"forward": 10 * 24 * HOUR, "back": -HOUR // 2}
#: Of the one that leads, and of the one that stands by.
APART = ((JUMPS["back"], JUMPS["forward"]), (JUMPS["forward"], 0), (0, JUMPS["back"]))


def wall_clock(folder: Path, name: str = "clock") -> WallClock:
    try:
        return WallClock(folder, name)
    except MissingError as error:
        pytest.skip(str(error))


def seconds_ahead(plane: ControlPlane, name: str) -> float:
    """How far ahead the clock was by which the pod got its condition; nothing: it has none."""
    conditions = plane.get(f"{PODS}/{name}")["status"].get("conditions", ())
    if not conditions:
        return 0.0
    moment = datetime.fromisoformat(conditions[0]["lastTransitionTime"])
    return (moment - datetime.now(UTC)).total_seconds()


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS.keys())
def test_the_clock_jumps_while_pods_are_placed(
    plane: ControlPlane, podium: Podium, tmp_path: Path, jump: int
) -> None:
    clock = wall_clock(tmp_path)
    since = fill(plane, 110)
    with Proxy(plane) as proxy:
        # Some wait for an answer, and some rest, while it jumps.
        proxy.answer("POST", BINDING, 500, times=30)
        proxy.delay("POST", BINDING, 0.2)
        with podium(url=proxy.url, environment=clock.environment):
            until("some are placed", lambda: len(waiting(plane)) < 100)
            clock.set(jump)
            all_placed(plane)
            plane.add_pod("large", "podium", cpu="3")
            until("it has to wait", lambda: plane.events_of("large"))
            ahead = until("it says so", lambda: seconds_ahead(plane, "large"))
            clock.set(0)
            plane.add_node("large-enough", {}, cpu="4")
            until("it is placed", lambda: plane.node_of("large"), seconds=30)

    assert ahead == pytest.approx(jump, abs=60)
    assert_sound(plane, since)


def test_clocks_of_replicas_jump_apart(plane: ControlPlane, podium: Podium, tmp_path: Path) -> None:
    clocks = [wall_clock(tmp_path, name) for name in ("leading", "standing-by")]
    since = fill(plane, 40)
    lease = ["--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s"]
    lease += ["--leader-elect-resource-name=apart", "-v", "2"]
    # One looks more often than the other renews, and finds a lease that is unchanged.
    renews, looks = (f"--leader-elect-retry-period={period}" for period in ("2s", "200ms"))
    with podium(
        *lease, renews, lease=True, name="leading", environment=clocks[0].environment
    ) as leader:
        holder = until("it leads", lambda: holder_of(plane, "apart"))
        with podium(
            *lease, looks, lease=True, name="standing-by", environment=clocks[1].environment
        ) as other:
            until("it stands by", lambda: f'leader="{holder}"' in other.log.read_text("utf-8"))
            for part, jumps in enumerate(APART):
                for clock, jump in zip(clocks, jumps, strict=True):
                    clock.set(jump)
                create_many(plane, PODS, pods(10, prefix=f"part{part}", cpu="120m"))
                time.sleep(5)  # longer than a lease lasts without renewal
                assert holder_of(plane, "apart") == holder
            all_placed(plane)
            assert "outcome" not in other.log.read_text("utf-8")
            leader.kill()
            create_many(plane, PODS, pods(10, prefix="later", cpu="120m"))
            all_placed(plane)

    assert plane.get(f"{LEASES}/apart")["spec"]["leaseTransitions"] == 1
    assert_sound(plane, since)
