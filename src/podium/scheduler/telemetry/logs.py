"""Structured logging to standard error, one line per message.

As text, in the form of klog,

    I1115 23:17:36.000123 podium "pod bound" pod="default/web-0" node="n1" seconds=0.0021

or as JSON lines. `v` is the verbosity, as for Kubernetes programs: 0 for what always matters, 2 for
every decision, 4 and more for debugging. Warnings and errors are always written.
"""

from __future__ import annotations

import logging
import sys
import time
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TextIO

import msgspec

from podium.render.decision.analysis import outcome
from podium.render.plain import printable
from podium.scheduler.state.observers import Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from podium.objects.kinds.pod import Pod
    from podium.scheduler.state.observers import AttemptResult

TEXT, JSON = "text", "json"
INFO, WARNING, ERROR = "info", "warning", "error"
#: The verbosity that logs every decision, and the one that logs the events that moved pods.
DECISIONS: Final = 2
EVENTS: Final = 4
#: The verbosity that logs every score of every node, and what rejected each node.
SCORES: Final = 10
#: The verbosity at which only warnings and errors are written.
WARNINGS_ONLY: Final = -1


def recorded_nodes(v: int, wanted: int) -> int:
    """In clusters of how many nodes decisions keep all scores: of any size if they are logged."""
    return sys.maxsize if v >= SCORES else wanted


class Log:
    """Writes lines to a stream, by default standard error."""

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
        """Whether messages of this verbosity are written."""
        return self.v >= v

    def info(self, sentence: str, v: int = 0, **fields: Any) -> None:
        """Write a message, if its verbosity is enabled."""
        if self.v >= v:
            self._write(INFO, sentence, fields, v)

    def warning(self, sentence: str, **fields: Any) -> None:
        """Write a warning."""
        self._write(WARNING, sentence, fields)

    def error(self, sentence: str, **fields: Any) -> None:
        """Write an error."""
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
            pass  # a closed stream must not stop the scheduler


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
    """Logs each decision, and whether its pod was bound, in one line each."""

    def __init__(self, log: Log) -> None:
        self._log = log
        #: The labels of a node, once there is a cluster.
        self.labels_of: Callable[[str], Mapping[str, str]] = lambda _: {}

    def attempted(self, result: AttemptResult) -> None:
        """Log the node of the pod, or why it has none."""
        if not self._log.enabled(DECISIONS):
            return
        decision = result.decision
        fields: dict[str, Any] = {
            "pod": decision.pod,
            "outcome": outcome(decision),
            "profile": result.profile.scheduler_name,
            "attempt": result.number,
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
        fields["seconds"] = round(result.seconds, 6)
        if self._log.enabled(SCORES):
            self._nodes(result)
        self._log.info("pod decided", DECISIONS, **fields)

    def _nodes(self, result: AttemptResult) -> None:
        """Log what each node got, in kube-scheduler's words: rejections, scores, totals."""
        from podium.scheduler.telemetry.node_lines import node_lines  # noqa: PLC0415  brings v1.13's rules

        for line in node_lines(result.pod, result.decision, self.labels_of):
            self._log.info(line, SCORES)

    def bound(self, result: AttemptResult, node: str, seconds: float) -> None:
        """Log the binding."""
        if self._log.enabled(DECISIONS):
            key = result.decision.pod
            self._log.info("pod bound", DECISIONS, pod=key, node=node, seconds=round(seconds, 6))

    def bind_failed(self, result: AttemptResult, node: str, error: str) -> None:
        """Log the failed binding as an error, whatever the verbosity."""
        self._log.error("pod was not bound", pod=result.decision.pod, node=node, error=error)

    def evicting(self, result: AttemptResult, victims: Sequence[str]) -> None:
        """Log the victims of a preemption."""
        preemption = result.decision.preemption
        self._log.info(
            "pods are evicted",
            pod=result.decision.pod,
            node=preemption.node if preemption is not None else "",
            victims=", ".join(victims),
        )

    def group_evicting(self, group: str, victims: Sequence[Pod]) -> None:
        """Log the victims of a preemption for a pod group."""
        names = ", ".join(each.key for each in victims)
        self._log.info("pods are evicted", group=group, victims=names)

    def event_seen(self, label: str, moved: int) -> None:
        """Log an event that moved pods out of the unschedulable ones."""
        if moved and self._log.enabled(EVENTS):
            self._log.info("pods woken", EVENTS, event=label, pods=moved)


class LogHandler(logging.Handler):
    """Writes the records of Python's logging to a `Log`."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record as a warning or, from that level on, as an error."""
        write: Any = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        fields = {"where": record.name}
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = repr(record.exc_info[1])
            fields["traceback"] = "".join(traceback.format_exception(record.exc_info[1]))
        write(record.getMessage(), **fields)


logger = logging.getLogger(__name__)

#: Longer texts of exceptions are cut.
_LONGEST_TEXT: Final = 500


class Crashes:
    """Writes tracebacks of unforeseen exceptions to the log, once per place in the code.

    A rule that raises must not stop the decisions about other pods. The pod gets a SchedulerError
    and is attempted again after its backoff.
    """

    def __init__(self) -> None:
        #: The kind of each exception that was logged, and where it was raised.
        self._logged: set[tuple[str, str, int]] = set()

    def note(self, key: str, bug: Exception) -> None:
        """Log an exception that was raised while the pod with this *key* was decided."""
        raised = traceback.extract_tb(bug.__traceback__)[-1:]
        file, line = (raised[0].filename, raised[0].lineno or 0) if raised else ("", 0)
        place = (type(bug).__name__, file, line)
        if place not in self._logged:
            self._logged.add(place)
            logger.error("deciding about pod %s failed, please report it", key, exc_info=bug)


def described(bug: Exception) -> str:
    """The text of the error that the pod gets."""
    text = f"{type(bug).__name__}: {bug}"
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."
