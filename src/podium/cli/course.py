"""The course in the mechanisms of kube-scheduler: its chapters, and a lab for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.cli.console import write, write_data, write_lines
from podium.library.documentation import PAGE, chapter, chapters

if TYPE_CHECKING:
    from podium.host.lab_run import LabStatus

#: The path of the chapters among the pages of a lab.
_PAGES: Final = "podium/help/course"


def list_chapters(output: str) -> None:
    """Print the chapters."""
    found = chapters()
    if output != "table":
        write_data(
            [{"name": c.name, "title": c.title, "question": c.question} for c in found], output
        )
        return
    from podium.render.columns import TextTable  # noqa: PLC0415

    table = TextTable("CHAPTER", "TITLE", whole=["CHAPTER"])
    for each in found:
        table.add(each.name, each.title)
    write_lines(table.lines())


def start_chapter(name: str, port: int, kubeconfig: str | None, output: str) -> int:
    """Run a lab with the cluster and the rules of a chapter, and a page that says what to look at.

    Returns the exit code.
    """
    from podium.cli.lab import introduce, lab_history, lab_scheduler  # noqa: PLC0415  not for lists
    from podium.host.lab_contents import LabContents  # noqa: PLC0415
    from podium.host.lab_run import LabOptions, Terminal, run_lab  # noqa: PLC0415
    from podium.library.profile_source import ProfileSource  # noqa: PLC0415
    from podium.scheduler.telemetry.logs import TEXT, WARNINGS_ONLY, Log  # noqa: PLC0415

    found = chapter(name)
    flags = ProfileSource(
        policy=found.policy,
        profile=None if found.policy else "v1.13",
        rules=(found.rules,) if found.rules else (),
    )
    scheduler = lab_scheduler(flags)

    def ready(status: LabStatus) -> None:
        page = f"{status.url}/{_PAGES}/{found.name}/{PAGE}?token={status.token}"
        introduce(status, scheduler.chosen.profile.name, output, more={"chapter": page})
        if output == "table":
            write(f"{found.title}\n  {found.question}\n  {page}\n")

    from podium.cli.console import note  # noqa: PLC0415

    with lab_history(flags, scheduler) as history:
        return run_lab(
            LabOptions(
                port=port,
                kubeconfig=kubeconfig,
                contents=LabContents(files=(found.cluster,)),
                record=history,
            ),
            scheduler,
            Log(TEXT, WARNINGS_ONLY),
            Terminal(progress=iter, note=note, on_ready=ready),
        )
