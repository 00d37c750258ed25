"""Pod affinity terms of both generations: matching pods, counted per topology domain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.rule import Watched
from podium.engine.state.selector_index import NOBODY, anchor_of_all

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from podium.engine.state.pod_class import PodClass
    from podium.engine.state.tallies import LabelSet, PodTerm, Tally
    from podium.engine.state.view import View


def watched_by(cls: PodClass) -> Watched:
    """What rules on pod affinity look at: a pod without terms meets those of placed pods only."""
    return Watched.ANYTHING if cls.has_pod_affinity else Watched.TERMS | Watched.NODES


def term_tally(view: View, terms: tuple[PodTerm, ...]) -> Tally:
    """A tally of the pods that match all of the terms, by namespace and labels."""
    key = ("terms", *(term.pods for term in terms))
    return view.pods.tally(
        key,
        lambda labels: covers_all(terms, labels),
        lambda: anchor_of_all(term.selector for term in terms) if terms else NOBODY,
    )


def covers_all(terms: tuple[PodTerm, ...], labels: LabelSet) -> bool:
    """Whether pods with these labels match every one of the terms."""
    return bool(terms) and all(term.covers(labels.namespace, labels.labels) for term in terms)


def domain_state(view: View, tallies: list[tuple[Tally, str]]) -> Hashable:
    """The domains that hold any of the counted pods; None where every row is a domain."""
    if any(view.nodes.label_column(key).one_row_each for _, key in tallies):
        return None
    return tuple((key, (tally.by_domain(key) > 0).tobytes()) for tally, key in tallies)


def have_own_domains(terms: Iterable[PodTerm], view: View) -> bool:
    """Whether every row is a topology domain of its own for these terms, as with host names."""
    return all(view.nodes.label_column(term.topology_key).one_row_each for term in terms)
