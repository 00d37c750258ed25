"""Random histories of the cache against a model that only remembers what it was told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from builders import claim, node, pod
from podium.cluster.cache.cache import Cache, CacheError
from podium.engine.state.accounting import ContainerSums
from podium.engine.state.reservation import VolumePlan
from podium.objects.kinds.pod import Pod

UIDS = ("p0", "p1", "p2", "p3")
NODES = ("n0", "n1", "n2")
PODS = st.sampled_from(UIDS)
PLACES = st.sampled_from(NODES)


def made(uid: str, where: str = "", version: int = 0) -> Pod:
    """A pod as it was at some time; each takes a cpu of its own, so that sums tell pods apart."""
    requests = {"cpu": f"{10 ** UIDS.index(uid)}m"}
    labels = {"version": str(version)}
    return pod(uid, uid=uid, node=where, labels=labels, requests=requests, ports=[80 + version % 2])


@dataclass
class Belief:
    """What there is to remember about a pod."""

    pod: Pod
    node: str
    assumed: bool
    #: Whether a volume was promised along with this assumption.
    promised: bool = False


class CacheHistory(RuleBasedStateMachine):
    """The cache and the model live through the same events."""

    @initialize(known=st.sets(PLACES))
    def start(self, known: set[str]) -> None:
        self.cache = Cache(ContainerSums())
        self.version = 0
        self.nodes: list[str] = []
        self.pods: dict[str, Belief] = {}
        #: Pods of each node in their order: the last takes the place of one that leaves.
        self.order: dict[str, list[str]] = {name: [] for name in NODES}
        #: How often a volume was promised and the promise not taken back.
        self.promises: Counter[str] = Counter()
        for uid in UIDS:
            self.cache.columns.catalog.claims.put(claim(f"claim-{uid}"))
        for name in sorted(known):
            self.put_node(name)

    # The model's own doing
    def _put(self, uid: str, belief: Belief) -> None:
        self.pods[uid] = belief
        self.order[belief.node].append(uid)

    def _drop(self, uid: str) -> None:
        pods = self.order[self.pods.pop(uid).node]
        pods[pods.index(uid)] = pods[-1]
        pods.pop()

    def _disbelieve(self, uid: str) -> None:
        """The pod was never there, and its volume is not needed; what was confirmed stays."""
        if self.pods[uid].promised:
            self.promises[f"pv-{uid}"] -= 1
        self._drop(uid)

    def _does(self, act: Callable[[], object], error: str) -> bool:
        """Do it; it must fail in just this way, or not at all."""
        if not error:
            act()
            return True
        with pytest.raises(CacheError) as caught:
            act()
        assert str(caught.value) == error
        return False

    # Events
    @rule(name=PLACES)
    def put_node(self, name: str) -> None:
        self.cache.put_node(node(name))
        if name not in self.nodes:
            self.nodes.append(name)

    @rule(name=PLACES)
    def drop_node(self, name: str) -> None:
        self.cache.drop_node(node(name))
        if name in self.nodes:
            self.nodes.remove(name)

    @rule(uid=PODS, where=PLACES, volumes=st.booleans())
    def assume(self, uid: str, where: str, volumes: bool) -> None:
        self.version += 1
        new = made(uid, version=self.version)
        plan = VolumePlan({f"claim-{uid}": f"pv-{uid}"}, ())
        reserved = {"VolumeBinding": plan} if volumes else {}
        error = f"pod {uid} is in the cache, so can't be assumed" if uid in self.pods else ""
        if self._does(lambda: self.cache.assume(new, where, reserved), error):
            self._put(uid, Belief(new, where, assumed=True, promised=volumes))
            self.promises[f"pv-{uid}"] += volumes

    @rule(uid=PODS, where=st.sampled_from(["", *NODES]))
    def forget(self, uid: str, where: str) -> None:
        known = self.pods.get(uid)
        error = ""
        if known is None or not known.assumed:
            error = f"pod {uid} wasn't assumed so cannot be forgotten"
        elif where and where != known.node:
            error = f"pod {uid} was assumed on {known.node} but assigned to {where}"
        if self._does(lambda: self.cache.forget(made(uid, where)), error):
            self._disbelieve(uid)

    @rule(uid=PODS, where=PLACES)
    def add(self, uid: str, where: str) -> None:
        self.version += 1
        new = made(uid, where, self.version)
        known = self.pods.get(uid)
        placed = known is not None and not known.assumed
        error = f"pod {uid} was already in added state" if placed else ""
        if not self._does(lambda: self.cache.add_pod(new), error):
            return
        if known is not None and known.node == where:
            known.assumed = False
            return
        if known is not None:
            self._drop(uid)
        self._put(uid, Belief(new, where, assumed=False))

    @rule(uid=PODS, leaving=st.booleans())
    def update(self, uid: str, leaving: bool) -> None:
        self.version += 1
        known = self.pods.get(uid)
        where = known.node if known else NODES[0]
        new = made(uid, where, self.version)
        if leaving:
            gone = msgspec.structs.replace(new.metadata, deletion_timestamp="2020-01-01T00:00:00Z")
            new = msgspec.structs.replace(new, metadata=gone)
        error = f"pod {uid} is not added to scheduler cache, so cannot be updated"
        if known is not None and not known.assumed:
            error = ""
        if self._does(lambda: self.cache.update_pod(made(uid, where), new), error):
            self._drop(uid)
            self._put(uid, Belief(new, where, assumed=False))

    @rule(uid=PODS)
    def remove(self, uid: str) -> None:
        known = self.pods.get(uid)
        error = f"pod {uid} is not found in scheduler cache, so cannot be removed from it"
        old = made(uid, known.node if known else "")
        if self._does(lambda: self.cache.remove_pod(old), "" if known else error):
            self._drop(uid)

    # What must hold after every event
    @invariant()
    def same_beliefs(self) -> None:
        columns = self.cache.columns
        assert columns.pods.total == len(self.pods)
        assert set(columns.nodes.row_of) == {*self.nodes, *(b.node for b in self.pods.values())}
        assert [columns.nodes.names[row] for row in columns.nodes.order] == self.nodes
        for name, row in columns.nodes.row_of.items():
            residents = columns.pods.residents[row]
            assert [resident.uid for resident in residents] == self.order[name]
            cpu = sum(10 ** UIDS.index(uid) for uid in self.order[name])
            assert columns.pods.requested[0][row] == cpu
            assert (row in columns.pods.unknown_nodes) == (name not in self.nodes)
        for uid in UIDS:
            known, resident = self.pods.get(uid), columns.pods.by_uid.get(uid)
            assert (resident is None) == (known is None)
            assert self.cache.is_assumed(uid) == (known is not None and known.assumed)
            if known is not None and resident is not None:
                assert resident.labels.labels == known.pod.labels
                assert resident.terminating == known.pod.terminating
        promised = columns.catalog.promised_volumes
        assert set(promised) == {name for name, times in self.promises.items() if times}
        assert all(c.name.removeprefix("claim-") == v[3:] for v, c in promised.items())

    @invariant()
    def every_node_once_in_the_order(self) -> None:
        columns = self.cache.columns
        names = [columns.nodes.names[row] for row in self.cache.order()]
        assert sorted(names) == sorted(self.nodes)


CacheHistory.TestCase.settings = settings(max_examples=520, stateful_step_count=16)
TestCacheHistory = CacheHistory.TestCase
