"""A user's own predicate or priority, made to fit among the built-in ones.

Written for one node (`fits(pod, node)`, `score(pod, node)`) or for columns. Whatever such a rule
does, the attempt goes on: a predicate that raises or answers nonsense rejects the node, a priority
gives it nothing, and the `RuleObserver` reports rule, pod and node. The observer also measures
time: there is no clock here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np

from podium.engine.framework.causes import Cause, RuleAnswer
from podium.engine.framework.rule import (
    ALL_KINDS,
    ALLOWED,
    AttemptError,
    Everywhere,
    FilterRule,
    Permission,
    PermitRule,
    ReserveRule,
    Rule,
    Scope,
    ScoreRule,
)
from podium.engine.rows.rows import K, ManyRows, OneRow, Scalar, lowest
from podium.engine.rows.written import written
from podium.engine.state.reservation import Reservation
from podium.engine.state.verdicts import FITS, Reason
from podium.engine.state.view import KeptInView
from podium.profiles.user_rules.nodes import (
    NodeArrays,
    NodeFacts,
    RuleColumns,
    RuleNode,
    RulePod,
    known_nodes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import Ints, Rows
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.reservation import PreBindSteps
    from podium.engine.state.view import View
    from podium.objects.kinds.pod import Pod

#: The two ways in which a rule written by a user is evaluated.
AnyRows = ManyRows | OneRow
PREDICATE, PRIORITY, RESERVE, PERMIT = "predicate", "priority", "reserve", "permit"
#: What an answer may depend on, and what the engine makes of it.
DEPENDS = {"node": Scope.NODE, "pods": Scope.PODS, "cluster": Scope.CLUSTER}
#: What the rule prepared for a pod, by the rule.
_PREPARED: KeptInView[Any] = KeptInView()
NORMALIZE = ("none", "max", "min-max", "reverse")
REJECT, ACCEPT = "reject", "accept"
#: Scores beyond this could overflow once they are weighted.
LARGEST = 1 << 31
#: A rule may word its reasons freely, but not give a new one for every node for ever.
MOST_REASONS = 1000
#: How long an answer may be when it is shown.
SHOWN = 80

#: Stands for the answer of a rule that raised.
FAILED = object()
#: What a rule may throw that is not a wish to stop the program.
FAILURES = (Exception, SystemExit)


class FailAttemptError(Exception):
    """Raised by a rule of a user that depends on the cluster: the attempt fails with this text."""


class RuleObserver(Protocol):
    """Times rules and reports their failures."""

    def begin(self, rule: str, pod: str) -> float:
        """A rule is about to be asked."""

    def end(self, rule: str, pod: str, nodes: int, begun: float) -> None:
        """It has answered."""

    def failed(self, rule: str, pod: str, node: str, what: str) -> None:
        """It raised, or answered nonsense."""

    def set_aside(self, rule: str) -> bool:
        """Whether the rule is not to be asked any more."""


class Unwatched:
    """A watch that measures nothing and ignores failures."""

    def begin(self, rule: str, pod: str) -> float:  # noqa: ARG002
        """A rule is about to be asked; no time is taken."""
        return 0.0

    def end(self, rule: str, pod: str, nodes: int, begun: float) -> None:
        """It has answered."""

    def failed(self, rule: str, pod: str, node: str, what: str) -> None:
        """It raised, or answered nonsense."""

    def set_aside(self, rule: str) -> bool:  # noqa: ARG002
        """A rule is never set aside."""
        return False


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """A rule as its author declared it."""

    kind: str
    name: str
    function: Callable[..., Any]
    depends: str = "cluster"
    columns: bool = False
    #: Predicates: what a node is turned down with, when the rule does not say it itself.
    reason: str = ""
    #: Predicates: whether evicting pods could help; None: unless it depends on the node alone.
    curable: bool | None = None
    #: Predicates: what a failure means for the node, `reject` or `accept`.
    on_error: str = REJECT
    #: Priorities.
    weight: int = 1
    normalize: str = "none"
    description: str = ""
    #: Priorities: called with the pod and the raw score of each feasible node by name; returns the
    #: final ones. It takes the place of `normalize`.
    reduce: Callable[[RulePod, dict[str, int]], Mapping[str, int]] | None = None
    #: Predicates and priorities that depend on the cluster: called once for a pod with all nodes;
    #: what it returns is `pod.prepared`.
    prepare: Callable[[RulePod, list[Any]], Any] | None = None
    #: Reserve rules: called with pod, node and what was reserved, before the pod is bound and when
    #: the reservation is over.
    pre_bind: Callable[[str, str, Any], None] | None = None
    undo: Callable[[str, str, Any], None] | None = None
    #: Reserve rules: the annotation of the pod that keeps what was reserved, as JSON.
    annotation: str = ""


class _StopError(Exception):
    """The attempt fails with an error of a user's rule."""


class _UserRule(Rule):
    """What both kinds have in common: asking, and living with the answer."""

    def __init__(
        self,
        spec: RuleSpec,
        ask: Callable[..., Any] | None = None,
        watch: RuleObserver | None = None,
    ) -> None:
        self.spec = spec
        self.name = spec.name
        self.description = spec.description
        self._ask: Callable[..., Any] = ask or spec.function
        self._watch: RuleObserver = watch or Unwatched()
        self.always = DEPENDS[spec.depends]
        self.by_columns = spec.columns
        self._facts_only = spec.depends == "node"
        self._kind = NodeFacts if self._facts_only else RuleNode

    def _pod(self, pod: Incoming, at: AnyRows) -> RulePod:
        given = RulePod(pod, at.view, class_only=self.always is not Scope.CLUSTER)
        if self.spec.prepare is not None:
            given.prepared = self._prepare(pod, given, at)
        return given

    def _prepare(self, pod: Incoming, given: RulePod, at: AnyRows) -> Any:
        """What the rule prepares for a pod: once for all nodes, and again when the cluster changed.

        Trials with pods added or removed see what was prepared without them.
        """
        view, prepare = at.view, self.spec.prepare
        assert prepare is not None

        def find() -> Any:
            return prepare(given, list(known_nodes(view, self._kind, view.nodes.order)))

        return _PREPARED.of(view, self, find, (view.journal.changes, pod.pod))

    def _nodes(self, at: AnyRows) -> list[Any]:
        if isinstance(at, ManyRows):
            return known_nodes(at.view, self._kind, at.index)
        return [self._kind(at)]

    def _columns(self, at: AnyRows) -> NodeArrays:
        return NodeArrays(at) if self._facts_only else RuleColumns(at)

    def _stop_if_asked(self, error: BaseException) -> None:
        """Let the attempt fail if a rule asks for it whose answers are never kept."""
        if isinstance(error, FailAttemptError) and self.always is Scope.CLUSTER:
            text = _short(" ".join(str(error).split()))
            raise _StopError(f"rule {self.name}: {text}") from None

    def _fail(self, pod: Incoming, node: str, what: str) -> None:
        self._watch.failed(self.name, pod.key, node, what)

    def _column(self, pod: Incoming, at: AnyRows) -> np.ndarray | None:
        """The rule's answer for all rows at once; None when it failed."""
        try:
            answer = np.asarray(self._ask(self._pod(pod, at), self._columns(at)))
        except FAILURES as error:
            self._stop_if_asked(error)
            self._fail(pod, self._all_names(at), _raised_at(error))
            return None
        if answer.shape == (len(at),):
            return answer
        if answer.shape == ():
            return np.broadcast_to(answer, (len(at),))
        wanted = f"expected one answer for each of {len(at)} nodes"
        what = f"answered an array of shape {answer.shape}, {wanted}"
        self._fail(pod, self._all_names(at), what)
        return None

    def _all_names(self, at: AnyRows) -> str:
        """What messages call these nodes."""
        return f"all {len(at)} nodes" if len(at) != 1 else str(self._nodes(at)[0].name)


def _raised(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {_short(text)}" if text else type(error).__name__


def _raised_at(error: BaseException) -> str:
    place = _place(error)
    return f"{_raised(error)} ({place})" if place else _raised(error)


def _place(error: BaseException) -> str:
    """The file and the last line of the user's code that an exception went through."""
    found, step = "", error.__traceback__
    file = ""
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        if name != __file__ and (not file or name == file):
            file = name
            found = f"{name}:{step.tb_lineno}"
        step = step.tb_next
    return found


def _short(text: str) -> str:
    return text if len(text) <= SHOWN * 2 else f"{text[: SHOWN * 2]}…"


def _shown(answer: object) -> str:
    try:
        text = repr(answer)
    except FAILURES:
        text = f"a {type(answer).__name__}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


class UserPredicate(_UserRule, FilterRule):
    """A predicate written by a user."""

    kinds = ALL_KINDS

    def __init__(
        self,
        spec: RuleSpec,
        ask: Callable[..., Any] | None = None,
        watch: RuleObserver | None = None,
    ) -> None:
        super().__init__(spec, ask, watch)
        self._curable = not self._facts_only if spec.curable is None else spec.curable
        self._reason = spec.reason or f"node(s) didn't pass {spec.name}"
        self._worded: set[str] = set()

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The verdict codes of what the function answers."""
        return at.either(
            lambda rows: self._codes(pod, rows), lambda row: int(self._codes(pod, row)[0])
        )

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:  # noqa: ARG002
        """The answer itself, for every reason that the rule gives."""
        for text in at.view.verdicts[int(self._codes(pod, at)[0])].reasons:
            yield RuleAnswer(text, self.name)

    def _codes(self, pod: Incoming, at: AnyRows) -> np.ndarray:
        if not len(at):
            return np.zeros(0, np.int32)
        if self._watch.set_aside(self.name):
            return np.full(len(at), self._failed(at, "was set aside"), np.int32)
        begun = self._watch.begin(self.name, pod.key)
        try:
            codes = self._by_column(pod, at) if self.spec.columns else self._by_node(pod, at)
        except _StopError as stop:
            at.fail_where(at.flags(True), str(stop))  # noqa: FBT003 - on all rows
            codes = np.zeros(len(at), np.int32)
        except FAILURES as error:  # of the preparation
            self._fail(pod, self._all_names(at), _raised_at(error))
            codes = np.full(len(at), self._failed(at), np.int32)
        finally:
            self._watch.end(self.name, pod.key, len(at), begun)
        return codes

    def _by_column(self, pod: Incoming, at: AnyRows) -> np.ndarray:
        fits = self._column(pod, at)
        if fits is not None and fits.dtype != np.bool_:
            self._fail(
                pod, f"all {len(at)} nodes", f"answered {fits.dtype}, expected a mask of bool"
            )
            fits = None
        if fits is None:
            return np.full(len(at), self._failed(at), np.int32)
        if fits.all():
            return np.zeros(len(at), np.int32)
        return np.where(fits, FITS, self._code(at, self._reason)).astype(np.int32)

    def _by_node(self, pod: Incoming, at: AnyRows) -> np.ndarray:
        ask, given = self._ask, self._pod(pod, at)
        # Each answer is judged when it is first given; after that a node costs what it costs in
        # a plain loop, so nothing is added in between.
        codes: dict[Any, int] = {True: FITS, False: self._code(at, self._reason)}
        found: list[int] = []
        for node in self._nodes(at):
            try:
                answer = ask(given, node)
            except FAILURES as error:
                self._stop_if_asked(error)
                self._fail(pod, node.name, _raised_at(error))
                found.append(self._failed(at))
                continue
            try:
                found.append(codes[answer])
            except FAILURES:  # never said before, or nothing that can be looked up
                code = self._judged(pod, at, node.name, answer)
                if type(answer) is str and answer.strip():
                    codes[answer] = code
                found.append(code)
        return np.fromiter(found, np.int32, len(found))

    def _judged(self, pod: Incoming, at: AnyRows, node: str, answer: object) -> int:
        if isinstance(answer, bool | np.bool_):
            return FITS if answer else self._code(at, self._reason)
        if isinstance(answer, str) and answer.strip():
            return self._code(at, self._wording(answer))
        if isinstance(answer, list | tuple) and all(
            isinstance(each, str) and each.strip() for each in answer
        ):
            # No reason at all: it fits, as with upstream's predicates.
            reasons = tuple(Reason(self._wording(each), self._curable) for each in answer)
            return at.view.verdicts.of(self.name, reasons) if reasons else FITS
        self._fail(pod, node, f"answered {_shown(answer)}, expected True, False or reasons")
        return self._failed(at)

    def _wording(self, reason: str) -> str:
        if reason not in self._worded:
            if len(self._worded) >= MOST_REASONS:
                return self._reason
            self._worded.add(reason)
        return reason

    def _code(self, at: AnyRows, reason: str, *, curable: bool | None = None) -> int:
        curable = self._curable if curable is None else curable
        return at.view.verdicts.of(self.name, (Reason(reason, curable),))

    def _failed(self, at: AnyRows, what: str = "failed") -> int:
        """What a node gets where the rule cannot be relied on."""
        if self.spec.on_error == ACCEPT:
            return FITS
        # Evicting pods will not mend the rule.
        return self._code(at, f"rule {self.name} {what}", curable=False)


class UserPriority(_UserRule, ScoreRule):
    """A priority written by a user."""

    kinds = ALL_KINDS

    def __init__(
        self,
        spec: RuleSpec,
        ask: Callable[..., Any] | None = None,
        watch: RuleObserver | None = None,
        max_score: int = 10,
    ) -> None:
        super().__init__(spec, ask, watch)
        self.max_score = max_score
        self.normalizes = spec.normalize != "none" or spec.reduce is not None
        by = "its own reduce function" if spec.reduce is not None else spec.normalize
        scaled = f", scaled by {by}" if self.normalizes else ""
        self.formula = f"what the rule answers{scaled}"

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:  # noqa: ARG002
        """0 once the rule is set aside."""
        return Everywhere(0) if self._watch.set_aside(self.name) else None

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The raw scores; where the rule failed 0, and noted among the errors of the rows."""
        return at.either(lambda rows: self._raw(pod, rows), lambda row: int(self._raw(pod, row)[0]))

    def _raw(self, pod: Incoming, at: AnyRows) -> np.ndarray:
        if not len(at) or self._watch.set_aside(self.name):
            return np.zeros(len(at), np.int64)
        begun = self._watch.begin(self.name, pod.key)
        try:
            raw = self._by_column(pod, at) if self.spec.columns else self._by_node(pod, at)
        except _StopError as stop:
            raise AttemptError(str(stop)) from None
        except FAILURES as error:  # of the preparation
            self._fail(pod, self._all_names(at), _raised_at(error))
            self._note(at, range(len(at)))
            raw = np.zeros(len(at), np.int64)
        finally:
            self._watch.end(self.name, pod.key, len(at), begun)
        return raw

    def _by_column(self, pod: Incoming, at: AnyRows) -> np.ndarray:
        raw = self._column(pod, at)
        what = ""
        if raw is None:
            what = "failed"
        elif raw.dtype.kind not in "iu":
            what = f"answered {raw.dtype}, expected integers"
        elif np.maximum.reduce(raw) > LARGEST or lowest(raw) < -LARGEST:
            what = f"answered a score beyond {LARGEST}"
        if raw is None or what:
            if raw is not None:
                self._fail(pod, f"all {len(at)} nodes", what)
            self._note(at, range(len(at)))
            return np.zeros(len(at), np.int64)
        return raw.astype(np.int64)

    def _by_node(self, pod: Incoming, at: AnyRows) -> np.ndarray:
        ask, given, nodes = self._ask, self._pod(pod, at), self._nodes(at)
        answers: list[Any] = []
        for node in nodes:
            try:
                answers.append(ask(given, node))
            except FAILURES as error:
                self._stop_if_asked(error)
                self._fail(pod, node.name, _raised_at(error))
                answers.append(FAILED)
        whole = {int}.issuperset(map(type, answers))
        if whole and min(answers) >= -LARGEST and max(answers) <= LARGEST:
            return np.array(answers, np.int64)
        each_one = zip(nodes, answers, strict=True)
        raw = [self._judged(pod, node.name, answer) for node, answer in each_one]
        self._note(at, [position for position, score in enumerate(raw) if score is None])
        return np.array([score or 0 for score in raw], np.int64)

    def _judged(self, pod: Incoming, node: str, answer: object) -> int | None:
        if answer is FAILED:
            return None
        if type(answer) is int or isinstance(answer, np.integer):
            score = int(answer)
            if -LARGEST <= score <= LARGEST:
                return score
        self._fail(pod, node, f"answered {_shown(answer)}, expected an integer")
        return None

    def _note(self, at: AnyRows, failed: Any) -> None:
        """Remember the failures until the scores are reduced, which comes next."""
        if self.normalizes:
            at.errors.update(dict.fromkeys(failed, self.name))

    def normalize(self, pod: Incoming, at: ManyRows, raw: np.ndarray) -> np.ndarray:
        """The final scores by the chosen normalisation; 0 where the rule failed."""
        if not len(at):
            return raw
        if self.spec.reduce is not None:
            final = self._reduced(pod, at, raw)
        else:
            final = normalized(self.spec.normalize, raw, self.max_score)
        if at.errors:
            final[list(at.errors)] = 0
        return final

    def score_among(self, pod: Incoming, at: OneRow, among: ManyRows) -> Any:  # noqa: ARG002
        """Nothing: the rule is asked once, when the decision is made."""
        return None

    def normalize_one(
        self,
        pod: Incoming,  # noqa: ARG002
        at: OneRow,
        among: ManyRows,  # noqa: ARG002
        raw: np.ndarray,
        own: Ints[Scalar],
    ) -> Any:
        """The chosen normalisation of one row; nothing for a reduce function."""
        if self.spec.reduce is not None:
            return None
        return normalized_one(self.spec.normalize, at, raw, own, self.max_score)

    def _reduced(self, pod: Incoming, at: ManyRows, raw: np.ndarray) -> np.ndarray:
        """What the rule's own reduce function makes of the raw scores; 0 where it fails."""
        assert self.spec.reduce is not None
        names = [at.view.nodes.names[row] for row in at.index.tolist()]
        given = dict(zip(names, raw.tolist(), strict=True))
        try:
            answer = self.spec.reduce(self._pod(pod, at), given)
            final = [answer[name] for name in names]
        except FAILURES as error:
            self._fail(pod, self._all_names(at), f"reduce: {_raised_at(error)}")
            return np.zeros(len(at), np.int64)
        whole = all(type(each) is int and abs(each) <= LARGEST for each in final)
        if not whole:
            self._fail(pod, self._all_names(at), "reduce: expected an integer for each node")
            return np.zeros(len(at), np.int64)
        return np.array(final, np.int64)


class UserReserve(_UserRule, ReserveRule):
    """A reserve rule written by a user: it chooses something on the node for the pod."""

    def __init__(
        self,
        spec: RuleSpec,
        ask: Callable[..., Any] | None = None,
        watch: RuleObserver | None = None,
    ) -> None:
        super().__init__(spec, ask, watch)
        self.annotation = spec.annotation

    def reserve(self, pod: Incoming, at: OneRow) -> UserReservation | None:
        """What the function answers; None for nothing. A failure fails the attempt."""
        begun = self._watch.begin(self.name, pod.key)
        try:
            found: object = self._ask(self._pod(pod, at), RuleNode(at))
        except FAILURES as error:
            self._fail(pod, at.name, _raised_at(error))
            raise AttemptError(f'running Reserve plugin "{self.name}": {_raised(error)}') from error
        finally:
            self._watch.end(self.name, pod.key, 1, begun)
        return None if found is None else UserReservation(found, self)

    def restore(self, pod: Pod) -> UserReservation | None:
        """What the annotation of the pod says; None where it is missing or no JSON."""
        text = (pod.metadata.annotations or {}).get(self.annotation) if self.annotation else None
        try:
            found: object = msgspec.json.decode(text) if text is not None else None
        except (msgspec.DecodeError, RecursionError):
            return None
        return None if found is None else UserReservation(found, self)

    def undo(self, pod: str, node: str, reserved: object) -> None:
        """Tell the rule that its reservation is over; what it raises is reported, nothing more."""
        if self.spec.undo is None:
            return
        try:
            self.spec.undo(pod, node, reserved)
        except FAILURES as error:
            self._watch.failed(self.name, pod, node, _raised_at(error))


class UserReservation(Reservation, frozen=True):
    """What a reserve rule of a user has chosen for a pod."""

    chosen: object
    rule: UserReserve

    @property
    def value(self) -> object:
        """What the function answered."""
        return self.chosen

    @property
    def has_pre_bind(self) -> bool:
        """Whether the rule declares an annotation, or a function for this stage."""
        return bool(self.rule.spec.annotation) or self.rule.spec.pre_bind is not None

    async def pre_bind(self, pod: str, node: str, steps: PreBindSteps) -> None:
        """Write the annotation, then call the function; each if the rule declares it."""
        spec = self.rule.spec
        if spec.annotation:
            await steps.annotate(spec.annotation, self.chosen)
        if spec.pre_bind is not None:
            await steps.call(partial(spec.pre_bind, pod, node, self.chosen))

    def undo(self, pod: str, node: str) -> None:
        """Tell the rule."""
        self.rule.undo(pod, node, self.chosen)


class UserPermit(_UserRule, PermitRule):
    """A permit rule written by a user: True, a reason to reject the pod, or seconds to wait."""

    def permit(self, pod: Incoming, at: OneRow) -> Permission:
        """The permission that the answer of the function stands for. A failure rejects the pod."""
        begun = self._watch.begin(self.name, pod.key)
        try:
            answer = self._ask(self._pod(pod, at), RuleNode(at))
        except FAILURES as error:
            self._fail(pod, at.name, _raised_at(error))
            return Permission(allowed=False, reason=f"rule {self.name} failed")
        finally:
            self._watch.end(self.name, pod.key, 1, begun)
        if answer is True:
            return ALLOWED
        if isinstance(answer, str) and answer.strip():
            return Permission(allowed=False, reason=answer)
        if isinstance(answer, int | float) and not isinstance(answer, bool) and answer > 0:
            waiting = f"waiting for {self.name}"
            return Permission(allowed=False, reason=waiting, wait_seconds=float(answer))
        wanted = "expected True, a reason, or seconds to wait"
        self._fail(pod, at.name, f"answered {_shown(answer)}, {wanted}")
        return Permission(allowed=False, reason=f"rule {self.name} failed")


def normalized(how: str, raw: np.ndarray, most: int) -> np.ndarray:
    """Scores from 0 to `most`.

    `max` scales by the largest, `reverse` does so upside down, `min-max` makes the smallest 0 and
    the largest `most`; equal scores are `most` each. Divisions truncate toward zero.
    """
    low, high = int(raw.min()), int(raw.max())
    if how == "none":
        return np.array(raw)
    if how == "min-max":
        return (raw - low) * most // (high - low) if high > low else np.full(len(raw), most)
    scaled = np.trunc(raw * most / high).astype(np.int64) if high > 0 else np.zeros_like(raw)
    return np.clip(most - scaled if how == "reverse" else scaled, 0, most)


def normalized_one(how: str, at: OneRow, raw: np.ndarray, own: Ints[Scalar], most: int) -> Any:
    """The same for one row, written."""
    low, high = int(raw.min()), int(raw.max())
    if how == "none":
        return own
    if how == "min-max":
        if high == low:
            return at.full(most)
        least: Any = written(low)
        return at.divide((own - least) * most, written(high) - least)
    scaled = at.full(0) if high <= 0 else at.truncate(own * most / written(high))
    final = most - scaled if how == "reverse" else scaled
    return at.where(final < 0, 0, at.where(final > most, most, final))
