"""`podium extender`: rules served to a stock kube-scheduler."""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING

import click

from podium.cli.console import note, notes, write
from podium.cli.flags import FlagsCommand, profile_flags
from podium.errors import ConfigError, InputError
from podium.library.profile_source import ProfileSource

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from podium.engine.framework.profile import Profile


@click.command(cls=FlagsCommand)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8888, show_default=True, help="The port to listen on; 0: any.")
@click.option("--tls-cert-file", metavar="FILE", help="Serve https with this certificate.")
@click.option("--tls-private-key-file", metavar="FILE", help="The key of that certificate.")
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    metavar="FILES",
    help="What is known of the cluster, from files.",
)
@click.option("--api-server", metavar="URL", help="Watch the cluster there, and bind pods.")
@click.option("--kubeconfig", metavar="FILE", help="Watch the cluster that this file names.")
@click.option("--token", metavar="TOKEN", help="A bearer token for it; --token-file is safer.")
@click.option("--token-file", metavar="FILE", help="A file with a bearer token, read every time.")
@click.option("--ca", metavar="FILE", help="The authority that signed its certificate.")
@click.option("--insecure-skip-tls-verify", is_flag=True, help="Do not check its certificate.")
@profile_flags
def extender(
    *,
    host: str,
    port: int,
    tls_cert_file: str | None,
    tls_private_key_file: str | None,
    files: tuple[str, ...],
    api_server: str | None,
    kubeconfig: str | None,
    token: str | None,
    token_file: str | None,
    ca: str | None,
    insecure_skip_tls_verify: bool,
    flags: ProfileSource,
) -> int:
    """Serve predicates and priorities to a kube-scheduler that asks extenders.

    With --rules alone, just these rules; with --policy, --provider or --config, what that lists.
    The cluster is known from the requests (nodeCacheCapable: false; nodes without their pods),
    from files, or from an API server.

    \b
    Policy of the kube-scheduler:
      "extenders": [{"urlPrefix": "http://127.0.0.1:8888", "filterVerb": "filter",
                     "prioritizeVerb": "prioritize", "weight": 1, "bindVerb": "bind",
                     "preemptVerb": "preempt", "nodeCacheCapable": true}]
    """  # noqa: D301  click reads the escape
    from podium.extender.api_server import ApiServer  # noqa: PLC0415  brings engine and server
    from podium.extender.cluster_state import ClusterState  # noqa: PLC0415
    from podium.extender.server import ExtenderApp  # noqa: PLC0415
    from podium.extender.verbs import ExtenderVerbs  # noqa: PLC0415

    profile = _profile(flags)
    notes(profile.notes)
    state = ClusterState(profile)
    if files:
        from podium.library.reading import read  # noqa: PLC0415

        state.load(read(files))
    access = None
    if kubeconfig is not None:
        from podium.kube.access import load_access  # noqa: PLC0415

        access = load_access(kubeconfig, master=api_server)
    elif api_server is not None:
        from podium.kube.access import access_by_flags  # noqa: PLC0415

        access = access_by_flags(
            api_server,
            token=token or "",
            token_file=token_file or "",
            ca_file=ca or "",
            insecure=insecure_skip_tls_verify,
        )
    server = None if access is None else ApiServer(access, state, note)
    app = ExtenderApp(ExtenderVerbs(profile, state), state, server, note)
    return _serve(app.asgi(), profile, host, port, cert=tls_cert_file, key=tls_private_key_file)


def _profile(flags: ProfileSource) -> Profile:
    """What the flags choose; with nothing but rules, those alone."""
    if flags.named():
        return flags.choose().profile
    from podium.engine.framework.profile import Profile  # noqa: PLC0415
    from podium.engine.state.accounting import ContainerSums  # noqa: PLC0415
    from podium.library.user_rules import rules_of  # noqa: PLC0415
    from podium.profiles.user_rules.loading import with_rules  # noqa: PLC0415

    rules = rules_of(flags, None)
    if not rules:
        raise ConfigError("nothing to serve", hint="give --rules, --policy, --provider or --config")
    return with_rules(Profile("own rules", (), (), ContainerSums()), rules)


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _serve(
    app: Starlette, profile: Profile, host: str, port: int, *, cert: str | None, key: str | None
) -> int:
    from uvicorn.config import Config  # noqa: PLC0415
    from uvicorn.server import Server  # noqa: PLC0415

    try:
        listener = socket.create_server((host, port), backlog=1024)
    except OSError as error:
        raise InputError(
            f"cannot listen on {host}:{port}: {(error.strerror or '').lower()}"
        ) from None
    config = Config(
        app,
        log_level="warning",
        access_log=False,
        ssl_certfile=cert,
        ssl_keyfile=key,
        timeout_graceful_shutdown=5,
    )
    scheme, number = "https" if cert else "http", listener.getsockname()[1]
    try:
        config.load()
    except OSError as error:
        listener.close()
        what = f"--tls-cert-file, --tls-private-key-file: {error.strerror or error}"
        raise InputError(what) from None
    rules = (
        f"{_counted(len(profile.predicates), 'predicate', 'predicates')}, "
        f"{_counted(len(profile.priorities), 'priority', 'priorities')}"
    )
    write(f"{profile.name}: {rules} at {scheme}://{host}:{number}\n")
    sys.stdout.flush()
    with listener:
        Server(config).run(sockets=[listener])
    return 0
