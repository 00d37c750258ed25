"""How all tests are run: no deadlines, no silent skipping in CI, one control plane per process."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import signal
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from control_plane.harness import ABSENT, ControlPlane, MissingError, assets, unavailable
from lab.clients.kubectl import debian, installed
from podium.cluster.decider import Decider
from podium.cluster.verification import Discrepancy, Verification
from podium.scheduler import scheduler

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

#: Fixtures that start other programs. Tests with one of them, and random tests, are marked `slow`:
#: `make quick` leaves them out. Files of other tests that take seconds each carry the mark.
SLOW_FIXTURES = frozenset(
    {"browser", "control_plane", "every_plane", "kubectl", "programs", "shell", "start"}
)
TESTS = Path(__file__).parent

#: Where every decision is made twice, from kept answers and without any, and must be the same.
VERIFIED = frozenset(
    {
        "cluster",
        "engine",
        "library",
        "parity",
        "past",
        "scheduler",
        "serving",
        "sweeps",
        "virtual_cluster",
        "what_if",
        "world",
    }
)

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
        fixtures = SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ()))
        # The marker of hypothesis is set later than this.
        random = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        if fixtures or random:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine has an event loop of its own; a fixture `run` says which."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    given: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in wanted}
    given.get("run", asyncio.run)(pyfuncitem.obj(**given))
    return True


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
    """In CI a test that lacks something fails, unless the given control plane is too old or new."""
    report = yield
    older = ABSENT in str(
        report.longrepr
    )  # of the program that is tested with, not of this machine
    if IN_CI and report.skipped and not older and not hasattr(report, "wasxfail"):
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


@pytest.fixture(autouse=True)
def every_decision_is_verified(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Fail a test when kept answers lead to another decision than all rules on all nodes."""
    folder = request.path.relative_to(TESTS).as_posix().removeprefix("research/").split("/")[0]
    found: list[Discrepancy] = []

    def in_schedulers(_: int, report: Callable[[Discrepancy], None]) -> Verification:
        def noted(difference: Discrepancy) -> None:
            found.append(difference)  # an exception would be an error of the pod
            report(difference)

        return Verification(1, noted)

    if folder in VERIFIED and request.node.get_closest_marker("unverified") is None:
        verification = partial(Verification, 1, _fail)
        monkeypatch.setattr(Decider, "usual_verification", staticmethod(verification))
        monkeypatch.setattr(scheduler, "Verification", in_schedulers)
    yield
    for difference in found:
        _fail(difference)


def _fail(difference: Discrepancy) -> None:
    raise AssertionError(f"kept answers decide otherwise: {difference}")
