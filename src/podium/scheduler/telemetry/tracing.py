"""OpenTelemetry spans of scheduling attempts.

An attempt is one span, `schedulePod`, from the moment the pod was queued to its binding or its
failure. Below it are `queue`, `schedulingCycle` and, for a placed pod, `bindingCycle`. The steps of
the cycles have the names of the framework's functions: `RunPreFilterPlugins`, `RunFilterPlugins`,
`RunScorePlugins`, `selectHost`, `RunReservePluginsReserve` where something was reserved,
`RunPostFilterPlugins` where no node fit, and `RunBindPlugins`. That is the shape of Kubernetes'
enhancement 5927 on tracing in kube-scheduler. Spans are made afterwards from the durations that
every attempt has anyway: nothing is measured for them. Without this observer nothing is done at
all.

The configuration is that of Kubernetes' TracingConfiguration: an endpoint and a sampling rate per
million attempts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from podium.errors import InputError
from podium.render.decision.analysis import outcome
from podium.scheduler.state.observers import Observer

if TYPE_CHECKING:
    from podium.scheduler.state.observers import AttemptResult

#: The spans for the steps of a decision.
_STEPS: Final = {
    "Basic checks done": "RunPreFilterPlugins",
    "Computing predicates done": "RunFilterPlugins",
    "Prioritizing done": "RunScorePlugins",
    "Selecting host done": "selectHost",
    "Reserving done": "RunReservePluginsReserve",
    "Preemption done": "RunPostFilterPlugins",
}
#: Attempts that were decided and not bound yet; beyond that the oldest are ended.
MOST_OPEN: Final = 10_000
_NANOS: Final = 1_000_000_000


class SpanObserver(Observer):
    """Makes the spans of each attempt with a tracer of OpenTelemetry."""

    def __init__(self, tracer: Any) -> None:
        """Make spans with *tracer*."""
        self._tracer = tracer
        #: Spans of placed pods whose binding is under way, by uid: the span and its end so far.
        self._open: dict[str, tuple[Any, int]] = {}

    def attempted(self, result: AttemptResult) -> None:
        """Make the spans of the queue and of the decision; a placed pod's span stays open."""
        decision = result.decision
        began, end = _nanos(result.began), _nanos(result.began + result.seconds)
        queued = min(_nanos(result.queued_at), began)
        pod = result.pod
        root = self._tracer.start_span(
            "schedulePod",
            start_time=queued,
            attributes={
                "k8s.pod.name": pod.name,
                "k8s.namespace.name": pod.namespace,
                "k8s.pod.uid": pod.uid,
                "scheduler.profile": result.profile.scheduler_name,
                "scheduler.attempt": result.number,
                "scheduler.nodes": decision.nodes,
                "scheduler.result": outcome(decision),
            },
        )
        if root.is_recording():
            self._child(root, "queue", queued, began)
            self._add_cycle(root, result, began, end)
            if decision.node is not None:
                root.set_attribute("k8s.node.name", decision.node)
            elif decision.message:
                root.set_attribute("scheduler.message", decision.message)
        if decision.error:
            _set_error(root, str(decision.error))
        if decision.node is None:
            root.end(end)
            return
        self._open[pod.uid] = (root, end)
        if len(self._open) > MOST_OPEN:
            oldest, at = self._open.pop(next(iter(self._open)))
            oldest.end(at)

    def bound(self, result: AttemptResult, node: str, seconds: float) -> None:  # noqa: ARG002
        """End the attempt with the span of its binding."""
        self._finish(result, seconds, "")

    def bind_failed(self, result: AttemptResult, node: str, error: str) -> None:  # noqa: ARG002
        """End the attempt with an error."""
        self._finish(result, 0.0, error)

    def _finish(self, result: AttemptResult, seconds: float, error: str) -> None:
        root, at = self._open.pop(result.pod.uid, (None, 0))
        if root is None:
            return
        end = at + _nanos(seconds)
        cycle = self._start(root, "bindingCycle", at)
        self._child(cycle, "RunBindPlugins", at, end, error)
        for span in (cycle, root):
            if error:
                _set_error(span, error)
            span.end(end)

    def _add_cycle(self, root: Any, result: AttemptResult, began: int, end: int) -> None:
        """Add the span of the decision, with one for each of its steps."""
        cycle = self._start(root, "schedulingCycle", began)
        at = began
        for step, seconds in result.steps:
            after = at + _nanos(seconds)
            self._child(cycle, _STEPS.get(step, step), at, after)
            at = after
        cycle.end(max(end, at))

    def _start(self, parent: Any, name: str, start: int) -> Any:
        from opentelemetry import trace  # noqa: PLC0415  an extra

        context = trace.set_span_in_context(parent)
        return self._tracer.start_span(name, context=context, start_time=start)

    def _child(self, parent: Any, name: str, start: int, end: int, error: str = "") -> None:
        span = self._start(parent, name, start)
        if error:
            _set_error(span, error)
        span.end(end)


def _nanos(seconds: float) -> int:
    return int(seconds * _NANOS)


def _set_error(span: Any, message: str) -> None:
    from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415  an extra

    span.set_status(Status(StatusCode.ERROR, message))


class Tracing:
    """A provider of tracers that sends spans to an OTLP endpoint, until it is closed."""

    def __init__(self, endpoint: str, per_million: int, scheduler: str) -> None:
        """Send the spans of so many attempts *per_million* to *endpoint*."""
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
                OTLPSpanExporter,
            )
            from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
            from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
            from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
            from opentelemetry.sdk.trace.sampling import TraceIdRatioBased  # noqa: PLC0415
        except ImportError as error:
            raise InputError(
                f"--tracing-endpoint needs a package that is not installed: {error.name}",
                hint="pip install 'podium[tracing]' installs it",
            ) from None
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": scheduler}),
            sampler=TraceIdRatioBased(per_million / 1_000_000),
        )
        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self.observer = SpanObserver(self._provider.get_tracer("podium"))

    def close(self) -> None:
        """Send what is left, and stop."""
        self._provider.shutdown()
