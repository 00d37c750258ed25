"""`podium extender`: rules served to a stock kube-scheduler."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import TYPE_CHECKING, Final

import click

from podium.cli.console import note, notes, write, write_data
from podium.cli.flags import ListenAddress, files_flag, listen_flag, output_flag, profile_flags
from podium.cli.inputs import read_files, secret_in
from podium.cli.parsing import FlagsCommand
from podium.errors import ConfigError, InputError
from podium.kube.http_rules import LOOPBACK
from podium.library.profile_source import ProfileSource
from podium.render.plain import counted

if TYPE_CHECKING:
    from ssl import SSLContext

    from podium.engine.framework.profile import Profile
    from podium.extender.cluster_state import ClusterFollower
    from podium.extender.security import ExtenderGuard


_DEFAULT: Final = ListenAddress("127.0.0.1", 8888)


@click.command(
    cls=FlagsCommand, renamed={"--api-server": "--server", "--ca": "--certificate-authority"}
)
@listen_flag(_DEFAULT, "The address to listen on; port 0 is any free one.", host_name="--host")
@click.option("--tls-cert-file", metavar="FILE", help="Serve https with this certificate.")
@click.option("--tls-private-key-file", metavar="FILE", help="The key of that certificate.")
@click.option(
    "--client-ca-file",
    metavar="FILE",
    help="Serve only clients with a certificate of this authority.",
)
@click.option(
    "--client-token-file",
    metavar="FILE",
    help="Serve only requests with the token in this file: urlPrefix …/token/TOKEN, or a bearer.",
)
@click.option(
    "--allow-plain-http",
    is_flag=True,
    help="Serve plain HTTP beyond loopback, where the token can be read on its way.",
)
@files_flag("Read the objects of the cluster from files or folders.")
@click.option("--server", metavar="URL", help="Watch the cluster at this API server; bind pods.")
@click.option("--kubeconfig", metavar="FILE", help="Watch the cluster that this file names.")
@click.option("--context", metavar="NAME", help="The context of the kubeconfig to use.")
@click.option("--token", metavar="TOKEN", help="A bearer token for --server; see --token-file.")
@click.option("--token-file", metavar="FILE", help="A file with a token, read again regularly.")
@click.option(
    "--certificate-authority",
    metavar="FILE",
    help="The authority that signed the server's certificate.",
)
@click.option(
    "--insecure-skip-tls-verify", is_flag=True, help="Do not check the server's certificate."
)
@output_flag("table", "json", "yaml")
@profile_flags
def extender(
    *,
    listen: ListenAddress,
    tls_cert_file: str | None,
    tls_private_key_file: str | None,
    client_ca_file: str | None,
    client_token_file: str | None,
    allow_plain_http: bool,
    files: tuple[str, ...],
    server: str | None,
    kubeconfig: str | None,
    context: str | None,
    token: str | None,
    token_file: str | None,
    certificate_authority: str | None,
    insecure_skip_tls_verify: bool,
    output: str,
    flags: ProfileSource,
) -> int:
    """Serve predicates and priorities to a kube-scheduler that asks extenders.

    With --rules alone, just these rules; with --policy, --provider or --config, what that lists.
    The cluster is known from the requests (nodeCacheCapable: false; nodes without their pods),
    from files, or from an API server.

    \b
    Policy of kube-scheduler v1.13:
      "extenders": [{"urlPrefix": "http://127.0.0.1:8888", "filterVerb": "filter",
                     "prioritizeVerb": "prioritize", "weight": 1, "bindVerb": "bind",
                     "preemptVerb": "preempt", "nodeCacheCapable": true}]
    """  # noqa: D301  click reads the escape
    from podium.extender.cluster_state import (  # noqa: PLC0415  brings engine and server
        ClusterFollower,
        ExtenderState,
    )
    from podium.extender.server import ExtenderApp, ExtenderVerbs  # noqa: PLC0415

    if client_ca_file and not tls_cert_file:
        raise ConfigError("--client-ca-file needs https", hint="give --tls-cert-file as well")
    client_token = secret_in("--client-token-file", client_token_file) if client_token_file else ""
    if listen.host not in LOOPBACK and not client_token and not client_ca_file:
        raise ConfigError(
            f"everybody who reaches {listen} could ask this extender, and bind pods",
            hint="give --client-token-file or --client-ca-file, or listen on 127.0.0.1",
        )
    if listen.host not in LOOPBACK and not tls_cert_file and not allow_plain_http:
        raise ConfigError(
            f"--listen {listen}: the token could be read on its way",
            hint="--tls-cert-file serves https; --allow-plain-http does without",
        )
    profile = _profile(flags)
    notes(profile.notes)
    state = ExtenderState(profile)
    if files:
        state.load(read_files(files))
    access = None
    if kubeconfig is not None or context is not None:
        from podium.kube.access import load_access  # noqa: PLC0415

        access = load_access(kubeconfig, context, server)
    elif server is not None:
        from podium.kube.access import access_by_flags  # noqa: PLC0415

        access = access_by_flags(
            server,
            token=token or "",
            token_file=token_file or "",
            ca_file=certificate_authority or "",
            insecure=insecure_skip_tls_verify,
        )
    watched = None if access is None else ClusterFollower(access, state, note)
    app = ExtenderApp(ExtenderVerbs(profile, state), state, watched, note)
    with _listening(listen) as listener:
        bound = ListenAddress(listen.host, listener.getsockname()[1])
        # Beyond loopback a scheduler may ask by any name, such as that of a Service.
        hosts = LOOPBACK if listen.host in LOOPBACK else None
        guarded = app.asgi(hosts=hosts, token=client_token)
        tls = _tls(tls_cert_file, tls_private_key_file, client_ca_file)
        _introduce(profile, f"{'https' if tls_cert_file else 'http'}://{bound}", output)
        _serve(guarded, listener, tls, watched)
    return 0


def _profile(flags: ProfileSource) -> Profile:
    """The profile that the flags name; with --rules alone, one of these rules and no others."""
    if flags.named():
        return flags.choose().profile
    from podium.engine.framework.profile import Profile  # noqa: PLC0415
    from podium.engine.state.accounting import ContainerSums  # noqa: PLC0415
    from podium.library.profile_choice import rules_of  # noqa: PLC0415
    from podium.profiles.user_rules.loading import with_rules  # noqa: PLC0415

    rules = rules_of(flags)
    if not rules:
        raise ConfigError("nothing to serve", hint="give --rules, --policy, --provider or --config")
    return with_rules(Profile("user rules", (), (), ContainerSums()), rules)


def _listening(listen: ListenAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    try:
        return socket.create_server(listen, family=family, backlog=1024)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot listen on {listen}: {reason}") from None


def _tls(cert: str | None, key: str | None, client_ca: str | None) -> SSLContext | None:
    """The TLS settings that the flags describe; the files are read again when they change."""
    if not cert and not key:
        return None
    from podium.serving.access.client_certificates import (  # noqa: PLC0415  brings the server
        Authorities,
        ServerTls,
        authorities_in_file,
    )
    from podium.serving.access.serving_certificate import serving_certificate  # noqa: PLC0415

    with serving_certificate(cert or "", key or cert or "") as made:
        tls = ServerTls(made.certificate, made.key, required=bool(client_ca), warn=note)
    if client_ca:
        tls.trust(Authorities(authorities_in_file(client_ca)))
    return tls.context


def _serve(
    app: ExtenderGuard,
    listener: socket.socket,
    tls: SSLContext | None,
    watched: ClusterFollower | None,
) -> None:
    """Answer requests until a signal ends the program; a watch that dies ends it as well."""
    from podium.host.event_loop import on_stop_signal, raise_descriptors, run_program  # noqa: PLC0415
    from podium.host.supervisor import Supervisor  # noqa: PLC0415
    from podium.serving.endpoints.http_server import serve_on  # noqa: PLC0415  brings the server

    async def main() -> None:
        supervisor, stopped = Supervisor(), asyncio.Event()
        on_stop_signal(stopped.set)
        serving = supervisor.start("the extender", serve_on(app, listener, tls=tls, lifespan="on"))
        if watched is not None:
            supervisor.start("the cluster's watches", watched.until_dead())
        try:
            await supervisor.until(stopped.wait())
        finally:
            await supervisor.stop(serving)

    raise_descriptors()
    run_program(main())


def _introduce(profile: Profile, url: str, output: str) -> None:
    """Print what is served and where, once requests can come."""
    predicates, priorities = len(profile.predicates), len(profile.priorities)
    if output == "table":
        scores = "1 priority" if priorities == 1 else f"{priorities} priorities"
        write(f"{profile.name}: {counted(predicates, 'predicate')}, {scores} at {url}\n")
    else:
        found = {"profile": profile.name, "url": url}
        write_data(found | {"predicates": predicates, "priorities": priorities}, output)
    sys.stdout.flush()
