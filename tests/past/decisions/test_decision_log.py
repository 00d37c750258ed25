"""The last decisions: what is kept of them, how much room they take, how they are found."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import node, nodes, pod, simulation
from podium.engine.framework.decision import Decision
from podium.errors import InputError
from podium.library.decision_json import to_json
from podium.objects.kinds.devices import (
    ClaimMeta,
    Device,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from podium.objects.kinds.meta import ObjectMeta
from podium.objects.kinds.pod import PodResourceClaim
from podium.past.decisions.decision_log import DecisionFile, DecisionLog
from podium.profiles.config.build import default_config, from_config
from podium.profiles.policy.build import Options, from_provider
from random_clusters import node_like, pod_like
from scheduler.attempts import NOON, attempted, tried

pytestmark = pytest.mark.slow

V1_37 = from_config(default_config({}), Options())[0]
V1_13 = from_provider("DefaultProvider", Options())


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_decision_comes_back_as_it_was(data: st.DataObject) -> None:
    rules = data.draw(st.sampled_from([V1_13, V1_37]))
    recording = data.draw(st.booleans())
    items = [data.draw(node_like(f"n{at}")) for at in range(data.draw(st.integers(1, 5)))]
    world = simulation(*items, profile=rules)
    log = DecisionLog()
    for at in range(3):
        wanted = data.draw(pod_like(f"p{at}"))
        told = tried(world, wanted, recording=recording)
        before = to_json(told.decision)
        log.attempted(told)

        [entry] = log.of(wanted.namespace, wanted.name)
        kept = entry.decision()

        assert to_json(kept) == before
        assert kept.message == told.decision.message
        assert kept.reasons == told.decision.reasons
        assert [c.uniform for c in kept.scores] == [c.uniform for c in told.decision.scores]


def test_the_json_is_that_of_explain_with_times_and_what_came_of_it() -> None:
    log = DecisionLog()
    world = simulation(*nodes(3), profile=V1_37)
    told = tried(world, pod(), recording=True)
    log.attempted(told)
    log.bound(told, "n0", 0.25)

    found = log.recent()[0].as_json()

    assert found.items() >= to_json(told.decision).items()
    assert found["time"] == "2027-01-15T08:00:00.000Z"
    assert found["queued"] == "2027-01-15T07:59:59.000Z"
    assert found["seconds"] == 0.002
    assert found["binding"] == {"seconds": 0.25}
    short = log.recent()[0].as_json(whole=False)
    assert "scores" not in short
    assert short["nodes"] == found["nodes"]


def test_the_devices_of_claims_are_kept() -> None:
    world, log = simulation(*nodes(2), profile=V1_37), DecisionLog()
    catalog = world.cache.columns.catalog
    devices = [Device("gpu-0"), Device("gpu-1")]
    spec = ResourceSliceSpec("d.example.com", ResourcePool("n001", 1, 1), "n001", devices=devices)
    catalog.resource_slices.put(ResourceSlice(metadata=ObjectMeta(name="s"), spec=spec))
    catalog.device_classes.put(DeviceClass(metadata=ObjectMeta(name="d")))
    wanted = DeviceClaim([DeviceRequest("gpu", ExactDeviceRequest("d", None, "ExactCount", 1))])
    about = ClaimMeta(name="c", namespace="default", uid="1")
    claim = ResourceClaim(metadata=about, spec=ResourceClaimSpec(wanted))
    catalog.resource_claims.put(claim)
    made = pod()
    spec_of_pod = replace(made.spec, resource_claims=[PodResourceClaim("gpu", "c")])
    told = tried(world, replace(made, spec=spec_of_pod), recording=True)
    before = to_json(told.decision)
    log.attempted(told)

    kept = log.recent()[0].decision()

    assert kept.node == "n001"
    assert kept.devices is not None
    [given] = kept.devices.claims
    assert given.allocation is not None
    assert [each.device for each in given.allocation.devices.results or ()] == ["gpu-0"]
    assert to_json(kept) == before


def test_preemption_is_kept() -> None:
    log = DecisionLog()
    world = simulation(node("n1", cpu="1"), pod("low", node="n1", requests={"cpu": "1"}))
    told = tried(world, pod("high", requests={"cpu": "1"}, priority=5))
    log.attempted(told)

    [entry] = log.recent(outcomes=["nominated"])

    assert entry.as_json()["preemption"] == to_json(told.decision)["preemption"]
    assert entry.decision().preemption == told.decision.preemption


def test_the_attempts_at_a_pod_are_found_newest_first() -> None:
    log = DecisionLog(most=4)
    world = simulation(node("n1", cpu="1"))
    wanted = pod("stuck", requests={"cpu": "2"})
    for number in (1, 2, 3):
        log.attempted(tried(world, wanted, number=number))
        log.attempted(tried(world, pod(f"other-{number}", namespace="else")))

    assert [entry.number for entry in log.of("default", "stuck")] == [3, 2]
    assert log.of("default", "other-3") == []
    assert [entry.key for entry in log.recent(namespace="else")] == ["else/other-3", "else/other-2"]
    assert [entry.number for entry in log.recent(outcomes=["unschedulable"], limit=1)] == [3]
    assert len(log) == 4


def test_a_binding_is_noted_with_the_attempt_that_it_belongs_to() -> None:
    log = DecisionLog()
    world = simulation(node("n1"))
    first, second = (tried(world, pod(), number=number) for number in (1, 2))
    log.attempted(first)
    log.attempted(second)
    log.bind_failed(first, "n1", "the pod has moved on")

    newest, oldest = log.of("default", "p")

    assert "binding" not in newest.as_json()
    assert oldest.as_json()["binding"] == {"error": "the pod has moved on"}


@pytest.mark.parametrize(
    ("recording", "budget", "most"),
    [
        pytest.param(True, 2 << 20, 700, id="recorded"),
        pytest.param(False, 2 << 20, 2_000, id="without recording"),
        pytest.param(True, 32 << 20, 12_000, id="32 MiB", marks=pytest.mark.soak),
    ],
)
def test_it_stays_within_its_budget_with_5000_nodes(
    recording: bool, budget: int, most: int
) -> None:
    world = simulation(
        *(
            node(f"node-{at:05}.example.internal", cpu=f"{4000 + at * 7919 % 4999}m")
            for at in range(5000)
        ),
        profile=V1_37,
    )
    fits = tried(world, pod("fits", requests={"cpu": "1"}), recording=recording)
    fails = tried(world, pod("fails", requests={"cpu": "9"}), recording=recording)

    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        log = DecisionLog(budget, most=most * 10)
        for number in range(most):
            for told in (fits, fails):
                decision = told.decision
                decision.pod, decision.uid = f"default/pod-{number}", f"{number:036}"
                log.attempted(attempted(told.pod, decision, told.profile, began=NOON + number))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert after - before <= budget
    assert log.size <= budget
    assert log.size >= budget * 0.8, "the room is used"
    newest = log.recent(limit=1)[0].as_json()
    assert newest["pod"] == f"default/pod-{most - 1}"
    assert len(newest["rejections"][0].get("nodes", ())) == (5000 if recording else 0)


def test_names_of_nodes_that_are_gone_do_not_pile_up() -> None:
    log = DecisionLog(most=10)
    for generation in range(30):
        world = simulation(*(node(f"g{generation}-{at}") for at in range(1000)), profile=V1_37)
        log.attempted(tried(world, pod(f"p{generation}"), recording=True))

    assert sum(len(names.names) for names in log._vocabularies) < 20_000
    assert log.recent(limit=1)[0].decision().examined[0].startswith("g29-")
    assert log.recent(limit=10)[-1].decision().examined[0].startswith("g20-")


def told_about(name: str) -> object:
    decision = Decision(f"default/{name}", name, "v1.37", nodes=1, node="n1", feasible_count=1)
    return attempted(pod(name), decision, V1_37)


def test_the_file_is_turned_over_when_it_is_full(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    file = DecisionFile(str(path), pytest.fail, most_bytes=1000, kept=2)
    log = DecisionLog()
    log.listen(file.write)
    for number in range(20):
        log.attempted(told_about(f"p{number:02}"))  # type: ignore[arg-type]
    file.close()

    files = sorted(tmp_path.iterdir())
    assert [each.name for each in files] == [
        "decisions.jsonl",
        "decisions.jsonl.1",
        "decisions.jsonl.2",
    ]
    assert all(each.stat().st_size <= 1000 for each in files)
    written = [
        json.loads(line)["pod"]
        for each in reversed(files)
        for line in each.read_text().splitlines()
    ]
    assert written == [f"default/p{number:02}" for number in range(20 - len(written), 20)]


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no/such/file: cannot be written: no such file"):
        DecisionFile(str(tmp_path / "no/such/file"), pytest.fail)


def test_a_full_disk_stops_the_file_and_nothing_else() -> None:
    told: list[str] = []
    file = DecisionFile("/dev/full", told.append)
    log = DecisionLog()
    log.listen(file.write)
    log.attempted(told_about("a"))  # type: ignore[arg-type]
    file.flush()
    log.attempted(told_about("b"))  # type: ignore[arg-type]
    file.close()

    assert told == ["decisions are not written to /dev/full any more: no space left on device"]
    assert len(log) == 2


def test_what_became_of_its_group_comes_back() -> None:
    told = tried(simulation(node("n1")), pod("p"))
    told.decision.group_message = "pod group is unschedulable"
    log = DecisionLog()
    log.attempted(told)

    [entry] = log.of("default", "p")
    assert entry.decision().message == "pod group is unschedulable"
