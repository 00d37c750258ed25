"""How all tests are run: no deadlines, no silent skipping in CI, one control plane per process."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from control_plane.harness import ControlPlane, MissingError, assets, unavailable
from lab.clients.kubectl import debian, installed

# Machines that share their cores stall now and then; that is no failure.
settings.register_profile("quick", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "soak",
    deadline=None,
    max_examples=5000,
    stateful_step_count=200,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("quick")

#: Fixtures that start other programs, and files whose tests do so or take seconds each. Tests with
#: one of them, and random tests, are marked `slow`: `make quick` leaves them out.
SLOW_FIXTURES = frozenset({"browser", "control_plane", "kubectl", "programs", "shell", "start"})
SLOW_FILES = frozenset(
    {
        "bench/test_benchmarks.py",
        "bench/test_compare.py",
        "bench/test_workloads.py",
        "cli/test_console.py",
        "daemon/decisions/test_decision_log.py",
        "engine/fast/test_equals_plain_v1_13.py",
        "engine/fast/test_equals_plain_v1_36.py",
        "engine/rows/test_types.py",
        "engine/test_no_loops.py",
        "engine/user_rules/test_cost.py",
        "engine/user_rules/test_pages.py",
        "extender/test_both_directions.py",
        "lab/clients/test_python_clients.py",
        "lab/command/test_command.py",
        "lab/command/test_full_size.py",
        "lab/command/test_killed.py",
        "lab/command/test_scheduling_scenarios.py",
        "lab/http/test_fuzz.py",
        "lab/http/test_load.py",
        "lab/store/test_sqlite.py",
        "library/recordings/test_comparison.py",
        "parity/test_trust.py",
        "render/decision/test_as_json.py",
        "web/test_large.py",
    }
)
TESTS = Path(__file__).parent

# A shell starts programs in the background with SIGINT ignored, and they hand that on. Tests that
# interrupt a program need it as it is in the foreground.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the outcome of each test is written, with the figures it told."""
    parser.addoption("--soak-report", metavar="FILE", default="", help="write outcomes as JSON")


class Outcomes:
    """Notes what becomes of each test."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.noted: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One of the three phases of a test is over."""
        if report.when == "call" or report.outcome != "passed":
            sentence = report.nodeid.rpartition("::")[2].removeprefix("test_").replace("_", " ")
            found = {"test": sentence, "outcome": report.outcome, "seconds": report.duration}
            self.noted.append(found | {"figures": report.user_properties})

    def pytest_sessionfinish(self) -> None:
        """Write it down."""
        self.path.write_text(json.dumps(self.noted), "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Have a kubectl, and take notes if somebody wants them."""
    if not installed() and (other := debian()):
        # The only one there is does for everything that needs some kubectl.
        os.environ["PATH"] += f"{os.pathsep}{Path(other).parent}"
    if path := config.getoption("--soak-report"):
        config.pluginmanager.register(Outcomes(path))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `make quick` leaves out."""
    for item in items:
        path = item.path.relative_to(TESTS).as_posix()
        fixtures = SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ()))
        # The marker of hypothesis is set later than this.
        random = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        if fixtures or path in SLOW_FILES or random:
            item.add_marker(pytest.mark.slow)


def pytest_report_header() -> str:
    """Say first thing whether there is a real control plane to test against."""
    reason = unavailable()
    if reason:
        return f"NO CONTROL PLANE, its tests are skipped (CI: fail): {reason}"
    return "control plane: a real etcd, kube-apiserver and kube-scheduler"


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A real etcd and kube-apiserver; without them the test is skipped, which CI does not allow."""
    try:
        programs = assets()
    except MissingError as error:
        pytest.skip(str(error))
    folder = Path(tmp_path_factory.mktemp("control-plane"))
    made = ControlPlane(programs, folder, readable=True)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a test that lacks something fails."""
    report = yield
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """In CI a whole file that lacks something fails."""
    report = yield
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report
