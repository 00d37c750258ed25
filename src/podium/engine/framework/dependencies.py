"""What the answers of rules depend on, as rules state it."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class Scope(IntEnum):
    """What the answer of a rule for one row depends on, besides the class of the pod."""

    #: Nothing: the rule rejects no row, or gives every row the same score.
    NONE = 0
    #: The node object: labels, taints, conditions, images.
    NODE = 1
    #: The resource numbers of the row alone: allocatable, requested, number of pods.
    RESOURCES = 2
    #: The node and the pods on it: host ports, disks.
    PODS = 3
    #: Objects of the catalogue (claims, volumes), or the pod itself; never other pods.
    OBJECTS = 4
    #: Anything in the cluster, pods on other nodes included.
    CLUSTER = 5

    #: Whether an answer stays true until the node or the pods on it change.
    of_row: bool
    #: Whether pods that are added or removed do not change the answer.
    ignores_pods: bool

    def __init__(self, number: int) -> None:
        """Find out what is asked for at every decision."""
        none, node, _, pods, objects = range(5)
        self.of_row = none <= number <= pods
        self.ignores_pods = number in (none, node, objects)


class Watched(IntFlag):
    """What `activity`, `everywhere` and `group_keys` read besides the class of the pod.

    While nothing of it changes, a rule is not asked again.
    """

    NOTHING = 0
    #: The nodes.
    NODES = 1
    #: Services and controllers, which select pods.
    SELECTORS = 2
    #: The affinity terms of placed pods that select the pod, and the labels of namespaces.
    TERMS = 4
    #: Whether there are placed pods that the pod's own affinity terms select.
    SELECTED_PODS = 8
    #: Anything else: the rule is asked at every decision.
    ANYTHING = 16
