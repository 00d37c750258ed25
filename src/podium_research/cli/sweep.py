"""`podium sweep`: run an experiment, and write one table of all its runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podium.cli.console import (
    INTERRUPTED,
    TERMINATED,
    TerminatedError,
    note,
    terminable,
    tracked,
    write,
    write_data,
)
from podium.cli.flags import output_flag
from podium.cli.parsing import FlagsCommand
from podium.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium_research.sweeps.cells import Cell, CellOutcome
    from podium_research.sweeps.experiment import Experiment
    from podium_research.sweeps.results import SweepFolder

#: How many errors are printed in full.
_SHOWN_ERRORS = 3


@click.command(cls=FlagsCommand)
@click.argument("experiment", type=click.Path(), metavar="EXPERIMENT.yaml")
@click.option(
    "--out",
    metavar="FOLDER",
    help="Where results go.  [default: the name of the experiment, in this folder]",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many processes run at a time.  [default: one per core]",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Use the workers of this Dask scheduler (tcp://HOST:PORT), or `local` ones.",
)
@click.option("--parquet", is_flag=True, help="Write results.parquet, too.")
@click.option("--fresh", is_flag=True, help="Run cells again that are finished already.")
@click.option("--only", multiple=True, metavar="TEXT", help="Run cells only whose name has TEXT.")
@output_flag("table", "json", "yaml")
def sweep(
    *,
    experiment: str,
    out: str | None,
    jobs: int | None,
    dask: str | None,
    parquet: bool,
    fresh: bool,
    only: tuple[str, ...],
    output: str,
) -> int:
    """Run every workload of an experiment with every configuration and every seed.

    The folder gets cells.jsonl (a line per finished run; what is finished is not run again),
    results.csv (a row per run), summary.csv (mean and spread) and charts.html. An interrupted
    sweep writes these files for what is finished; the same command goes on from there.

    Exit code: 0 all runs finished, 1 some failed, 2 bad input, 130 interrupted, 143 ended by
    SIGTERM.
    """
    from podium_research.sweeps.cells import cells_of  # noqa: PLC0415  brings the engine
    from podium_research.sweeps.experiment import folder_of, read_experiment  # noqa: PLC0415
    from podium_research.sweeps.results import SweepFolder  # noqa: PLC0415

    found = read_experiment(experiment)
    try:
        cells = cells_of(found, folder_of(experiment))
    except InputError as error:
        raise error.located(where=experiment) from None
    cells = [cell for cell in cells if all(text in cell.name for text in only)]
    if not cells:
        raise InputError(f"no cell has {' and '.join(only)} in its name", where=experiment)
    store = SweepFolder(Path(out or found.name), fresh=fresh)
    known = {each.digest for each in store.known(cells)}
    failed: list[CellOutcome] = []
    if known:
        note(f"{len(known)} of {len(cells)} runs are finished already")
    ended_by = 0
    try:
        left = [cell for cell in cells if cell.digest not in known]
        with terminable():
            _run(left, store, failed, jobs, dask, finished=len(known))
    except TerminatedError:
        ended_by = TERMINATED
        note("ended by SIGTERM; the same command goes on from here")
    except KeyboardInterrupt:
        ended_by = INTERRUPTED
        note("interrupted; the same command goes on from here")
    finally:
        store.close()
    # What is kept counts, also if the interruption came right after it.
    outcomes = [*store.known(cells), *failed]
    _report(found, cells, outcomes, store, parquet=parquet, output=output)
    return ended_by or _failures(failed)


def _run(
    cells: Sequence[Cell],
    store: SweepFolder,
    failed: list[CellOutcome],
    jobs: int | None,
    dask: str | None,
    *,
    finished: int,
) -> None:
    """Run the cells, and keep each outcome when it is there."""
    from podium_research.sweeps.engines import dask_engine, local_engine, run_cells  # noqa: PLC0415

    if not cells:
        return
    processes = jobs or os.cpu_count() or 1
    chosen = (
        local_engine(min(processes, len(cells))) if dask is None else dask_engine(dask, processes)
    )
    with chosen as engine:
        what = f"running ({finished} before)" if finished else "running"
        for outcome in tracked(run_cells(cells, engine), len(cells), what, after_seconds=0):
            store.keep(outcome)
            if outcome.error:
                failed.append(outcome)


def _report(
    experiment: Experiment,
    cells: Sequence[Cell],
    outcomes: Sequence[CellOutcome],
    store: SweepFolder,
    *,
    parquet: bool,
    output: str,
) -> None:
    """Write the tables and the charts, and print the summary."""
    from podium.render.columns import aligned  # noqa: PLC0415
    from podium_research.sweeps import charts, results  # noqa: PLC0415

    ordered = results.in_order(cells, outcomes)
    spreads = results.summary(ordered)
    shown = list(experiment.show or results.figures_of(ordered))
    if ordered:
        rows = results.table(ordered)
        store.write(
            results.TABLE, results.to_csv(list(rows[0]), (list(row.values()) for row in rows))
        )
        store.write(results.SUMMARY, results.to_csv(results.SUMMARY_COLUMNS, spreads))
        if parquet:
            store.write(results.PARQUET, results.to_parquet(rows))
        known = [name for name in shown if any(each.figure == name for each in spreads)]
        store.write(results.PAGE, charts.charts_page(experiment.name, spreads, known))
        shown = known
    failed = [each for each in outcomes if each.error]
    if output != "table":
        write_data(_document(experiment, len(cells), ordered, failed), output)
        return
    seconds = sum(each.seconds for each in ordered)
    write(
        f"{experiment.name}: {len(ordered)} of {len(cells)} runs finished, "
        f"{seconds:,.0f} s of work, results in {store.folder}\n"
    )
    for name in shown:
        write(f"\n{name}, mean ± standard deviation\n")
        means = charts.pivot(spreads, name)
        write("".join(f"{line}\n" for line in aligned(means, range(1, len(means[0])))))


def _document(
    experiment: Experiment,
    cells: int,
    ordered: Sequence[CellOutcome],
    failed: Sequence[CellOutcome],
) -> dict[str, Any]:
    from podium_research.sweeps import results  # noqa: PLC0415

    return {
        "experiment": experiment.name,
        "cells": cells,
        "finished": len(ordered),
        "failed": [
            {
                "workload": f.workload,
                "configuration": f.configuration,
                "seed": f.seed,
                "error": f.error,
            }
            for f in failed
        ],
        "summary": [each._asdict() for each in results.summary(ordered)],
        "runs": results.table(ordered),
    }


def _failures(failed: Sequence[CellOutcome]) -> int:
    for each in failed[:_SHOWN_ERRORS]:
        note(f"{each.workload}, {each.configuration}, seed {each.seed}: {each.error}")
    if len(failed) > _SHOWN_ERRORS:
        note(f"{len(failed) - _SHOWN_ERRORS} more runs failed")
    return int(bool(failed))
