"""`podium run`: the scheduler of a cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from podium.cli.flags import check_exclusive, profile_flags
from podium.cli.parsing import FlagsCommand
from podium.library.profile_source import ProfileSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.kube.access import Access
    from podium.library.profile_choice import ChosenProfiles

#: The lease of replicas that were told nothing else.
LEASE, LEASE_NAMESPACE = "podium", "kube-system"


@dataclass(frozen=True, slots=True)
class RunFlags:
    """What the command line says besides the profile."""

    kubeconfig: str | None
    context: str | None
    master: str | None
    policy_configmap: str | None
    policy_configmap_namespace: str
    leader_elect: bool | None
    leader_elect_lease_duration: str | None
    leader_elect_renew_deadline: str | None
    leader_elect_retry_period: str | None
    leader_elect_resource_name: str | None
    leader_elect_resource_namespace: str | None
    bind_address: str
    port: int
    v: int
    logging_format: str
    decision_log_file: str | None
    recorded_nodes: int
    shadow: bool


_Command = TypeVar("_Command", bound="Callable[..., Any]")


class _TrueOrFalse(click.types.BoolParamType):
    """As click's, with words that name what would work."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is neither true nor false", param, ctx)


def _lease_option(name: str, text: str) -> Callable[[_Command], _Command]:
    return click.option(f"--leader-elect-{name}", metavar="TEXT", help=text)


@click.command(cls=FlagsCommand)
@click.option("--kubeconfig", metavar="FILE", help="How to reach the cluster.")
@click.option("--context", metavar="NAME", help="Which context of that file.")
@click.option("--master", metavar="URL", help="The API server, in place of the one it names.")
@click.option("--policy-config-file", metavar="FILE", help="The same as --policy.")
@click.option("--policy-configmap", metavar="NAME", help="A Policy in a ConfigMap, key policy.cfg.")
@click.option("--policy-configmap-namespace", metavar="NAME", default="kube-system")
@click.option("--algorithm-provider", metavar="NAME", help="The same as --provider.")
@click.option(
    "--leader-elect",
    type=_TrueOrFalse(),
    is_flag=False,
    flag_value=True,
    default=None,
    metavar="BOOL",
    help="Whether replicas agree on one that decides.  [default: true]",
)
@_lease_option("lease-duration", "How long the lease of a leader holds.  [default: 15s]")
@_lease_option("renew-deadline", "By when it must be renewed.  [default: 10s]")
@_lease_option("retry-period", "How often that is tried.  [default: 2s]")
@_lease_option("resource-name", f"The name of the lease.  [default: {LEASE}]")
@_lease_option("resource-namespace", f"Its namespace.  [default: {LEASE_NAMESPACE}]")
@click.option("--bind-address", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port",
    "--secure-port",
    type=click.IntRange(0, 65535),
    default=10251,
    show_default=True,
    help="The port of probes, metrics and decisions; 0: none.",
)
@click.option("-v", "--v", type=int, default=0, metavar="N", help="How much to tell; 2: decisions.")
@click.option("--logging-format", type=click.Choice(["text", "json"]), default="text")
@click.option("--decision-log-file", metavar="FILE", help="Write every decision there.")
@click.option(
    "--recorded-nodes",
    type=click.IntRange(0),
    default=100,
    show_default=True,
    metavar="N",
    help="Up to so many nodes, keep every verdict and score for `podium why`.",
)
@click.option("--shadow", is_flag=True, help="Decide beside another scheduler; write nothing.")
@profile_flags
def run(
    *,
    policy_config_file: str | None,
    algorithm_provider: str | None,
    flags: ProfileSource,
    **given: Any,
) -> int:
    """Schedule the pods of a cluster, as kube-scheduler does.

    The cluster is that of --kubeconfig, $KUBECONFIG, the service account of the pod it runs in, or
    ~/.kube/config. Pods that name another scheduler count as load and are left alone.
    """
    from podium.cli.run_session import run_scheduler  # noqa: PLC0415  brings everything
    from podium.kube.access import load_access  # noqa: PLC0415

    own = RunFlags(**given)
    policy = flags.policy or policy_config_file
    flags = replace(flags, policy=policy, provider=flags.provider or algorithm_provider)
    check_exclusive(flags)
    access = load_access(own.kubeconfig, own.context, own.master)
    chosen = _chosen(access, flags, own)
    return run_scheduler(access, chosen, own)


def _chosen(access: Access, flags: ProfileSource, own: RunFlags) -> ChosenProfiles:
    if own.policy_configmap is None:
        return flags.choose()
    from podium.library.policy_configmap import policy_in_configmap  # noqa: PLC0415

    if flags.named():
        raise click.UsageError("--policy-configmap excludes other ways of naming a profile")
    return policy_in_configmap(access, flags, own.policy_configmap_namespace, own.policy_configmap)
