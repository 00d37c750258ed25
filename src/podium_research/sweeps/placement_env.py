"""Placing the pods of a trace as an environment for Gymnasium.

Each step places one pod. The rules of a profile say which nodes fit; the agent chooses one of them.
Pods that fit nowhere are passed over, so that there is a valid action in every step. Importing this
module needs the extra `gym`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces

from podium.cluster.simulation import Simulation
from podium.library.pending_pods import seen_by

if TYPE_CHECKING:
    from podium.engine.cycle.ties import Positions
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod
    from podium_research.traces.trace import Trace

Observation = dict[str, np.ndarray]

#: What a step costs that chooses a node where the pod does not fit.
INVALID_REWARD: Final = -1.0


class _AgentChoice:
    """Takes the node of the agent: without scores, all nodes that fit are tied."""

    cursor = 0

    def __init__(self) -> None:
        self.rank = 0

    def choose(self, best: Positions, places: object) -> int:  # noqa: ARG002  all are tied
        """The rank of the agent's node among the nodes that fit."""
        return min(self.rank, len(best) - 1)

    def skip(self, count: int) -> None:
        """Nothing is kept."""

    def position(self) -> list[Any]:
        """Nothing is kept."""
        return []

    def restore(self, position: Sequence[Any]) -> None:
        """Nothing is kept."""


class PlacementEnv(gymnasium.Env[Observation, np.int64]):
    """Places the pods of a trace, one in each step, on nodes that the agent chooses.

    The action is the index of a node. The observation has three parts, all between 0 and 1:

    - `nodes`, a row for each node: per resource the free share of the node, and its size as a share
      of the largest node; then the free share of its pod slots;
    - `pod`: per resource what the pod requests as a share of the largest node;
    - `left`: the share of pods that have not been tried.

    `info["action_mask"]` is 1 for nodes where the pod fits. The reward is what *reward* says of the
    placed pod. By default it is the mean over the resources of its share of the cluster, so that a
    return is the allocated share. An invalid action costs 1, and the pod stays without a node. An
    episode ends when no pod is left that fits.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  as Gymnasium declares it

    def __init__(
        self,
        trace: Trace,
        profile: Profile,
        *,
        resources: Sequence[str] = ("cpu", "memory"),
        most_pods: int | None = None,
        shuffled: bool = True,
        reward: Callable[[np.ndarray], float] | None = None,
    ) -> None:
        """Place the pods of *trace*, at most *most_pods*, in an order that the seed decides.

        The filters and reservations of *profile* hold; its scores and preemption do not.
        *reward* is called with the shares of the cluster that a placed pod takes.
        """
        self._trace = trace
        self._profile = replace(
            profile, priorities=(), pre_scores=(), post_filters=(), first_if_equal=False
        )
        self._resources = tuple(resources)
        self._most_pods, self._shuffled = most_pods, shuffled
        self._reward = reward or (lambda shares: float(shares.mean()))
        self._open()
        count, wide = len(self._names), 2 * len(self._resources) + 1
        self.action_space = spaces.Discrete(count)
        self.observation_space: spaces.Dict = spaces.Dict(  # type: ignore[assignment]
            {
                "nodes": spaces.Box(0.0, 1.0, (count, wide), np.float32),
                "pod": spaces.Box(0.0, 1.0, (len(self._resources),), np.float32),
                "left": spaces.Box(0.0, 1.0, (1,), np.float32),
            }
        )

    # Episodes ---------------------------------------------------------------------------------

    def _open(self) -> None:
        """Begin with the nodes of the trace and the pods that run from the beginning."""
        self._choice = _AgentChoice()
        self._simulation = Simulation(self._profile)
        self._simulation.decider.ties = self._choice
        objects = seen_by(self._trace.others, [self._profile.scheduler_name])
        objects.nodes = [each.node for each in self._trace.nodes]
        self._simulation.load(objects)
        nodes = self._simulation.cache.columns.nodes
        self._order = nodes.order.copy()
        self._names = [nodes.names[row] for row in self._order.tolist()]
        self._position = {name: at for at, name in enumerate(self._names)}
        columns = [nodes.resources.get(name) for name in self._resources]
        sizes = [
            np.zeros(len(self._order)) if column is None else nodes.allocatable[column][self._order]
            for column in columns
        ]
        self._sizes = np.array(sizes, np.float64)
        self._largest = np.maximum(self._sizes.max(axis=1, initial=0), 1)
        self._totals = np.maximum(self._sizes.sum(axis=1), 1)
        self._waiting: list[Pod] = []
        self._all = 1
        self._pod: Pod | None = None
        self._mask = np.zeros(len(self._order), np.int8)
        self.placed = self.unplaced = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; equal seeds have equal orders of pods."""
        super().reset(seed=seed, options=options)
        self._open()
        pods = [each.pod for each in self._trace.pods]
        if self._shuffled:
            random.Random(int(self.np_random.integers(1 << 62))).shuffle(pods)  # noqa: S311
        self._waiting = pods[: self._most_pods][::-1]
        self._all = max(len(self._waiting), 1)
        self._next()
        return self._observed(), self._info()

    def step(
        self, action: np.int64
    ) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Place the pod on the node of the action, and go on to the next that fits somewhere."""
        pod, at = self._pod, int(action)
        if pod is None:
            return self._observed(), 0.0, True, False, self._info()
        if self._mask[at]:
            reward = self._reward(self._requests(pod) / self._totals)
            self._choice.rank = int(self._mask[:at].sum())
            decision = self._simulation.attempt(pod)
            assert decision.node == self._names[at]
            self._simulation.place(pod, decision)
            self.placed += 1
        else:
            reward = INVALID_REWARD
            self.unplaced += 1
        self._next()
        return self._observed(), reward, self._pod is None, False, self._info()

    def _next(self) -> None:
        """Find the next pod that fits somewhere."""
        self._pod = None
        self._mask = np.zeros(len(self._order), np.int8)
        while self._waiting:
            pod = self._waiting.pop()
            decision = self._simulation.attempt(pod, recording=True)
            if decision.node is not None:
                self._pod = pod
                self._mark(decision)
                return
            self.unplaced += 1

    def _mark(self, decision: Decision) -> None:
        for name in decision.feasible:
            self._mask[self._position[name]] = 1

    # Observations -----------------------------------------------------------------------------

    def _requests(self, pod: Pod) -> np.ndarray:
        columns = self._simulation.cache.columns
        taken = dict(columns.pods.incoming(pod).cls.taken)
        numbers = [taken.get(columns.nodes.resources.get(name, -1), 0) for name in self._resources]
        return np.array(numbers, np.float64)

    def _observed(self) -> Observation:
        columns = self._simulation.cache.columns
        nodes, pods, order = columns.nodes, columns.pods, self._order
        parts = []
        for name, sizes, largest in zip(self._resources, self._sizes, self._largest, strict=True):
            column = nodes.resources.get(name)
            used = np.zeros(len(order)) if column is None else pods.requested[column][order]
            parts += [(sizes - used) / np.maximum(sizes, 1), sizes / largest]
        slots = np.maximum(nodes.allowed_pods[order], 1)
        parts.append((slots - pods.counts[order]) / slots)
        pod = np.zeros(len(self._resources))
        if self._pod is not None:
            pod = self._requests(self._pod) / self._largest
        left = np.array([len(self._waiting) / self._all])
        return {
            "nodes": np.clip(np.array(parts).T, 0, 1).astype(np.float32),
            "pod": np.clip(pod, 0, 1).astype(np.float32),
            "left": np.clip(left, 0, 1).astype(np.float32),
        }

    def _info(self) -> dict[str, Any]:
        return {
            "action_mask": self._mask.copy(),
            "pod": "" if self._pod is None else self._pod.key,
            "placed": self.placed,
            "unplaced": self.unplaced,
        }
