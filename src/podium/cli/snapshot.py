"""`podium snapshot`: everything that scheduling reads of a cluster, in one file."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import click

from podium.cli.console import note
from podium.cli.flags import FlagsCommand, profile_flags
from podium.library.profile_source import ProfileSource


@click.command(cls=FlagsCommand)
@click.option("--kubeconfig", metavar="FILE", help="How to reach the cluster.")
@click.option("--context", metavar="NAME", help="The context of it to use.")
@click.option("-o", "--output", required=True, metavar="FILE", help="Where to; - is stdout.")
@click.option("--policy-configmap", metavar="NAME", help="Decide by the Policy in this ConfigMap.")
@click.option("--policy-configmap-namespace", metavar="NAME", default="kube-system")
@click.option("--anonymize", is_flag=True, help="Rename everything that tells whose it is.")
@profile_flags
def snapshot(
    *,
    kubeconfig: str | None,
    context: str | None,
    output: str,
    policy_configmap: str | None,
    policy_configmap_namespace: str,
    anonymize: bool,
    flags: ProfileSource,
) -> int:
    """Write what scheduling reads of a cluster to a file that `schedule` and `explain` take.

    Nodes, pods, namespaces, services, controllers, volumes, budgets and classes, each with the
    fields that scheduling reads: no secrets, no config maps, no environment variables, no
    commands. The file also says by which profile to decide: the one that --policy, --provider,
    --config, --profile or --policy-configmap names here.

    --anonymize renames consistently: decisions stay the same. The ending of FILE decides how it is
    written: .yaml, or JSON otherwise; .gz is compressed.

    Exit code: 0 written, 2 the cluster cannot be read or the file cannot be written.
    """
    from podium.kube.access import load_access  # noqa: PLC0415  brings the client
    from podium.library.policy_configmap import policy_in_configmap  # noqa: PLC0415
    from podium.library.snapshots.listing import listed  # noqa: PLC0415
    from podium.library.snapshots.profile import described  # noqa: PLC0415
    from podium.library.snapshots.writing import write, written  # noqa: PLC0415

    access = load_access(kubeconfig, context)
    if policy_configmap is None:
        chosen = flags.choose()
    else:
        space = policy_configmap_namespace
        chosen = policy_in_configmap(access, flags, space, policy_configmap)
    profile = described(flags, chosen)
    with tempfile.TemporaryDirectory(prefix="podium-") as folder:
        counts = asyncio.run(listed(access, Path(folder)))
        with written(output) as stream:
            write(Path(folder), stream, output, _header(profile, anonymize), anonymize=anonymize)
    if output != "-":
        note(f"{output}: {', '.join(f'{kind} {count}' for kind, count in counts.items() if count)}")
    return 0


def _header(profile: dict[str, Any], anonymize: bool) -> dict[str, Any]:  # noqa: FBT001
    from podium import __version__  # noqa: PLC0415

    head: dict[str, Any] = {"apiVersion": "podium/v1", "kind": "Snapshot"}
    head["writtenBy"] = f"podium {__version__}"
    if anonymize:
        head["anonymized"] = True
    return {**head, "profile": profile}
