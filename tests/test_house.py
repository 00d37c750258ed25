"""What holds for every file of the project."""

from __future__ import annotations

import ast
import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

import podium

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
#: Made by running things, or data that came from elsewhere.
NOT_OURS = re.compile(
    r"^(\.git|\.venv|venv|build|dist|golden|node_modules|__pycache__|\..*_cache)$"
)
#: Names that say nothing about what is inside.
GRAB_BAGS = {"utils", "util", "helpers", "helper", "common", "misc", "tools"}

#: What a text must not say. The project speaks of itself: not of the machine it was written on,
#: not of where packages come from there, not of the work that led to it.
FORBIDDEN = {
    "an absolute path of some machine": r"(?<![\w.])/(?:work|root|home|Users|tmp)/\w",
    "a package registry": r"pypi[.]org|python[h]osted|npm[j]s|index[-]url|find[-]links",
    "a number of a tracker": r"\b[Ii]ssues? #?\d|\([#]\d+\)",
    "the course of the work": r"\b(?:this|last|next|previous|earlier|later) session\b",
}


def files() -> Iterator[Path]:
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if not NOT_OURS.match(f) and f != ".hypothesis")
        # In a git worktree `.git` is a file.
        yield from (Path(folder, name) for name in sorted(names) if name != ".git")


def texts() -> Iterator[tuple[Path, str]]:
    for file in files():
        try:
            yield file, file.read_text("utf-8")
        except UnicodeDecodeError:
            continue


def found(what: str, text: str) -> list[str]:
    return [match.group() for match in re.finditer(FORBIDDEN[what], text)]


def constants_then_classes(name: str) -> tuple[bool, bool, str]:
    return not name.isupper(), not name[0].isupper(), name


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_names(what: str) -> None:
    hits = {relative(file): found(what, text) for file, text in texts()}

    assert {file: hit for file, hit in hits.items() if hit} == {}


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("an absolute path of some machine", "see " + "/home" + "/me/cluster.yaml"),
        ("a package registry", "https://" + "pypi" + ".org/simple"),
        ("a number of a tracker", "see issue" + " 12"),
        ("the course of the work", "left for the next" + " session"),
    ],
)
def test_what_must_not_be_said_is_seen(what: str, text: str) -> None:
    assert found(what, text)


def wrong_in(check: Callable[[str], list[str]], sources: Iterable[Path]) -> dict[str, list[str]]:
    """What a check finds in each source; files without findings are left out."""
    found = {relative(source): check(source.read_text("utf-8")) for source in sources}
    return {source: wrong for source, wrong in found.items() if wrong}


def missing_summary(text: str) -> list[str]:
    """What is wrong with the first line of a module."""
    summary = (ast.get_docstring(parsed(text)) or "").partition("\n")[0]
    return [] if summary.endswith((".", "!", "?", ":")) else [summary or "no docstring"]


def test_every_module_says_what_it_is() -> None:
    assert wrong_in(missing_summary, SOURCES) == {}
    assert missing_summary('"""A title"""\nimport os') == ["A title"]
    assert missing_summary("import os") == ["no docstring"]


#: The subject of a docstring is a thing, so these words have no place in one.
PERSONS = re.compile(r"\b(?:somebody|nobody|whoever)\b", re.IGNORECASE)
#: What the engine has of rules. Their members are those of the base classes, none is looked up.
RULES = {"each", "plugin", "predicate", "priority", "rule"}


@cache
def parsed(text: str) -> ast.Module:
    return ast.parse(text)


def docstrings(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring of a module."""
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found = ast.get_docstring(node)
            if found is not None:
                yield getattr(node, "lineno", 1), found


def unhelpful_docstrings(text: str) -> list[str]:
    """Docstrings of one word, and those that speak of persons."""
    return [
        f"line {line}: {docstring}"
        for line, docstring in docstrings(text)
        if len(docstring.split()) < 2 or PERSONS.search(docstring)
    ]


def lookups_by_name(text: str) -> list[str]:
    """Members of a rule that are looked up by `getattr` or `hasattr`."""
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(parsed(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"getattr", "hasattr"}
        and ast.unparse(node.args[0]).rpartition(".")[2] in RULES
    ]


#: Class names that two modules may have, because Kubernetes uses the word for both things.
NAMES_OF_TWO = {"NodeAffinity": "a field of a pod, and the plugin that reads it"}


def public_classes(text: str) -> list[str]:
    return [
        node.name
        for node in parsed(text).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


def names_of_several(texts: Iterable[str]) -> set[str]:
    """The public class names that more than one module defines."""
    counts = Counter(chain.from_iterable(public_classes(text) for text in texts))
    return {name for name, count in counts.items() if count > 1}


def test_a_class_name_means_one_thing() -> None:
    two = ["class A: ...\nclass _B: ...", "class A: ...\nclass _B: ..."]

    assert names_of_several(source.read_text("utf-8") for source in SOURCES) == set(NAMES_OF_TWO)
    assert names_of_several(two) == {"A"}


def test_docstrings_name_things_in_sentences() -> None:
    assert wrong_in(unhelpful_docstrings, SOURCES) == {}


@pytest.mark.parametrize(
    ("docstring", "bad"),
    [
        ("One.", True),
        ("Evicts what nobody needs.", True),
        ("Whoever asks is told.", True),
        ("Evicts pods of lower priority.", False),
    ],
)
def test_a_docstring_that_says_nothing_is_seen(docstring: str, bad: bool) -> None:
    assert bool(unhelpful_docstrings(f'def f():\n    """{docstring}"""')) is bad


def test_no_member_of_a_rule_is_looked_up_by_name() -> None:
    assert wrong_in(lookups_by_name, SOURCES) == {}


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ('getattr(rule, "idle", None)', True),
        ('getattr(each.rule, "idle", None)', True),
        ('hasattr(plugin, "reserve")', True),
        ('getattr(module, "rules")', False),
        ("rule.activity(pod, view)", False),
    ],
)
def test_a_lookup_by_name_is_seen(text: str, seen: bool) -> None:
    assert bool(lookups_by_name(text)) is seen


def predicates_with_effects(text: str) -> list[str]:
    """The functions named `is_…` or `has_…` that set an attribute."""
    found = []
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.FunctionDef) and re.match(r"_?(is|has)_", node.name):
            stored = (
                each
                for each in ast.walk(node)
                if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
            )
            if any(stored):
                found.append(f"{node.name} has an effect")
    return found


def test_a_predicate_has_no_effect() -> None:
    assert wrong_in(predicates_with_effects, SOURCES) == {}


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("def is_due(self):\n    self.seen = True\n    return True", True),
        ("def _has_more(self):\n    self.seen += 1\n    return True", True),
        ("def is_due(self):\n    return self.seen", False),
        ("def take(self):\n    self.seen = True", False),
    ],
)
def test_a_predicate_with_an_effect_is_seen(text: str, seen: bool) -> None:
    assert bool(predicates_with_effects(text)) is seen


def unsorted_names(text: str) -> list[str]:
    """The names of an `__all__` that is not sorted."""
    for node in parsed(text).body:
        if isinstance(node, ast.Assign) and "__all__" in {ast.unparse(t) for t in node.targets}:
            names: list[str] = list(ast.literal_eval(node.value))
            return [] if names == sorted(names, key=constants_then_classes) else names
    return []


def test_public_names_are_sorted() -> None:
    assert wrong_in(unsorted_names, SOURCES) == {}
    assert unsorted_names('__all__ = ["read", "Node"]') == ["read", "Node"]


def test_a_module_is_one_idea() -> None:
    bags = [relative(source) for source in SOURCES if source.stem in GRAB_BAGS]

    assert bags == [], "name the idea instead"


def test_every_folder_of_the_package_is_a_package() -> None:
    folders = {source.parent for source in SOURCES}

    assert [relative(f) for f in sorted(folders) if not (f / "__init__.py").exists()] == []


def test_types_are_shipped() -> None:
    assert (ROOT / "src" / "podium" / "py.typed").exists()


def test_extras_and_dependency_groups_are_the_same() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    groups, extras = project["dependency-groups"], project["project"]["optional-dependencies"]

    assert {name: groups[name] for name in ("test", "lint")} == {
        name: extras[name] for name in ("test", "lint")
    }


def test_every_requirement_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    locks = [file.read_text("utf-8") for file in sorted(ROOT.glob("requirements*.lock"))]
    entries = [
        entry for lock in locks for entry in re.split(r"\n(?=[^ #])", f"\n{lock}") if "==" in entry
    ]
    locked = [entry.partition("==")[0].strip() for entry in entries]

    assert {re.split(r"[<>=!~; \[]", each)[0] for each in [*wanted, "hatchling"]} <= {*locked}
    assert len(locked) == len({*locked})
    assert all(re.search(r"\n    --hash=sha256:[0-9a-f]{64}(?m:$)", entry) for entry in entries)


def test_what_make_installs_is_compared_with_its_checksums() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    container = (ROOT / "Containerfile").read_text("utf-8")

    assert re.findall(r"^\t\$\(PIP\)", makefile, re.MULTILINE) == []
    assert makefile.count("--require-hashes") == 1
    assert all(
        "--require-hashes" in each or "--no-deps" in each
        for each in re.findall(r"pip install(.*(?:\\\n.*)*?)(?=&&|\n\n)", container)
    )


def test_the_changelog_knows_the_version() -> None:
    assert f"## [{podium.__version__}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_links_between_documents_lead_somewhere() -> None:
    broken = [
        f"{relative(file)}: {target}"
        for file, text in texts()
        if file.suffix == ".md"
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
        if not (file.parent / target).exists()
    ]

    assert broken == []
