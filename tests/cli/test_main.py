"""The command as a whole: help, errors, pipes, and the small commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

import podium as package
from cli.conftest import Files, Podium
from library.test_cluster_release import VERSION, api_server
from manifests import FIVE, pod
from podium.cli import main as entry

SOURCE = Path(__file__).parents[2] / "src"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(SOURCE)}
COMMANDS = sorted(entry.COMMANDS)


def python(*code: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, *code],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_help_has_the_commands_in_groups_and_the_exit_codes(podium: Podium) -> None:
    result = podium("--help")

    assert result.code == 0
    titles = [line for line in result.lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Options:", *(f"{title}:" for title in entry.SECTIONS)]
    listed = [name for section in entry.SECTIONS.values() for name in section]
    assert [
        line.split()[0]
        for line in result.lines
        if line.startswith("  ") and line.split()[0] in COMMANDS
    ] == listed
    assert len(listed) <= 15
    assert all(len(line) <= 80 for line in result.lines)
    assert "Exit codes: 0" in result.out


@pytest.mark.parametrize("command", [*((name,) for name in COMMANDS), ("config", "check")])
def test_every_command_has_help(podium: Podium, command: tuple[str, ...]) -> None:
    result = podium(*command, "--help")

    assert result.code == 0
    assert result.out.startswith(f"Usage: podium {' '.join(command)} ")


#: What `podium --help` and `podium version` have no use for.
HEAVY = {
    *("aiohttp", "asyncio", "http", "logging", "msgspec", "numpy", "ssl", "starlette"),
    *("urllib.request", "uvicorn", "yaml"),
    *("podium.cluster", "podium.engine", "podium.kube", "podium.objects", "podium.profiles"),
}


#: What a command needs that prints something of its own.
PRINTING = {"signal", "podium.cli.console", "podium.render"}


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [((), set()), (("--help",), set()), (("--version",), set()), (("version",), PRINTING)],
)
def test_starting_costs_little(arguments: tuple[str, ...], allowed: set[str]) -> None:
    code = (
        f"import sys; from podium.cli.main import run; run({list(arguments)});"
        "print(*sys.modules, file=sys.stderr)"
    )
    imported = set(python("-c", code).stderr.split())

    assert "podium.cli.main" in imported
    assert imported & (HEAVY | PRINTING) == allowed


#: What a scheduler of a cluster has no use for unless its flags, or who reads its metrics, ask.
RARE = {
    *("aiohttp", "prometheus_client", "starlette", "urllib.request", "uvicorn"),
    *("podium.past.format", "podium.past.judge", "podium.past.replay", "podium.web"),
}


def test_a_scheduler_of_a_cluster_imports_only_what_it_always_needs() -> None:
    imported = set(
        python("-c", "import sys, podium.host.cluster_run; print(*sys.modules)").stdout.split()
    )

    assert "podium.scheduler.scheduler" in imported
    assert imported & RARE == set()


#: What makes pages and archives, and arrays with holes (`np.unique` of one argument imports that,
#: which takes longer than the first preemption in a full cluster). Its peak of memory tells, too.
NOT_MEASURED = {
    *("html", "importlib.resources", "lzma", "numpy.ma", "podium.render.html_page", "tempfile"),
}


@pytest.mark.parametrize("workload", ["SchedulingBasic", "Preemption"])
@pytest.mark.parametrize("generation", ["v1.13", "v1.36"])
def test_a_measurement_imports_nothing_that_deciding_does_not_need(
    workload: str, generation: str
) -> None:
    small = ["--nodes", "100", "--existing", "400", "--pods", "2"]
    arguments = ["bench", f"{workload}/5000Nodes", "--profile", generation, *small]
    code = (
        f"import sys; from podium.cli.main import run; run({arguments});"
        "print(*sys.modules, file=sys.stderr)"
    )
    imported = set(python("-c", code).stderr.split())

    assert "podium_research.bench.text_table" in imported
    assert imported & NOT_MEASURED == set()


def test_the_long_lists_are_asked_for_before_the_scheduler_is_imported() -> None:
    code = (
        "import sys, podium.host.cluster_program as program;"
        "program.run_cluster = lambda *_, **__: print(*sys.modules);"
        "from podium.cli.main import run; run(sys.argv[1:])"
    )
    with api_server(VERSION) as cluster:
        ended = python("-c", code, "run", "--server", cluster, timeout=60)
    imported = ended.stdout.split()

    later = (
        "numpy",
        "podium.engine",
        "podium.past",
        "podium.profiles",
        "podium.scheduler.state.informers",
        "podium.objects.kinds.registry",
    )
    assert "decided as v1.37" in ended.stderr
    assert "podium.scheduler.state.begun_lists" in imported
    assert not [name for name in imported if name.startswith(later)]


def test_without_arguments_help_is_printed(podium: Podium) -> None:
    assert podium() == podium("--help")
    assert podium("history") == podium("history", "--help")
    assert podium("config") == podium("config", "--help")


def test_the_module_runs_as_the_command() -> None:
    result = python("-m", "podium", "version")

    assert result.returncode == 0
    assert result.stdout.startswith(f"podium {package.__version__} ")


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are not listed here")
def test_numpy_starts_no_threads_for_its_linear_algebra() -> None:
    code = (
        "import os, podium.cli.main as entry;"
        "entry.run = lambda *_: exec('import numpy') or len(os.listdir('/proc/self/task'));"
        "entry.main()"
    )

    assert python("-c", code).returncode == 1


def test_kubectl_runs_it_under_its_own_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl-podium", "explain", "--help"])

    with pytest.raises(SystemExit) as ended:
        entry.kubectl_main()

    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("Usage: kubectl podium explain ")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("shedule",), "there is no command 'shedule'; did you mean schedule?"),
        (("zzz",), "there is no command 'zzz'; known: explain, schedule"),
        (("schedule",), "there is no cluster to talk to"),
        (("schedule", "x", "-n", "a", "-A"), "-n and -A exclude each other"),
        (("schedule", "x", "--context", "a"), "--context is for a live cluster; leave out FILES"),
        (("explain", "a"), "there is no cluster to talk to"),
        (("history", "verify", "--most", "-1", "x"), "invalid value for '--most'"),
        (("history", "verify"), "missing argument"),
        (("history", "verif"), "there is no command 'verif'; did you mean verify?"),
        (("config", "check"), "missing argument 'FILE'"),
        (("help", "plan", "-o", "json"), "-o is for `podium help reason` and"),
        (("completion", "tcsh"), "'tcsh' is not one of"),
        (("version", "-o", "wide"), "'wide' is not one of"),
    ],
)
def test_wrong_usage_exits_2_with_a_sentence(
    podium: Podium, arguments: tuple[str, ...], sentence: str
) -> None:
    result = podium(*arguments)

    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("podium: ")
    assert sentence in result.err
    assert len(result.err.splitlines()) == 1


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    @click.command()
    def version() -> None:
        raise error

    monkeypatch.setattr("podium.cli.version.version", version)


def test_a_bug_is_one_sentence(podium: Podium, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, KeyError("row"))

    result = podium("version")

    assert result.code == entry.BUG
    assert result.err == (
        "podium: internal error (KeyError: 'row'); "
        "set PODIUM_TRACEBACK=1 to see where, and report it\n"
    )


def test_a_bug_can_be_looked_into(podium: Podium, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, KeyError("row"))
    monkeypatch.setenv("PODIUM_TRACEBACK", "1")

    with pytest.raises(KeyError):
        podium("version")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_exits_130(
    podium: Podium, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    failing(monkeypatch, error)

    result = podium("version")

    assert (result.code, result.err.strip()) == (130, "podium: interrupted")


@pytest.mark.parametrize("output", ["name", "json"])  # less than a buffer, and more
def test_a_closed_pipe_is_no_traceback(write: Files, output: str) -> None:
    cluster = write([*FIVE, *(pod(f"p{i}", "1m") for i in range(50))])
    command = [sys.executable, "-m", "podium", "schedule", "-o", output, cluster]
    with subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        said = run.stderr.read()

    assert run.returncode in {entry.BROKEN_PIPE, -signal.SIGPIPE}
    assert said == b""


def test_names_cannot_steer_the_terminal(podium: Podium) -> None:
    result = podium("schedule", "evil\x1b[2J.yaml")

    assert "\x1b" not in result.err
    assert "evil\\x1b[2J.yaml" in result.err


def test_a_terminal_without_unicode_gets_an_answer(write: Files) -> None:
    environment = ENVIRONMENT | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "podium", "explain", "a", write([*FIVE, pod("a")])]

    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert (run.returncode, run.stderr) == (0, "")
    assert "default/a goes to n3" in run.stdout


def test_version_names_the_profiles(podium: Podium) -> None:
    assert podium("--version").out == f"podium {package.__version__}\n"
    assert "profile v1.13: predicates and priorities" in podium("version").out
    data = podium("version", "-o", "json").json
    assert data["version"] == package.__version__
    assert data["profiles"][0]["providers"] == ["DefaultProvider", "ClusterAutoscalerProvider"]
    assert yaml.safe_load(podium("version", "-o", "yaml").out) == data


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(podium: Podium, shell: str) -> None:
    result = podium("completion", shell)

    assert result.code == 0
    assert "_PODIUM_COMPLETE" in result.out


def test_the_shell_is_told_what_can_follow() -> None:
    environment = ENVIRONMENT | {
        "_PODIUM_COMPLETE": "bash_complete",
        "COMP_WORDS": "podium sch",
        "COMP_CWORD": "1",
    }
    code = "from podium.cli.main import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )

    assert run.stdout.split() == ["plain,schedule"]


def test_a_flag_that_is_true_or_false(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["run", "--leader-elect=maybe"]) == 2
    assert "--leader-elect: expected true or false, got 'maybe'" in capsys.readouterr().err
