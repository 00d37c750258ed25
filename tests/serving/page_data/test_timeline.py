"""The timeline of the pages."""

from __future__ import annotations

from builders import node, objects, pod
from podium.cluster.simulation import Simulation
from podium.library.profiles import default_profile
from podium.serving.page_data.activity import TIMELINE, ActivityObserver
from scheduler.attempts import attempted


def test_everything_that_happens_to_pods_is_an_entry() -> None:
    world = Simulation(default_profile())
    world.load(objects(node("n1")))
    wanted = pod("p")
    activity = ActivityObserver(lambda: 5.0)
    activity.pod_seen(None, wanted)
    result = attempted(wanted, world.attempt(wanted), default_profile())
    activity.attempted(result)
    activity.evicting(result, ["default/victim"])
    activity.bound(result, "n1", 0.1)
    activity.pod_seen(wanted, None)
    found = [(each.what, each.pod, each.node) for each in activity.timeline]
    assert found == [
        ("created", "default/p", ""),
        ("placed", "default/p", "n1"),
        ("evicted", "default/victim", ""),
        ("bound", "default/p", "n1"),
        ("deleted", "default/p", ""),
    ]
    assert activity.timeline[2].text == "in favour of default/p"


def test_the_timeline_keeps_the_newest_entries() -> None:
    activity = ActivityObserver(lambda: 5.0)
    for number in range(TIMELINE + 3):
        activity.pod_seen(None, pod(f"p{number}"))
    assert len(activity.timeline) == TIMELINE
    assert activity.timeline[0].pod == "default/p3"
