"""The operations of a workload are executed in memory, on a clock that tests set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from podium.cluster.cache.columns import Columns
from podium.cluster.simulation import Simulation
from podium.errors import InputError
from podium.objects.kinds.pod import Pod
from podium.profiles.policy.build import Options, from_provider
from podium_research.bench.definitions import (
    Barrier,
    BenchWorkload,
    Churn,
    CreateAny,
    CreateNodes,
    CreatePods,
    DeletePods,
    Op,
    Sleep,
    read_workloads,
)
from podium_research.bench.executor import WorkloadExecutor
from podium_research.bench.runner import measured_pods, run_workload

SAMPLE = Path(__file__).parent / "sample"
PROFILE = from_provider("DefaultProvider", Options())
NODE, POD = "templates/node.yaml", "templates/pod.yaml"


class Hands:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Lab:
    """An executor of single operations."""

    def __init__(self, *ops: Op) -> None:
        self.clock = Hands()
        self.simulation = Simulation(PROFILE)
        self.measured: list[str] = []
        workload = BenchWorkload("Case", "Size", (), {"few": 2}, SAMPLE, POD)
        self.executor = WorkloadExecutor(
            workload, self.simulation, clock=self.clock, measure=self._measure
        )
        self.place = 0
        self.run(*ops)

    def _measure(self, executor: WorkloadExecutor, _: str, pods: Sequence[Pod]) -> None:
        self.measured += [pod.key for pod in pods]
        for pod in pods:
            executor.tick()
            executor.schedule(pod)

    def run(self, *ops: Op) -> None:
        for op in ops:
            self.executor.run(self.place, op)
            self.place += 1

    @property
    def columns(self) -> Columns:
        return self.simulation.cache.columns

    def placed(self) -> Counter[str]:
        """Namespace -> how many pods have a node."""
        return Counter(
            resident.key.split("/")[0] for row in self.columns.pods.residents for resident in row
        )

    def nodes(self) -> list[str]:
        return [self.columns.nodes.names[row] for row in self.columns.nodes.order.tolist()]


def test_nodes_have_names_and_host_labels_of_their_own() -> None:
    lab = Lab(CreateNodes(count=3, node_template_path=NODE), CreateNodes(count_param="$few"))
    labels = [each.labels for each in lab.columns.nodes.objects if each is not None]

    assert lab.nodes() == ["sample-1", "sample-2", "sample-3", "node-4", "node-5"]
    assert [each["kubernetes.io/hostname"] for each in labels] == lab.nodes()


def test_pods_go_to_a_namespace_of_their_own_unless_told() -> None:
    lab = Lab(
        CreateNodes(count=2, node_template_path=NODE),
        CreatePods(count=2),
        CreatePods(count=1, namespace="given"),
    )

    assert lab.placed() == {"namespace-1": 2, "given": 1}


def test_only_what_is_to_be_measured_is() -> None:
    lab = Lab(
        CreateNodes(count=2, node_template_path=NODE),
        CreatePods(count=1),
        CreatePods(count=2, namespace="m", collect_metrics=True),
    )

    assert lab.measured == ["m/pod-4", "m/pod-5"]


def test_a_pod_that_fits_nowhere_waits_for_a_barrier() -> None:
    lab = Lab(
        CreateNodes(count=1, node_template_path=NODE),
        CreatePods(count=1, pod_template_path="templates/pod-for-later.yaml"),
    )
    before = list(lab.executor.pending)

    lab.run(CreateAny(template_path="templates/node-late.yaml"), Barrier())

    assert before == ["namespace-1/patient"]
    assert not lab.executor.pending
    assert lab.placed() == {"namespace-1": 1}


@pytest.mark.parametrize(
    ("barrier", "tried"),
    [
        (Barrier(namespaces=["namespace-1"]), True),
        (Barrier(namespaces=["elsewhere"]), False),
        (Barrier(label_selector={"app": "x"}), False),
    ],
)
def test_a_barrier_tries_only_the_pods_it_names(barrier: Barrier, tried: bool) -> None:
    lab = Lab(
        CreateNodes(count=1, node_template_path=NODE),
        CreatePods(count=1, pod_template_path="templates/pod-for-later.yaml"),
        CreateAny(template_path="templates/node-late.yaml"),
        barrier,
    )

    assert bool(lab.executor.pending) is not tried


def churned(mode: str, number: int, *, every_pods: int = 0) -> Churn:
    return Churn(
        mode=mode,
        number=number,
        interval_milliseconds=1000,
        every_pods=every_pods,
        template_paths=["templates/node-late.yaml"],
    )


def test_a_churn_that_recreates_takes_away_what_it_made() -> None:
    lab = Lab(CreateNodes(count=1, node_template_path=NODE), churned("recreate", 1))
    seen = []
    for _ in range(4):
        lab.run(Sleep("1s"))
        seen.append("late" in lab.nodes())

    assert seen == [True, False, True, False]


def test_pods_leave_with_the_node_they_are_on() -> None:
    lab = Lab(
        churned("recreate", 1),
        Sleep("1s"),
        CreatePods(count=1, pod_template_path="templates/pod-for-later.yaml"),
        Sleep("1s"),
    )

    assert lab.placed() == {}
    assert not lab.columns.pods.unknown_nodes


def test_a_churn_that_creates_stops_at_its_number() -> None:
    churn = Churn(mode="create", number=2, template_paths=[POD], namespace="c")
    lab = Lab(CreateNodes(count=1, node_template_path=NODE), churn)
    for _ in range(5):
        lab.run(Sleep("500ms"))

    assert lab.placed() == {"c": 2}


def test_missed_ticks_are_dropped() -> None:
    churn = Churn(mode="create", template_paths=[POD], namespace="c", interval_milliseconds=125)
    lab = Lab(CreateNodes(count=1, node_template_path=NODE), churn)

    lab.run(Sleep("10s"), Sleep("62.5ms"), Sleep("62.5ms"))

    assert lab.placed() == {"c": 2}


def test_a_churn_may_go_by_pods() -> None:
    churn = Churn(mode="create", template_paths=[POD], namespace="c", every_pods=3)
    lab = Lab(CreateNodes(count=2, node_template_path=NODE), churn, CreatePods(count=7))

    assert lab.placed() == {"namespace-2": 7, "c": 2}


def test_services_that_churn_leave_the_catalog() -> None:
    churn = Churn(mode="recreate", number=1, template_paths=["templates/service.yaml"])
    lab = Lab(churn, Sleep("500ms"))
    before = len(lab.columns.catalog.services)

    lab.run(Sleep("500ms"))

    assert (before, len(lab.columns.catalog.services)) == (1, 0)


def test_pods_are_deleted_at_once() -> None:
    lab = Lab(
        CreateNodes(count=1, node_template_path=NODE),
        CreatePods(count=3, namespace="a"),
        CreatePods(count=1, namespace="b"),
        DeletePods(namespace="a", label_selector={"third": "0"}),
    )

    assert lab.placed() == {"a": 2, "b": 1}


def test_pods_are_deleted_one_by_one_as_time_passes() -> None:
    lab = Lab(
        CreateNodes(count=1, node_template_path=NODE),
        CreatePods(count=4, namespace="a"),
        DeletePods(namespace="a", delete_pods_per_second=2, skip_wait_to_completion=True),
    )
    left = []
    for _ in range(3):
        lab.run(Sleep("1s"))
        left.append(lab.placed()["a"])

    assert left == [2, 0, 0]


def test_every_pod_gets_a_volume_of_its_own() -> None:
    lab = Lab(
        CreateNodes(count=1, node_template_path=NODE),
        CreatePods(
            count=2,
            namespace="v",
            persistent_volume_template_path="templates/volume.yaml",
            persistent_volume_claim_template_path="templates/claim.yaml",
        ),
    )
    volumes, claims = lab.columns.catalog.volumes, list(lab.columns.catalog.claims)

    assert lab.placed() == {"v": 2}
    assert [claim.spec.volume_name for claim in claims] == [volume.name for volume in volumes]
    assert len({volume.spec.csi for volume in volumes}) == 2


@pytest.mark.parametrize(
    ("op", "sentence"),
    [
        (CreateNodes(count=1, node_template_path=POD), "holds a Pod, where a Node is needed"),
        (CreatePods(count=1, pod_template_path=NODE), "holds a Node, where a Pod is needed"),
        (CreateAny(), "a template path is missing"),
        (CreatePods(count_param="$many"), "there is no parameter $many; known: few"),
    ],
)
def test_an_operation_that_cannot_be_done_is_said(op: Op, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        Lab(op)

    assert sentence in str(error.value)


def test_the_sample_runs_from_end_to_end() -> None:
    workload = read_workloads(SAMPLE / "performance-config.yaml")[0]

    [result] = run_workload(workload, PROFILE)

    assert (result.workload, result.path, result.skipped) == ("Everything/Small", "fast", "")
    # Four nodes, one with a device, and one that came while time passed.
    assert (result.nodes, result.existing, result.pods, result.placed) == (6, 8, 5, 5)
    assert measured_pods(workload) == 5
    assert len(result.windows) == 5
    assert result.peak_bytes > 0


def test_several_measured_operations_are_told_apart() -> None:
    measured = CreatePods(count=1, collect_metrics=True)
    ops = (CreateNodes(count=1), measured, measured)

    results = run_workload(BenchWorkload("Case", "Size", ops, {}, SAMPLE, POD), PROFILE)

    assert [result.workload for result in results] == [
        "Case/Size/namespace-1",
        "Case/Size/namespace-2",
    ]
