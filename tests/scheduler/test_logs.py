"""The lines of a scheduler's log."""

from __future__ import annotations

import io
import json
import logging

import pytest

from builders import expression, node, node_term, pod, profile, simulation, term
from podium.engine.rules.resources.predicates import GeneralPredicates, LeastRequestedPriority
from podium.profiles.config.build import default_config, from_config
from podium.profiles.policy.build import Options, from_provider
from podium.scheduler.telemetry.logs import (
    JSON,
    TEXT,
    WARNINGS_ONLY,
    DecisionLines,
    Log,
    LogHandler,
)
from scheduler.attempts import NOON, tried


def a_log(fmt: str = TEXT, v: int = 2) -> tuple[Log, io.StringIO]:
    stream = io.StringIO()
    return Log(fmt, v, stream, clock=lambda: NOON), stream


def test_a_decision_is_one_line() -> None:
    log, stream = a_log()
    world = simulation(node("n1", cpu="2"), node("n2", cpu="4"))
    DecisionLines(log).attempted(tried(world, pod("web", requests={"cpu": "3"})))
    DecisionLines(log).attempted(tried(world, pod("big", requests={"cpu": "8"})))

    first, second = stream.getvalue().splitlines()

    assert first == (
        'I0115 08:00:00.000000 podium "pod decided" pod="default/web" outcome="placed" '
        'profile="default-scheduler" attempt=1 node="n2" nodes=2 feasible=1 seconds=0.002'
    )
    assert 'message="0/2 nodes are available: 2 Insufficient cpu."' in second


def test_json_lines_have_the_same_fields() -> None:
    log, stream = a_log(JSON)
    told = tried(simulation(node("n1")), pod("web"))
    lines = DecisionLines(log)
    lines.attempted(told)
    lines.bound(told, "n1", 0.25)
    lines.bind_failed(told, "n1", 'it says "no"')

    decided, bound, failed = map(json.loads, stream.getvalue().splitlines())

    assert decided.items() >= {"msg": "pod decided", "node": "n1", "v": 2}.items()
    assert bound.items() >= {"msg": "pod bound", "seconds": 0.25}.items()
    assert failed.items() >= {"level": "error", "error": 'it says "no"'}.items()


def test_less_detail_leaves_decisions_out_but_not_failures() -> None:
    log, stream = a_log(v=0)
    told = tried(simulation(node("n1")), pod("web"))
    DecisionLines(log).attempted(told)
    DecisionLines(log).bind_failed(told, "n1", "conflict")

    [line] = stream.getvalue().splitlines()

    assert line.startswith("E0115")


def test_what_others_wrote_cannot_break_a_line() -> None:
    log, stream = a_log()
    log.info('two\nlines, "quoted" \x1b[31m', path="a\\b")

    [line] = stream.getvalue().splitlines()

    assert line.endswith(r'"two\nlines, \"quoted\" \x1b[31m" path="a\\b"')


def test_a_log_that_nobody_reads_stops_nothing() -> None:
    stream = io.StringIO()
    stream.close()

    Log(stream=stream).error("gone")


def test_at_the_lowest_verbosity_only_warnings_and_errors_are_written() -> None:
    log, stream = a_log(v=WARNINGS_ONLY)
    log.info("started")
    log.warning("odd")
    log.error("broken")

    assert [line[0] for line in stream.getvalue().splitlines()] == ["W", "E"]


def test_records_of_pythons_logging_become_lines() -> None:
    log, stream = a_log()
    handler = LogHandler(log)
    error = ValueError("oh")
    for level, text, given in (
        (logging.WARNING, "%d writes", None),
        (logging.ERROR, "%d jobs failed", (ValueError, error, None)),
    ):
        handler.emit(
            logging.LogRecord("podium.scheduler.placing.binder", level, "", 0, text, (3,), given)
        )

    first, second = stream.getvalue().splitlines()

    assert first.startswith("W")
    assert first.endswith('"3 writes" where="podium.scheduler.placing.binder"')
    assert second.startswith("E")
    assert """error="ValueError('oh')\"""" in second


def test_every_score_and_rejection_is_logged_at_ten() -> None:
    log, stream = a_log(v=10)
    rules = profile(GeneralPredicates(), priorities=[LeastRequestedPriority()])
    items = (node("n1", cpu="2"), node("n2", cpu="4"), node("n3", cpu="1"))
    world = simulation(*items, profile=rules)

    web = pod("web", requests={"cpu": "2", "memory": "1Gi"})
    DecisionLines(log).attempted(tried(world, web, recording=True))

    said = [line.split('podium "', 1)[1].split('"')[0] for line in stream.getvalue().splitlines()]
    assert said == [
        "Cannot schedule pod default/web onto node n3, because of Insufficient cpu",
        "web_default -> n1: LeastRequestedPriority, Score: (4)",
        "web_default -> n2: LeastRequestedPriority, Score: (7)",
        "Host n1 => Score 4",
        "Host n2 => Score 7",
        "pod decided",
    ]


@pytest.mark.parametrize("generation", ["v1.13", "v1.37"])
def test_affinity_is_logged_at_ten_in_kube_schedulers_words(generation: str) -> None:
    log, stream = a_log(v=10)
    by_generation = {
        "v1.13": from_provider("DefaultProvider", Options()),
        "v1.37": from_config(default_config({}), Options())[0],
    }
    keeps_away = pod("guard", node="n1", anti=[term({"app": "web"}, "kubernetes.io/hostname")])
    nodes = [
        node(
            f"n{i}",
            labels={
                "zone": "a" if i < 5 else "b",
                "disk": "ssd",
                "kubernetes.io/hostname": f"n{i}",
            },
        )
        for i in range(6)
    ]
    others = [pod("a", node="n0", labels={"app": "a"}), pod("c", node="n2", labels={"app": "c"})]
    world = simulation(*nodes, *others, keeps_away, profile=by_generation[generation])

    web = pod(
        "web",
        labels={"app": "web"},
        node_affinity=[node_term(expression("disk", "In", "ssd", "nvme"))],
        affinity=[term({"app": "a"})],
        anti=[term({"app": "c"}, "kubernetes.io/hostname")],
    )
    DecisionLines(log).attempted(tried(world, web, recording=True))

    said = [line.split('podium "', 1)[1].split('"')[0] for line in stream.getvalue().splitlines()]
    matched, *rejected = said[:4]
    assert matched == (
        "Match for RequiredDuringSchedulingIgnoredDuringExecution node selector terms "
        "[{MatchExpressions:[{Key:disk Operator:In Values:[ssd nvme]}] MatchFields:[]}]"
    )
    assert rejected == [
        "Cannot schedule pod default/web onto node n1",
        "Cannot schedule pod default/web onto node n2, because of PodAntiAffinity",
        "Cannot schedule pod default/web onto node n5, because of PodAffinity",
    ]
    assert said[4:7] == [
        f"Schedule Pod default/web on Node {name} is allowed, "
        "pod (anti)affinity constraints satisfied"
        for name in ("n0", "n3", "n4")
    ]


def test_labels_that_are_no_numbers_are_logged_at_ten() -> None:
    log, stream = a_log(v=10)
    sizes = {"n1": "7", "n2": "x", "n3": "9223372036854775808"}
    nodes = [node(name, labels={"size": size, "a": "b"}) for name, size in sizes.items()]
    world = simulation(*nodes, node("n4"), profile=profile(GeneralPredicates()))
    lines = DecisionLines(log)
    lines.labels_of = world.cache.labels_of

    web = pod("web", node_affinity=[node_term(expression("size", "Gt", "5"))])
    lines.attempted(tried(world, web, recording=True))

    said = [line for line in stream.getvalue().splitlines() if "ParseInt" in line]
    assert [line.split('podium "', 1)[1].split('"  ')[0] for line in said] == [
        (
            'ParseInt failed for value x in label a=b,size=x, strconv.ParseInt: parsing \\"x\\": '
            'invalid syntax"'
        ),
        (
            "ParseInt failed for value 9223372036854775808 in label a=b,size=9223372036854775808, "
            'strconv.ParseInt: parsing \\"9223372036854775808\\": value out of range"'
        ),
    ]


def test_a_comparison_with_two_values_is_logged_at_ten() -> None:
    log, stream = a_log(v=10)
    world = simulation(node("n1", labels={"size": "7"}), profile=profile(GeneralPredicates()))
    lines = DecisionLines(log)
    lines.labels_of = world.cache.labels_of

    web = pod("web", node_affinity=[node_term(expression("size", "Gt", "5", "6"))])
    lines.attempted(tried(world, web, recording=True))

    assert (
        'Invalid values count 2 of requirement labels.Requirement{key:\\"size\\", '
        'operator:\\"gt\\", strValues:[]string{\\"5\\", \\"6\\"}}, '
        "for 'Gt', 'Lt' operators, exactly one value is required"
    ) in stream.getvalue()
