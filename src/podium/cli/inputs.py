"""The files that a command reads."""

from __future__ import annotations

import gc
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from podium.cli.console import note, notes
from podium.errors import InputError
from podium.library.files import STDIN
from podium.library.parallel import processors
from podium.library.reading import read
from podium.objects.reading.validation import notes as input_notes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.cli.flags import Reach
    from podium.kube.access import Access
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


def chosen_for(flags: ProfileSource, reach: Reach | None) -> ChosenProfiles:
    """The profiles that the flags choose; of a live cluster, of the release that it runs."""
    if reach is None:
        return flags.choose()
    from podium.library.cluster_release import choose_in_cluster  # noqa: PLC0415  brings the client

    return choose_in_cluster(flags, reached(reach))


def reached(reach: Reach) -> Access:
    """How the cluster is reached that the flags name."""
    from podium.kube.access import load_access  # noqa: PLC0415  brings the client

    return load_access(reach["kubeconfig"], reach["context"], reach["server"])


def read_live(reach: Reach) -> Objects:
    """The objects of the cluster that the flags name, as they are now."""
    from podium.library.snapshots.writing import read_cluster  # noqa: PLC0415  brings the client

    objects = read_cluster(reached(reach))
    gc.freeze()
    return objects


def objects_and_profiles(
    files: Sequence[str], cluster: Reach | None, flags: ProfileSource
) -> tuple[Objects, ChosenProfiles]:
    """The objects in FILES, or of the cluster, and the profiles that decide about them.

    A snapshot says by which profile to decide, unless a flag does. Notes about both are printed.
    """
    chosen = chosen_for(flags, cluster)
    objects = read_files(files) if cluster is None else read_live(cluster)
    if objects.snapshot is not None and cluster is None:
        chosen = flags.choose(objects.snapshot)
    notes((*input_notes(objects), *chosen.profile.notes))
    return objects, chosen


def documents_and_profiles(
    files: Sequence[str], cluster: Reach | None, flags: ProfileSource
) -> tuple[ClusterDocuments, ChosenProfiles]:
    """The same with all fields of the objects, for a plan; notes about them are printed."""
    from podium.what_if.plan.inputs import (  # noqa: PLC0415  brings the lab
        cluster_documents,
        live_documents,
    )

    chosen = chosen_for(flags, cluster)
    check_strictly(files)
    if cluster is None:
        found = cluster_documents(files, workers=processors())
    else:
        found = live_documents(reached(cluster))
    if found.snapshot is not None:
        chosen = flags.choose(found.snapshot)
    notes((*chosen.profile.notes, *found.notes()))
    return found, chosen


def secret_in(flag: str, file: str) -> str:
    """The secret that the file of a flag holds, such as a token."""
    try:
        found = Path(file).read_text("utf-8").strip()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no text"
        raise InputError(f"{flag} {file}: {str(reason).lower()}") from None
    if not found:
        raise InputError(f"{flag} {file}: is empty")
    return found
