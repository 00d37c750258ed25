"""Plans for the pages of a live cluster, each made by a process of its own.

The process (`page_plans`) lists the cluster with the credentials of the scheduler, as
`podium plan` does, and makes the changes to that copy. The scheduler only waits for the
answer: decisions go on meanwhile, whatever the size of the cluster.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from podium.engine.framework.profile import Profile
    from podium.library.profile_choice import ChosenProfiles
    from podium.library.profile_source import ProfileSource
    from podium.serving.page_data.page_data import Planner

Data = dict[str, Any]
logger = logging.getLogger(__name__)

_PROGRAM: Final = "podium.what_if.plan.page_plans"
#: What the text of profiles is called in messages.
_TEXT: Final = "the rules of the scheduler"
#: The fields of a `ProfileSource` that are no plain values, or that a plan does without.
_LEFT_OUT: Final = frozenset(
    {"usual_percentage", "ask_extenders", "environment", "notify", "on_hang"}
)


class PlanRequest(msgspec.Struct):
    """What the process is asked: how the cluster is reached, the rules and the changes."""

    kubeconfig: str | None
    context: str | None
    server: str | None
    #: Fields of a `ProfileSource`.
    source: dict[str, Any]
    changes: list[tuple[str, str]]


class PlanAnswer(msgspec.Struct):
    """What the process answers: the data of the page, or one sentence on why there is none."""

    plan: Data | None = None
    error: str = ""


def process_planner(
    reach: Mapping[str, str | None], source: ProfileSource, chosen: ChosenProfiles
) -> Planner:
    """A function that makes plans of the cluster that *reach* names: kubeconfig, context, server.

    *chosen* are the profiles that the scheduler was started with, by the flags of *source*.
    """
    first = _kept(source, chosen)

    async def planned(
        _: Sequence[Profile], text: str | None, changes: Sequence[tuple[str, str]]
    ) -> Data:
        rules = first if text is None else with_text(source, text)
        names = (each.name for each in fields(rules) if each.name not in _LEFT_OUT)
        values = {name: getattr(rules, name) for name in names}
        return await _asked(PlanRequest(**reach, source=values, changes=list(changes)))

    return planned


def with_text(source: ProfileSource, text: str) -> ProfileSource:
    """The source with a Policy or configuration as text in place of what it names."""
    is_config = "KubeSchedulerConfiguration" in text
    return replace(
        source,
        policy=None if is_config else _TEXT,
        config=_TEXT if is_config else None,
        provider=None,
        profile=None,
        texts={_TEXT: text},
    )


def _kept(source: ProfileSource, chosen: ChosenProfiles) -> ProfileSource:
    """The source with its file as text, so that a file that changes later does not matter."""
    from podium.library.profile_choice import shipped_policy  # noqa: PLC0415  brings the engine

    document = chosen.policy if chosen.policy is not None else chosen.config
    is_shipped = source.policy is not None and shipped_policy(source.policy, source) is not None
    if document is None or is_shipped:
        return source
    return with_text(source, msgspec.json.encode(document).decode())


async def _asked(request: PlanRequest) -> Data:
    """Run the process to its end; when this is cancelled, the process is killed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", _PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate(msgspec.json.encode(request))
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
    try:
        answer = msgspec.json.decode(out, type=PlanAnswer)
    except msgspec.DecodeError:
        logger.warning("a plan failed (%s): %s", process.returncode, err.decode(errors="replace"))
        answer = PlanAnswer(error="the plan failed; the log of the scheduler says why")
    if answer.plan is None:
        raise InputError(answer.error)
    return answer.plan
