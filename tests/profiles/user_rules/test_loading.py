"""Rules come from files, modules and installed packages, and are used by their names."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import node, pod, simulation
from cases import cases
from podium.cli.main import run
from podium.errors import ConfigError
from podium.profiles.policy.build import Options, from_policy, from_provider
from podium.profiles.policy.description import describe
from podium.profiles.user_rules.adapter import UserPredicate, UserPriority
from podium.profiles.user_rules.loading import LoadedRules, load_rules, with_rules

OWN = """
from podium.rules import predicate, priority

@predicate("ZoneOnly", depends="node")
def zone_only(pod, node, *, zone="a", others=()):
    "In one zone."
    return node.labels.get("zone") == zone or f"node(s) were not in zone {zone}"

@priority("Alphabetical", weight=7, normalize="reverse", depends="node")
def alphabetical(pod, node):
    "Early names."
    return ord(node.name[-1])
"""

CLUSTER = """
{"apiVersion": "v1", "kind": "List", "items": [
 {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n-1", "labels": {"zone": "a"}},
  "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}}},
 {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n-2", "labels": {"zone": "b"}},
  "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}}},
 {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n-3", "labels": {"zone": "b"}},
  "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}}},
 {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web"},
  "spec": {"containers": [{"name": "c", "image": "i"}]}}]}
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    path = tmp_path / "own.py"
    path.write_text(OWN, "utf-8")
    return str(path)


@pytest.fixture(autouse=True)
def forget_modules() -> Iterator[None]:
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("podium_rules_", "site_rules", "shared_zone_of_rules", "neighbour_of")):
            del sys.modules[name]


def options(*sources: str, policy: Mapping[str, Any] | None = None) -> Options:
    return Options(rules=load_rules(sources, policy))


def policy(**sections: Any) -> dict[str, Any]:
    return {"kind": "Policy", "apiVersion": "v1", **sections}


def test_every_rule_of_a_file_is_found(own: str) -> None:
    rules = load_rules([own])

    assert list(rules.predicates) == ["ZoneOnly"]
    assert list(rules.priorities) == ["Alphabetical"]
    assert rules.predicates["ZoneOnly"].description == "In one zone"


def test_rules_of_a_module(own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site_rules.py").write_text(Path(own).read_text("utf-8"), "utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    assert list(load_rules(["site_rules"]).predicates) == ["ZoneOnly"]


def test_rules_of_an_installed_package(
    own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site_rules.py").write_text(Path(own).read_text("utf-8"), "utf-8")
    about = tmp_path / "site_rules-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: site-rules\nVersion: 1.0\n", "utf-8"
    )
    offers = "[podium.rules]\nZoneOnly = site_rules:zone_only\nsite = site_rules\n"
    (about / "entry_points.txt").write_text(offers, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    named = load_rules([], policy(predicates=[{"name": "ZoneOnly"}, {"name": "HostName"}]))
    assert list(named.predicates) == ["ZoneOnly"]
    assert list(named.priorities) == []
    assert list(load_rules(["site"]).priorities) == ["Alphabetical"]
    assert not load_rules([], policy(predicates=[{"name": "HostName"}]))


def test_without_a_policy_every_rule_is_used(own: str) -> None:
    profile = from_provider("DefaultProvider", options(own))

    assert isinstance(profile.predicates[-1], UserPredicate)
    assert "ZoneOnly" in profile.configured_predicates
    [mine] = [w for w in profile.priorities if isinstance(w.priority, UserPriority)]
    assert (mine.name, mine.weight) == ("Alphabetical", 7)
    assert [w.name for w in profile.priorities] == sorted(w.name for w in profile.priorities)


def test_a_policy_names_rules_and_gives_arguments(own: str) -> None:
    chosen = policy(
        predicates=[
            {"name": "ZoneOnly", "argument": {"zone": "b"}, "order": 0},
            {"name": "GeneralPredicates"},
        ],
        priorities=[
            {"name": "Alphabetical", "weight": 2},
            {"name": "LeastRequestedPriority", "weight": 1},
        ],
    )
    profile = from_policy(chosen, options(own))

    assert profile.predicates[0].name == "ZoneOnly"
    assert [(w.name, w.weight) for w in profile.priorities] == [
        ("Alphabetical", 2),
        ("LeastRequestedPriority", 1),
    ]
    told = describe(profile, Options())
    assert told["predicates"][0]["description"] == "In one zone"
    assert told["priorities"][0]["description"] == "Early names"


def test_a_policy_that_lists_none_of_a_kind_gets_all_of_it(own: str) -> None:
    profile = from_policy(policy(priorities=[]), options(own))

    assert profile.predicates[-1].name == "ZoneOnly"
    assert "priority Alphabetical was loaded, but the Policy does not list it" in profile.notes


@cases(
    ("text", "sentence"),
    {
        "no rules": ("x = 1", "holds no rules"),
        "a syntax error": ("def f(:", "own.py:1: SyntaxError"),
        "an error": ("a = 1\nb = 1 / 0", "own.py:2: ZeroDivisionError"),
        "an exit": ("raise SystemExit(0)", "own.py:1: SystemExit"),
        "a missing module": ("import nowhere_at_all", "ModuleNotFoundError"),
        "no name": (
            "from podium.rules import *\n@priority\ndef f(pod, node): return 5",
            'a rule has no name; say @predicate("Name") or @priority("Name")',
        ),
        "a built-in name": (
            "from podium.rules import *\n@predicate('HostName')\ndef f(pod, node): return True",
            "HostName is a built-in predicate",
        ),
        "the name of a plugin": (
            "from podium.rules import *\n@predicate('NodeAffinity')\ndef f(pod, node): return True",
            "NodeAffinity is a built-in plugin",
        ),
        "the name of a plugin, for another kind of rule": (
            "from podium.rules import *\n@reserve('VolumeBinding')\ndef f(pod, node): return {}",
            "VolumeBinding is a built-in plugin",
        ),
        "a name twice": (
            (
                "from podium.rules import *\n"
                "@predicate('Mine')\ndef f(pod, node): return True\n"
                "@predicate('Mine')\ndef g(pod, node): return True"
            ),
            "predicate Mine is in",
        ),
        "an unknown normalisation": (
            "from podium.rules import *\n@priority('Mine', normalize='mean')\ndef f(p, n): ...",
            "normalize is 'mean'; expected one of none, max, min-max, reverse",
        ),
        "a name that no Policy could have": (
            "from podium.rules import *\n@predicate('a b')\ndef f(p, n): return 1",
            "Algorithm name a b does not match",
        ),
    },
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "own.py"
    path.write_text(text, "utf-8")

    with pytest.raises(ConfigError) as refused:
        load_rules([str(path)])

    assert sentence in str(refused.value)
    assert "own.py" in str(refused.value)


@cases(
    ("entry", "sentence"),
    {
        "unknown": ({"argument": {"zune": "a"}}, "unexpected keyword argument 'zune'"),
        "a list": ({"argument": ["a"]}, "argument is not a mapping"),
    },
)
def test_a_wrong_argument_is_refused(own: str, entry: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        from_policy(policy(predicates=[{"name": "ZoneOnly", **entry}]), options(own))


def test_a_file_of_another_kind_is_no_rule(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("kind: Policy\n")

    with pytest.raises(ConfigError, match=r"rules.yaml is no Python file; a file with rules ends"):
        load_rules([str(tmp_path / "rules.yaml")])


def test_no_such_file_or_module() -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        load_rules(["missing.py"])
    with pytest.raises(ConfigError, match="No module named 'nowhere_at_all'"):
        load_rules(["nowhere_at_all"])


def test_a_rule_may_have_the_name_of_one_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(
        "from podium.rules import *\n"
        "@predicate('LeastRequestedPriority')\ndef f(pod, node): return True\n"
        "@predicate('Both')\ndef g(pod, node): return True\n"
        "@priority('Both')\ndef h(pod, node): return 1\n",
        "utf-8",
    )

    profile = with_rules(from_provider("DefaultProvider", Options()), load_rules([str(path)]))

    predicates = [rule.name for rule in profile.predicates if isinstance(rule, UserPredicate)]
    assert predicates == ["LeastRequestedPriority", "Both"]
    assert "Both" in [each.name for each in profile.priorities]


def test_files_of_one_name_in_two_folders_are_two_modules(tmp_path: Path) -> None:
    for folder, name in (("a", "First"), ("b", "Second")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "neighbour_of_rules.py").write_text(f"HERE = {folder!r}\n", "utf-8")
        (tmp_path / folder / "own.py").write_text(
            "from dataclasses import dataclass\n"
            "from neighbour_of_rules import HERE\n"
            "from podium.rules import predicate\n"
            "@dataclass\nclass Zone:\n    name: str = HERE\n"
            f"@predicate({name!r})\n"
            "def own(pod, node): return Zone().name\n",
            "utf-8",
        )

    rules = load_rules([str(tmp_path / "a/own.py"), str(tmp_path / "b/own.py")])

    functions = [spec.function for spec in rules.predicates.values()]
    assert list(rules.predicates) == ["First", "Second"]
    assert [each(None, None) for each in functions] == ["a", "b"]
    for each in functions:
        assert getattr(sys.modules[each.__module__], each.__name__) is each


def test_no_rules_cost_nothing() -> None:
    assert not LoadedRules()
    assert load_rules([]) == LoadedRules()


# The command line -----------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    path = tmp_path / "cluster.json"
    path.write_text(CLUSTER, "utf-8")
    return str(path)


def test_a_rule_decides_and_is_explained(
    own: str, cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(["schedule", cluster, "--provider", "DefaultProvider", "--rules", own, "-o", "name"])
        == 0
    )
    assert capsys.readouterr().out == "default/web n-1\n"

    assert run(["explain", "web", cluster, "--provider", "DefaultProvider", "--rules", own]) == 0
    out = capsys.readouterr().out
    assert "ZoneOnly" in out
    assert "node(s) were not in zone a" in out


def test_a_policy_file_names_it(
    own: str, cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(
        "kind: Policy\napiVersion: v1\npredicates:\n"
        "- {name: GeneralPredicates}\n- {name: ZoneOnly, argument: {zone: b}}\n"
        "priorities:\n- {name: Alphabetical, weight: 3}\n",
        "utf-8",
    )

    assert (
        run(["explain", "web", cluster, "--policy", str(path), "--rules", own, "-o", "json"]) == 0
    )
    out = capsys.readouterr().out
    assert '"n-2"' in out
    assert "Alphabetical" in out

    assert run(["schedule", cluster, "--policy", str(path)]) == 2
    assert "ZoneOnly" in capsys.readouterr().err


def test_a_rule_that_fails_is_told_of_with_pod_and_node(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.py"
    path.write_text(
        "from podium.rules import predicate\n"
        "@predicate('Bad')\ndef bad(pod, node): return node.labels['rack'] == '1'\n",
        "utf-8",
    )

    flags = ["--provider", "DefaultProvider", "--rules", str(path), "--exit-code"]

    assert run(["schedule", cluster, *flags]) == 1
    seen = capsys.readouterr()
    assert "0/3 nodes are available: 3 rule Bad failed." in seen.out
    assert "rule Bad failed for pod default/web on node n-1: KeyError: 'rack'" in seen.err


def test_rules_cannot_be_recorded(
    own: str, cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--provider", "DefaultProvider", "--rules", own, "-o", "recording"]

    assert run(["schedule", cluster, *flags]) == 2
    assert "a recording cannot hold user rules" in capsys.readouterr().err


def test_rules_join_the_plugins_of_today(
    own: str, cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", "web", cluster, "--profile", "v1.36", "--rules", own, "-o", "json"]) == 0
    out = capsys.readouterr().out
    assert "node(s) were not in zone a" in out
    assert "v1.36" in out


def test_a_file_may_import_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "shared_zone_of_rules.py").write_text("ZONE = 'a'\n", "utf-8")
    path = tmp_path / "with_neighbour.py"
    path.write_text(
        "from podium.rules import predicate\n"
        "from shared_zone_of_rules import ZONE\n"
        "@predicate('In' + ZONE)\n"
        "def inside(pod, node): return True\n",
        "utf-8",
    )
    before = list(sys.path)

    assert list(load_rules([str(path)]).predicates) == ["Ina"]
    assert sys.path == before


def test_arguments_without_a_policy(own: str) -> None:
    rules = replace(load_rules([own]), arguments={"ZoneOnly": {"zone": "b"}})
    profile = from_provider("DefaultProvider", Options(rules=rules))
    world = simulation(node("n", labels={"zone": "a"}), profile=profile)
    other = simulation(node("n", labels={"zone": "b"}), profile=profile)

    assert world.attempt(pod("p")).node is None
    assert other.attempt(pod("p")).node == "n"
