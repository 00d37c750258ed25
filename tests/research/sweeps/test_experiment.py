"""The file of an experiment: what it may hold, and one sentence for what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.errors import InputError
from podium_research.sweeps.cells import cells_of
from podium_research.sweeps.experiment import Experiment, folder_of, read_experiment
from research.sweeps.small_experiment import EXPERIMENT, write_experiment

HEAD = "apiVersion: podium/v1\nkind: Experiment\nname: x\n"
ONE = "configurations: [{name: a}]\n"


def read(path: Path, text: str) -> Experiment:
    file = path / "e.yaml"
    file.write_text(text)
    return read_experiment(str(file))


def test_cells_are_all_combinations_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    cells = cells_of(read_experiment(path), folder_of(path))

    assert [cell.name for cell in cells] == [
        "shop, spread, seed 1",
        "shop, spread, seed 2",
        "shop, spread, seed 3",
        "shop, pack, seed 1",
        "shop, pack, seed 2",
        "shop, pack, seed 3",
    ]
    assert len({cell.digest for cell in cells}) == 6
    assert set(cells[0].files) >= {"nodes.csv", "pods.csv", "study.py"}
    assert set(cells[3].files) - set(cells[0].files) == {"pack.yaml"}


def test_names_stand_in_the_names_of_files(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        HEAD + ONE + "workloads: [{names: [a, b], openb: {nodes: n.csv, pods: 'p-{name}.csv'}}]\n",
    )

    assert [(each.name, each.files()) for each in found.all_workloads] == [
        ("a", ["n.csv", "p-a.csv"]),
        ("b", ["n.csv", "p-b.csv"]),
    ]
    assert found.all_seeds == [0]


def test_a_digest_changes_with_whatever_decides(tmp_path: Path) -> None:
    path = write_experiment(tmp_path)

    def digests() -> list[str]:
        return [cell.digest for cell in cells_of(read_experiment(path), folder_of(path))]

    before = digests()
    assert digests() == before
    (tmp_path / "pack.yaml").write_text((tmp_path / "pack.yaml").read_text() + "\n")
    packed = digests()
    assert packed[:3] == before[:3]
    assert not set(packed[3:]) & set(before[3:])
    (tmp_path / "neighbour.py").write_text("X = 1\n")
    assert not set(digests()) & set(packed)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- 1", "e.yaml: is no experiment; it begins with apiVersion: podium/v1 and kind: "),
        ("", "e.yaml: is no experiment; it begins with apiVersion: podium/v1 and kind: "),
        ("a: [", "e.yaml: is not readable YAML at line 2, column 1: "),
        (HEAD + ONE, "e.yaml: object missing required field `workloads`"),
        (HEAD + "workloads: 3\n" + ONE, "e.yaml: workloads: expected `array`, got `int`"),
        (
            HEAD + "workloads: [{name: a, csv: {nodes: n}}]\n" + ONE,
            "e.yaml: workloads[0].csv: object missing required field `pods`",
        ),
        (
            HEAD + "workloads: [{name: a}]\n" + ONE,
            "e.yaml: workloads[0]: has no source; a workload has one of openb, csv, simkube, ",
        ),
        (
            HEAD + "workloads: [{history: a}]\n" + ONE,
            "e.yaml: workloads[0]: has no name; a workload has a name, or several names",
        ),
        (
            HEAD + "workloads: [{name: a, manifests: [a], history: b}]\n" + ONE,
            "e.yaml: workloads[0]: has history and manifests; a workload has one of",
        ),
        (
            HEAD + "workloads: [{names: [a, a], history: a}]\n" + ONE,
            "e.yaml: workloads: has 'a' more than once",
        ),
        (
            HEAD + "workloads: [{name: a, history: a}]\nconfigurations: []\n",
            "e.yaml: configurations: is empty; one is the least",
        ),
        (
            HEAD + "workloads: [{name: a, history: a}]\nseeds: []\n" + ONE,
            "e.yaml: seeds: is empty",
        ),
        (HEAD.replace("v1", "v2") + ONE + "workloads: []\n", "e.yaml: is podium/v2 Experiment;"),
        (HEAD + "colour: red\n", "e.yaml: object contains unknown field `colour`"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        read(tmp_path, text)

    assert str(raised.value).startswith(f"{tmp_path}/{sentence}")
    assert "\n" not in str(raised.value)


def test_files_that_are_missing_are_named(tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    (tmp_path / "pods.csv").unlink()
    with pytest.raises(InputError, match=r"^pods\.csv: cannot be read: no such file"):
        cells_of(read_experiment(path), tmp_path)


def test_a_function_has_a_name(tmp_path: Path) -> None:
    path = write_experiment(tmp_path, "measure: study.py\n")
    with pytest.raises(InputError, match=r"'study\.py' names no function; write FILE\.py:function"):
        cells_of(read_experiment(path), tmp_path)
    assert "{more}" in EXPERIMENT
