"""Seeds of the simulated world: whatever goes wrong, what must hold does hold.

A failing seed is repeated and made smaller by

    PYTHONPATH=src:tests python -m world --seed 17 --shrink
"""

from __future__ import annotations

import hashlib
import html
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from podium.engine.fast.answer_columns import AnswerColumns
from podium.engine.fast.class_answers import ClassAnswers
from podium.engine.fast.score_index import ScoreIndex
from podium.engine.preemption.batch_filter import BatchTrial
from podium.engine.preemption.kept_victims import KeptVictims
from world import changes, invariants
from world.__main__ import one, summary
from world.mutants import doubled_bind, retry_without_backoff
from world.page import page_of
from world.plan import (
    ACCIDENTS,
    CHANGES,
    EXTENDED,
    EXTENDED_CHANGES,
    FEATURE_CHANGES,
    FEATURES,
    GROUP_CHANGES,
    GROUPS,
    MORE_CHANGES,
    PREFERENCE_CHANGES,
    PREFERENCES,
    RARE_CHANGES,
    READ_ANSWERS,
    REQUEST_FAULTS,
    ROTATION,
    SPREADING,
    SPREADING_CHANGES,
    Change,
    Fault,
    Plan,
    make_plan,
)
from world.rules import ANNOTATION
from world.run import Entry, run_plan, run_seeds
from world.shrink import shrunk

ROOT = Path(__file__).parents[2]
ALL_CHANGES = {
    *CHANGES,
    *ACCIDENTS,
    *MORE_CHANGES,
    *RARE_CHANGES,
    ROTATION,
    *GROUP_CHANGES,
    *PREFERENCE_CHANGES,
    *SPREADING_CHANGES,
    *EXTENDED_CHANGES,
    *(act for acts in FEATURE_CHANGES.values() for act, _ in acts),
}
#: The seeds of `make test` and of `make soak`, and how many one test runs.
SEEDS, SOAK_SEEDS, SEEDS_PER_TEST = 200, 10_000, 25


def chunks(first: int, last: int, size: int) -> list[range]:
    return [range(start, min(start + size, last)) for start in range(first, last, size)]


def check(seeds: Iterable[int]) -> Counter[str]:
    """Run seeds; how often each kind of fault has happened."""
    injected: Counter[str] = Counter()
    failed = []
    for outcome in run_seeds(seeds):
        injected += outcome.injected
        injected["bindings"] += outcome.bound
        if outcome.findings:
            failed.append(summary(outcome))
    assert not failed, "\n".join(failed)
    return injected


@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds", chunks(0, SEEDS, SEEDS_PER_TEST), ids=lambda each: f"{each.start}-{each.stop - 1}"
)
def test_seeds(seeds: range) -> None:
    assert check(seeds)["bindings"] > 0


@pytest.mark.soak
@pytest.mark.parametrize(
    "seeds", chunks(0, SOAK_SEEDS, 500), ids=lambda each: f"{each.start}-{each.stop - 1}"
)
def test_many_seeds(seeds: range, record_property: Callable[[str, object], None]) -> None:
    counts = check(seeds)
    record_property("seeds", len(seeds))
    record_property("bindings", counts.pop("bindings"))
    for what, count in sorted(counts.items()):
        record_property(f"fault {what}", count)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(1177, id="an ignorable extender fails after it has bound the pod"),
        pytest.param(1950, id="a post-filter ends with an error, and the nomination stays"),
        pytest.param(5328, id="v1.13 evicts a workload that does not see the nomination"),
        pytest.param(5916, id="a binding is seen together with the deletion of its pod"),
        pytest.param(5969, id="a refusal after a lost answer is told once the pod was read"),
        pytest.param(8405, id="a pod is deleted whose nomination was never written"),
        pytest.param(9122, id="pods are evicted and made anew while a watch has its pause"),
        pytest.param(300365, id="v1.13 wakes no pod when another gives up its nomination"),
    ],
)
def test_seeds_that_failed_once(seed: int) -> None:
    outcome = run_plan(make_plan(seed, more=False))
    assert not outcome.findings, summary(outcome)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(203023, id="a pod is assumed and forgotten on a port that another one uses"),
        pytest.param(210850, id="bindings and other writes stay without an answer at the end"),
        pytest.param(211800, id="v1.13 does not try a pod that no API server would bind"),
        pytest.param(300215, id="the start of a shadow is refused"),
        pytest.param(300452, id="an earlier configuration is released at the end"),
        pytest.param(310250, id="a list of many pages is begun again"),
        pytest.param(552, id="a history is told of other profiles"),
        pytest.param(310493, id="a replica that ends tells of its unanswered writes together"),
        pytest.param(310285, id="devices are given back before a watch tells that they were taken"),
        pytest.param(799, id="a pod that is being deleted holds a nomination that is not written"),
        pytest.param(1129, id="a pod is resized that the replica has not seen since"),
        pytest.param(2198, id="a watch ends while its last lines are not read yet"),
        pytest.param(2415, id="it is not known whether a pod was bound, again and again"),
        pytest.param(2491, id="a request fails while a decision takes long"),
        pytest.param(3422, id="v1.13 waits for pods that are leaving a node that is gone"),
        pytest.param(3503, id="a claim is free again, and no event tells the pod that preempts"),
        pytest.param(309, id="the victim of a group is told by its name"),
        pytest.param(514, id="a pod of a group that cannot be bound rests"),
        pytest.param(691, id="pods are placed beside one that was made smaller meanwhile"),
        pytest.param(222, id="a claim for extended resources could not be deleted"),
        pytest.param(650, id="a step before the binding that fails is told with the binding"),
        pytest.param(2001, id="a pod is changed between its decision and the record of that"),
        pytest.param(3501, id="the API server denies the victim of a group, which is there"),
        pytest.param(500112, id="the lease is lost while a replica ends its requests"),
        pytest.param(917, id="the condition of a group could not be written"),
        pytest.param(3613, id="the text of the condition of a group depends on the order of nodes"),
        pytest.param(3063, id="time passes while the pods of a group are told of"),
        pytest.param(9235, id="a late watch reports a claim as it was before it got devices"),
        pytest.param(7719, id="v1.13 wakes no pod when a nominated one is deleted"),
        pytest.param(302057, id="the API server denies a pod that an extender has bound"),
        pytest.param(302728, id="v1.13 wakes no pod when another is resized"),
        pytest.param(305029, id="a history has the claims of devices that no watch has reported"),
        pytest.param(304393, id="a refusal is told once it is known where the pod is"),
        pytest.param(20038, id="a pod of a group that does not fit keeps its nomination"),
        pytest.param(21010, id="a slot is written into another pod of the same name"),
        pytest.param(21091, id="a list whose last page cannot be read is no success"),
        pytest.param(21247, id="v1.13 parks pods by a clock that was set forward"),
        pytest.param(4114, id="a lease is not written after a read of it that failed"),
        pytest.param(5550, id="a shadow cannot ask for the pods without a node"),
        pytest.param(5720, id="the disk is full again when recording is tried again"),
        pytest.param(6091, id="v1.36 wakes no pod when a claim for it is deleted"),
        pytest.param(6690, id="a replica is reconfigured after it has lost the lease"),
        pytest.param(6981, id="pods that cannot be bound free their nodes again and again"),
        pytest.param(9034, id="a pod without a request goes to a node that shrank"),
        pytest.param(4751, id="a binding is sent again to an API server that went down"),
    ],
)
def test_far_seeds_that_failed_once(seed: int) -> None:
    outcome = run_plan(make_plan(seed))
    assert not outcome.findings, summary(outcome)


@pytest.mark.slow
def test_a_seed_is_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    assert one(make_plan(3), shrink=False) == 0

    file = tmp_path / "world-seed-3.html"
    assert capsys.readouterr().out.endswith(f"its history: {file.as_uri()}\n")
    text = file.read_text("utf-8")
    assert "Everything holds." in text
    assert all(f'class="{kind}"' in text for kind in ("write", "fault", "decision"))
    assert "is bound to" in text
    assert "waits: 0/" in text
    assert "faults and changes cease" in text


def test_the_page_of_a_failing_seed_leads_to_what_happened() -> None:
    with doubled_bind():
        text, outcome = page_of(make_plan(0))

    assert 'class="finding"' in text
    time = re.search(r'<a href="#t([\d.]+)">', text)
    assert time is not None
    assert f'id="t{time[1]}"' in text
    assert 'class="write marked"' in text
    assert all(each in html.unescape(re.sub("<[^>]+>", "", text)) for each in outcome.findings)


DIGEST = """
import hashlib
from world.plan import make_plan
from world.run import run_plan
for seed in {seeds!r}:
    print(hashlib.sha256(run_plan(make_plan(seed)).digest()).hexdigest())
"""


@pytest.mark.slow
def test_the_same_seed_gives_the_same_history() -> None:
    """In another process, in another order, and with other hashes of strings."""
    seeds = [3, 21, 195, 281, 451]
    here = [hashlib.sha256(run_plan(make_plan(seed)).digest()).hexdigest() for seed in seeds]
    path = os.pathsep.join(str(ROOT / part) for part in ("src", "tests"))
    answer = subprocess.run(
        [sys.executable, "-c", DIGEST.format(seeds=seeds[::-1])],
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": path},
        check=True,
        capture_output=True,
        text=True,
    )
    assert answer.stdout.split()[::-1] == here
    assert len(set(here)) == len(seeds)


def test_a_plan_can_be_written_and_read() -> None:
    plan = make_plan(5)
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


def test_a_failing_plan_is_made_smaller() -> None:
    plan = make_plan(1)
    wanted = plan.changes[7]

    def fails(each: Plan) -> bool:
        return wanted in each.changes

    small = shrunk(plan, fails)

    assert small.changes == (wanted,)
    assert small.faults == ()
    assert (small.nodes, small.extender, small.latency, small.rates) == (1, (), 0.0, (1.0,))


def test_a_failing_seed_tells_how_to_repeat_it() -> None:
    with doubled_bind():
        outcome = next(each for each in run_seeds(range(20)) if each.findings)
        seed = outcome.plan.seed
        with pytest.raises(AssertionError, match=rf"python -m world --seed {seed} --shrink"):
            check([seed])


def test_every_change_is_known() -> None:
    of_world = {*ACCIDENTS, ROTATION, "delete-assumed", "stall", "reconfigure", "fill-disk"}
    assert ALL_CHANGES - of_world == changes.acts()
    assert not of_world & changes.acts()


def state_of(pod: Any) -> str:
    """The state of a pod in the words of `test_pods_are_deleted_in_every_state`."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
    found = (
        ("terminating", metadata.get("deletionTimestamp")),
        ("gated", spec.get("schedulingGates")),
        ("finished", status.get("phase") in {"Succeeded", "Failed"}),
        ("running", status.get("phase") == "Running"),
        ("bound", spec.get("nodeName")),
        ("nominated", status.get("nominatedNodeName")),
        ("unschedulable", status.get("conditions")),
    )
    return next((state for state, holds in found if holds), "new")


#: Ways of computing in the engine that small thresholds lead to.
WAYS: tuple[tuple[type, str], ...] = (
    (AnswerColumns, "write"),
    (AnswerColumns, "write_row"),
    (ScoreIndex, "put"),
    (ScoreIndex, "best"),
    (ScoreIndex, "narrowed"),
    (ClassAnswers, "best_of_groups"),
    (ClassAnswers, "_filtered"),
    (KeptVictims, "put"),
    (KeptVictims, "put_row"),
    (KeptVictims, "listed"),
    (BatchTrial, "filter"),
)


#: A seed in which zones drop out of an index by score, which few seeds come to.
NARROWING_SEED = 694


def counted(counts: Counter[str], owner: type, name: str) -> AbstractContextManager[Any]:
    """Count how often a method of the engine has an answer."""
    method = getattr(owner, name)
    counts[f"{owner.__name__}.{name}"] = 0

    def called(*arguments: Any, **options: Any) -> Any:
        found = method(*arguments, **options)
        counts[f"{owner.__name__}.{name}"] += found is not None or name.startswith(("put", "write"))
        return found

    return patch.object(owner, name, called)


def seeds_with_features() -> list[int]:
    """The first seeds that have each feature, four of each, and one that narrows an index."""
    found: dict[str, list[int]] = {}
    for seed in range(400):
        for name in make_plan(seed).features:
            found.setdefault(name, []).append(seed)
    return sorted({NARROWING_SEED, *(seed for seeds in found.values() for seed in seeds[:4])})


@pytest.fixture(scope="module")
def happened() -> tuple[Counter[str], Counter[str]]:
    """What came of seeds with features: their effects, and the ways of the engine."""
    effects: Counter[str] = Counter()
    ways: Counter[str] = Counter()
    with ExitStack() as stack:
        for owner, name in WAYS:
            stack.enter_context(counted(ways, owner, name))
        for outcome in run_seeds(seeds_with_features()):
            for entry in outcome.history:
                effects.update(effects_of(entry))
            effects += Counter({what: outcome.injected[what] for what in INJECTED})
    return effects, ways


INJECTED = ("reconfigure", "fill-disk", "stall", "change-certificate", "bind 429-after")


def effects_of(entry: Entry) -> Iterator[str]:
    """What a write shows of the features of a plan."""
    after, before = entry.after, entry.before
    if entry.kind == "ResourceClaim" and after is not None:
        made = "extended" if (after["metadata"].get("annotations")) else "device"
        if (after.get("status") or {}).get("allocation"):
            yield f"{made} claims with devices"
    if entry.kind != "Pod" or after is None or before is None:
        return
    spec, metadata = after["spec"], after["metadata"]
    if invariants.is_binding(entry) and entry.writer:
        yield from (name for name, holds in bound_with(spec, metadata) if holds)
    if [each["resources"] for each in before["spec"]["containers"]] != [
        each["resources"] for each in spec["containers"]
    ]:
        yield "pods resized"
    for each in after["status"].get("conditions") or ():
        if "CEL runtime error" in each.get("message", ""):
            yield "expressions that fail"


def bound_with(spec: Any, metadata: Any) -> Iterator[tuple[str, bool]]:
    """What a bound pod has of the features of a plan."""
    yield "bound with claims", bool(spec.get("resourceClaims"))
    yield "bound with a slot", ANNOTATION in (metadata.get("annotations") or {})
    yield "bound by the second profile", spec.get("schedulerName") == "second"
    yield "bound with a group", bool(spec.get("schedulingGroup"))
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    terms = (spec.get("affinity") or {}).values()
    yield "bound with preferences", any(preferred in each for each in terms)


@pytest.mark.slow
def test_pods_are_deleted_in_every_state() -> None:
    """Also those that last for a moment: in 100 seeds each state is met."""
    states: Counter[str] = Counter()
    for outcome in run_seeds(range(100)):
        for entry in outcome.history:
            if entry.kind != "Pod" or entry.before is None:
                continue
            left = entry.after
            begins = left is not None and left["metadata"].get("deletionTimestamp")
            if left is None or (begins and not entry.before["metadata"].get("deletionTimestamp")):
                states[state_of(entry.before)] += 1
        states["assumed"] += outcome.injected["deleted while assumed"]
    wanted = "new gated unschedulable nominated assumed bound running finished terminating"
    assert set(states) == set(wanted.split())
    assert min(states.values()) > 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_feature_has_effects(happened: tuple[Counter[str], ...]) -> None:
    effects = happened[0]
    wanted = {"device claims with devices", "extended claims with devices", "bound with claims"}
    wanted |= {"bound with a slot", "bound by the second profile", "bound with a group"}
    wanted |= {"bound with preferences", "pods resized", "expressions that fail", *INJECTED}
    assert {name for name, count in effects.items() if count} == wanted


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_engine_computes_in_each_of_its_ways(happened: tuple[Counter[str], ...]) -> None:
    ways = happened[1]
    assert min(ways.values()) > 0, ways


def test_every_kind_of_change_is_planned() -> None:
    planned = {each.act for seed in range(300) for each in make_plan(seed).changes}
    assert planned == ALL_CHANGES


def test_every_feature_is_planned() -> None:
    planned = {each for seed in range(300) for each in make_plan(seed).features}
    assert planned == {*FEATURES, GROUPS, PREFERENCES, SPREADING, EXTENDED}


def test_every_verb_and_every_kind_of_fault_is_planned() -> None:
    planned = {(each.verb, each.kind) for seed in range(3000) for each in make_plan(seed).faults}
    known = {(verb, kind) for verb, kinds in REQUEST_FAULTS.items() for kind in kinds}
    assert planned == known | {(verb, "garbage") for verb in READ_ANSWERS}


def plan_of(*faults: Fault, changes: tuple[Change, ...] = ()) -> Plan:
    """A plan of one replica and one node, with ten pods from the start."""
    pods = tuple(Change(0.0, "create-pod", number) for number in range(10))
    return msgspec.structs.replace(
        make_plan(0),
        rates=(1.0,),
        extender=(),
        latency=0.0,
        nodes=3,
        seconds=30.0,
        generation="v1.36",
        changes=(*pods, *changes),
        faults=faults,
    )


@pytest.mark.parametrize("kind", REQUEST_FAULTS["status"])
def test_a_status_that_cannot_be_written_is_no_storm(kind: str) -> None:
    outcome = run_plan(crowded(Fault(0.0, 30.0, "status", kind, 1.0, 1.0, 1)))
    assert outcome.findings == []
    assert outcome.requests < 600


def test_without_pauses_such_statuses_are_a_storm() -> None:
    with retry_without_backoff():
        outcome = run_plan(crowded(Fault(0.0, 30.0, "status", "403", 1.0, 1.0, 1)))
    assert outcome.findings[0] == "more requests were sent than any backoff allows"


def crowded(*faults: Fault) -> Plan:
    """A plan of one node with some twenty pods, most of which do not fit."""
    pods = tuple(Change(0.0, "create-pod", number) for number in range(10, 80))
    return msgspec.structs.replace(plan_of(*faults, changes=pods), nodes=1)


@pytest.mark.parametrize("kind", REQUEST_FAULTS["bind"])
def test_pods_are_bound_once_bindings_are_answered(kind: str) -> None:
    outcome = run_plan(plan_of(Fault(0.0, 30.0, "bind", kind, 1.0, 1.0, 1)))
    assert outcome.findings == []
    assert outcome.bound > 0
    assert outcome.injected[f"bind {kind}"] > 0
