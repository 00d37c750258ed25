"""The questions as tools of a server for the Model Context Protocol, answered page by page.

Importing this module needs the extra `mcp`.
"""

# The SDK reads annotations at run time, so they are no strings here.

import asyncio
import hmac
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated, Any, Final

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

import podium
from podium.agents.questions import Questions
from podium.errors import InputError, PodiumError

_REFUSED: Final = b"a bearer token is needed: Authorization: Bearer TOKEN\n"


class BearerOnly:
    """Answers requests without the token with 401, and passes all others on."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Compare the token in constant time."""
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": _REFUSED})
                return
        await self._app(scope, receive, send)


#: Characters of one page; about three of them are a token.
PAGE_CHARACTERS: Final = 9_000
#: So many answers are kept for those who ask for the next page.
MOST_KEPT: Final = 64


class PagedAnswers:
    """Cuts long answers into pages, and keeps the rest of each under a handle."""

    def __init__(self) -> None:
        self._rest: OrderedDict[str, list[str]] = OrderedDict()
        self._handles = 0

    def first_page(self, lines: Iterable[str]) -> str:
        """The beginning of an answer; its last line says how to get the rest."""
        return self._page([line.rstrip() for line in lines])

    def next_page(self, handle: str) -> str:
        """The next page of the answer with this handle. A handle is good for one call."""
        rest = self._rest.pop(handle, None)
        if rest is None:
            hint = "ask the question again"
            raise InputError(f"there is no further page {handle!r}", hint=hint)
        return self._page(rest)

    def _page(self, lines: list[str]) -> str:
        length = taken = 0
        for line in lines:
            length += min(len(line), PAGE_CHARACTERS) + 1
            if taken and length > PAGE_CHARACTERS:
                break
            taken += 1
        shown = [_shortened(line, PAGE_CHARACTERS) for line in lines[:taken]]
        rest = lines[taken:]
        if rest:
            self._handles += 1
            handle = f"page-{self._handles}"
            self._rest[handle] = rest
            while len(self._rest) > MOST_KEPT:
                self._rest.popitem(last=False)
            shown.append(f'… {len(rest)} more lines: call more with handle "{handle}"')
        return "\n".join(shown)


def _shortened(line: str, most: int) -> str:
    return line if len(line) <= most else f"{line[: most - 1]}…"


INSTRUCTIONS: Final = (
    "Podium decides about Kubernetes pods exactly as kube-scheduler does. Ask why_pending for a "
    "pod that waits, explain_placement for a pod that runs, what_if before a change, capacity for "
    "room. Every tool only reads. Names are NAMESPACE/NAME, NAME, or KIND/NAME of a workload."
)
_READS: Final = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_CHANGES: Final = (
    "Changes in their order: 'drain NODE', 'lose NODE|LABEL=VALUE', 'add COUNT:NODE', "
    "'cordon NODE', 'uncordon NODE', 'taint NODE:KEY=VALUE:EFFECT', 'scale KIND/NAME=N', "
    "'delete KIND/NAME', 'rollout KIND/NAME', 'replace LABEL=VALUE'."
)

Pod = Annotated[
    str, Field(description="NAMESPACE/NAME or NAME of a pod, or a workload such as deployment/web.")
]
OptionalPod = Annotated[
    str | None, Field(description="The pod; without one, all pending pods are listed.")
]
Node = Annotated[str | None, Field(description="Also say what became of this node.")]
Changes = Annotated[list[str], Field(min_length=1, max_length=20, description=_CHANGES)]
MostFixes = Annotated[int, Field(ge=1, le=50, description="How many fixes to list.")]
MostPods = Annotated[int, Field(ge=1, le=1_000_000, description="Stop after so many pods.")]
Configurations = Annotated[
    list[str],
    Field(min_length=2, max_length=6, description="Releases or providers, such as v1.36."),
]
AttemptNumber = Annotated[
    int | None, Field(ge=1, description="Which attempt; the last one without it.")
]
Handle = Annotated[str, Field(description="The handle in the last line of an answer.")]


class Tools:
    """One tool for each question. Questions are answered in a thread, one after the other."""

    def __init__(self, questions: Questions, pages: PagedAnswers) -> None:
        self._questions, self._pages = questions, pages
        self._one_at_a_time = asyncio.Lock()

    async def why_pending(self, pod: OptionalPod = None) -> str:
        """Why a pod is pending: the cause with numbers, and the smallest changes that help."""
        return await self.answered(lambda: self._questions.why_pending(pod))

    async def explain_placement(self, pod: Pod, node: Node = None) -> str:
        """Why a pod goes to its node: the scores of the best nodes, the rejected nodes and why."""
        return await self.answered(lambda: self._questions.explain_placement(pod, node))

    async def what_if(self, changes: Changes) -> str:
        """What follows from changes on a copy of the cluster: moved, pending, evicted, blocked."""
        return await self.answered(lambda: self._questions.what_if(changes))

    async def fix(self, pod: Pod, most: MostFixes = 10) -> str:
        """The smallest changes that would give a pending pod a node, each as a kubectl command."""
        return await self.answered(lambda: self._questions.fix(pod, most))

    async def capacity(self, pod: Pod, most: MostPods = 100_000) -> str:
        """How many more pods like this one fit, where, and which resource runs out first."""
        return await self.answered(lambda: self._questions.capacity(pod, most))

    async def compare(self, configurations: Configurations) -> str:
        """Place all pods anew by several configurations: which go elsewhere, what is left over."""
        return await self.answered(lambda: self._questions.compare(configurations))

    async def past_decision(self, pod: Pod, attempt: AttemptNumber = None) -> str:
        """The decision about a pod as it was made, from the recorded history."""
        return await self.answered(lambda: self._questions.past_decision(pod, attempt))

    async def more(self, handle: Handle) -> str:
        """The next page of a long answer."""
        try:
            return self._pages.next_page(handle)
        except PodiumError as error:
            raise ToolError(str(error)) from None

    async def answered(self, ask: Callable[[], Iterable[str]]) -> str:
        """The first page of an answer. A wrong argument is an error that the agent reads."""
        async with self._one_at_a_time:
            try:
                return await asyncio.to_thread(lambda: self._pages.first_page(list(ask())))
            except PodiumError as error:
                raise ToolError(str(error)) from None


def mcp_server(questions: Questions) -> MCPServer[Any]:
    """A server whose tools answer the *questions*; the names of the cluster are its resources."""
    server: MCPServer[Any] = MCPServer(
        "podium", instructions=INSTRUCTIONS, version=podium.__version__, log_level="WARNING"
    )
    tools = Tools(questions, PagedAnswers())
    for tool in (
        tools.why_pending,
        tools.explain_placement,
        tools.what_if,
        tools.fix,
        tools.capacity,
        tools.compare,
        tools.past_decision,
        tools.more,
    ):
        server.add_tool(tool, annotations=_READS, structured_output=False)
    for name, listed, text in (
        ("nodes", questions.node_names, "The names of all nodes."),
        ("pods", questions.pod_names, "Namespace and name of all pods."),
        ("pods/pending", questions.pending_pods, "The pods that wait, in scheduling order."),
    ):
        resource = server.resource(
            f"podium://{name}", name=name, description=text, mime_type="text/plain"
        )
        resource(_reader(tools, listed))
    return server


def _reader(tools: Tools, listed: Callable[[], list[str]]) -> Callable[[], Awaitable[str]]:
    async def read() -> str:
        return await tools.answered(listed)

    return read
