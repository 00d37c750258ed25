"""Outcomes are kept as they come, read again after a cut, and summed up."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from podium.errors import InputError
from podium_research.sweeps.cells import Cell, CellOutcome, cells_of
from podium_research.sweeps.charts import charts_page, pivot, svg
from podium_research.sweeps.experiment import read_experiment
from podium_research.sweeps.results import (
    CELLS,
    Spread,
    SweepFolder,
    in_order,
    summary,
    table,
    to_csv,
    to_parquet,
)
from research.sweeps.small_experiment import write_experiment


def outcome(cell: Cell, value: float, error: str = "") -> CellOutcome:
    names = (cell.workload.name, cell.configuration.name, cell.seed)
    return CellOutcome(cell.digest, *names, {"x": value} if not error else {}, 0.1, error)


@pytest.fixture
def cells(tmp_path: Path) -> list[Cell]:
    path = write_experiment(tmp_path / "input")
    return cells_of(read_experiment(path), tmp_path / "input")


def test_finished_cells_are_known_to_the_next_sweep(cells: list[Cell], tmp_path: Path) -> None:
    store = SweepFolder(tmp_path / "out")
    store.keep(outcome(cells[1], 5))
    store.keep(outcome(cells[2], 0, error="broken"))
    store.close()

    again = SweepFolder(tmp_path / "out")
    assert again.known(cells) == [outcome(cells[1], 5)]
    again.close()
    fresh = SweepFolder(tmp_path / "out", fresh=True)
    assert fresh.known(cells) == []
    fresh.close()


def test_a_store_cut_at_any_byte_keeps_what_was_whole(cells: list[Cell], tmp_path: Path) -> None:
    store = SweepFolder(tmp_path)
    for place, cell in enumerate(cells[:3]):
        store.keep(outcome(cell, place))
    store.close()
    whole = (tmp_path / CELLS).read_bytes()
    for cut in range(0, len(whole), 7):
        (tmp_path / CELLS).write_bytes(whole[:cut])
        store = SweepFolder(tmp_path)
        known = store.known(cells)
        assert len(known) == whole[:cut].count(b"\n")
        store.keep(outcome(cells[5], 9))
        store.close()
        store = SweepFolder(tmp_path)
        assert store.known(cells) == [*known, outcome(cells[5], 9)]
        store.close()


def test_the_table_is_in_the_order_of_the_cells(cells: list[Cell]) -> None:
    found = [outcome(cells[4], 1), outcome(cells[0], 2), outcome(cells[2], 0, error="broken")]

    assert table(in_order(cells, found)) == [
        {"workload": "shop", "configuration": "spread", "seed": 1, "x": 2},
        {"workload": "shop", "configuration": "pack", "seed": 2, "x": 1},
    ]


def test_a_summary_has_means_and_spread(cells: list[Cell]) -> None:
    numbers = [outcome(cell, value) for cell, value in zip(cells, (1, 2, 6, 4), strict=False)]

    assert summary(numbers) == [
        Spread("shop", "spread", "x", 3, 3.0, 2.645751, 1, 6),
        Spread("shop", "pack", "x", 1, 4.0, 0.0, 4, 4),
    ]
    assert pivot(summary(numbers), "x") == [
        ("WORKLOAD", "spread", "pack"),
        ("shop", "3 ± 2.65", "4"),
    ]


def test_csv_and_parquet_hold_the_same(cells: list[Cell]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    rows = table([outcome(cells[0], 1.5), outcome(cells[1], 2)])

    read = parquet.read_table(pyarrow.BufferReader(to_parquet(rows)))
    assert read.to_pylist() == rows
    assert to_csv(list(rows[0]), (list(row.values()) for row in rows)) == (
        "workload,configuration,seed,x\nshop,spread,1,1.5\nshop,spread,2,2\n"
    )


def test_charts_are_well_formed_and_name_everything() -> None:
    spreads = [
        Spread("a<b", "one", "x", 3, 3.0, 1.0, 2, 4),
        Spread("a<b", "two", "x", 1, 7.0, 0.0, 7, 7),
    ]
    drawn = ET.fromstring(svg(spreads, "x"))  # noqa: S314
    titles = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}title")]

    assert titles[1:] == [
        "a<b, one: 3 (3 runs, 2 to 4, standard deviation 1)",
        "a<b, two: 7 (1 run, 7 to 7, standard deviation 0)",
    ]
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}circle"))) == 4
    assert "<h1>mine</h1>" in charts_page("mine", spreads, ["x"])
    same = [Spread("w", "c", "x", 1, 5.0, 0.0, 5, 5)]
    assert "<circle" in svg(same, "x")


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/out: cannot be written: not a directory"):
        SweepFolder(tmp_path / "file" / "out")
