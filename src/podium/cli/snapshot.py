"""`podium snapshot`: all of a cluster that decisions and plans depend on, in one file."""

from __future__ import annotations

import click

from podium.cli.console import note
from podium.cli.flags import Reach, cluster_flags, policy_configmap_flags, profile_flags
from podium.cli.inputs import reached
from podium.cli.parsing import FlagsCommand
from podium.library.profile_source import ProfileSource


@click.command(cls=FlagsCommand)
@cluster_flags()
@click.option("--out", required=True, metavar="FILE", help="Output file; - is standard output.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(("json", "yaml")),
    help="Output format.  [default: yaml if FILE ends in .yaml or .yml, else json]",
)
@click.option("--anonymize", is_flag=True, help="Rename everything that tells whose cluster it is.")
@policy_configmap_flags
@profile_flags
def snapshot(
    *,
    reach: Reach,
    out: str,
    output: str | None,
    anonymize: bool,
    policy_configmap: str | None,
    policy_configmap_namespace: str,
    flags: ProfileSource,
) -> int:
    """Write what decisions and plans depend on to a file that all commands take.

    Nodes, pods, namespaces, services, workloads, autoscalers, quotas, volumes, budgets and classes,
    each with the fields that are read: no secrets, no config maps, no environment variables, no
    commands. Kinds that you may not list are left out, and a note names them. The file also says by
    which profile to decide: the one that --policy, --provider, --config, --profile or
    --policy-configmap names here.

    --anonymize renames consistently: decisions stay the same. A FILE that ends in .gz is
    compressed.

    Exit code: 0 written, 2 the cluster cannot be read or the file cannot be written.
    """
    from podium.library.cluster_release import choose_in_cluster  # noqa: PLC0415  brings the client
    from podium.library.snapshots.profile import kept_profile  # noqa: PLC0415
    from podium.library.snapshots.writing import STDOUT, write_snapshot  # noqa: PLC0415
    from podium.objects.reading.validation import forbidden_notes  # noqa: PLC0415

    access = reached(reach)
    chosen = choose_in_cluster(flags, access, policy_configmap_namespace, policy_configmap)
    profile = kept_profile(flags, chosen)
    listed = write_snapshot(access, out, profile, written_as=output, anonymize=anonymize)
    for sentence in forbidden_notes(listed.forbidden):
        note(sentence)
    if out != STDOUT:
        counts = ", ".join(f"{kind} {count}" for kind, count in listed.counts.items() if count)
        note(f"{out}: {counts}")
    return 0
