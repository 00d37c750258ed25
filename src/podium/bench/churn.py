"""What happens beside the pods that are scheduled: objects come and go, pods are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.bench.definitions import RECREATE, Churn, DeletePods

if TYPE_CHECKING:
    from podium.bench.cluster import World
    from podium.objects.kinds.meta import Object


class Churning:
    """A churn under way."""

    def __init__(self, world: World, op: Churn, namespace: str) -> None:
        self._world = world
        self._op = op
        self._namespace = namespace
        self._templates = [world.template(path) for path in op.template_paths]
        self._interval = op.interval_milliseconds / 1000
        self._due = world.now() + self._interval
        self._pods = 0
        self._steps = 0
        self._slots: list[list[Object | None]] = [
            [None] * (op.number if op.mode == RECREATE else 0) for _ in self._templates
        ]

    def tick(self) -> None:
        """Called before every pod."""
        if self._op.every_pods:
            self._pods += 1
            if self._pods % self._op.every_pods == 0:
                self._step()
            return
        now = self._world.now()
        if now >= self._due:
            # Ticks that were missed are dropped.
            self._due += self._interval * (1 + (now - self._due) // self._interval)
            self._step()

    def _step(self) -> None:
        op, step = self._op, self._steps
        if op.mode != RECREATE and op.number and step >= op.number:
            return
        self._steps += 1
        for template, slots in zip(self._templates, self._slots, strict=True):
            place = step % len(slots) if slots else 0
            there = slots[place] if slots else None
            if there is not None:
                self._world.delete(there)
                slots[place] = None
                continue
            made = self._world.create(template, step, max(op.number, 1), self._namespace)
            if slots:
                slots[place] = made


class Deleting:
    """Pods that go one by one."""

    def __init__(self, world: World, op: DeletePods, uids: list[str]) -> None:
        self._world = world
        self._uids = uids
        self._begun = world.now()
        self._per_second = op.delete_pods_per_second
        self._gone = 0

    def tick(self) -> None:
        """Called before every pod."""
        due = int((self._world.now() - self._begun) * self._per_second)
        for uid in self._uids[self._gone : due]:
            self._world.delete_pod(uid)
        self._gone = max(self._gone, due)
