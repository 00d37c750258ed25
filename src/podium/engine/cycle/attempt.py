"""The inputs of one decision besides the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from podium.engine.cycle.evidence import Evidence
    from podium.engine.cycle.ties import Ties
    from podium.engine.fast.class_answers import AnswerCache
    from podium.engine.framework.profile import Profile
    from podium.engine.state.pod_class import Incoming


@dataclass(slots=True)
class Attempt:
    """One attempt to schedule a pod: the pod, the rules, the order of nodes, the choice of ties."""

    pod: Incoming
    profile: Profile
    #: Rows in the order they are looked at; may name a row twice, or not all of them.
    order: np.ndarray
    ties: Ties
    #: Called with the name of each step when it is done, so that the caller can time it.
    mark: Callable[[str], None]
    #: Whether everything that led to the decision is kept in it.
    recording: bool = False
    #: When recording, score a single feasible node too, although nothing depends on it.
    score_single: bool = False
    #: Answers kept for classes of pods seen before; None: every rule runs on every row.
    answers: AnswerCache | None = None
    #: Gets what the decision was made from, where it is compared with another one.
    evidence: Evidence | None = None
