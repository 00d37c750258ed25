"""The same table on every engine, with any number of workers, and when workers are lost."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from podium.errors import InputError
from podium_research.sweeps.cells import Cell, CellOutcome, cells_of
from podium_research.sweeps.engines import LocalProcesses, dask_engine, local_engine, run_cells
from podium_research.sweeps.experiment import folder_of, read_experiment
from podium_research.sweeps.results import in_order, table
from podium_research.sweeps.runs import run_cell
from research.sweeps.small_experiment import MEASURED, write_experiment


def cells_in(path: str) -> list[Cell]:
    return cells_of(read_experiment(path), folder_of(path))


def rows(cells: list[Cell], outcomes: list[CellOutcome]) -> list[dict[str, object]]:
    return table(in_order(cells, outcomes))


def here(cells: list[Cell]) -> list[dict[str, object]]:
    return rows(cells, list(map(run_cell, cells)))


def test_a_cell_runs_in_this_process(tmp_path: Path) -> None:
    found = here(cells_in(write_experiment(tmp_path)))

    assert [(each["configuration"], each["seed"]) for each in found[:2]] == [
        ("spread", 1),
        ("spread", 2),
    ]
    assert {each["placed"] for each in found} <= {3, 4, 5}
    assert len({each["weight"] for each in found}) > 1


def test_cells_with_other_files_of_the_same_names_do_not_mix(tmp_path: Path) -> None:
    first = cells_in(write_experiment(tmp_path / "a"))[0]
    path = write_experiment(tmp_path / "b")
    study = tmp_path / "b" / "study.py"
    study.write_text(study.read_text().replace('"placed":', '"other":'))
    second = cells_in(path)[0]

    for _ in range(2):
        assert "placed" in run_cell(first).figures
        assert "other" in run_cell(second).figures


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 3])
def test_processes_give_the_same_table(tmp_path: Path, processes: int) -> None:
    cells = cells_in(write_experiment(tmp_path))
    with local_engine(processes) as engine:
        outcomes = list(run_cells(cells, engine))

    assert rows(cells, outcomes) == here(cells)


@pytest.mark.slow
def test_a_process_that_is_killed_costs_only_its_cell(tmp_path: Path) -> None:
    cells = cells_in(write_experiment(tmp_path, kills=True))
    with local_engine(2) as engine:
        outcomes = list(run_cells(cells, engine))

    assert (tmp_path / "killed").exists()
    assert [each.error for each in outcomes] == [""] * 6
    assert rows(cells, outcomes) == here(cells)


@pytest.mark.slow
def test_a_cell_that_always_kills_its_process_is_given_up(tmp_path: Path) -> None:
    path = write_experiment(tmp_path, kills=True)
    study = tmp_path / "study.py"
    study.write_text(study.read_text().replace("MARKER.touch()", "pass"))
    cells = cells_in(path)
    with local_engine(2) as engine:
        outcomes = list(run_cells(cells, engine))

    failed = [each for each in outcomes if each.error]
    assert {each.seed for each in failed} == {2}
    assert {each.error for each in failed} == {"its worker ended 3 times: the process has ended"}
    assert len(outcomes) == 6


@pytest.mark.slow
def test_calls_that_raise_leave_the_process_alive() -> None:
    executor = LocalProcesses(1)
    try:
        with pytest.raises(ValueError, match="invalid literal"):
            executor.submit(int, "x").result()
        [before] = executor.process_ids
        assert executor.submit(os.getpid).result() == before
        with pytest.raises(BrokenExecutor):
            executor.submit(os._exit, 3).result()
        assert executor.submit(os.getpid).result() != before
    finally:
        executor.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_two_dask_workers_one_killed_give_the_same_table(tmp_path: Path) -> None:
    cells = cells_in(write_experiment(tmp_path, kills=True))
    with dask_engine("local", 2) as engine:
        outcomes = list(run_cells(cells, engine))

    assert (tmp_path / "killed").exists()
    assert [each.error for each in outcomes] == [""] * 6
    assert rows(cells, outcomes) == here(cells)


@pytest.mark.slow
@pytest.mark.filterwarnings("error:Port 8787")
def test_two_sweeps_run_at_a_time() -> None:
    distributed = pytest.importorskip("distributed")
    with dask_engine("local", 1):
        client = distributed.default_client()
        with dask_engine("local", 1):
            pass
        served = urlsplit(client.dashboard_link)

    assert served.hostname == "127.0.0.1"
    assert served.port != 8787


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_an_address_without_a_scheduler_is_one_sentence() -> None:
    with (
        pytest.raises(InputError, match=r"^there is no Dask scheduler at tcp://127\.0\.0\.1:1:"),
        dask_engine("tcp://127.0.0.1:1", 2),
    ):
        pass


def wrong(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (wrong("self.pods = ", "raise OSError('no disk') #"), "OSError: no disk"),
        (wrong("class Order", "class Other"), "study.py has no function Order"),
        (wrong('"pods": self.pods', '"pods": "5"'), "figure 'pods' is '5', expected a number"),
    ],
)
def test_what_goes_wrong_in_a_function_is_in_the_outcome(
    tmp_path: Path, change: Callable[[str], str], error: str
) -> None:
    path = write_experiment(tmp_path)
    study = tmp_path / "study.py"
    study.write_text(change(study.read_text()))

    assert run_cell(cells_in(path)[0]).error == error


def test_a_rule_that_fails_ends_the_run(tmp_path: Path) -> None:
    path = write_experiment(tmp_path, MEASURED)
    (tmp_path / "own.py").write_text(
        "from podium.rules import priority\n@priority('Own')\ndef own(pod, node): return 1 // 0\n"
    )
    experiment = tmp_path / "experiment.yaml"
    experiment.write_text(
        experiment.read_text().replace("profile: v1.36", "profile: v1.36, rules: [own.py]")
    )

    error = run_cell(cells_in(path)[0]).error
    assert error.startswith("rule Own failed for pod default/")
    assert "ZeroDivisionError: integer division or modulo by zero (" in error
    assert error.endswith("own.py:3)")


def test_arguments_follow_from_the_trace(tmp_path: Path) -> None:
    path = write_experiment(tmp_path)
    (tmp_path / "own.py").write_text(
        "from podium.rules import priority\n"
        "@priority('Own', weight=1000, depends='node')\n"
        "def own(pod, node, best=''): return 100 if node.name == best else 0\n"
        "def last_node(trace): return {'Own': {'best': trace.nodes[-1].node.name}}\n"
    )
    experiment = tmp_path / "experiment.yaml"
    changed = "profile: v1.36, rules: [own.py], arguments: 'own.py:last_node'"
    experiment.write_text(experiment.read_text().replace("profile: v1.36", changed))
    plain, with_rule = (tmp_path / "study.py"), run_cell(cells_in(path)[0])

    assert plain.exists()
    assert with_rule.error == ""
    assert with_rule.figures["weight"] > 0


@pytest.mark.slow
def test_nobody_else_submits_code_to_the_workers_of_this_machine() -> None:
    distributed = pytest.importorskip("distributed")

    def is_served(keys: ssl.SSLContext) -> bool:
        """True if Dask's scheduler greets a client that takes any server's certificate."""
        keys.check_hostname, keys.verify_mode = False, ssl.CERT_NONE
        try:
            with (
                socket.create_connection((host, int(port))) as plain,
                keys.wrap_socket(plain) as own,
            ):
                return own.recv(1) != b""
        except OSError:
            return False

    def keys_of(security: Any) -> ssl.SSLContext:
        context = security.get_connection_args("client")["ssl_context"]
        assert isinstance(context, ssl.SSLContext)
        return context

    with dask_engine("local", 1):
        client = distributed.default_client()
        protocol, host, port = client.scheduler.address.replace("//", "").split(":")
        assert (protocol, host) == ("tls", "127.0.0.1")
        assert is_served(keys_of(client.security))
        assert not is_served(ssl.create_default_context())
        assert not is_served(keys_of(distributed.Security.temporary()))
