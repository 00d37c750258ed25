"""`podium new`: a user rule to start from, with a test that passes."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from typing import Final

import click

from podium.cli.console import write, write_data
from podium.cli.flags import output_flag
from podium.cli.parsing import FlagsCommand
from podium.errors import InputError

_PREDICATE: Final = '''"""A predicate: on which nodes a pod may run.

    podium explain POD FILES --rules {file}
"""

from podium.rules import predicate


@predicate("{name}", reason="node(s) were not for this team", depends="node")
def {function}(pod, node):
    """A node with a team is for pods of that team."""
    return node.labels.get("team") in (None, pod.labels.get("team"))
'''

_PREDICATE_TEST: Final = '''"""pytest {test}"""

from podium.rules import try_predicate

from {module} import {function}

NODES = [
    {{"metadata": {{"name": "ours", "labels": {{"team": "red"}}}}}},
    {{"metadata": {{"name": "theirs", "labels": {{"team": "blue"}}}}}},
    {{"metadata": {{"name": "anybody"}}}},
]


def test_a_node_with_a_team_is_for_that_team():
    pod = {{"metadata": {{"name": "p", "labels": {{"team": "red"}}}}}}

    assert try_predicate({function}, pod, NODES) == {{
        "ours": [],
        "theirs": ["node(s) were not for this team"],
        "anybody": [],
    }}
'''

_PRIORITY: Final = '''"""A priority: which nodes are better for a pod.

    podium explain POD FILES --rules {file}
"""

from podium.rules import priority


@priority("{name}", weight=1, normalize="max", depends="pods")
def {function}(pod, node):
    """The more memory is left, the better."""
    return node.free("memory") >> 20
'''

_PRIORITY_TEST: Final = '''"""pytest {test}"""

from podium.rules import try_priority

from {module} import {function}

NODES = [
    {{"metadata": {{"name": "small"}}, "status": {{"allocatable": {{"memory": "2Gi"}}}}}},
    {{"metadata": {{"name": "large"}}, "status": {{"allocatable": {{"memory": "8Gi"}}}}}},
]


def test_the_more_memory_is_left_the_better():
    pod = {{"metadata": {{"name": "p"}}}}

    assert try_priority({function}, pod, NODES) == {{"small": 2, "large": 10}}
'''

_TEMPLATES: Final = {
    "predicate": (_PREDICATE, _PREDICATE_TEST),
    "priority": (_PRIORITY, _PRIORITY_TEST),
}


@click.command(cls=FlagsCommand)
@click.argument("kind", type=click.Choice(tuple(_TEMPLATES)))
@click.argument("name")
@click.option(
    "--folder",
    default=".",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="The folder to write the two files to.  [default: this one]",
)
@output_flag("name", "json", "yaml")
def new(*, kind: str, name: str, folder: str, output: str) -> int:
    """Write a predicate or priority called NAME that works, and a test that passes.

    NAME is what Policy files call it, such as TeamNodes; the files are team_nodes.py and
    test_team_nodes.py. Nothing is overwritten.
    """
    from podium.profiles.policy.rule_names import check_name  # noqa: PLC0415  brings the profiles
    from podium.profiles.user_rules.loading import check_not_built_in  # noqa: PLC0415

    check_name(name)
    check_not_built_in(kind, name)
    module = _module_name(name)
    rule, test = Path(folder, f"{module}.py"), Path(folder, f"test_{module}.py")
    for path in (rule, test):
        if path.exists():
            raise InputError("exists already, and nothing is overwritten", where=str(path))
    words = {
        "name": name,
        "function": module,
        "module": module,
        "file": rule.name,
        "test": test.name,
    }
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for path, text in zip((rule, test), _TEMPLATES[kind], strict=True):
            with path.open("x", encoding="utf-8") as file:
                file.write(text.format(**words))
    except OSError as error:
        where = str(error.filename or folder)
        raise InputError(
            f"cannot be written: {(error.strerror or '').lower()}", where=where
        ) from None
    if output == "name":
        write(f"{rule}\n{test}\n")
    else:
        write_data({"rule": str(rule), "test": str(test)}, output)
    return 0


def _module_name(name: str) -> str:
    """`TeamNodes`, `team-nodes` -> `team_nodes`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name.replace("-", "_"))
    module = re.sub("_+", "_", parted.lower())
    if module[0].isdigit() or keyword.iskeyword(module):
        module = f"rule_{module}"
    return module
