"""`podium run`: the scheduler of a cluster."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import msgspec

from podium.cli.flags import (
    DurationType,
    HistoryLimits,
    ListenAddress,
    Reach,
    cluster_flags,
    history_limit_flags,
    listen_flag,
    policy_configmap_flags,
    profile_flags,
)
from podium.cli.parsing import FlagsCommand
from podium.errors import InputError
from podium.kube.http_rules import LOOPBACK
from podium.library.profile_source import ProfileSource
from podium.objects.reading.garbage import without_gc
from podium.releases import KUBE_SCHEDULER

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.host.cluster_program import PreparedRun
    from podium.host.cluster_run import Lease, RunOptions, SecurePort
    from podium.kube.access import Access
    from podium.library.profile_choice import ChosenProfiles
    from podium.profiles.config.scheduler_config import SchedulerConfig
    from podium.serving.page_data.page_data import Planner

#: The lease of replicas, unless the flags or the configuration name another one.
LEASE, LEASE_NAMESPACE = "podium", "kube-system"
_LISTEN: Final = ListenAddress("127.0.0.1", 10251)


class RunFlags(msgspec.Struct, frozen=True):
    """The flags of the command besides those of the profile."""

    reach: Reach
    policy_configmap: str | None
    policy_configmap_namespace: str
    leader_elect: bool | None
    leader_elect_lease_duration: float | None
    leader_elect_renew_deadline: float | None
    leader_elect_retry_period: float | None
    leader_elect_resource_name: str | None
    leader_elect_resource_namespace: str | None
    listen: ListenAddress
    secure_port: int
    tracing_endpoint: str | None
    tracing_sampling_rate_per_million: int
    pages: bool
    pages_may_change_rules: bool
    allow_plain_http: bool
    tls_cert_file: str | None
    tls_private_key_file: str | None
    client_ca_file: str | None
    v: int
    logging_format: str
    decision_log_file: str | None
    recorded_nodes: int
    verify_decisions: int
    shadow: bool
    record: str | None
    limits: HistoryLimits


_Command = TypeVar("_Command", bound="Callable[..., Any]")


def _lease_option(name: str, text: str) -> Callable[[_Command], _Command]:
    return click.option(f"--leader-elect-resource-{name}", metavar="NAME", help=text)


def _lease_time(name: str, text: str) -> Callable[[_Command], _Command]:
    kind = DurationType()
    return click.option(f"--leader-elect-{name}", type=kind, metavar="DURATION", help=text)


@click.command(cls=FlagsCommand)
@cluster_flags(master=True)
@policy_configmap_flags
@click.option(
    "--leader-elect",
    is_flag=True,
    default=None,
    help="Let replicas elect the one that schedules; =false for a single one.  [default: true]",
)
@_lease_time("lease-duration", "Duration of the leader's lease.  [default: 15s]")
@_lease_time("renew-deadline", "Time to renew the lease in.  [default: 10s]")
@_lease_time("retry-period", "Time between two tries.  [default: 2s]")
@_lease_option("name", f"Name of the lease.  [default: {LEASE}]")
@_lease_option("namespace", f"Namespace of the lease.  [default: {LEASE_NAMESPACE}]")
@listen_flag(
    _LISTEN,
    "The address of probes, metrics and decisions; port 0 serves none.",
    host_name="--bind-address",
    hidden=False,
)
@click.option(
    "--secure-port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="Serve probes, metrics and decisions over TLS on this port of --bind-address, to those "
    "whom the cluster allows; plain HTTP stays on loopback then.  [default: none]",
)
@click.option(
    "--tls-cert-file", metavar="FILE", help="Certificate of --secure-port.  [default: self-signed]"
)
@click.option("--tls-private-key-file", metavar="FILE", help="Private key of --tls-cert-file.")
@click.option(
    "--client-ca-file",
    metavar="FILE",
    help="Authorities of the client certificates that --secure-port accepts.  [default: those "
    "that the cluster publishes]",
)
@click.option(
    "-v",
    "--v",
    type=int,
    default=0,
    metavar="N",
    help="Log verbosity; 2 logs every decision, 10 every score of every node.",
)
@click.option(
    "--logging-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the log.",
)
@click.option("--decision-log-file", metavar="FILE", help="Append every decision to this file.")
@click.option(
    "--recorded-nodes",
    type=click.IntRange(0),
    default=100,
    show_default=True,
    metavar="N",
    help="In clusters of at most N nodes, keep every verdict and score for `podium explain"
    " --decided`.",
)
@click.option(
    "--verify-decisions",
    type=click.IntRange(0),
    default=10_000,
    show_default=True,
    metavar="N",
    help="Make one decision in N twice, from kept answers and without any, and compare; 0: none.",
)
@click.option(
    "--tracing-endpoint",
    metavar="URL",
    help="Send OpenTelemetry spans of attempts to this OTLP endpoint (needs podium[tracing]).",
)
@click.option(
    "--tracing-sampling-rate-per-million",
    type=click.IntRange(0, 1_000_000),
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="Of how many attempts in a million spans are sent.",
)
@click.option(
    "--pages",
    is_flag=True,
    help="Serve the pages of the lab for this cluster: on --secure-port, and on --listen if that "
    "is a loopback address.",
)
@click.option(
    "--pages-may-change-rules", is_flag=True, help="Let the pages change the rules that decide."
)
@click.option(
    "--allow-plain-http",
    is_flag=True,
    help="Serve plain HTTP beyond loopback, and rules to change on --listen, to everybody.",
)
@click.option(
    "--shadow",
    is_flag=True,
    help="Only compare with the scheduler that the cluster has; write nothing.",
)
@click.option(
    "--record",
    metavar="DIR",
    help="Record a history in this folder, for `podium history` and `podium explain --decided`.",
)
@history_limit_flags
@profile_flags
def run(
    *,
    flags: ProfileSource,
    **given: Any,
) -> int:
    """Schedule the pods of a cluster, as kube-scheduler does.

    The cluster is that of --kubeconfig, $KUBECONFIG, the service account of the pod it runs in, or
    ~/.kube/config. Pods that name another scheduler count as load and are left alone.
    """
    with without_gc():
        from podium.host.cluster_program import run_cluster  # noqa: PLC0415  not for the help
        from podium.kube.access import load_access  # noqa: PLC0415

        own = RunFlags(**given)
        _check_ports(own)
        flags = _as_kube_scheduler(flags, own)
        reach = own.reach
        load = partial(load_access, reach["kubeconfig"], reach["context"], reach["server"])
        access = load()
        chosen = _chosen_by_cluster(access, flags, own)
        source = flags if chosen is not None else _of_cluster(access, flags)

        def prepare() -> PreparedRun:
            return _prepared(access, chosen or source.choose(), source, own)

        return run_cluster(load, access, prepare, _show, pod_name=os.environ.get("POD_NAME", ""))


def _prepared(
    access: Access, chosen: ChosenProfiles, flags: ProfileSource, own: RunFlags
) -> PreparedRun:
    """What the flags come to; it is logged on standard error."""
    from podium.cli.console import notes  # noqa: PLC0415  not needed for the help
    from podium.host.cluster_program import PreparedRun  # noqa: PLC0415
    from podium.scheduler.telemetry.logs import Log  # noqa: PLC0415

    options = _options(own, flags, chosen)
    what = "shadows" if own.shadow else "schedules"
    names = ", ".join(sorted(chosen.schedulers))
    line = f"podium {what} pods of {names} at {access.shown} by {chosen.profile.name}"
    sys.stderr.write(f"{line}\n")
    notes(chosen.profile.notes)
    return PreparedRun(chosen, options, Log(own.logging_format, own.v))


def _show(report: str) -> None:
    """Print the comparison of shadow mode."""
    from podium.cli.console import write  # noqa: PLC0415  not needed for the help

    write(report)
    sys.stdout.flush()


def _as_kube_scheduler(flags: ProfileSource, own: RunFlags) -> ProfileSource:
    """The flags, with what kube-scheduler does where they say nothing.

    A shadow looks at as many nodes as the scheduler that it judges.
    """
    percentage = 0 if own.shadow else flags.usual_percentage
    return replace(flags, usual_ties=KUBE_SCHEDULER, usual_percentage=percentage)


def _of_cluster(access: Access, flags: ProfileSource) -> ProfileSource:
    """The flags, with the release that the cluster runs unless they name one.

    An API server that restarts is waited for.
    """
    from podium.kube.failure_log import FailureLog  # noqa: PLC0415  not needed for the help
    from podium.kube.pauses import RESTART_PAUSES  # noqa: PLC0415
    from podium.library.cluster_release import source_in_cluster  # noqa: PLC0415

    failures = FailureLog(flags.notify)

    def failed(error: Exception) -> None:
        failures.failed("version", f"{error}; trying again")

    return source_in_cluster(flags, access, RESTART_PAUSES, failed)


def _chosen_by_cluster(
    access: Access, flags: ProfileSource, own: RunFlags
) -> ChosenProfiles | None:
    """The profile of a Policy that the cluster keeps; None if the flags choose the profile."""
    if own.policy_configmap is None:
        return None
    from podium.library.cluster_release import policy_in_configmap  # noqa: PLC0415

    if flags.named():
        raise click.UsageError("--policy-configmap excludes other ways of naming a profile")
    return policy_in_configmap(access, flags, own.policy_configmap_namespace, own.policy_configmap)


def _options(own: RunFlags, flags: ProfileSource, chosen: ChosenProfiles) -> RunOptions:
    from podium.host.cluster_run import RunOptions  # noqa: PLC0415
    from podium.host.scheduler_host import HostOptions  # noqa: PLC0415
    from podium.scheduler.state.options import SchedulerOptions  # noqa: PLC0415
    from podium.scheduler.telemetry.logs import recorded_nodes  # noqa: PLC0415  not needed for the help

    lease = _lease(own, chosen.scheduler_config)
    record = None
    if own.record is not None:
        from podium.host.history_rules import record_options  # noqa: PLC0415  brings replay

        record = record_options(own.record, own.limits.made(), flags, chosen)
    scheduler = SchedulerOptions(
        waits_to_lead=lease is not None,
        recorded_nodes=recorded_nodes(own.v, own.recorded_nodes),
        verified_decisions=own.verify_decisions,
    )
    host = HostOptions(
        scheduler=scheduler,
        shadow=own.shadow,
        decision_file=own.decision_log_file or "",
        record=record,
    )
    secure = _secure_port(own)
    return RunOptions(
        host=host,
        lease=lease,
        bind_address=own.listen.host if secure is None else _LISTEN.host,
        port=own.listen.port,
        secure=secure,
        tracing_endpoint=own.tracing_endpoint or "",
        tracing_per_million=own.tracing_sampling_rate_per_million,
        pages=own.pages,
        pages_change_rules=own.pages_may_change_rules,
        plain_pages_change_rules=own.pages_may_change_rules and own.allow_plain_http,
        planner=_planner(own, flags, chosen) if own.pages else None,
    )


def _planner(own: RunFlags, flags: ProfileSource, chosen: ChosenProfiles) -> Planner:
    """What makes the plans of the pages, of the cluster that the flags name."""
    from podium.what_if.plan.live_plans import process_planner  # noqa: PLC0415  only with --pages

    return process_planner(own.reach, flags, chosen)


def _check_ports(own: RunFlags) -> None:
    """Refuse flags of a port that is not served, and what would serve strangers unless wanted."""
    if own.secure_port:
        return
    if own.tls_cert_file or own.tls_private_key_file:
        raise click.UsageError("--tls-cert-file and --tls-private-key-file need --secure-port")
    if own.client_ca_file:
        raise click.UsageError("--client-ca-file needs --secure-port")
    if own.allow_plain_http:
        return
    if own.listen.port and own.listen.host not in LOOPBACK:
        raise InputError(
            f"--listen {own.listen}: everybody who reaches it could read all decisions",
            hint="--secure-port asks the cluster who may; --allow-plain-http serves everybody",
        )
    if own.pages_may_change_rules:
        raise InputError(
            "--pages-may-change-rules: everybody who reaches the pages could change the rules",
            hint="--secure-port asks for a token; --allow-plain-http does without",
        )


def _secure_port(own: RunFlags) -> SecurePort | None:
    from podium.host.cluster_run import SecurePort  # noqa: PLC0415  not needed for the help

    if not own.secure_port:
        return None
    certificate, key = own.tls_cert_file or "", own.tls_private_key_file or ""
    client_ca = own.client_ca_file or ""
    return SecurePort(own.listen.host, own.secure_port, certificate, key, client_ca)


def _lease(own: RunFlags, config: SchedulerConfig | None) -> Lease | None:
    """The lease of the flags and the configuration; None without leader election."""
    from podium.host.cluster_run import Lease  # noqa: PLC0415  not needed for the help
    from podium.kube.lease import LeaseTimes  # noqa: PLC0415
    from podium.objects.times import SECOND  # noqa: PLC0415

    given = config.leader_election if config is not None else None
    elects = given.leader_elect if given is not None else True
    times = LeaseTimes()
    if given is not None:
        times = LeaseTimes(
            given.lease_duration / SECOND,
            given.renew_deadline / SECOND,
            given.retry_period / SECOND,
        )
    times = LeaseTimes(
        own.leader_elect_lease_duration or times.lease_seconds,
        own.leader_elect_renew_deadline or times.renew_deadline_seconds,
        own.leader_elect_retry_period or times.retry_seconds,
    )
    if own.shadow or not (elects if own.leader_elect is None else own.leader_elect):
        return None
    name, namespace = own.leader_elect_resource_name, own.leader_elect_resource_namespace
    return Lease(
        namespace or (given.resource_namespace if given is not None else LEASE_NAMESPACE),
        name or (given.resource_name if given is not None else LEASE),
        times,
    )
