"""The flags that name a running scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from podium.cli.flags import gathering
from podium.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

#: Where `podium run` listens by default.
DEFAULT_SCHEDULER: Final = "http://127.0.0.1:10251"
#: The leases that replicas hold by default: that of `podium run`, and that of `deploy/`.
LEASES: Final = ("kube-system/podium", "podium-system/podium")

_Command = TypeVar("_Command", bound="Callable[..., Any]")

_FLAGS: Final = (
    click.option(
        "--decided",
        is_flag=True,
        help="Ask the running scheduler what it decided, instead of deciding now.",
    ),
    click.option(
        "--scheduler",
        metavar="URL",
        help="The scheduler's address, for --decided: what `podium run --listen` says.  [default: "
        f"the lab or the leader in the cluster of the kubeconfig, else {DEFAULT_SCHEDULER}]",
    ),
    click.option(
        "--lease",
        metavar="NAMESPACE/NAME",
        help=f"The lease of the replicas, for --decided.  [default: {' or '.join(LEASES)}]",
    ),
    click.option("--token", metavar="TOKEN", help="A bearer token for --scheduler."),
    click.option(
        "--token-file", metavar="FILE", help="A file with a bearer token for --scheduler."
    ),
    click.option(
        "--certificate-authority",
        metavar="FILE",
        help="The authority that signed the certificate of --scheduler.",
    ),
    click.option(
        "--insecure-skip-tls-verify",
        is_flag=True,
        help="Do not check the certificate of --scheduler, such as a self-signed one.",
    ),
)


class Running(NamedTuple):
    """What the flags say about a running scheduler that is asked."""

    decided: bool
    scheduler: str | None
    lease: str | None
    token: str | None
    token_file: str | None
    certificate_authority: str | None
    insecure_skip_tls_verify: bool

    @property
    def wanted(self) -> bool:
        """Whether it is asked at all."""
        return self.decided or self.scheduler is not None or self.lease is not None


def running_flags(command: _Command) -> _Command:
    """The flags of a running scheduler; the command gets them as `running`."""
    return gathering(_FLAGS, _gather)(command)


def _gather(given: dict[str, Any]) -> None:
    running = Running(**{name: given.pop(name) for name in Running._fields})
    if not running.wanted and any(running):
        raise ConfigError("--token and its companions are for --scheduler", hint="give it, too")
    given["running"] = running
