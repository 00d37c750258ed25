"""Imports point down only, siblings do not know each other, and the engine is pure.

Read from the source, so imports inside functions and for type checking count as well.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from podium.engine.state.journal import Journal
from podium.engine.state.node_columns import NodeColumns
from podium.engine.state.pod_index import PodIndex

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "podium"
SOURCES = sorted(PACKAGE.rglob("*.py"))

#: Top to bottom. `__init__` and `rules` are what users import, so they may name anything;
#: `__main__` is `python -m podium`.
LAYERS = (
    "__init__ __main__ rules",
    "cli",
    "planning sweeps",
    "simulation",
    "host",
    "daemon lab web bench",
    "library",
    "render extender",
    "kube cluster profiles history",
    "engine",
    "objects",
    "errors",
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names.split()}

#: The packages inside a layer, top to bottom.
INSIDE = {
    "engine": (
        "cycle generations",
        "fast preemption",
        "pipelines rules user_rules",
        "framework",
        "rows",
        "state",
    ),
    "lab": (
        "contents",
        "controllers http",
        "openapi registry tables",
        "patch store validation",
        "defaults schema",
        "api",
    ),
}

#: The one thing that anybody may take from the top.
VERSION = "podium.__version__"

#: All that a pure layer needs of the standard library. No clock, no files, no network, no logging,
#: no chance: what comes from outside is an argument.
PURE = """
    __future__ abc array bisect collections contextlib copy dataclasses datetime enum functools
    hashlib heapq itertools math operator re types typing
"""
#: Times may be read from text, not from a clock.
CLOCKS = frozenset({"now", "today", "utcnow"})
ENGINE_MAY_IMPORT = frozenset(PURE.split()) | {"msgspec", "numpy", "podium", "typing_extensions"}
#: Ties may be broken at random, by a seed that is an argument. Formulas may be compiled.
#: CEL expressions are checked by a library, which computes and does nothing else, and they may read
#: addresses and URLs from text.
EXCEPTIONS = {
    "engine/cycle/ties.py": frozenset({"random"}),
    "engine/fast/compiled_rows.py": frozenset({"numba"}),
    "engine/rules/devices/cel/environment.py": frozenset({"cel_expr_python"}),
    "engine/rules/devices/cel/network.py": frozenset({"ipaddress", "urllib"}),
}

GENERATIONS = ("v1_13", "v1_36")
#: Folders where each generation has its own modules and neither imports the other's.
BOTH_GENERATIONS = ("engine/rules", "engine/preemption", "engine/generations")


def layer_of(source: Path) -> str:
    first = source.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports_of(tree: ast.Module, module: str) -> Iterator[tuple[int, str]]:
    """Line and absolute name of everything imported, `from` imports with the name they bring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "podium" and alias.asname is None:
                    for used in used_of(tree, "podium"):
                        yield node.lineno, f"podium{used}"
                else:
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{origin}.{alias.name}"


def used_of(tree: ast.Module, name: str) -> list[str]:
    """What is used of a module after `import name`: `.attribute`, or nothing for all of it."""
    used = {
        f".{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
    }
    return sorted(used) or [""]


def module_name(source: Path) -> str:
    parts = source.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts)


def wrong_imports(source: Path, text: str) -> list[str]:
    """One sentence for each import that does not point down."""
    own, wrong = layer_of(source), []
    if own not in RANK:
        return [f"{source.relative_to(ROOT)}: belongs to no layer"]
    for line, name in imports_of(ast.parse(text), module_name(source)):
        if not f"{name}.".startswith("podium.") or name == VERSION:
            continue
        other = name.split(".")[1] if "." in name else ""
        other = other if other in RANK else "__init__"
        if other != own and RANK[other] <= RANK[own]:
            relation = "its sibling " if RANK[other] == RANK[own] else ""
            wrong.append(f"{source.relative_to(ROOT)}:{line}: {own} imports {relation}{other}")
    return wrong


def wrong_inner_imports(source: Path, text: str) -> list[str]:
    """One sentence for each import inside a layer that does not point down among its packages."""
    layer, package = layer_of(source), inner_package(source)
    ranks = {name: rank for rank, names in enumerate(INSIDE[layer]) for name in names.split()}
    if package not in ranks:
        return [f"{source.relative_to(ROOT)}: belongs to no package of {layer}"]
    wrong = []
    for line, name in imports_of(ast.parse(text), module_name(source)):
        if not name.startswith(f"podium.{layer}."):
            continue
        other = name.split(".")[2]
        if other != package and ranks.get(other, -1) <= ranks[package]:
            wrong.append(f"{source.relative_to(ROOT)}:{line}: {package} imports {other}")
    return wrong


def inner_package(source: Path) -> str:
    """`http` for `lab/http/server.py`, nothing for `lab/__init__.py`."""
    parts = source.relative_to(PACKAGE).parts
    return parts[1] if len(parts) > 2 else ""


def inner_sources() -> list[Path]:
    return [each for each in SOURCES if layer_of(each) in INSIDE and each.name != "__init__.py"]


def impure_imports(source: Path, text: str) -> list[str]:
    """One sentence for each import that the engine must not have."""
    path = source.relative_to(PACKAGE).as_posix()
    allowed = ENGINE_MAY_IMPORT | EXCEPTIONS.get(path, frozenset())
    tree = ast.parse(text)
    imports = [
        f"{source.relative_to(ROOT)}:{line}: the engine imports {name}"
        for line, name in imports_of(tree, module_name(source))
        if name.split(".")[0] not in allowed
    ]
    clocks = [
        f"{source.relative_to(ROOT)}:{node.lineno}: the engine asks what time it is"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS
    ]
    return imports + clocks


def generations_of(path: str) -> set[str]:
    """The generations that a path or the name of a module belongs to; none if it is shared."""
    return {generation for generation in GENERATIONS if generation in path}


def mixed_generations(source: Path, text: str) -> list[str]:
    """One sentence for each import that one generation, or what both share, has of another."""
    own = generations_of(source.relative_to(PACKAGE).as_posix())
    return [
        f"{source.relative_to(ROOT)}:{line}: {name} is of another generation"
        for line, name in imports_of(ast.parse(text), module_name(source))
        if generations_of(name) - own
    ]


@pytest.mark.parametrize(
    "source",
    [source for folder in BOTH_GENERATIONS for source in sorted((PACKAGE / folder).rglob("*.py"))],
    ids=lambda s: s.relative_to(PACKAGE).as_posix(),
)
def test_generations_do_not_know_each_other(source: Path) -> None:
    assert mixed_generations(source, source.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("path", "module"),
    [
        pytest.param("ports/v1_13.py", "ports.v1_36", id="the older one knows the newer one"),
        pytest.param("ports/v1_36.py", "ports.v1_13", id="the newer one knows the older one"),
        pytest.param("ports/v1_36.py", "ports.v1_13_more", id="a module of several"),
        pytest.param("ports/shared.py", "ports.v1_36", id="what is shared knows one of them"),
    ],
)
def test_a_mix_of_generations_is_seen(path: str, module: str) -> None:
    text = f"if TYPE_CHECKING:\n    from podium.engine.rules.{module} import name"

    assert len(mixed_generations(PACKAGE / "engine/rules" / path, text)) == 1


@pytest.mark.parametrize("module", ["ports.v1_36", "nodes.v1_36", "ports.shared", "plugins"])
def test_one_generation_is_not(module: str) -> None:
    text = f"from podium.engine.rules.{module} import name"

    assert mixed_generations(PACKAGE / "engine/rules/ports/v1_36.py", text) == []


def module_graph(texts: Mapping[str, str]) -> dict[str, set[str]]:
    """Which of these modules import which others of them; *texts* maps a module to its source."""
    graph: dict[str, set[str]] = {}
    for module, text in texts.items():
        names = (name for _, name in imports_of(ast.parse(text), module))
        # `from package.module import name` and `from package import module`.
        found = (name if name in texts else name.rpartition(".")[0] for name in names)
        graph[module] = {other for other in found if other in texts} - {module}
    return graph


def import_cycle(texts: Mapping[str, str]) -> list[str]:
    """The modules of one import cycle, the first one again at the end; empty without any."""
    try:
        TopologicalSorter(module_graph(texts)).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle
    return []


def test_no_modules_of_the_engine_import_each_other() -> None:
    texts = {
        module_name(source): source.read_text("utf-8") for source in PACKAGE.glob("engine/**/*.py")
    }

    assert len(texts) > 50
    assert import_cycle(texts) == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("from podium.engine.state.pods import Pods", id="a name"),
        pytest.param("from podium.engine.state import pods", id="a module"),
        pytest.param("import podium.engine.state.pods", id="by its full name"),
        pytest.param("from . import pods", id="relatively"),
        pytest.param(
            "if TYPE_CHECKING:\n    from podium.engine.state.pods import Pods", id="for types only"
        ),
        pytest.param("def f():\n    from podium.engine.state import pods", id="in a function"),
    ],
)
def test_an_import_cycle_is_seen(text: str) -> None:
    state = "podium.engine.state"
    texts = {
        f"{state}.pods": f"from {state}.tallies import Tally",
        f"{state}.tallies": f"from {state}.nodes import Nodes",
        f"{state}.nodes": text,
    }

    cycle = import_cycle(texts)

    assert cycle[0] == cycle[-1]
    assert set(cycle) == set(texts)
    assert import_cycle(texts | {f"{state}.nodes": "import numpy"}) == []


#: The methods that change a part of a view; they are called by the cache, and by the parts alone.
WRITES_TO_VIEW: Mapping[str, frozenset[str]] = {
    part: frozenset(method.__name__ for method in methods)
    for part, methods in {
        "nodes": (
            NodeColumns.new_row,
            NodeColumns.free_row,
            NodeColumns.put,
            NodeColumns.drop,
            NodeColumns.trim,
        ),
        "pods": (
            PodIndex.add,
            PodIndex.remove,
            PodIndex.mark_terminating,
            PodIndex.set_nominated,
            PodIndex.reserve,
            PodIndex.unreserve,
            PodIndex.follow_nodes,
            PodIndex.move_labels,
            PodIndex.trim,
        ),
        "journal": (
            Journal.start_epoch,
            Journal.note_node,
            Journal.note_pods,
            Journal.note_volumes,
        ),
    }.items()
}
WRITERS_OF_VIEW = ("cluster/cache/", "engine/state/")


def writes_to_view(text: str) -> list[str]:
    """Every call or assignment that changes a part of a view, as `view.part.name`."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Attribute):
            continue
        part, name = node.value.attr, node.attr
        if part not in WRITES_TO_VIEW or ast.unparse(node.value.value) == "self":
            continue
        if isinstance(node.ctx, ast.Store | ast.Del) or name in WRITES_TO_VIEW[part]:
            found.append(ast.unparse(node))
    return found


def test_only_the_cache_writes_to_the_view() -> None:
    outside = [
        source
        for source in SOURCES
        if not source.relative_to(PACKAGE).as_posix().startswith(WRITERS_OF_VIEW)
    ]
    wrong = {
        source.relative_to(PACKAGE).as_posix(): writes
        for source in outside
        if (writes := writes_to_view(source.read_text("utf-8")))
    }

    assert wrong == {}


@pytest.mark.parametrize(
    "text",
    [
        "view.nodes.put(0, node)",
        "at.view.pods.add(pod, 0)",
        "self.cache.columns.journal.note_pods(0)",
        "view.pods.nominated = {}",
        "view.journal.epoch += 1",
        "del columns.nodes.facts",
    ],
)
def test_a_write_to_the_view_is_seen(text: str) -> None:
    assert len(writes_to_view(text)) == 1
    assert writes_to_view("view.pods.nominated.get(view.nodes.names[0])") == []


def test_every_module_belongs_to_a_layer() -> None:
    strangers = sorted({layer_of(source) for source in SOURCES} - RANK.keys())

    assert not strangers, f"say in LAYERS where {', '.join(strangers)} belongs"


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.relative_to(PACKAGE).as_posix())
def test_imports_point_down(source: Path) -> None:
    assert wrong_imports(source, source.read_text("utf-8")) == []


@pytest.mark.parametrize("source", inner_sources(), ids=lambda s: s.relative_to(PACKAGE).as_posix())
def test_imports_point_down_inside_a_layer(source: Path) -> None:
    assert wrong_inner_imports(source, source.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "source",
    sorted(PACKAGE.glob("engine/**/*.py")),
    ids=lambda s: s.relative_to(PACKAGE).as_posix(),
)
def test_the_engine_is_pure(source: Path) -> None:
    assert impure_imports(source, source.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "source",
    sorted(PACKAGE.glob("objects/**/*.py")),
    ids=lambda s: s.relative_to(PACKAGE).as_posix(),
)
def test_objects_are_plain_values(source: Path) -> None:
    tree = ast.parse(source.read_text("utf-8"))
    roots = {name.split(".")[0] for _, name in imports_of(tree, module_name(source))}

    assert not roots & {"numpy", "time", "logging", "socket", "os", "pathlib", "asyncio", "random"}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param(
            "engine/cycle/cycle.py", "import podium.cluster.cache.cache", id="an upward import"
        ),
        pytest.param(
            "engine/cycle/cycle.py", "from podium.render import html", id="from a layer above"
        ),
        pytest.param(
            "engine/cycle/cycle.py", "from podium import cluster", id="a layer by its name"
        ),
        pytest.param("objects/kinds/pod.py", "from podium import Pod", id="from the public names"),
        pytest.param("objects/kinds/pod.py", "import podium", id="the public names themselves"),
        pytest.param("objects/kinds/pod.py", "import podium\npodium.read", id="one of them"),
        pytest.param(
            "cluster/queue/queue.py", "from podium.profiles.policy.build import x", id="a sibling"
        ),
        pytest.param("web/pages.py", "from podium.daemon.loop import x", id="a sibling shell"),
        pytest.param("objects/kinds/pod.py", "from ...engine import cycle", id="a relative import"),
        pytest.param(
            "errors.py", "from podium.objects.kinds.pod import Pod", id="from the lowest one"
        ),
        pytest.param(
            "engine/cycle/cycle.py",
            "if TYPE_CHECKING:\n    from podium.cluster.cache.cache import Cache",
            id="for type checking only",
        ),
        pytest.param(
            "objects/kinds/pod.py",
            "def f():\n    from podium.engine import fit",
            id="in a function",
        ),
    ],
)
def test_a_wrong_import_is_seen(path: str, text: str) -> None:
    assert len(wrong_imports(PACKAGE / path, text)) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("lab/store/store.py", "import podium.lab.http.server", id="upwards"),
        pytest.param(
            "lab/patch/apply.py", "from podium.lab.registry import registry", id="a package above"
        ),
        pytest.param(
            "lab/store/store.py", "from podium.lab.validation.pods import pod", id="a sibling"
        ),
        pytest.param(
            "lab/store/store.py",
            "if TYPE_CHECKING:\n    from podium.lab.registry.registry import Registry",
            id="for type checking only",
        ),
        pytest.param("lab/stranger.py", "", id="a module in no package"),
    ],
)
def test_a_wrong_import_inside_a_layer_is_seen(path: str, text: str) -> None:
    assert len(wrong_inner_imports(PACKAGE / path, text)) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("cli/main.py", "from podium.cluster.cache.cache import Cache", id="downwards"),
        pytest.param(
            "engine/cycle/cycle.py",
            "from podium.engine.cycle.searching import find_feasible",
            id="its own layer",
        ),
        pytest.param("engine/cycle/cycle.py", "from . import fit", id="its own layer, relatively"),
        pytest.param(
            "engine/cycle/cycle.py", "from podium import objects", id="a lower layer's name"
        ),
        pytest.param("__init__.py", "from podium.library.reading import read", id="public names"),
        pytest.param("cli/main.py", "from podium import __version__", id="the version"),
        pytest.param("cli/main.py", "import podium\npodium.__version__", id="nothing else"),
        pytest.param("engine/cycle/cycle.py", "import podiumlike", id="another package"),
    ],
)
def test_a_right_import_is_not(path: str, text: str) -> None:
    assert wrong_imports(PACKAGE / path, text) == []


@pytest.mark.parametrize(
    "module", ["time", "logging", "os", "pathlib", "socket", "asyncio", "random"]
)
def test_an_effect_in_the_engine_is_seen(module: str) -> None:
    assert module in sys.stdlib_module_names
    assert len(impure_imports(PACKAGE / "engine" / "cycle.py", f"import {module}")) == 1
    assert len(impure_imports(PACKAGE / "engine" / "cycle.py", f"from {module} import x")) == 1


def test_a_clock_in_the_engine_is_seen() -> None:
    text = "from datetime import datetime\nstarted = datetime.now()"

    assert len(impure_imports(PACKAGE / "engine" / "cycle.py", text)) == 1
