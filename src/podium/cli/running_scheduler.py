"""What a running scheduler decided about a pod, and why: `podium explain --decided`."""

from __future__ import annotations

import asyncio
import http.client
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from podium.cli.console import output_width, write, write_data, write_lines, write_section
from podium.cli.inputs import read_live, secret_in
from podium.cli.running_flags import DEFAULT_SCHEDULER, LEASES, Running
from podium.errors import ConfigError, InputError
from podium.kube.http_rules import LOOPBACK, shown

if TYPE_CHECKING:
    from podium.cli.flags import Reach
    from podium.kube.access import Access
    from podium.library.explanation import Explanation
    from podium.render.decision.story import StoryLine

_SECONDS: Final = 10.0
_NO_DECISION: Final = b'{"reason": "NotFound"}'
#: What a secure port says of requests that come through the API server.
_ANONYMOUS: Final = 'User "system:anonymous" cannot get path'
#: A longer answer is cut off.
_MOST_BYTES: Final = 256 << 20


def show_decided(name: str, namespace: str, running: Running, reach: Reach, output: str) -> int:
    """Print what a running scheduler decided about a pod; the exit code.

    The newest attempt is shown as `podium explain` shows a decision, as far as the scheduler
    recorded it; earlier ones in a line each.
    """
    if running.scheduler is None and (running.token or running.token_file):
        raise ConfigError("--token and its companions are for --scheduler", hint="give it, too")
    if running.scheduler is None and running.certificate_authority:
        raise ConfigError("--certificate-authority is for --scheduler", hint="give it, too")
    credentials = _Credentials(
        _token(running.token, running.token_file),
        running.certificate_authority or "",
        running.insecure_skip_tls_verify,
    )
    asked = _Asked(
        running.scheduler,
        credentials,
        reach["kubeconfig"],
        reach["context"],
        reach["server"],
        running.lease,
    )
    space, pod = _pod(name, namespace, reach)
    found, where = asked.decisions(space, pod)
    items = found["items"]
    if output == "table":
        _show(items, where, f"{space}/{pod}")
        _show_waiting(found.get("waiting"))
    else:
        write_data(found, output)
    return int(not items or items[0].get("node") is None)


def _pod(name: str, namespace: str, reach: Reach) -> tuple[str, str]:
    """Namespace and name of the pod; a workload or a selector is looked up in the cluster."""
    from podium.library.lookup import pod_key, pod_named  # noqa: PLC0415  brings the kinds

    key = pod_key(name, namespace)
    if key is not None:
        return key
    pod = pod_named(read_live(reach), name, namespace)
    return pod.namespace, pod.name


@dataclass(frozen=True, slots=True)
class _Credentials:
    """How a scheduler with a secure port is asked."""

    token: str
    authority: str
    insecure: bool

    def tls(self) -> ssl.SSLContext:
        """How its certificate is checked."""
        try:
            context = ssl.create_default_context(cafile=self.authority or None)
        except (OSError, ValueError) as error:
            is_content = isinstance(error, ssl.SSLError)
            said = getattr(error, "strerror", None) or str(error)
            reason = "holds no certificate in PEM format" if is_content else said.lower()
            raise ConfigError(f"--certificate-authority {self.authority}: {reason}") from None
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def _token(given: str | None, file: str | None) -> str:
    if given and file:
        raise ConfigError("--token and --token-file exclude each other")
    return secret_in("--token-file", file) if file else given or ""


@dataclass(frozen=True, slots=True)
class _Asked:
    """The scheduler that is asked: by its address, or the leader in a cluster."""

    scheduler: str | None
    credentials: _Credentials
    kubeconfig: str | None
    context: str | None
    server: str | None
    lease: str | None

    def decisions(self, namespace: str, name: str) -> tuple[Any, str]:
        """The decisions about a pod, and who answered."""
        path = f"/decisions/{quote(namespace, '')}/{quote(name, '')}"
        named = self.scheduler or self.context or self.server or self.lease
        lab = "" if named else _lab(self.kubeconfig)
        base = self.scheduler or ("" if self._names_cluster() else lab)
        if not base:
            found = self._of_leader(path, f"{namespace}/{name}", has_lab=bool(lab))
            if found is not None:
                return found
        base = _address(base or lab or DEFAULT_SCHEDULER)
        code, body = _fetched(f"{base}{path}", base, self.credentials)
        return _answer(code, body, shown(base), f"{namespace}/{name}"), shown(base)

    def _names_cluster(self) -> bool:
        return bool(self.kubeconfig or self.context or self.server or self.lease)

    def _of_leader(self, path: str, pod: str, *, has_lab: bool) -> tuple[Any, str] | None:
        """What the leader says; None if no cluster was named and there is none, or none leads.

        None as well if none leads in a lab, which has a scheduler of its own.
        """
        from podium.kube.access import load_access  # noqa: PLC0415  brings the client
        from podium.kube.leader import NoLeaderError  # noqa: PLC0415

        leases = self._leases()
        try:
            access = load_access(self.kubeconfig, self.context, self.server)
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
    from podium.kube.client import ApiClient  # noqa: PLC0415  brings ssl
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
    if code in {401, 403}:
        said = answer.get("message") if isinstance(answer, dict) else None
        raise InputError(f"{where} refuses: {said or code}", hint=_ACCESS_HINT)
    if code != 200 or not isinstance(items, list) or not has_answer:
        raise InputError(f"{where} answered with code {code}, not with decisions", hint=_HINT)
    return answer


_ACCESS_HINT: Final = "give --token-file with a token that may read /decisions"
_AUTHORITY_HINT: Final = "give --certificate-authority with the one that signed it"
_TLS_HINT: Final = "https:// is what a secure port expects"
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


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the token is for this scheduler alone."""

    def redirect_request(self, *_: Any) -> None:
        """Let the redirect be an error."""


def _fetched(url: str, base: str, credentials: _Credentials) -> tuple[int, bytes]:
    handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
    if urlsplit(base).hostname in LOOPBACK:
        handlers.append(urllib.request.ProxyHandler({}))
    if base.startswith("https:"):
        handlers.append(urllib.request.HTTPSHandler(context=credentials.tls()))
    elif credentials.token and urlsplit(base).hostname not in LOOPBACK:
        raise ConfigError(f"a token is not sent to {shown(base)}", hint="https would be safe")
    opener = urllib.request.build_opener(*handlers)
    headers = {"Authorization": f"Bearer {credentials.token}"} if credentials.token else {}
    try:
        asked = urllib.request.Request(url, headers=headers)  # noqa: S310  http and https alone
        with opener.open(asked, timeout=_SECONDS) as response:
            return response.status, response.read(_MOST_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(_MOST_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise _no_answer(shown(base), error) from None


def _no_answer(where: str, error: Exception) -> InputError:
    from podium.kube.errors import words  # noqa: PLC0415  only when asked

    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    inner = reason if isinstance(reason, Exception) else error
    if isinstance(inner, ssl.SSLCertVerificationError):
        return InputError(f"{where}: {words(inner)}", hint=_AUTHORITY_HINT)
    if isinstance(inner, ssl.SSLError):
        return InputError(f"{where}: {words(inner)}", hint=_HINT)
    if isinstance(inner, http.client.RemoteDisconnected) and where.startswith("http:"):
        return InputError(f"{where} ends the connection without an answer", hint=_TLS_HINT)
    return InputError(f"nothing answers at {where}: {words(inner)}", hint=_HINT)


def _show_waiting(waiting: dict[str, Any] | None) -> None:
    """Say where a pod waits and what would wake it."""
    if not waiting:
        return
    from podium.render.decision.story import waiting_lines  # noqa: PLC0415

    write_section("What would wake it", waiting_lines(waiting))


def _show(items: list[dict[str, Any]], where: str, pod: str) -> None:
    if not items:
        write(f"{pod} was not tried yet")
        return
    from podium.render.reports.explanation_tables import explanation_tables  # noqa: PLC0415

    write_lines(explanation_tables(_explanation(items[0], where), output_width()))
    write_section("Attempts", (text for each in _story(items, where) for text in each.lines()))


def _story(items: list[dict[str, Any]], where: str) -> list[StoryLine]:
    """The attempts in order; equal ones that follow each other are one line."""
    from podium.library.decision_json import from_json  # noqa: PLC0415  brings NumPy
    from podium.objects.times import seconds  # noqa: PLC0415
    from podium.render.decision.story import StoryAttempt, story  # noqa: PLC0415

    return story(
        StoryAttempt(
            item.get("attempt", 1),
            max(0.0, seconds(item.get("time"))),
            from_json(item, where),
            str((item.get("binding") or {}).get("error", "")),
        )
        for item in items
    )


def _explanation(item: dict[str, Any], where: str) -> Explanation:
    from podium.library.decision_json import from_json  # noqa: PLC0415  brings NumPy
    from podium.library.explanation import Explanation  # noqa: PLC0415

    decision = from_json(item, where)
    timings = [(each["step"], each["seconds"]) for each in item.get("timings", ())]
    return Explanation(decision, None, ties=item.get("ties", "round-robin"), timings=timings)
