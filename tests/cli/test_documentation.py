"""docs/cli.md names every command and every flag, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from podium.cli.main import COMMANDS, app

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text("utf-8")
#: Examples of how switches are written, and a flag of kubectl.
NO_FLAGS = {"--switch"}
#: Flags of earlier versions, which the page names beside the new ones.
OLD_FLAGS = {"--cluster", "--domain"}


def commands(group: click.Group = app) -> Iterator[click.Command]:
    context = click.Context(group)
    names = COMMANDS if group is app else group.list_commands(context)
    for name in names:
        command = group.get_command(context, name)
        assert command is not None
        yield command
        if isinstance(command, click.Group):
            yield from commands(command)


def flags(command: click.Command, *, hidden: bool = False) -> set[str]:
    options = [each for each in command.params if isinstance(each, click.Option)]
    return {name for each in options if hidden or not each.hidden for name in each.opts}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_place(name: str) -> None:
    assert re.search(rf"^## .*\bpodium {name}\b", PAGE, re.MULTILINE)


@pytest.mark.parametrize("command", list(commands()), ids=lambda command: str(command.name))
def test_every_flag_is_explained(command: click.Command) -> None:
    missing = [name for name in flags(command) if not re.search(rf"{name}(?![\w-])", PAGE)]

    assert missing == []


def test_every_flag_that_is_explained_exists() -> None:
    known = set[str]().union(*(flags(command, hidden=True) for command in commands()))
    named = set(re.findall(r"(?<![\w-])(--[a-z][\w-]*)", PAGE))

    assert named - NO_FLAGS - OLD_FLAGS <= known


@pytest.mark.parametrize("command", list(commands()), ids=lambda command: str(command.name))
def test_one_name_has_one_meaning(command: click.Command) -> None:
    """`-o` is a format, `--out` a file or folder, `--server` an API server, `--listen` where."""
    for option in (each for each in command.params if isinstance(each, click.Option)):
        if "-o" in option.opts or "--output" in option.opts:
            assert isinstance(option.type, click.Choice)
            assert {"-o", "--output"} <= set(option.opts)
            assert {"json", "yaml"} <= set(option.type.choices)
        if "--out" in option.opts:
            assert option.metavar in {"FILE", "FOLDER"}
        if "--listen" in option.opts:
            assert option.metavar == "HOST:PORT"
        if "--server" in option.opts:
            assert option.metavar == "URL"
            assert "API server" in (option.help or "")


@pytest.mark.parametrize("command", list(commands()), ids=lambda command: str(command.name))
def test_one_short_flag_has_one_meaning(command: click.Command) -> None:
    for option in (each for each in command.params if isinstance(each, click.Option)):
        if "-v" in option.opts:
            assert (option.opts, option.metavar) == (["-v", "--v"], "N")
        if "-n" in option.opts:
            assert {"-n", "--namespace"} == set(option.opts)
        if "--kubeconfig" in option.opts:
            assert "Write" not in (option.help or "")
        if option.metavar == "SECONDS":
            pytest.fail(f"{option.opts[0]}: times are DURATIONs")
        if "text" in getattr(option.type, "choices", ()):
            assert option.opts == ["--logging-format"]  # as kube-scheduler has it
        if "-f" in option.opts:
            assert "--filename" in option.opts


@pytest.mark.parametrize("command", list(commands()), ids=lambda command: str(command.name))
def test_whoever_names_a_pod_or_a_cluster_does_it_as_in_kubectl(command: click.Command) -> None:
    known = flags(command)
    if any(each.metavar == "POD" for each in command.params):
        assert {"-n", "--namespace", "-A", "--all-namespaces"} <= known
    if "--kubeconfig" in known:
        assert {"--context", "--server"} <= known


@pytest.mark.parametrize("command", list(commands()), ids=lambda command: str(command.name))
def test_every_flag_has_a_help_text(command: click.Command) -> None:
    options = [each for each in command.params if isinstance(each, click.Option)]

    assert [each.opts for each in options if not each.help and not each.hidden] == []


#: What prints a script, logs or nothing at all.
WITHOUT_RESULTS = {"completion", "mcp", "run", "config", "history"}


@pytest.mark.parametrize("command", list(commands()), ids=lambda command: str(command.name))
def test_results_can_be_had_as_json_and_yaml(command: click.Command) -> None:
    assert ("-o" in flags(command)) is (command.name not in WITHOUT_RESULTS)


ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
#: What ends a command in a line of a shell, and what a document leaves out.
END = re.compile(r"\s(?:#|\||&|;|>|2>|<<|\\|…)|[…]")


def shown_commands(text: str) -> Iterator[str]:
    """Every `podium …` in blocks of code and within lines."""
    for block in re.findall(r"^```(?:sh|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield from re.findall(r"^(?:\$ )?(podium .*(?:\\\n.*)*)", block, re.MULTILINE)
    yield from re.findall(r"^    (?:\$ )?(podium .*)", text, re.MULTILINE)
    yield from re.findall(r"(?<!`)`(podium [^`]*)`", text)


def unknown_flags(line: str) -> list[str]:
    """What a command line names that does not exist."""
    words = END.split(line.replace("\\\n", " ") + " ")[0].split()[1:]
    command: click.Command = app
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0).rstrip(",")
        found = command.get_command(click.Context(command), name)
        if found is None:
            return [name]
        command = found
    known = flags(command, hidden=True) | {"--help", "-h", "--version", "--"}
    given = [word.partition("=")[0].rstrip(",.;)") for word in words if re.match(r"--?[a-z]", word)]
    return [each for each in given if each not in known]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_that_is_shown_exists(document: Path) -> None:
    lines = set(shown_commands(document.read_text("utf-8")))

    assert {line: wrong for line in lines if (wrong := unknown_flags(line))} == {}


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("podium schedule x --no-preemption=false -o name", []),
        ("podium shedule x", ["shedule"]),
        ("podium config shown", ["shown"]),
        ("podium lab --bright | head --lines=3", ["--bright"]),
        ("podium explain a b --timings, podium", []),
    ],
)
def test_what_does_not_exist_is_seen(line: str, wrong: list[str]) -> None:
    assert unknown_flags(line) == wrong
