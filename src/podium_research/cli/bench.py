"""`podium bench`: run scheduling workloads in memory and measure them."""

from __future__ import annotations

import platform
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import podium
from podium.cli.console import StatusLine, note, notes, write, write_data
from podium.cli.flags import output_flag, profile_flags, verify_flag
from podium.cli.parsing import FlagsCommand
from podium.cli.verified import verified_code
from podium.cluster.verification import Verification
from podium.errors import InputError
from podium.library.profile_source import ProfileSource
from podium_research.bench.runner import FAST, PLAIN, measured_pods, run_workload
from podium_research.bench.text_table import plan_table, result_table, workload_list
from podium_research.bench.workload_selection import (
    SizeOverrides,
    load_workloads,
    profile_for,
    select_workloads,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from podium.engine.framework.profile import Profile
    from podium_research.bench.definitions import BenchWorkload
    from podium_research.bench.measurement import Result

_COUNT = click.IntRange(min=0)


@click.command(cls=FlagsCommand, renamed={"--file": "--filename"})
@click.argument("names", nargs=-1, metavar="[WORKLOAD]…")
@click.option(
    "-f",
    "--filename",
    "file",
    metavar="FILE",
    help="Take workloads from a performance-config.yaml.",
)
@click.option("--nodes", type=_COUNT, metavar="N", help="Create N nodes.")
@click.option("--existing", type=_COUNT, metavar="P", help="Place P pods before measuring.")
@click.option("--pods", type=_COUNT, metavar="M", help="Measure M pods.")
@click.option("--plain", is_flag=True, help="Ask every rule about every node; cache nothing.")
@verify_flag
@click.option("--plan", "planned", is_flag=True, help="Show what is kept of each rule.")
@click.option("--list", "listed", is_flag=True, help="List the workloads instead of running them.")
@click.option("--chart", metavar="FILE", help="Draw throughput over time to FILE.svg or FILE.html.")
@output_flag("table", "json", "yaml")
@profile_flags
def bench(
    *,
    names: tuple[str, ...],
    file: str | None,
    nodes: int | None,
    existing: int | None,
    pods: int | None,
    plain: bool,
    verify: bool,
    planned: bool,
    listed: bool,
    chart: str | None,
    output: str,
    flags: ProfileSource,
) -> int:
    """Run scheduling workloads in memory: create nodes, place pods, measure the next ones.

    A WORKLOAD is a case (SchedulingBasic), a case and a size (SchedulingBasic/5000Nodes), or a
    pattern of either ('Scheduling*'). Without any, all cases are run at their smallest size.
    Deciding and placing is measured; making the pods is not.

    Exit code: 0 all measured pods placed, 1 some not, 2 bad input; with --verify, 3 some decisions
    differ.
    """
    if plain and verify:
        raise click.UsageError("--plain keeps no answers that --verify could compare; give one")
    found = select_workloads(load_workloads(file), names, SizeOverrides(nodes, existing, pods))
    if listed:
        _list(found if names else load_workloads(file), output)
        return 0
    _check_chart(chart)
    profile = flags.choose().profile
    _check_extenders(profile)
    of = [profile_for(workload, flags) if workload.feature_gates else profile for workload in found]
    notes(dict.fromkeys(text for workload in found for text in workload.notes))
    verification = Verification() if verify else None
    measured = _run(found, of, fast=not plain, verification=verification)
    _print(measured, profile, output, PLAIN if plain else FAST, planned=planned)
    if chart:
        _draw(measured, profile, Path(chart))
    code = int(any(result.placed < result.pods for result in measured))
    return code if verification is None else verified_code(verification, code)


def _list(found: Sequence[BenchWorkload], output: str) -> None:
    if output == "table":
        write("".join(f"{line}\n" for line in workload_list(found)))
        return
    data = [
        {
            "case": each.case,
            "size": each.size,
            "description": each.description,
            "needs": list(each.needs),
        }
        for each in found
    ]
    write_data(data, output)


def _run(
    found: Sequence[BenchWorkload],
    profiles: Sequence[Profile],
    *,
    fast: bool,
    verification: Verification | None,
) -> list[Result]:
    measured: list[Result] = []
    with _bar(sum(map(measured_pods, found))) as advance:
        for workload, profile in zip(found, profiles, strict=True):
            measured += run_workload(
                workload, profile, fast=fast, verification=verification, progress=advance
            )
            if measured and measured[-1].skipped:
                advance(measured_pods(workload))
    return measured


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal; it is redrawn only while nothing is measured."""
    done = 0

    def advance(pods: int) -> None:
        nonlocal done
        done += pods
        status.count(done, total)

    with StatusLine("measuring", after_seconds=0) as status:
        yield advance


def _print(
    measured: Sequence[Result], profile: Profile, output: str, path: str, *, planned: bool
) -> None:
    if output != "table":
        write_data(_document(measured, profile, path, planned=planned), output)
        return
    share = profile.percentage_of_nodes_to_score
    scored = "all nodes scored" if share == 100 else f"{share}% of the nodes scored"
    write(f"profile {profile.name}, {scored}, {path} path\n\n")
    write("".join(f"{line}\n" for line in result_table(measured)))
    if planned:
        write("".join(f"{line}\n" for line in plan_table(measured)))


def _document(
    measured: Sequence[Result], profile: Profile, path: str, *, planned: bool
) -> dict[str, Any]:
    return {
        "profile": profile.name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "path": path,
        "podium": podium.__version__,
        "python": platform.python_version(),
        "results": [_result(result, planned=planned) for result in measured],
    }


def _result(result: Result, *, planned: bool) -> dict[str, Any]:
    if not planned:
        return result.as_dict()
    from podium.library.explanation import plan_data  # noqa: PLC0415  only with --plan

    return result.as_dict() | {"plan": plan_data(result.plan)}


def _check_extenders(profile: Profile) -> None:
    """Refuse extenders: workloads measure Podium alone, and nothing answers for the extender."""
    if profile.extenders:
        urls = ", ".join(extender.url_prefix for extender in profile.extenders)
        what = f"{profile.name} asks extenders ({urls}), which cannot be measured"
        raise InputError(what, hint="take the extenders out")


def _check_chart(chart: str | None) -> None:
    """Refuse a chart that cannot be written, before minutes are spent on measuring."""
    if chart is None:
        return
    path = Path(chart)
    if path.suffix not in {".svg", ".html"}:
        raise InputError("is no chart", where=chart, hint="name a file that ends in .svg or .html")
    if not path.absolute().parent.is_dir():
        raise InputError("cannot be written: there is no such folder", where=chart)


def _draw(measured: Sequence[Result], profile: Profile, path: Path) -> None:
    from podium_research.bench.chart_page import html, svg  # noqa: PLC0415  only when asked for

    title = f"podium bench, {profile.name}"
    text = html(measured, title) if path.suffix == ".html" else svg(measured)
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot be written: {reason}", where=str(path)) from None
    if sys.stderr.isatty():
        note(f"wrote {path}")
