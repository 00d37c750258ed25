"""Workloads are read from the files of scheduler_perf."""

from __future__ import annotations

from pathlib import Path

import pytest

from cases import cases
from podium.errors import InputError
from podium_research.bench.definitions import (
    OPCODES,
    Barrier,
    BenchWorkload,
    Churn,
    CreateNodes,
    CreatePods,
    CreatePodSets,
    Unknown,
    read_workloads,
    seconds,
)
from podium_research.bench.workload_selection import SizeOverrides, select_workloads

SAMPLE = Path(__file__).parent / "sample" / "performance-config.yaml"


def sample(name: str) -> BenchWorkload:
    return next(each for each in read_workloads(SAMPLE) if each.name == name)


def test_every_size_of_every_case_is_a_workload() -> None:
    names = [workload.name for workload in read_workloads(SAMPLE)]

    assert names == ["Everything/Small", "Everything/Large", "Strange/Small", "Steady/Small"]


def test_the_samples_use_every_operation() -> None:
    files = (SAMPLE.parent / name for name in ("devices.yaml", "pod-groups.yaml"))
    others = [op for file in files for each in read_workloads(file) for op in each.ops]
    used = {type(op).__struct_config__.tag for op in [*sample("Everything/Small").ops, *others]}

    assert used == set(OPCODES)


def test_numbers_are_given_or_named() -> None:
    workload = sample("Everything/Small")
    nodes, more = (op for op in workload.ops if isinstance(op, CreateNodes))

    assert (nodes.number(workload.params), more.number(workload.params)) == (4, 1)


def test_operations_keep_what_they_were_told() -> None:
    ops = sample("Everything/Large").ops
    sets = next(op for op in ops if isinstance(op, CreatePodSets))
    churn = next(op for op in ops if isinstance(op, Churn))
    barrier = next(op for op in ops if isinstance(op, Barrier))
    measured = [op for op in ops if isinstance(op, CreatePods) and op.collect_metrics]

    assert sets.create_pods_op == CreatePods(count=2)
    assert (churn.mode, churn.number, churn.interval_milliseconds) == ("recreate", 1, 1000)
    assert barrier.stage_requirement == "Scheduled"
    assert [op.namespace for op in measured] == ["measured"]


def test_a_configuration_of_the_scheduler_is_not_read_and_that_is_said() -> None:
    [note] = sample("Everything/Small").notes

    assert note.startswith("Everything: schedulerConfigPath is not read")


@cases(
    ("name", "sentence"),
    {
        "an operation nobody knows": (
            "Strange",
            (
                "workload Strange/Small: the operation 'paintNodes' is not known; "
                f"known: {', '.join(OPCODES)}"
            ),
        ),
        "a field that would change what is measured": (
            "Steady",
            "workload Steady/Small: createPods: object contains unknown field `podsInPairs`",
        ),
    },
)
def test_what_cannot_be_done_is_said_in_one_sentence(name: str, sentence: str) -> None:
    known = read_workloads(SAMPLE)

    with pytest.raises(InputError) as error:
        select_workloads(known, [name], SizeOverrides())

    assert str(error.value) == sentence
    assert error.value.exit_code == 2


def test_what_cannot_be_done_does_not_stop_the_others() -> None:
    known = read_workloads(SAMPLE)

    assert [each.name for each in select_workloads(known, ["Everything"], SizeOverrides())] == [
        "Everything/Small",
        "Everything/Large",
    ]
    assert isinstance(sample("Strange/Small").ops[1], Unknown)


@cases(
    ("text", "sentence"),
    {
        "no list": ("a: b", "is no list of test cases"),
        "no YAML": ("- [", "is not readable YAML"),
        "half a case": ("- name: X", "missing required field `workloadTemplate`"),
        "a churn of no kind": (
            "- {name: X, workloads: [], workloadTemplate: [{opcode: churn, mode: both}]}",
            "test case X: churn: there is no mode 'both'; known: recreate, create",
        ),
        "a churn of nothing": (
            "- {name: X, workloads: [], workloadTemplate: [{opcode: churn, mode: recreate}]}",
            "test case X: churn: with mode recreate, number is at least 1",
        ),
        "a churn without templates": (
            "- {name: X, workloads: [], workloadTemplate: [{opcode: churn}]}",
            "test case X: churn: no templatePaths",
        ),
    },
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)

    with pytest.raises(InputError, match=r"config\.yaml: ") as error:
        read_workloads(path)

    assert sentence in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: no such file"):
        read_workloads(tmp_path / "none.yaml")


def test_a_parameter_that_is_not_there_is_named() -> None:
    workload = sample("Strange/Small")

    with pytest.raises(InputError, match=r"there is no parameter \$initPods; known: none"):
        CreatePods(count_param="$initPods").number(workload.params)


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("10s", 10), ("1m30s", 90), ("250ms", 0.25), ("1.5h", 5400)]
)
def test_durations_are_those_of_go(text: str, value: float) -> None:
    assert seconds(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "10", "ten seconds", "10 s", "-"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no duration"):
        seconds(text)
