"""Asking extenders, as kube-scheduler does.

The engine yields questions; an `ExtenderClient` turns each into one HTTP exchange and its reply
into what the engine understands. Whatever goes wrong on the way is a `Failure` with a sentence:
what it means is for the engine to say. `Interviewer` does the same without `await`.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import aiohttp

from podium.engine.framework.extenders import (
    AskFilter,
    AskScores,
    AskVictims,
    Failure,
    Together,
    interested,
)
from podium.extender import wire
from podium.extender.tls import context_of
from podium.kube.errors import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from podium.engine.framework.decision import Victims
    from podium.engine.framework.extenders import Filtered, Kept, Scored
    from podium.engine.framework.profile import Extender, Profile
    from podium.engine.state.pod_class import Incoming
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod

Reply = Any
_HEADERS = {"Content-Type": "application/json"}


class Lookup(Protocol):
    """Where the objects are that a question only names."""

    def node(self, name: str) -> Node | None:
        """A node."""

    def pod(self, uid: str) -> Pod | None:
        """A placed pod."""


class ExtenderClient:
    """Asks extenders over HTTP. To be used in an `async with`."""

    def __init__(self, lookup: Lookup, tell: Callable[[str], None] | None = None) -> None:
        self._lookup = lookup
        #: Told of failures that change nothing.
        self._tell = tell or (lambda _: None)
        self._stack = AsyncExitStack()
        self._sessions: dict[int, tuple[Extender, aiohttp.ClientSession]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        self._sessions.clear()

    async def ask(self, question: Any) -> Reply:
        """The reply to a question of the engine."""
        if isinstance(question, Together):
            return tuple(await asyncio.gather(*map(self.ask, question.questions)))
        try:
            reply = await self._reply(question)
        except (wire.WireError, _ExchangeError) as error:
            reply = Failure(str(error))
        if isinstance(reply, Failure) and (
            question.extender.ignorable or isinstance(question, AskScores)
        ):
            self._tell(f"extender {question.extender.url_prefix} is ignored: {reply.text}")
        return reply

    async def _reply(self, question: Any) -> Reply:
        if isinstance(question, AskFilter):
            return await self._filter(question)
        if isinstance(question, AskScores):
            return await self._scores(question)
        if isinstance(question, AskVictims):
            return await self._victims(question)
        raise TypeError(f"nobody can answer {question!r}")

    async def bind(self, extender: Extender, pod: Pod, node: str) -> str:
        """Let the extender bind the pod; why it did not, or nothing."""
        try:
            body = await self._send(extender, extender.bind_verb, wire.bind_request(pod, node))
            error = wire.bind_reply(body)
        except (wire.WireError, _ExchangeError) as failed:
            return str(failed)
        return error if extender.current else wire.formatted(error)

    async def _filter(self, question: AskFilter) -> Filtered | Failure:
        extender, known = question.extender, frozenset(question.nodes)
        body = self._about_nodes(extender, question.pod, question.nodes)
        reply = wire.filter_reply(await self._send(extender, extender.filter_verb, body))
        if reply.error:
            return Failure(reply.error if extender.current else wire.formatted(reply.error))
        found = wire.filtered(
            reply, names_count=extender.node_cache_capable, current=extender.current
        )
        if extender.node_cache_capable and reply.names is not None:
            for name in found.nodes:
                if not self._is_known(name, known, extender):
                    # Older programs crash here.
                    return Failure(
                        f'extender "{extender.url_prefix}" claims a filtered node "{name}" '
                        "which is not found in the input node list"
                    )
        return found

    def _is_known(self, name: str, asked: frozenset[str], extender: Extender) -> bool:
        return name in asked or (not extender.current and self._lookup.node(name) is not None)

    async def _scores(self, question: AskScores) -> Scored:
        extender = question.extender
        body = self._about_nodes(extender, question.pod, question.nodes)
        return wire.scores_reply(await self._send(extender, extender.prioritize_verb, body))

    def _about_nodes(self, extender: Extender, pod: Incoming, names: tuple[str, ...]) -> bytes:
        if extender.node_cache_capable:
            return wire.nodes_request(pod.pod, None, names)
        found = (self._lookup.node(name) for name in names)
        return wire.nodes_request(pod.pod, [node for node in found if node is not None], names)

    async def _victims(self, question: AskVictims) -> Kept:
        extender = question.extender
        if extender.node_cache_capable:
            uids = {
                node: (each.uids, each.violations if extender.current else 0)
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
        """One exchange; the body of the reply."""
        url = f"{extender.url_prefix.rstrip('/')}/{verb}"
        session = await self._session(extender)
        name = extender.tls.get("server_name") or None
        try:
            async with session.post(
                url, data=body, headers=_HEADERS, server_hostname=str(name) if name else None
            ) as response:
                if response.status != 200:
                    word = "failed" if extender.current else "Failed"
                    raise _ExchangeError(
                        f"{word} {verb} with extender at URL {url}, code {response.status}"
                    )
                return await response.read()
        except TimeoutError:
            seconds = extender.timeout_seconds
            raise _ExchangeError(f'Post "{url}": no answer within {seconds:g} s') from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _ExchangeError(f'Post "{url}": {words(error)}') from None

    async def _session(self, extender: Extender) -> aiohttp.ClientSession:
        """The connections to an extender, kept open between questions."""
        found = self._sessions.get(id(extender))
        if found is None:
            seconds = extender.timeout_seconds
            limit = aiohttp.ClientTimeout(total=None if math.isinf(seconds) else seconds)
            secure = extender.url_prefix.lower().startswith("https:")
            connector = aiohttp.TCPConnector(ssl=context_of(extender) if secure else True)
            session = aiohttp.ClientSession(connector=connector, timeout=limit)
            await self._stack.enter_async_context(session)
            # With the extender itself, so that its identity stays taken.
            found = self._sessions[id(extender)] = (extender, session)
        return found[1]


class _ExchangeError(Exception):
    """No reply, or one that says no."""


def binder_of(profile: Profile, pod: Incoming) -> Extender | None:
    """The extender that binds the pod in place of the API server."""
    return next(
        (each for each in profile.extenders if each.bind_verb and interested(each, pod)), None
    )


class Interviewer:
    """Asks extenders one question after the other, and waits for each answer."""

    def __init__(self, client: ExtenderClient, runner: asyncio.Runner) -> None:
        self._runner = runner
        self.client = client

    def __call__(self, question: Any) -> Reply:
        """The reply to a question of the engine."""
        return self._runner.run(self.client.ask(question))


@contextmanager
def interviewer(
    lookup: Lookup, tell: Callable[[str], None] | None = None
) -> Iterator[Callable[[Any], Reply]]:
    """Somebody who asks extenders; connections are closed in the end."""
    with asyncio.Runner() as runner:
        asking = Interviewer(ExtenderClient(lookup, tell), runner)
        try:
            yield asking
        finally:
            runner.run(asking.client.__aexit__())
