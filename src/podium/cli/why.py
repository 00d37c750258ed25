"""`podium why`: what a running scheduler decided about a pod, and why."""

from __future__ import annotations

import asyncio
import http.client
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import click

from podium.cli.console import console, print_parts, write, write_data
from podium.cli.flags import output_flag
from podium.cli.parsing import FlagsCommand
from podium.errors import ConfigError, InputError
from podium.kube.address import shown

if TYPE_CHECKING:
    from podium.kube.access import Access
    from podium.render.decision.explanation import Explanation

#: Where `podium run` listens by default.
DEFAULT_SCHEDULER: Final = "http://127.0.0.1:10251"
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_SECONDS: Final = 10.0
#: The leases that replicas hold by default: that of `podium run`, and that of `deploy/`.
LEASES: Final = ("kube-system/podium", "podium-system/podium")
_NO_DECISION: Final = b'{"reason": "NotFound"}'
#: What a secure port says of requests that come through the API server.
_ANONYMOUS: Final = 'User "system:anonymous" cannot get path'
#: A longer answer is cut off.
_MOST_BYTES: Final = 256 << 20


@click.command(cls=FlagsCommand, renamed={"--server": "--scheduler"})
@click.argument("pod", metavar="[NAMESPACE/]POD")
@click.option(
    "--scheduler",
    metavar="URL",
    help="The scheduler's address: what `podium run --listen` says.  [default: the lab or the "
    f"leader in the cluster of the kubeconfig, else {DEFAULT_SCHEDULER}]",
)
@click.option("--kubeconfig", metavar="FILE", help="How to reach the cluster with the leader.")
@click.option("--context", metavar="NAME", help="The context of that file to use.")
@click.option(
    "--lease",
    metavar="NAMESPACE/NAME",
    help=f"The lease of the replicas.  [default: {' or '.join(LEASES)}]",
)
@output_flag("table", "json", "yaml")
def why(
    *,
    pod: str,
    scheduler: str | None,
    kubeconfig: str | None,
    context: str | None,
    lease: str | None,
    output: str,
) -> int:
    """Ask a running scheduler what it decided about a POD: where it went, or why nowhere.

    Without --scheduler the leader is found by its lease in the cluster of the kubeconfig, and asked
    through the API server; no port has to be forwarded.

    The newest attempt is shown as `podium explain` shows it, as far as the scheduler recorded it;
    earlier ones in a line each.

    Exit code: 0 it has a node, 1 it has none, 2 the scheduler does not answer or does not know it.
    """
    namespace, _, name = pod.rpartition("/")
    namespace = namespace or "default"
    if not name or "/" in namespace:
        raise InputError(f"{pod!r} is no pod", hint="write NAMESPACE/NAME, or NAME")
    asked = _Asked(scheduler, kubeconfig, context, lease)
    found, where = asked.decisions(namespace, name)
    items = found["items"]
    if output == "table":
        _show(items, where, f"{namespace}/{name}")
        _show_waiting(found.get("waiting"))
    else:
        write_data(found, output)
    return int(not items or items[0].get("node") is None)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The scheduler that is asked: by its address, or the leader in a cluster."""

    scheduler: str | None
    kubeconfig: str | None
    context: str | None
    lease: str | None

    def decisions(self, namespace: str, name: str) -> tuple[Any, str]:
        """The decisions about a pod, and who told them."""
        path = f"/decisions/{quote(namespace, '')}/{quote(name, '')}"
        lab = "" if self.scheduler or self.context or self.lease else _lab(self.kubeconfig)
        base = self.scheduler or ("" if self._names_cluster() else lab)
        if not base:
            found = self._of_leader(path, f"{namespace}/{name}", has_lab=bool(lab))
            if found is not None:
                return found
        base = _address(base or lab or DEFAULT_SCHEDULER)
        code, body = _fetched(f"{base}{path}", base)
        return _answer(code, body, shown(base), f"{namespace}/{name}"), shown(base)

    def _names_cluster(self) -> bool:
        return bool(self.kubeconfig or self.context or self.lease)

    def _of_leader(self, path: str, pod: str, *, has_lab: bool) -> tuple[Any, str] | None:
        """What the leader says; None if no cluster was named and there is none, or none leads.

        None as well if none leads in a lab, which has a scheduler of its own.
        """
        from podium.kube.access import load_access  # noqa: PLC0415  brings the client
        from podium.kube.leader import NoLeaderError  # noqa: PLC0415

        leases = self._leases()
        try:
            access = load_access(self.kubeconfig, self.context, None)
        except (InputError, ConfigError):
            if self._names_cluster():
                raise
            return None
        try:
            leader, code, body = asyncio.run(_ask_leader(access, leases, path))
        except NoLeaderError:
            if self._names_cluster() and not has_lab:
                raise
            return None
        where = f"{leader} at {access.shown}"
        return _answer(code, body, where, pod), where

    def _leases(self) -> tuple[str, ...]:
        if self.lease is None:
            return LEASES
        if self.lease.count("/") != 1 or not all(self.lease.split("/")):
            raise InputError(
                f"--lease: {self.lease!r} is no lease", hint="NAMESPACE/NAME would be one"
            )
        return (self.lease,)


async def _ask_leader(access: Access, leases: tuple[str, ...], path: str) -> tuple[str, int, bytes]:
    """The leading pod, and the code and body of its answer."""
    from podium.kube.client import ApiClient  # noqa: PLC0415  brings aiohttp
    from podium.kube.errors import ApiError  # noqa: PLC0415
    from podium.kube.leader import (  # noqa: PLC0415
        COOKIE,
        READER,
        NoLeaderError,
        leader_proxy,
        reader_token,
    )

    async with ApiClient(access) as client:
        for lease in leases:
            namespace, _, name = lease.partition("/")
            try:
                leader, proxy = await leader_proxy(client, namespace, name)
            except NoLeaderError:
                if lease == leases[-1]:
                    raise
                continue
            hint = "asking it needs the right to get pods/proxy in its namespace"
            try:
                try:
                    return leader, 200, await client.request("GET", proxy + path, timeout=_SECONDS)
                except ApiError as error:
                    if _ANONYMOUS not in str(error):
                        raise
                    # Its port is secure, and the API server keeps our credentials to itself.
                    hint = (
                        "asking on its secure port needs the right to create serviceaccounts/token "
                        f"for {READER}; or try kubectl -n {namespace} port-forward pod/{leader} "
                        f"10251, and --scheduler {DEFAULT_SCHEDULER}"
                    )
                    token = await reader_token(client, namespace)
                async with ApiClient(access.with_cookie(COOKIE, token)) as reader:
                    return leader, 200, await reader.request("GET", proxy + path, timeout=_SECONDS)
            except ApiError as error:
                if error.status == 404 and "no decision about pod" in str(error):
                    return leader, 404, _NO_DECISION
                raise InputError(
                    f"the leader {namespace}/{leader} does not answer through {access.shown}: "
                    f"{error}",
                    hint=hint,
                ) from None
    raise AssertionError("there is at least one lease")


def _lab(kubeconfig: str | None) -> str:
    from podium.host.lab_kubeconfig import named_lab  # noqa: PLC0415  rarely needed

    return named_lab(kubeconfig)


def _answer(code: int, body: bytes, where: str, pod: str) -> Any:
    import msgspec  # noqa: PLC0415  only when asked

    try:
        answer = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        answer = None
    if code == 404 and isinstance(answer, dict) and answer.get("reason") == "NotFound":
        raise InputError(
            f"{where} knows of no decision about pod {pod}",
            hint="it may be another scheduler's, not tried yet, or too long ago",
        )
    items = answer.get("items") if isinstance(answer, dict) else None
    has_answer = bool(items) or (isinstance(answer, dict) and bool(answer.get("waiting")))
    if code != 200 or not isinstance(items, list) or not has_answer:
        raise InputError(f"{where} answered with code {code}, not with decisions", hint=_HINT)
    return answer


_HINT: Final = "name the address that `podium run` listens on with --scheduler"


def _address(given: str) -> str:
    base = (given if "://" in given else f"http://{given}").rstrip("/")
    parts = urlsplit(base)
    try:
        known = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise InputError(
            f"--scheduler: {given!r} is no address", hint="http://HOST:PORT would be one"
        )
    return base


def _fetched(url: str, base: str) -> tuple[int, bytes]:
    handlers = []
    if urlsplit(base).hostname in _LOOPBACK:
        handlers.append(urllib.request.ProxyHandler({}))
    opener = urllib.request.build_opener(*handlers)
    try:
        with opener.open(url, timeout=_SECONDS) as response:
            return response.status, response.read(_MOST_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(_MOST_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise InputError(
            f"nothing answers at {shown(base)}: {_reason(error)}", hint=_HINT
        ) from None


def _reason(error: Exception) -> str:
    inner = getattr(error, "reason", error)
    if isinstance(inner, TimeoutError):
        return "no answer in time"
    text = getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
    return str(text).lower()


def _show_waiting(waiting: dict[str, Any] | None) -> None:
    """Say where a pod waits and what would wake it."""
    if not waiting:
        return
    from rich.text import Text  # noqa: PLC0415  brings rich

    from podium.render.plain import printable  # noqa: PLC0415
    from podium.render.waiting import waiting_lines  # noqa: PLC0415

    lines = [Text(printable(each)) for each in waiting_lines(waiting)]
    print_parts([Text(), Text("What would wake it", style="bold"), *lines], console())


def _show(items: list[dict[str, Any]], where: str, pod: str) -> None:
    if not items:
        write(f"{pod} was not tried yet")
        return
    from rich.table import Table  # noqa: PLC0415  brings rich
    from rich.text import Text  # noqa: PLC0415

    from podium.render.decision.tables import explanation_tables  # noqa: PLC0415
    from podium.render.plain import printable  # noqa: PLC0415

    printer = console()
    newest = items[0]
    print_parts(explanation_tables(_explanation(newest, where), printer.width), printer)
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for column in ("ATTEMPT", "TIME", "OUTCOME", "WHAT"):
        table.add_column(column, overflow="fold")
    for item in items:
        cells = (item.get("attempt"), item.get("time"), item.get("outcome"), _what(item))
        table.add_row(*(Text(printable(str(cell))) for cell in cells))
    print_parts([Text(), Text("Attempts", style="bold"), table], printer)


def _what(item: dict[str, Any]) -> str:
    binding = item.get("binding") or {}
    if error := item.get("error") or binding.get("error"):
        return str(error)
    return str(item.get("node") or item.get("message") or "")


def _explanation(item: dict[str, Any], where: str) -> Explanation:
    from podium.render.decision.explanation import Explanation  # noqa: PLC0415
    from podium.render.decision.from_json import from_json  # noqa: PLC0415  brings NumPy

    decision = from_json(item, where)
    timings = [(each["step"], each["seconds"]) for each in item.get("timings", ())]
    return Explanation(decision, None, ties=item.get("ties", "round-robin"), timings=timings)
