"""Imports point down only, siblings do not know each other, and the engine is pure.

Read from the source, so imports inside functions and for type checking count as well.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from cases import cases
from podium.engine.state.journal import Journal
from podium.engine.state.node_columns import NodeColumns
from podium.engine.state.pod_index import PodIndex

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "podium"
SOURCES = sorted(PACKAGE.rglob("*.py"))

#: Top to bottom. `__init__` and `rules` are what users import, so they may name anything;
#: `__main__` is `python -m podium`. A folder of a package may be a layer of its own.
LAYERS = (
    "__init__ __main__ rules",
    "cli",
    "agents",
    "render.reports",
    "what_if",
    "virtual_cluster",
    "host",
    "web",
    "serving",
    "past",
    "scheduler lab",
    "what_if.compare what_if.fix",
    "what_if.capacity",
    "library",
    "render extender",
    "kube cluster profiles past.format",
    "generations",
    "engine",
    "cel",
    "objects",
    "errors releases",
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names.split()}

#: The packages inside a layer, top to bottom; `-` are the modules beside them.
INSIDE = {
    "engine": (
        "cycle",
        "fast preemption",
        "pipelines rules",
        "framework",
        "rows",
        "state",
    ),
    "lab": (
        "contents",
        "controllers http",
        "registry",
        "kinds",
        "patch store",
        "schema",
        "api",
    ),
    "render": ("reports", "recording", "decision", "-"),
    "past": ("judge", "replay recordings", "recorder decisions", "format"),
    "scheduler": ("-", "placing telemetry", "state"),
    "serving": ("endpoints page_data", "access"),
    "what_if": ("check consolidate survive", "plan fix", "compare capacity"),
}

#: The other packages with folders, and which folders know each other; `-` are the modules beside
#: them. No other tangle may come.
TANGLES: Mapping[str, list[set[str]]] = {
    "cluster": [{"-", "pod_groups"}, {"queue", "wakeups"}],
    "kube": [{"-", "protobuf"}],
    "library": [{"-", "snapshots"}],
    "objects": [{"-", "kinds", "selectors", "snapshots"}],
    "profiles": [{"-", "policy", "user_rules"}],
}

#: The modules that import each other, imports for type checking included.
CYCLES: list[set[str]] = [
    {"bench.executor", "bench.measurement"},
    {"cli.course", "cli.lab"},
    {"cluster.pod_groups.simulated", "cluster.simulation"},
    {
        *("lab.registry.admission", "lab.registry.deletion", "lab.registry.quotas"),
        *("lab.registry.registry", "lab.registry.subresources"),
    },
    {"library.profile_choice", "library.profile_source", "library.snapshots.profile"},
    {"past.recordings.comparison", "past.recordings.scenarios"},
]

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
#: Ties may be broken at random, by a seed that is an argument.
#: CEL expressions are checked by a library, which computes and does nothing else, and they may read
#: addresses and URLs from text.
EXCEPTIONS = {
    "engine/cycle/ties.py": frozenset({"random"}),
    "cel/environment.py": frozenset({"cel_expr_python"}),
    "cel/network.py": frozenset({"ipaddress", "urllib"}),
    "cel/regular_expressions.py": frozenset({"re2"}),
}

#: The two forms of rules: the names of their modules, and what they declare.
FORMS = {
    "predicates": (
        {"predicates", "priorities", "pod_priority"},
        {"PredicateDeclaration", "PriorityDeclaration", "PolicyArgument"},
    ),
    "plugins": ({"plugin", "plugins"}, {"PluginDeclaration"}),
}
#: Folders where each form has its own modules and neither imports the other's.
BOTH_FORMS = ("engine/rules", "engine/preemption", "generations")


def layer_of(source: Path) -> str:
    return layer_of_name(".".join(source.relative_to(PACKAGE).with_suffix("").parts))


def layer_of_name(name: str) -> str:
    """The layer of a module below `podium`: a folder that is a layer, or the first part."""
    first, _, rest = name.partition(".")
    folder = f"{first}.{rest.partition('.')[0]}"
    return folder if folder in RANK else first


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
        other = layer_of_name(name.partition(".")[2])
        other = other if other in RANK else "__init__"
        if other != own and RANK[other] <= RANK[own]:
            relation = "its sibling " if RANK[other] == RANK[own] else ""
            wrong.append(f"{source.relative_to(ROOT)}:{line}: {own} imports {relation}{other}")
    return wrong


def wrong_inner_imports(source: Path, text: str) -> list[str]:
    """One sentence for each import inside a layer that does not point down among its packages."""
    layer, package = source.relative_to(PACKAGE).parts[0], inner_package(source)
    ranks = {name: rank for rank, names in enumerate(INSIDE[layer]) for name in names.split()}
    if package not in ranks:
        return [f"{source.relative_to(ROOT)}: belongs to no package of {layer}"]
    wrong = []
    for line, name in imports_of(ast.parse(text), module_name(source)):
        if not name.startswith(f"podium.{layer}."):
            continue
        other = name.split(".")[2]
        other = other if other in ranks else "-"
        if other != package and ranks.get(other, -1) <= ranks[package]:
            wrong.append(f"{source.relative_to(ROOT)}:{line}: {package} imports {other}")
    return wrong


def inner_package(source: Path) -> str:
    """`http` for `lab/http/server.py`, `-` for `lab/__init__.py`."""
    parts = source.relative_to(PACKAGE).parts
    return parts[1] if len(parts) > 2 else "-"


def inner_sources() -> list[Path]:
    return [
        each
        for each in SOURCES
        if each.relative_to(PACKAGE).parts[0] in INSIDE and each.name != "__init__.py"
    ]


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


def declared_forms(module: str, text: str) -> set[str]:
    """The forms of rules that a module belongs to by its name or its declarations."""
    called = {
        node.func.id
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    return {
        form
        for form, (names, declarations) in FORMS.items()
        if module.rpartition(".")[2] in names or declarations & called
    }


def mixed_forms(texts: Mapping[str, str]) -> list[str]:
    """One sentence for each module of one form, or shared by both, that imports the other form.

    A module of both forms may be imported by either. A module that declares nothing belongs to the
    forms that it imports; one named `shared` must import neither.
    """
    graph = module_graph(texts)
    forms = {module: declared_forms(module, text) for module, text in texts.items()}
    wrong = []
    for module in TopologicalSorter(graph).static_order():
        for other in sorted(graph[module]):
            if not forms[module] and not module.endswith(".shared"):
                continue
            if forms[other] and not forms[other] & forms[module]:
                wrong.append(f"{module}: {other} is of another form")
        if not forms[module]:
            forms[module] = set().union(*(forms[other] for other in graph[module]))
    return wrong


def texts_of_forms() -> dict[str, str]:
    return {
        module_name(source): source.read_text("utf-8")
        for folder in BOTH_FORMS
        for source in (PACKAGE / folder).rglob("*.py")
    }


def test_predicates_and_plugins_do_not_know_each_other() -> None:
    texts = texts_of_forms()
    declared = {frozenset(declared_forms(module, text)) for module, text in texts.items()}

    assert mixed_forms(texts) == []
    assert declared >= {frozenset({"predicates"}), frozenset({"plugins"}), frozenset()}


@cases(
    ("module", "other"),
    {
        "a predicate knows a plugin": ("resources.predicates", "devices.plugin"),
        "a plugin knows a predicate": ("devices.plugin", "resources.predicates"),
        "a plugin by its declaration": ("resources.predicates", "resources.fit"),
        "what only plugins use": ("resources.predicates", "resources.block"),
        "what is shared knows a plugin": ("resources.shared", "gates"),
    },
)
def test_a_mix_of_forms_is_seen(module: str, other: str) -> None:
    texts = texts_of_forms()
    texts[f"podium.engine.rules.{module}"] += (
        f"if TYPE_CHECKING:\n    from podium.engine.rules.{other} import name\n"
    )

    assert any(
        f"rules.{module}: podium.engine.rules.{other}" in each for each in mixed_forms(texts)
    )


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


def cycles(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """The groups of nodes that reach each other."""
    reached = {node: reachable(graph, node) for node in graph}
    groups = {
        frozenset(other for other in reached[node] if node in reached[other]) for node in graph
    }
    return sorted((set(group) for group in groups if len(group) > 1), key=sorted)


def reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found, waiting = set[str](), [start]
    while waiting:
        new = graph.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


@cache
def whole_graph() -> dict[str, set[str]]:
    """The imports of all modules, without those of the version."""
    texts = {
        module_name(source): source.read_text("utf-8")
        for source in SOURCES
        if source.name != "__init__.py"
    }
    return module_graph(texts)


def folder_graph(package: str) -> dict[str, set[str]]:
    """Which folders of a package import which others; `-` are the modules beside them."""
    graph: dict[str, set[str]] = {}
    for module, others in whole_graph().items():
        if module.startswith(f"podium.{package}."):
            inside = {
                folder_of(other) for other in others if other.startswith(f"podium.{package}.")
            }
            graph.setdefault(folder_of(module), set()).update(inside - {folder_of(module)})
    return graph


def folder_of(module: str) -> str:
    _, _, *folders, _ = module.split(".")
    return folders[0] if folders else "-"


def test_every_package_with_folders_is_described() -> None:
    folders = {
        source.relative_to(PACKAGE).parts[0]
        for source in SOURCES
        if len(source.relative_to(PACKAGE).parts) > 2
    }

    assert folders == INSIDE.keys() | TANGLES.keys()


def unknown(found: list[set[str]], known: list[set[str]]) -> list[set[str]]:
    """The groups that are no part of a known one."""
    return [group for group in found if not any(group <= other for other in known)]


@pytest.mark.parametrize("package", TANGLES)
def test_folders_know_each_other_only_where_that_is_known(package: str) -> None:
    assert unknown(cycles(folder_graph(package)), TANGLES[package]) == []


def test_modules_import_each_other_only_where_that_is_known() -> None:
    known = [{f"podium.{name}" for name in group} for group in CYCLES]

    assert unknown(cycles(whole_graph()), known) == []


def test_a_group_that_reaches_itself_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}, "e": set[str]()}

    assert cycles(graph) == [{"b", "c"}]
    assert unknown([{"b", "c"}], [{"a", "b"}]) == [{"b", "c"}]
    assert unknown([{"b", "c"}], [{"a", "b", "c"}]) == []


def test_no_modules_of_the_engine_import_each_other() -> None:
    texts = {
        module_name(source): source.read_text("utf-8")
        for layer in ("generations", "engine", "cel")
        for source in PACKAGE.glob(f"{layer}/**/*.py")
    }

    assert len(texts) > 50
    assert import_cycle(texts) == []


@cases(
    "text",
    {
        "a name": "from podium.engine.state.pods import Pods",
        "a module": "from podium.engine.state import pods",
        "by its full name": "import podium.engine.state.pods",
        "relatively": "from . import pods",
        "for types only": "if TYPE_CHECKING:\n    from podium.engine.state.pods import Pods",
        "in a function": "def f():\n    from podium.engine.state import pods",
    },
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


def test_the_scheduler_does_not_import_research() -> None:
    found = [
        f"{source.relative_to(ROOT)}:{line}"
        for source in SOURCES
        for line, name in imports_of(ast.parse(source.read_text("utf-8")), module_name(source))
        if name.split(".")[0] == "podium_research"
    ]

    assert found == []


@pytest.mark.parametrize("source", inner_sources(), ids=lambda s: s.relative_to(PACKAGE).as_posix())
def test_imports_point_down_inside_a_layer(source: Path) -> None:
    assert wrong_inner_imports(source, source.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [each for each in SOURCES if layer_of(each) in {"generations", "engine", "cel"}],
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


@cases(
    ("path", "text"),
    {
        "an upward import": ("engine/cycle/cycle.py", "import podium.cluster.cache.cache"),
        "from a layer above": ("engine/cycle/cycle.py", "from podium.render import html"),
        "a layer by its name": ("engine/cycle/cycle.py", "from podium import cluster"),
        "from the public names": ("objects/kinds/pod.py", "from podium import Pod"),
        "the public names themselves": ("objects/kinds/pod.py", "import podium"),
        "one of them": ("objects/kinds/pod.py", "import podium\npodium.read"),
        "a sibling": ("cluster/queue/queue.py", "from podium.profiles.policy.build import x"),
        "a sibling shell": ("lab/pages.py", "from podium.scheduler.loop import x"),
        "a relative import": ("objects/kinds/pod.py", "from ...engine import cycle"),
        "from the lowest one": ("errors.py", "from podium.objects.kinds.pod import Pod"),
        "for type checking only": (
            "engine/cycle/cycle.py",
            "if TYPE_CHECKING:\n    from podium.cluster.cache.cache import Cache",
        ),
        "in a function": ("objects/kinds/pod.py", "def f():\n    from podium.engine import fit"),
    },
)
def test_a_wrong_import_is_seen(path: str, text: str) -> None:
    assert len(wrong_imports(PACKAGE / path, text)) == 1


@cases(
    ("path", "text"),
    {
        "upwards": ("lab/store/store.py", "import podium.lab.http.server"),
        "a package above": ("lab/patch/apply.py", "from podium.lab.registry import registry"),
        "a sibling": ("lab/store/store.py", "from podium.lab.kinds.field_checks import x"),
        "for type checking only": (
            "lab/store/store.py",
            "if TYPE_CHECKING:\n    from podium.lab.registry.registry import Registry",
        ),
        "a module in no package": ("lab/stranger.py", ""),
    },
)
def test_a_wrong_import_inside_a_layer_is_seen(path: str, text: str) -> None:
    assert len(wrong_inner_imports(PACKAGE / path, text)) == 1


#: The only module that builds attempts: everything that a decision depends on is a field there.
DECIDER = PACKAGE / "cluster" / "decider.py"


def built_attempts(text: str) -> list[int]:
    """The lines that build an `Attempt` or begin a decision without the decider."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"Attempt", "cycle"}
    ]


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_only_the_decider_builds_attempts(source: Path) -> None:
    found = built_attempts(source.read_text("utf-8"))

    assert bool(found) == (source == DECIDER)


@cases(
    ("path", "text"),
    {
        "downwards": ("cli/main.py", "from podium.cluster.cache.cache import Cache"),
        "its own layer": (
            "engine/cycle/cycle.py",
            "from podium.engine.cycle.searching import find_feasible",
        ),
        "its own layer, relatively": ("engine/cycle/cycle.py", "from . import fit"),
        "a lower layer's name": ("engine/cycle/cycle.py", "from podium import objects"),
        "public names": ("__init__.py", "from podium.library.reading import read"),
        "the version": ("cli/main.py", "from podium import __version__"),
        "nothing else": ("cli/main.py", "import podium\npodium.__version__"),
        "another package": ("engine/cycle/cycle.py", "import podiumlike"),
    },
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
