"""The HTTP client for extenders.

The cycle yields questions to extenders. An `ExtenderClient` sends each as one HTTP request and
returns the reply in the form that the cycle is sent. An error on the way is returned as a
`Failure`; the cycle decides whether it fails the attempt. `BlockingClient` asks without `await`.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import unquote, urlsplit

from podium.engine.framework.extenders import (
    AcceptedVictims,
    AskFilter,
    AskScores,
    AskVictims,
    Failure,
    Filtered,
    Scored,
    Together,
)
from podium.errors import ConfigError, InputError
from podium.extender import wire
from podium.kube.access import Access
from podium.kube.api import JSON
from podium.kube.connections import ConnectionPool
from podium.kube.credentials import Credentials, basic
from podium.kube.errors import words
from podium.kube.failure_log import FailureLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from podium.engine.framework.decision import Victims
    from podium.engine.framework.extenders import Extender
    from podium.engine.state.pod_class import Incoming
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod

Question = AskFilter | AskScores | AskVictims
Reply = Filtered | Scored | AcceptedVictims | Failure
#: The largest answer: 5,000 whole nodes are about 100 MB.
LARGEST_ANSWER: Final = 256 * 1024 * 1024
#: How long an extender is waited for at most: nothing else is decided meanwhile.
LONGEST_SECONDS: Final = 600.0


class Lookup(Protocol):
    """Finds the whole objects that questions only name."""

    def node(self, name: str) -> Node | None:
        """The node of this name."""

    def pod(self, uid: str) -> Pod | None:
        """The placed pod with this uid."""


class Post(Protocol):
    """Sends a body to an address of an extender, within the time that the extender has."""

    async def __call__(self, extender: Extender, url: str, body: bytes) -> tuple[int, bytes]:
        """The code and the body of the answer; `TimeoutError` or `OSError` if there is none."""


class HttpPost:
    """Sends over HTTP, on connections to each extender that are kept open between questions."""

    def __init__(self) -> None:
        self._pools: dict[int, tuple[Extender, ConnectionPool]] = {}

    async def __call__(self, extender: Extender, url: str, body: bytes) -> tuple[int, bytes]:
        """Post *body*; the code and the body of the answer. A redirect is not followed."""
        found = self._pools.get(id(extender))
        if found is None:
            # Keeping the extender keeps its id from being reused.
            found = self._pools[id(extender)] = (extender, _pool_of(extender))
        parts = urlsplit(url)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        answer = await found[1].exchange("POST", target, body, JSON, seconds=_seconds(extender))
        return answer.status, answer.body

    async def close(self) -> None:
        """Close all connections."""
        for _, pool in self._pools.values():
            pool.close()
        self._pools.clear()
        await asyncio.sleep(0)  # connections are closed in the loop's next turn


def _pool_of(extender: Extender) -> ConnectionPool:
    parts = urlsplit(extender.url_prefix)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("no address of an extender; http://HOST:PORT/PATH would be one")
    address, credentials = parts.netloc, Credentials()
    if parts.username is not None:
        secret = basic(unquote(parts.username), unquote(parts.password or ""))
        credentials = Credentials(secret)
        address = parts.netloc.rpartition("@")[2]
    access = Access(
        f"{parts.scheme}://{address}",
        credentials,
        tls=context_of(extender) if parts.scheme == "https" else None,
        server_name=str(extender.tls.get("server_name") or ""),
    )
    return ConnectionPool(access, connect_seconds=LONGEST_SECONDS, largest=LARGEST_ANSWER)


class ExtenderClient:
    """Sends questions to extenders. Use it in an `async with`."""

    def __init__(
        self,
        lookup: Lookup,
        warn: Callable[[str], None] | None = None,
        post: Post | None = None,
    ) -> None:
        """Ask over HTTP, or through *post*; failures that the cycle ignores go to *warn*."""
        self._lookup = lookup
        self._failures = FailureLog(warn or (lambda _: None))
        self._http = HttpPost()
        self._post: Post = post or self._http

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def ask(self, question: Question | Together) -> Reply | tuple[Reply, ...]:
        """Send a question of the cycle and return the reply or a `Failure`.

        The questions of a `Together` are sent at the same time.
        """
        if isinstance(question, Together):
            return tuple(await asyncio.gather(*map(self._ask_one, question.questions)))
        return await self._ask_one(question)

    async def _ask_one(self, question: Question) -> Reply:
        try:
            reply = await self._reply(question)
        except (wire.WireError, _ExchangeError) as error:
            reply = Failure(str(error))
        if isinstance(reply, Failure) and (
            question.extender.ignorable or isinstance(question, AskScores)
        ):
            self.ignored(question.extender, reply.text)
        elif not isinstance(reply, Failure):
            self._failures.succeeded(question.extender.url_prefix)
        return reply

    def ignored(self, extender: Extender, error: str) -> None:
        """Tell of a failure that the cycle ignores, once until the extender answers again."""
        prefix = extender.url_prefix
        self._failures.failed(prefix, f"extender {prefix} is ignored: {error}")

    async def _reply(self, question: Question) -> Reply:
        if isinstance(question, AskFilter):
            return await self._filter(question)
        if isinstance(question, AskScores):
            return await self._scores(question)
        return await self._victims(question)

    async def bind(self, extender: Extender, pod: Pod, node: str) -> str:
        """Let the extender bind the pod; the error, empty on success."""
        try:
            body = await self._send(extender, extender.bind_verb, wire.bind_request(pod, node))
            error = wire.bind_reply(body)
        except (wire.WireError, _ExchangeError, ConfigError) as failed:
            return str(failed)
        self._failures.succeeded(extender.url_prefix)
        return _error(extender, error)

    async def _filter(self, question: AskFilter) -> Filtered | Failure:
        extender, known = question.extender, frozenset(question.nodes)
        body = self._about_nodes(extender, question.pod, question.nodes)
        reply = wire.filter_reply(await self._send(extender, extender.filter_verb, body))
        if reply.error:
            return Failure(_error(extender, reply.error))
        found = wire.filtered(reply, extender)
        if extender.node_cache_capable and reply.names is not None:
            for name in found.nodes:
                if not self._is_known(name, known, extender):
                    # kube-scheduler v1.13 crashes here.
                    return Failure(
                        f'extender "{extender.url_prefix}" claims a filtered node "{name}" '
                        "which is not found in the input node list"
                    )
        return found

    def _is_known(self, name: str, asked: frozenset[str], extender: Extender) -> bool:
        return name in asked or (
            not extender.protocol.refuses_other_nodes and self._lookup.node(name) is not None
        )

    async def _scores(self, question: AskScores) -> Scored:
        extender = question.extender
        body = self._about_nodes(extender, question.pod, question.nodes)
        return wire.scores_reply(await self._send(extender, extender.prioritize_verb, body))

    def _about_nodes(self, extender: Extender, pod: Incoming, names: tuple[str, ...]) -> bytes:
        if extender.node_cache_capable:
            return wire.nodes_request(pod.pod, None, names)
        found = (self._lookup.node(name) for name in names)
        return wire.nodes_request(pod.pod, [node for node in found if node is not None], names)

    async def _victims(self, question: AskVictims) -> AcceptedVictims:
        extender = question.extender
        if extender.node_cache_capable:
            uids = {
                node: (each.uids, each.violations if extender.protocol.counts_violations else 0)
                for node, each in question.candidates.items()
            }
            body = wire.victims_request(question.pod.pod, None, uids)
        else:
            pods = {node: (self._pods(v), v.violations) for node, v in question.candidates.items()}
            body = wire.victims_request(question.pod.pod, pods, None)
        return wire.victims_reply(await self._send(extender, extender.preempt_verb, body))

    def _pods(self, victims: Victims) -> list[Pod]:
        found = (self._lookup.pod(uid) for uid in victims.uids)
        return [pod for pod in found if pod is not None]

    async def _send(self, extender: Extender, verb: str, body: bytes) -> bytes:
        """Post *body* to a verb of the extender; the body of the reply."""
        url = f"{extender.url_prefix.rstrip('/')}/{verb}"
        try:
            status, answer = await self._post(extender, url, body)
        except TimeoutError:
            seconds = _seconds(extender)
            raise _ExchangeError(f'Post "{url}": no answer within {seconds:g} s') from None
        except (OSError, ValueError, InputError) as error:
            raise _ExchangeError(f'Post "{url}": {words(error)}') from None
        if status != 200:
            word = extender.protocol.failed
            raise _ExchangeError(f"{word} {verb} with extender at URL {url}, code {status}")
        return answer


def _seconds(extender: Extender) -> float:
    """How long an extender is waited for; one without a limit, or a negative one, for long."""
    seconds = extender.timeout_seconds
    return min(seconds, LONGEST_SECONDS) if seconds > 0 else LONGEST_SECONDS


class _ExchangeError(Exception):
    """The extender could not be reached or answered with another status than 200."""


def _error(extender: Extender, text: str) -> str:
    """The error text of a reply; v1.13 takes it for a format of Go without arguments."""
    return wire.go_format(text) if extender.protocol.formats_errors else text


class BlockingClient:
    """Sends one question at a time and blocks until the reply is there."""

    def __init__(self, client: ExtenderClient, runner: asyncio.Runner) -> None:
        self._runner = runner
        self.client = client

    def __call__(self, question: Question | Together) -> Reply | tuple[Reply, ...]:
        """Send a question of the cycle and return the reply."""
        return self._runner.run(self.client.ask(question))


@contextmanager
def blocking_client(
    lookup: Lookup, warn: Callable[[str], None] | None = None
) -> Iterator[BlockingClient]:
    """A blocking client; leaving the context closes its connections."""
    with asyncio.Runner() as runner:
        client = BlockingClient(ExtenderClient(lookup, warn), runner)
        try:
            yield client
        finally:
            runner.run(client.client.__aexit__())


_FILES = {"ca_file": "caFile", "cert_file": "certFile", "key_file": "keyFile"}


def context_of(extender: Extender) -> ssl.SSLContext:
    """The TLS context for an extender's `tlsConfig`.

    With `enableHttps` and no certificate authority every server certificate is accepted.
    """
    tls = extender.tls
    for name, field in _FILES.items():
        _check_readable(extender, field, tls.get(name))
    authority = tls.get("ca_file") or tls.get("ca_data")
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    try:
        if tls.get("ca_data"):
            context = ssl.create_default_context(cadata=_bytes(tls["ca_data"]).decode())
        elif tls.get("ca_file"):
            context = ssl.create_default_context(cafile=str(tls["ca_file"]))
        if tls.get("insecure") or (extender.enable_https and not authority):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        _load_client_certificate(context, tls)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigError(f"tlsConfig of extender {extender.url_prefix}: {reason}") from error
    return context


def _check_readable(extender: Extender, field: str, path: object) -> None:
    """Raise an error that names the file; those of the ssl module do not."""
    if not path:
        return
    try:
        Path(str(path)).open("rb").close()
    except OSError as error:
        what = f"{field} {path}: {error.strerror or error}"
        raise ConfigError(f"tlsConfig of extender {extender.url_prefix}: {what}") from error


def _load_client_certificate(context: ssl.SSLContext, tls: dict[str, object]) -> None:
    """Load the client certificate, if one is configured; `ssl` reads certificates from files."""
    if tls.get("cert_data") or tls.get("key_data"):
        with tempfile.TemporaryDirectory(prefix="podium-") as folder:
            names = []
            for part in ("cert", "key"):
                path = Path(folder, f"{part}.pem")
                given = tls.get(f"{part}_data")
                if given:
                    path.touch(mode=0o600)
                    path.write_bytes(_bytes(given))
                names.append(str(path if given else tls.get(f"{part}_file", "")))
            context.load_cert_chain(*names)
    elif tls.get("cert_file"):
        context.load_cert_chain(str(tls["cert_file"]), str(tls.get("key_file") or "") or None)


def _bytes(value: object) -> bytes:
    assert isinstance(value, bytes)
    return value
