"""`podium check`: what becomes of a change to manifests before it is merged."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from podium.cli.console import StatusLine, notes, write, write_data, write_lines
from podium.cli.flags import (
    Reach,
    cluster_without_files,
    files_flag,
    live_cluster_flags,
    output_flag,
    profile_flags,
)
from podium.cli.inputs import documents_and_profiles
from podium.cli.parsing import FlagsCommand
from podium.errors import InputError
from podium.library.profile_source import ProfileSource

if TYPE_CHECKING:
    from podium.what_if.check.manifest_state import ManifestState

_TWO = 2


@click.command(cls=FlagsCommand)
@click.argument("states", nargs=-1, required=True, type=click.Path(), metavar="[BEFORE] AFTER")
@files_flag(
    "The cluster: a snapshot, a history, a dump or manifests with its nodes.  [default: the "
    "cluster of the kubeconfig]"
)
@live_cluster_flags
@click.option(
    "--git",
    "revisions",
    metavar="REV[..REV]",
    help="Compare AFTER at these revisions; the second one is the files as they are.",
)
@click.option(
    "--fail-on",
    metavar="RULES",
    help="The rules that fail the check, by comma; `none` for no rule.  "
    "[default: invalid,impossible,pending,evicted]",
)
@click.option(
    "--allow",
    "allowed",
    multiple=True,
    metavar="ID|FILE",
    help="A finding that is known, or a file with one on each line.",
)
@output_flag("table", "json", "yaml", "sarif", "github", "junit")
@profile_flags
def check(
    *,
    states: tuple[str, ...],
    files: tuple[str, ...],
    reach: Reach,
    revisions: str | None,
    fail_on: str | None,
    allowed: tuple[str, ...],
    output: str,
    flags: ProfileSource,
) -> int:
    """Say what becomes of a change to manifests: BEFORE and AFTER are folders or files.

    The objects that differ are applied to a copy of the cluster, as `podium plan` does it. Findings
    stand at the line of the manifest: pods that would find no node, with the smallest fix, and pods
    that are evicted or moved. Violated budgets and spreading, manifests that the API server
    refuses, and the room that is left follow. With one folder and no --git all of it is new.

    Exit code: 0 nothing fails the check, 1 something does, 2 bad input.
    """
    from podium.what_if.check.check import check as run_check  # noqa: PLC0415  brings the lab

    cluster = cluster_without_files(reach, files)
    failing_rules = _rules(fail_on)
    known = _allowed(allowed)
    before, after = _states(states, revisions)
    found, chosen = documents_and_profiles(files, cluster, flags)
    with StatusLine("checking") as status:
        result = run_check(found, before, after, chosen, allow=known, on_step=status.step)
    notes(result.notes)
    failing = result.failing(failing_rules)
    from podium.render.reports import check as reports  # noqa: PLC0415

    if output == "table":
        write_lines(reports.report(result, failing))
    elif output == "sarif":
        write_data(reports.sarif(result), "json")
    elif output == "github":
        for line in reports.github_annotations(result):
            write(f"{line}\n")
    elif output == "junit":
        write(reports.junit(result, failing))
    else:
        write_data(result.as_json(), output)
    return int(bool(failing))


def _rules(text: str | None) -> frozenset[str]:
    from podium.what_if.check.check import DEFAULT_FAIL_ON, RULES  # noqa: PLC0415

    if text is None:
        return frozenset(DEFAULT_FAIL_ON)
    names = frozenset(each.strip() for each in text.split(",") if each.strip()) - {"none"}
    for name in sorted(names - set(RULES)):
        raise click.UsageError(f"--fail-on: there is no rule {name!r}; known: {', '.join(RULES)}")
    return names


def _allowed(given: tuple[str, ...]) -> frozenset[str]:
    found: set[str] = set()
    for each in given:
        if Path(each).is_file():
            lines = Path(each).read_text("utf-8").splitlines()
            found.update(line.strip() for line in lines if line.strip() and line[0] != "#")
        elif ":" in each:
            found.add(each)
        else:
            hint = "an id is RULE:KIND/NAMESPACE/NAME, as the table prints it"
            raise InputError("is neither a file nor the id of a finding", where=each, hint=hint)
    return frozenset(found)


def _states(states: tuple[str, ...], revisions: str | None) -> tuple[ManifestState, ManifestState]:
    from podium.what_if.check.manifest_state import (  # noqa: PLC0415
        ManifestState,
        read_state,
        revision_state,
    )

    if len(states) > _TWO or (revisions is not None and len(states) > 1):
        raise click.UsageError("give BEFORE and AFTER, or one of them with --git REV")
    if revisions is None:
        before = read_state(states[0]) if len(states) == _TWO else ManifestState()
        return before, read_state(states[-1])
    path = states[0]
    first, _, second = revisions.partition("..")
    with TemporaryDirectory() as folder:
        before = revision_state(path, first, Path(folder, "before"))
        if not second:
            return before, read_state(path)
        return before, revision_state(path, second, Path(folder, "after"))
