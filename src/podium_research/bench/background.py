"""Operations that go on while other operations schedule pods: churn, and gradual deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium_research.bench.definitions import RECREATE, Churn, DeletePods

if TYPE_CHECKING:
    from podium.objects.kinds.meta import Object
    from podium_research.bench.executor import WorkloadExecutor


class RunningChurn:
    """Creates, or creates and deletes, objects at the interval of a churn operation."""

    def __init__(self, executor: WorkloadExecutor, op: Churn, namespace: str) -> None:
        self._executor = executor
        self._op = op
        self._namespace = namespace
        self._templates = [executor.template(path) for path in op.template_paths]
        self._interval = op.interval_milliseconds / 1000
        self._due = executor.now() + self._interval
        self._pods = 0
        self._steps = 0
        self._created: list[list[Object | None]] = [
            [None] * (op.number if op.mode == RECREATE else 0) for _ in self._templates
        ]

    def tick(self) -> None:
        """Take the steps that are due; called before every pod."""
        if self._op.every_pods:
            self._pods += 1
            if self._pods % self._op.every_pods == 0:
                self._step()
            return
        now = self._executor.now()
        if now >= self._due:
            # Missed intervals are skipped.
            self._due += self._interval * (1 + (now - self._due) // self._interval)
            self._step()

    def finish(self) -> None:
        """Churn goes on until the workload ends."""

    def _step(self) -> None:
        op, step = self._op, self._steps
        if op.mode != RECREATE and op.number and step >= op.number:
            return
        self._steps += 1
        for template, created in zip(self._templates, self._created, strict=True):
            place = step % len(created) if created else 0
            present = created[place] if created else None
            if present is not None:
                self._executor.delete(present)
                created[place] = None
                continue
            made = self._executor.create(template, step, max(op.number, 1), self._namespace)
            if created:
                created[place] = made


class RunningDeletion:
    """Deletes pods at the rate of a deletion operation."""

    def __init__(self, executor: WorkloadExecutor, op: DeletePods, uids: list[str]) -> None:
        self._executor = executor
        self._uids = uids
        self._started = executor.now()
        self._per_second = op.delete_pods_per_second
        self._deleted = 0

    def tick(self) -> None:
        """Delete the pods that are due; called before every pod."""
        due = int((self._executor.now() - self._started) * self._per_second)
        for uid in self._uids[self._deleted : due]:
            self._executor.delete_pod(uid)
        self._deleted = max(self._deleted, due)

    def finish(self) -> None:
        """Delete all that is left: an operation waits for it."""
        for uid in self._uids[self._deleted :]:
            self._executor.delete_pod(uid)
        self._deleted = len(self._uids)
