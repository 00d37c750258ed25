"""How long each rule takes, measured without changing what it decides."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod, simulation
from podium.engine.framework.plan import plan_of
from podium.engine.framework.profile import Profile
from podium.kube.access import Access
from podium.kube.client import ApiClient
from podium.profiles.config.build import default_config, from_config
from podium.profiles.policy.build import Options, from_provider
from podium.scheduler.placing.pod_events import NoEvents
from podium.scheduler.scheduler import Scheduler
from podium.scheduler.telemetry.metrics import Metrics
from podium.scheduler.telemetry.timings import RuleTimings
from random_clusters import node_like, pod_like
from scheduler.attempts import Clock, tried
from scheduler.test_metrics import samples


def test_one_attempt_in_ten_is_measured_rule_by_rule() -> None:
    clock = Clock()
    timings = RuleTimings(clock)
    metrics = Metrics(timings)
    rules = timings.instrument(from_config(default_config({}), Options())[0])
    world = simulation(node("n1"), node("n2"), profile=rules)

    for number in range(21):
        metrics.attempted(tried(world, pod(f"p{number}")))

    found = samples(metrics)
    plugin = {"extension_point": "Filter", "plugin": "NodeResourcesFit", "status": "Success"}
    name = "scheduler_plugin_execution_duration_seconds_count"
    assert 1 <= found[name, tuple(sorted(plugin.items()))] <= 3
    point = {"extension_point": "Score", "profile": "default-scheduler", "status": "Success"}
    name = "scheduler_framework_extension_point_duration_seconds_count"
    assert 1 <= found[name, tuple(sorted(point.items()))] <= 3


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_measured_profile_decides_like_the_one_it_was_made_from(data: st.DataObject) -> None:
    generation = data.draw(st.sampled_from(["v1.13", "v1.37"]))
    plain = (
        from_provider("DefaultProvider", Options())
        if generation == "v1.13"
        else from_config(default_config({}), Options())[0]
    )
    items = [data.draw(node_like(f"n{at}")) for at in range(data.draw(st.integers(1, 5)))]
    pods = [data.draw(pod_like(f"p{at}")) for at in range(6)]

    def placements(rules: object) -> list[tuple[str | None, str]]:
        world = simulation(*items, profile=rules)  # type: ignore[arg-type]
        return [(step.decision.node, step.decision.message) for step in world.run(pods)]

    assert placements(RuleTimings().instrument(plain)) == placements(plain)


def test_a_measured_profile_asks_no_further_rules_before_the_nodes() -> None:
    [plain] = from_config(default_config({}), Options())
    measured = RuleTimings().instrument(plain)
    view = simulation(node("n1"), profile=plain).cache.columns
    ssd = pod("ssd", node_selector={"disk": "ssd"})

    def asked(rules: Profile) -> list[list[str]]:
        classes = [view.pods.incoming(each).cls for each in (pod(), ssd)]
        return [[rule.name for rule in plan_of(cls, rules).refusing] for cls in classes]

    assert asked(measured) == asked(plain)
    assert asked(plain)[0] == []


async def test_profiles_of_a_running_scheduler_stay_measured_when_they_change() -> None:
    timings = RuleTimings()
    [profile] = from_config(default_config(), Options())

    client = ApiClient(Access("http://127.0.0.1:9"))  # which is never asked
    scheduler = Scheduler(client, [profile], recorder=NoEvents(), timings=timings)
    await scheduler.reconfigure([replace(profile, name="another")])
    [changed] = scheduler.profiles.values()
    assert changed.name == "another"
    simulation(node("n1"), node("n2"), profile=changed).attempt(pod())

    assert ("NodeResourcesFit", "Filter") in timings.spent
