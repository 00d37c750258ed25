"""The documents are true: paths exist, names resolve, and ARCHITECTURE.md agrees with the source.

Commands and flags of `podium` that documents show are checked by `tests/cli/test_documentation.py`,
the blocks of single pages by tests of their own.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from podium.engine.framework import dependencies, explanation, rule, shortcuts
from test_layers import INSIDE, LAYERS, PACKAGE, ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
#: Documents about the design, whose names are those of the source.
DESIGN = [
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("cache", "equivalence", "queue", "scheduler")),
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
]

BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
QUOTED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PATH = re.compile(r"[\w.<>*-]+(/[\w.<>*-]+)*/?")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*(\.\w+)*")
#: Where a path in a document may start, besides the folder of the document.
STARTS = (ROOT, PACKAGE, ROOT / "tests")
#: Words in code style that are no names of the source: of Python, of tools, and examples.
FOREIGN = {"bool", "cpu_millis", "int", "int64", "mypy", "pytest", "utils"}


def quoted(text: str) -> list[str]:
    """What stands in backticks outside of blocks."""
    return QUOTED.findall(BLOCK.sub("", text))


def section(title: str) -> str:
    """The text of one section of ARCHITECTURE.md."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", ARCHITECTURE, re.MULTILINE | re.DOTALL)
    assert found, f"ARCHITECTURE.md has no section {title!r}"
    return found[1]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# Paths ----------------------------------------------------------------------------------------


@cache
def layers() -> frozenset[str]:
    return frozenset(" ".join(LAYERS).split())


@cache
def folders() -> frozenset[str]:
    """The folders of the project, and those of the package."""
    found = {each.name for start in STARTS for each in start.iterdir() if each.is_dir()}
    return frozenset(found - {"__pycache__"})


@cache
def file_names() -> frozenset[str]:
    folders_with_files = ("src", "tests", "benchmarks", "examples", "docs", "deploy", "tools")
    found = {file.name for name in folders_with_files for file in (ROOT / name).rglob("*.*")}
    return frozenset(found | {file.name for file in ROOT.iterdir()})


def is_path(word: str) -> bool:
    """Whether the word is a path of the project: it has a known folder, or ends like a file."""
    if not PATH.fullmatch(word) or word.isupper() or word.startswith("*"):
        return False
    if "/" in word:
        return word.split("/", maxsplit=1)[0] in folders()
    return word.endswith((".py", ".md"))


def made_by(text: str) -> set[str]:
    """Names of the files that the blocks of a page write."""
    return set(re.findall(r"^```\w+\n# ([\w.]+)$", text, re.MULTILINE))


def exists(word: str, document: Path) -> bool:
    """Whether a path leads somewhere; `<…>` stands for any name."""
    if "/" not in word:
        return word in file_names() or word.isupper() or word.split(".", maxsplit=1)[0].isupper()
    pattern = re.sub(r"<[^>]*>", "*", word).rstrip("/")
    return any(any(start.glob(pattern)) for start in (document.parent, *STARTS))


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_every_path_leads_somewhere(document: Path) -> None:
    text = document.read_text("utf-8")
    paths = {word for word in quoted(text) if is_path(word)} - made_by(text)

    assert sorted(path for path in paths if not exists(path, document)) == []


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("engine/rules/<idea>/plugin.py", True),
        ("engine/rules/<idea>/plugged.py", False),
        ("src/podium/engine/cycle/cycle.py", True),
        ("engine/ranking.py", False),
        ("docs/extending/", True),
        ("cycle.py", True),
        ("lockstep.py", False),
    ],
)
def test_a_path_that_leads_nowhere_is_seen(word: str, found: bool) -> None:
    assert is_path(word)
    assert exists(word, ROOT / "ARCHITECTURE.md") is found


# Names ----------------------------------------------------------------------------------------


def resolves(name: str) -> bool:
    """Whether a dotted name that starts with `podium` is a module or what a module has."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        return all((found := getattr(found, part, None)) is not None for part in parts[size:])
    return False


def dotted_names(text: str) -> Iterator[str]:
    for word in quoted(text):
        called = word.partition("(")[0]
        if not IDENTIFIER.fullmatch(called) or "." not in called or is_path(word):
            continue
        first, last = called.split(".")[0], called.split(".")[-1]
        if first == "podium":
            yield called
        elif first in layers() and last not in {"yaml", "json"}:
            yield f"podium.{called}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_every_dotted_name_can_be_imported(document: Path) -> None:
    names = set(dotted_names(document.read_text("utf-8")))

    assert sorted(name for name in names if not resolves(name)) == []


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("podium.rules.reserve", True),
        ("podium.engine.framework.rule.Rule.scope", True),
        ("podium.engine.ranking", False),
        ("podium.rules.reserved", False),
    ],
)
def test_a_name_that_does_not_exist_is_seen(name: str, found: bool) -> None:
    assert resolves(name) is found


@cache
def source_words() -> frozenset[str]:
    benchmarks = (ROOT / "benchmarks").glob("*.py")
    files = [*(ROOT / "src").rglob("*.py"), *benchmarks, ROOT / "pyproject.toml"]
    return frozenset(word for file in files for word in re.findall(r"\w+", file.read_text("utf-8")))


@pytest.mark.parametrize("document", DESIGN, ids=relative)
def test_documents_about_the_design_use_names_of_the_source(document: Path) -> None:
    called = {word.partition("(")[0] for word in quoted(document.read_text("utf-8"))}
    names = {part for name in called if IDENTIFIER.fullmatch(name) for part in name.split(".")}

    assert sorted(names - source_words() - FOREIGN - file_stems()) == []


@cache
def file_stems() -> frozenset[str]:
    return frozenset(part for name in file_names() for part in name.split(".")) | folders()


# Commands -------------------------------------------------------------------------------------


@cache
def targets() -> frozenset[str]:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    return frozenset(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_every_make_verb_exists(document: Path) -> None:
    text = document.read_text("utf-8")
    code = [*BLOCK.findall(text), *QUOTED.findall(text)]
    named = {
        verb for each in code for verb in re.findall(r"^\$? ?make ([a-z]+)", each, re.MULTILINE)
    }

    assert sorted(named - targets()) == []


def test_the_verbs_for_people_are_explained() -> None:
    explained = set(
        re.findall(r"^make (\w+)", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE)
    )
    makefile = (ROOT / "Makefile").read_text("utf-8")

    assert explained == set(re.findall(r"^(\w+):.*##", makefile, re.MULTILINE)) - {"help", "clean"}


# Layers ---------------------------------------------------------------------------------------


def tables(text: str) -> list[list[set[str]]]:
    """Of each table, the names in the first column, line by line."""
    found: list[list[set[str]]] = []
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        lines = block.splitlines()[2:]
        found.append([set(QUOTED.findall(line.split("|")[1])) for line in lines])
    return found


def sets(lines: Iterable[str]) -> list[set[str]]:
    return [set(line.split()) for line in lines]


def test_the_layers_are_those_of_the_test() -> None:
    whole, *inside = tables(section("Layers"))

    assert whole == [{"podium"}, *sets(LAYERS[1:])]
    assert inside == [sets(each) for each in INSIDE.values()]
    first_line = section("Layers").split("\n| `podium`")[1].splitlines()[0]
    assert set(LAYERS[0].split()) <= set(QUOTED.findall(first_line))


# Contracts ------------------------------------------------------------------------------------

#: No part of the contract: an exception, and a pair that the pipelines pass on.
NO_CONTRACT = {"AttemptError", "Positioned"}


def contract() -> set[str]:
    """Every public member of every class of the contract, under the class that introduces it."""
    found = set()
    modules = (rule, shortcuts, explanation, dependencies)
    classes = [
        each
        for module in modules
        for each in inspect.getmembers(module, inspect.isclass)
        if each[1].__module__ == module.__name__
    ]
    for name, cls in classes:
        if name in NO_CONTRACT or name.startswith("_"):
            continue
        inherited = {each for base in cls.__mro__[1:] for each in vars(base)}
        own = {*vars(cls), *inspect.get_annotations(cls)}
        fields = set(getattr(cls, "_fields", ()))
        own -= set() if fields else inherited
        if issubclass(cls, Enum):
            properties = (n for n, v in vars(cls).items() if isinstance(v, property))
            own = {*cls.__members__, *properties, *inspect.get_annotations(cls)}
        found |= {f"{name}.{each}" for each in fields or own if not each.startswith("_")}
    return found


def test_the_contracts_are_those_of_the_source() -> None:
    classes = {name.split(".")[0] for name in contract()}
    words = (word.partition("(")[0] for word in quoted(section("Contracts")))
    named = {word for word in words if word.split(".")[0] in classes and "." in word}

    assert sorted(contract() - named) == [], "the section lacks these"
    assert sorted(named - contract()) == [], "the source lacks these"


def test_arguments_in_the_contracts_are_those_of_the_source() -> None:
    for word in quoted(section("Contracts")):
        called = re.fullmatch(r"(\w+)\.(\w+)\((.*)\)", word)
        of = next(
            (m for m in (rule, shortcuts, explanation) if called and called[1] in vars(m)), None
        )
        if called and of is not None:
            parameters = inspect.signature(getattr(getattr(of, called[1]), called[2])).parameters
            assert list(parameters)[1:] == called[3].split(", "), word


def test_the_contracts_fit_on_one_page() -> None:
    assert len(section("Contracts").splitlines()) <= 75


def test_a_rule_has_fourteen_members_at_most() -> None:
    kinds = ("Rule", "FilterRule", "ScoreRule", "ReserveRule", "PermitRule")
    members = {each for each in contract() if each.split(".")[0] in kinds}

    # Constant forms of `scope` and of `normalize`.
    assert len(members - {"Rule.always", "ScoreRule.normalizes"}) == 14


# Where do I add… ------------------------------------------------------------------------------


def items() -> dict[str, str]:
    """The answers of the section, by what is added."""
    text = section("Where do I add…")
    parts = re.split(r"^\*\*(.+?)\*\*", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def defined_in(path: Path) -> set[str]:
    """Names that a module or the modules of a folder define: functions, classes, their members."""
    found: set[str] = set()
    for file in [path] if path.is_file() else path.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                members = {each for part in node.body for each in bound_by(part)}
                found |= {node.name, *members, *(f"{node.name}.{each}" for each in members)}
            else:
                found |= bound_by(node)
    return found


def bound_by(node: ast.AST) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign):
        return {each.id for each in node.targets if isinstance(each, ast.Name)}
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return {node.target.id}
    return set()


def paths_in(text: str) -> list[Path]:
    found = []
    for word in quoted(text):
        if "/" in word or (is_path(word) and (PACKAGE / word).exists()):
            starts = [start / word for start in STARTS if (start / word).exists()]
            assert starts, f"{word} does not exist"
            found.append(starts[0])
    return found


@pytest.mark.parametrize("added", items())
def test_where_to_add_something_is_true(added: str) -> None:
    text = items()[added]
    paths = paths_in(text)
    known = set[str]().union(*(defined_in(path) for path in paths if path.suffix in {"", ".py"}))
    names = {word for word in quoted(text) if IDENTIFIER.fullmatch(word)} - file_names()

    assert paths, "the answer names no place"
    assert sorted(names - known) == []


def test_the_usual_changes_are_answered() -> None:
    wanted = [
        "a predicate",
        "a plugin with a score",
        "a reason text",
        "a native resource",
        "an output format",
        "a fix of a wrong InterPodAffinity score",
        "an event that wakes pods",
        "a gang",
        "a device claim",
        "another queue order",
        "a kind of object",
        "a command",
    ]

    assert [each for each in wanted if each not in items()] == []
