"""Structured logging to standard error: one line per thing that happened.

As text, in the manner of klog,

    I1115 23:17:36.000123 podium "pod bound" pod="default/web-0" node="n1" seconds=0.0021

or as JSON lines. `v` is the level of detail, as for Kubernetes programs: 0 what always matters,
2 every pod's decision, 4 and more for those who debug.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TextIO

import msgspec

from podium.daemon.observers import Observer
from podium.render.decision.as_json import outcome
from podium.render.plain import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.daemon.observers import Attempted

TEXT, JSON = "text", "json"
FORMATS: Final = (TEXT, JSON)
INFO, WARNING, ERROR = "info", "warning", "error"
#: The level of detail that tells every decision.
DECISIONS: Final = 2


class Log:
    """Writes lines."""

    def __init__(
        self,
        fmt: str = TEXT,
        v: int = 0,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._format, self.v = fmt, v
        self._stream = stream
        self._clock = clock

    def enabled(self, v: int) -> bool:
        """Whether that much detail is wanted."""
        return self.v >= v

    def info(self, sentence: str, v: int = 0, **fields: Any) -> None:
        """Something happened."""
        if self.v >= v:
            self._write(INFO, sentence, fields, v)

    def warning(self, sentence: str, **fields: Any) -> None:
        """Something that should not be."""
        self._write(WARNING, sentence, fields)

    def error(self, sentence: str, **fields: Any) -> None:
        """Something failed."""
        self._write(ERROR, sentence, fields)

    def _write(self, level: str, sentence: str, fields: dict[str, Any], v: int = 0) -> None:
        now = self._clock()
        if self._format == JSON:
            line = _json_line(level, now, sentence, fields, v)
        else:
            line = _text_line(level, now, sentence, fields)
        stream = self._stream if self._stream is not None else sys.stderr
        try:
            stream.write(line)
            stream.flush()
        except (OSError, ValueError):
            pass  # nobody reads any more, and that must not stop the scheduler


def _json_line(level: str, now: float, sentence: str, fields: dict[str, Any], v: int) -> str:
    head: dict[str, Any] = {"ts": round(now * 1000, 3), "level": level, "v": v, "msg": sentence}
    return msgspec.json.encode(head | fields, enc_hook=str).decode() + "\n"


def _text_line(level: str, now: float, sentence: str, fields: dict[str, Any]) -> str:
    when = datetime.fromtimestamp(now, UTC).strftime("%m%d %H:%M:%S.%f")
    parts = [f"{level[0].upper()}{when} podium {_quoted(sentence)}"]
    parts += [f"{name}={_value(value)}" for name, value in fields.items()]
    return " ".join(parts) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value) if isinstance(value, bool | int) else _quoted(str(value))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{printable(escaped)}"'


class DecisionLines(Observer):
    """A pod's decision in one line, and what came of it."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def attempted(self, attempted: Attempted) -> None:
        """Where the pod goes, or why nowhere."""
        if not self._log.enabled(DECISIONS):
            return
        decision = attempted.decision
        fields: dict[str, Any] = {
            "pod": decision.pod,
            "outcome": outcome(decision),
            "profile": attempted.profile.scheduler_name,
            "attempt": attempted.number,
        }
        if decision.node is not None:
            fields["node"] = decision.node
        fields["nodes"], fields["feasible"] = decision.nodes, decision.feasible_count
        if decision.tied > 1:
            fields["tied"] = decision.tied
        if decision.node is None:
            fields["message"] = decision.message
        if decision.preemption is not None and decision.preemption.node is not None:
            fields["nominated"] = decision.preemption.node
        fields["seconds"] = round(attempted.seconds, 6)
        self._log.info("pod decided", DECISIONS, **fields)

    def bound(self, attempted: Attempted, node: str, seconds: float) -> None:
        """The binding was taken."""
        if self._log.enabled(DECISIONS):
            key = attempted.decision.pod
            self._log.info("pod bound", DECISIONS, pod=key, node=node, seconds=round(seconds, 6))

    def bind_failed(self, attempted: Attempted, node: str, error: str) -> None:
        """The binding was refused."""
        self._log.error("pod was not bound", pod=attempted.decision.pod, node=node, error=error)

    def evicting(self, attempted: Attempted, victims: Sequence[str]) -> None:
        """Pods must go."""
        preemption = attempted.decision.preemption
        self._log.info(
            "pods are evicted",
            pod=attempted.decision.pod,
            node=preemption.node if preemption is not None else "",
            victims=", ".join(victims),
        )

    def event_seen(self, label: str, moved: int) -> None:
        """Something woke pods."""
        if moved and self._log.enabled(4):
            self._log.info("pods woken", 4, event=label, pods=moved)
