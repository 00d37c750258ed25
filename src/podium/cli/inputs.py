"""The files that a command reads."""

from __future__ import annotations

import gc
import io
import sys
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from podium.cli.console import note
from podium.library.files import STDIN
from podium.library.parallel import processors
from podium.library.reading import read

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from podium.library.profile_choice import ChosenProfiles
    from podium.library.profile_source import ProfileSource
    from podium.objects.reading.collection import Objects
    from podium.what_if.plan.inputs import ClusterDocuments


_Command = TypeVar("_Command", bound="Callable[..., Any]")
#: Where the context of a command keeps whether manifests are read strictly.
_STRICT: Final = "podium.strict"


def strict_flag(command: _Command) -> _Command:
    """`--strict`, which `read_files` and `documents_in` follow."""
    return click.option(
        "--strict",
        type=bool,
        default=True,
        show_default=True,
        expose_value=False,
        callback=_keep,
        metavar="BOOLEAN",
        help="Refuse manifests with unknown fields, repeated keys or impossible values.",
    )(command)


def _keep(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001
    context.meta[_STRICT] = value


def check_strictly(files: Sequence[str]) -> None:
    """Read manifests strictly, unless `--strict=false` was given."""
    context = click.get_current_context(silent=True)
    if context is None or _STRICT not in context.meta or not files:
        return
    from podium.what_if.check.manifest_problems import (  # noqa: PLC0415  brings the lab
        check_manifests,
        note_wrapping,
    )

    given = None
    if STDIN in files:  # it is read twice
        given = io.BytesIO(sys.stdin.buffer.read())
        sys.stdin = io.TextIOWrapper(given)
    check = check_manifests if context.meta[_STRICT] else note_wrapping
    check(files, note)
    if given is not None:
        given.seek(0)


def read_files(files: Sequence[str]) -> Objects:
    """The objects in the files, kept until the command ends.

    The garbage collector need not look at them again; a large cluster is decided about faster so.
    """
    check_strictly(files)
    objects = read(files, workers=processors())
    gc.freeze()
    return objects


def chosen_for(flags: ProfileSource, reach: Mapping[str, str | None] | None) -> ChosenProfiles:
    """The profiles that the flags choose; of a live cluster, of the release that it runs."""
    if reach is None:
        return flags.choose()
    from podium.kube.access import load_access  # noqa: PLC0415  brings the client
    from podium.library.cluster_release import choose_in_cluster  # noqa: PLC0415

    access = load_access(reach["kubeconfig"], reach["context"], reach["server"])
    return choose_in_cluster(flags, access)


def read_live(kubeconfig: str | None, context: str | None, server: str | None) -> Objects:
    """The objects of the cluster that the flags name, as they are now."""
    from podium.kube.access import load_access  # noqa: PLC0415  brings the client
    from podium.library.snapshots.writing import read_cluster  # noqa: PLC0415

    objects = read_cluster(load_access(kubeconfig, context, server))
    gc.freeze()
    return objects


def documents_in(files: Sequence[str]) -> ClusterDocuments:
    """The objects in the files with all their fields, for a plan."""
    from podium.what_if.plan.inputs import cluster_documents  # noqa: PLC0415  brings the lab

    check_strictly(files)
    return cluster_documents(files, workers=processors())


def live_cluster(reach: dict[str, str | None]) -> ClusterDocuments:
    """The objects of the cluster that the flags `kubeconfig`, `context` and `server` name."""
    from podium.kube.access import load_access  # noqa: PLC0415  brings the client
    from podium.what_if.plan.inputs import live_documents  # noqa: PLC0415

    return live_documents(load_access(reach["kubeconfig"], reach["context"], reach["server"]))
