"""`podium mcp`: answers for agents that speak the Model Context Protocol."""

from __future__ import annotations

import ipaddress
import secrets
import sys
from typing import TYPE_CHECKING, Final

import click

from podium.cli.console import note
from podium.cli.flags import ListenAddress, Reach, cluster_or_files, listen_flag, profile_flags
from podium.cli.inputs import reached, secret_in
from podium.cli.parsing import FlagsCommand
from podium.errors import ConfigError, InputError
from podium.library.profile_source import ProfileSource

if TYPE_CHECKING:
    from podium.agents.questions import Cluster

_DEFAULT: Final = ListenAddress("127.0.0.1", 8970)
_SHORTEST_TOKEN: Final = 16


@click.command(cls=FlagsCommand)
@cluster_or_files
@click.option("--history", metavar="FOLDER", help="The recorded history that past_decision reads.")
@click.option("--http", is_flag=True, help="Serve HTTP instead of standard input and output.")
@listen_flag(_DEFAULT, "The address of --http; port 0 is any free one.")
@click.option(
    "--token-file",
    metavar="FILE",
    help="The bearer token of --http.  [default: a new one, which is printed]",
)
@profile_flags
def mcp(
    *,
    files: tuple[str, ...],
    cluster: Reach | None,
    history: str | None,
    http: bool,
    listen: ListenAddress,
    token_file: str | None,
    flags: ProfileSource,
) -> int:
    """Answer questions of agents about the cluster of FILES; without FILES, of the kubeconfig.

    The tools are why_pending, explain_placement, what_if, fix, capacity, compare, past_decision and
    more. All of them only read. Needs podium[mcp].

    \b
    A client is configured with a command:
      {"mcpServers": {"podium": {"command": "podium", "args": ["mcp"]}}}
    """  # noqa: D301  click reads the escape
    try:
        from podium.agents.server import mcp_server  # noqa: PLC0415  brings the SDK
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in {"mcp", "mcp_types", "pydantic"}:
            raise
        raise ConfigError(
            "podium mcp needs the SDK of the protocol", hint="pip install 'podium[mcp]'"
        ) from None
    from podium.agents.questions import Questions  # noqa: PLC0415

    if token_file is not None and not http:
        raise click.UsageError("--token-file is for --http")
    questions = Questions(_cluster(files, cluster), flags, history=history, notify=note)
    questions.node_names()  # a cluster that cannot be read is said now
    server = mcp_server(questions)
    if not http:
        server.run("stdio")
        return 0
    return _serve(server.streamable_http_app(json_response=True), listen, token_file)


def _cluster(files: tuple[str, ...], cluster: Reach | None) -> Cluster:
    from podium.agents.questions import FileCluster, LiveCluster  # noqa: PLC0415
    from podium.library.parallel import processors  # noqa: PLC0415

    if cluster is None:
        return FileCluster(files, workers=processors())
    return LiveCluster(reached(cluster))


def _serve(app: object, listen: ListenAddress, token_file: str | None) -> int:
    import uvicorn  # noqa: PLC0415  only for --http

    from podium.agents.server import BearerOnly  # noqa: PLC0415

    if not _is_loopback(listen.host):
        raise ConfigError(
            f"--listen {listen} sends answers unencrypted over the network",
            hint="listen on 127.0.0.1, behind a proxy that serves TLS",
        )
    token = secrets.token_urlsafe(32) if token_file is None else _token_in(token_file)
    config = uvicorn.Config(
        BearerOnly(app, token),
        host=listen.host,
        port=listen.port,
        log_level="warning",
        limit_concurrency=64,
        timeout_keep_alive=5,
    )
    with config.bind_socket() as bound:
        host, port = bound.getsockname()[:2]
        sys.stderr.write(f"podium mcp: http://{host}:{port}/mcp\n")
        if token_file is None:
            sys.stderr.write(f"podium mcp: Authorization: Bearer {token}\n")
        sys.stderr.flush()
        uvicorn.Server(config).run(sockets=[bound])
    return 0


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token_in(path: str) -> str:
    token = secret_in("--token-file", path)
    if len(token) < _SHORTEST_TOKEN:
        hint = f"a token has {_SHORTEST_TOKEN} characters or more"
        raise InputError("holds no token", where=path, hint=hint)
    return token
