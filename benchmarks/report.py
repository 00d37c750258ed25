"""The figures in words: what RESULTS.md says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import world_faults
from bench_targets import ROWS

NOTHING = "-"
#: kube-scheduler on the same work: pods/s and CPU-ms per pod. Quoted, not measured here.
QUOTED: dict[str, tuple[str, str, str]] = {
    "SchedulingBasic": ("106, 17.9", "703, 2.1", "34, 29"),
    "SchedulingPodAntiAffinity": ("71, 24.6", "271, 5.2", "18, 54"),
    "SchedulingPreferredPodAffinity": ("67, 28.0", "341, 4.4", "5 and falling, 200"),
    "TopologySpreading": ("76, 24.2", "300, 4.9", NOTHING),
    "SchedulingSpread": (NOTHING, NOTHING, NOTHING),
    "SchedulingOwnClass": ("as basic", "as basic", "as basic"),
}
#: At most so much processor time per pod, in milliseconds.
TARGETS = {
    "SchedulingBasic": 0.05,
    "SchedulingPodAntiAffinity": 0.2,
    "SchedulingPreferredPodAffinity": 0.2,
    "TopologySpreading": 0.2,
    "SchedulingSpread": 0.2,
    "SchedulingOwnClass": 1.0,
}
GIBIBYTE = 1024


def text(machine: dict[str, str], found: dict[str, Any]) -> str:
    """The whole document."""
    parts = [_head(machine), *(write(found[name]) for name, write in SECTIONS.items())]
    return "\n".join(line for part in parts for line in (*part, ""))


HEAD = """\
# Benchmark results

Written by `make bench` (`python benchmarks/run.py`); do not edit. One core, one process, all nodes
scored. Pods/s is by the clock on the wall and suffers when the machine does other work; processor
time (CPU-ms) is the steadier figure, and ratios within one run are steadier still.
"""
SPEED = """\
## 5,000 nodes, 1,000 pods one after the other

Deciding and assuming, after existing pods of the same kind. Cells are pods/s, CPU-ms per pod. The
figures of kube-scheduler are quoted: measured in process, without an API server, on two quiet
cores. `plain : fast` is the processor time of asking every rule about every node, over that of the
fast path, in the same run.
"""
PREEMPTION = """\
## Preemption in a full cluster

Against a failed decision, both of classes that were never seen before; at most 20 times as much,
and at most 50 CPU-ms.
"""


def _head(machine: dict[str, str]) -> Iterator[str]:
    yield HEAD
    yield from _table(("machine", ""), [tuple(pair) for pair in machine.items()])


def _targets(found: dict[str, Any]) -> Iterator[str]:
    yield SPEED
    generations = list(next(iter(found.values())))
    header = (
        "workload",
        "kube-scheduler v1.36.4, all nodes scored (quoted)",
        "v1.36.4, default sampling (quoted)",
        "v1.13.12, all nodes scored (quoted)",
        *(part for name in generations for part in (f"**Podium {name}**", "plain : fast")),
        "at most CPU-ms",
    )
    rows = []
    for case, title in ROWS.items():
        cells = [part for name in generations for part in _speed(found[case][name])]
        rows.append((title, *QUOTED[case], *cells, f"{TARGETS[case]:g}"))
    yield from _table(header, rows)


def _speed(pair: dict[str, Any]) -> tuple[str, str]:
    fast, plain = pair["fast"], pair["plain"]
    if fast is None:
        return NOTHING, NOTHING
    ratio = plain["cpuMsPerPod"] / fast["cpuMsPerPod"]
    return f"**{fast['podsPerSecond']:,.0f}, {fast['cpuMsPerPod']:.3f}**", f"{ratio:.1f}"


def _growth(found: dict[str, Any]) -> Iterator[str]:
    yield "## Growth: SchedulingBasic in larger clusters"
    yield ""
    yield "CPU-ms per pod, pods of one class; at ten times the nodes it may be four times as much."
    yield ""
    counts = list(next(iter(found.values())))
    header = ("profile", *(f"{int(count):,} nodes" for count in counts), "last : first")
    rows = []
    for name, by_count in found.items():
        costs = [by_count[count]["cpuMsPerPod"] for count in counts]
        rows.append((name, *(f"{cost:.3f}" for cost in costs), f"{costs[-1] / costs[0]:.1f}"))
    yield from _table(header, rows)


def _memory(found: dict[str, Any]) -> Iterator[str]:
    yield f"## {found['nodes']:,} nodes and {found['pods']:,} pods in memory"
    yield ""
    loaded = found["loadCpuSeconds"]
    rows = [("nodes", f"{loaded['nodes']:.1f} CPU-s")]
    for count, seconds in loaded["pods"].items():
        each = seconds * 1e6 / int(count)
        rows.append((f"{int(count):,} pods", f"{seconds:.1f} CPU-s, {each:.1f} CPU-µs each"))
    peak = found["peakMemoryMiB"] / GIBIBYTE
    rows += [
        ("peak of the process", f"{peak:.2f} GiB (at most 6)"),
        ("a decision then", f"{found['cpuMsPerPod']:.3f} CPU-ms (median of 1,000 pods of a class)"),
        ("the first of them", f"{found['firstCpuMs']:.0f} CPU-ms"),
    ]
    yield from _table(("taking over", ""), rows)


def _preemption(found: dict[str, Any]) -> Iterator[str]:
    yield PREEMPTION
    rows = [
        (
            name,
            f"{each['nodes']:,}, {each['pods']:,}",
            f"{each['failedCpuMs']:.2f}",
            f"{each['preemptingCpuMs']:.2f}",
            f"{each['preemptingCpuMs'] / each['failedCpuMs']:.1f}",
        )
        for name, each in found.items()
    ]
    header = ("profile", "nodes, pods", "failed, CPU-ms", "preempting, CPU-ms", "ratio")
    yield from _table(header, rows)


def _startup(found: dict[str, Any]) -> Iterator[str]:
    yield "## Start-up"
    yield ""
    rows = [(f"`{name}`", f"{milliseconds:.0f}") for name, milliseconds in found.items()]
    yield from _table(("command", "CPU-ms"), rows)


def _history(found: dict[str, Any]) -> Iterator[str]:
    yield "## Recording a history"
    yield ""
    yield f"{found['nodes']:,} nodes, {found['pods']:,} pods that come, are decided, bound and"
    yield f"reported as running, without an API server: {found['us_per_pod']:.0f} CPU-µs per pod,"
    yield f"and {found['recording_us_per_pod']:.0f} more with recording. To be reached: any"
    yield "decision in 100,000 changes on 5,000 nodes is found and explained in 5 s. Ten, from the"
    seconds = ", ".join(f"{each:.1f}" for each in found["seek_seconds"])
    yield f"first to the last, took {seconds} CPU-s."
    yield ""
    yield from _recorded_run(found["api_server"], *found["api_server_size"])
    yield "| compression | bytes per pod | CPU-µs per pod |"
    yield "|---|---|---|"
    for each in found["compression"]:
        yield f"| {each['way']} | {each['bytes_per_pod']:.0f} | {each['us_per_pod']:.1f} |"
    yield ""


def _recorded_run(runs: dict[str, list[float]], nodes: int, pods: int) -> Iterator[str]:
    if not runs["plain"]:
        return
    plain, recorded = median(runs["plain"]), median(runs["recorded"])
    yield f"`podium run` on a real API server, {nodes:,} nodes, {pods:,} pods, in turns without and"
    yield f"with `--record`: {plain:.3f} and {recorded:.3f} CPU-ms per pod (medians of"
    yield f"{_list(runs['plain'])} and of {_list(runs['recorded'])}), which is"
    yield f"{(recorded / plain - 1) * 100:.1f} % more. To be reached: at most 5 % more."
    yield ""


def _list(figures: list[float]) -> str:
    return ", ".join(f"{each:.2f}" for each in figures)


def _fitting(found: dict[str, Any]) -> Iterator[str]:
    yield "## What fits, and what would"
    yield ""
    yield f"{found['nodes']:,} nodes and {found['pods']:,} pods, read from JSON in"
    yield f"{found['reading']:.1f} CPU-s. To be reached: `capacity` 10 s at most, `survive` a"
    yield "minute, a drained node three times the time of reading."
    yield ""
    rows = [
        (name, f"{each['seconds']:.2f}", f"{each['seconds'] / found['reading']:.1f}")
        for name, each in found["questions"].items()
    ]
    yield from _table(("question", "CPU-s", "times reading"), rows)


def _cores(found: dict[str, Any]) -> Iterator[str]:
    yield "## Work on all cores"
    yield ""
    yield f"{found['nodes']:,} nodes and {found['pods']:,} pods; seconds by the clock with one"
    yield f"process, and with {found['cores']}. Other work on the machine takes cores away."
    yield ""
    rows = [
        (name, f"{each['one']:.2f}", f"{each['all']:.2f}", f"{each['one'] / each['all']:.2f}")
        for name, each in found["work"].items()
    ]
    yield from _table(("work", "one process", "all cores", "times as fast"), rows)


def _causes(found: dict[str, Any]) -> Iterator[str]:
    yield "## Causes"
    yield ""
    yield f"A pod that fits on none of {found['nodes']:,} nodes, in CPU-ms: deciding with all"
    yield "verdicts kept and writing it as JSON, for a pod like none before and once more; then"
    yield "finding the causes on all nodes and writing those. Other decisions cost nothing more."
    yield ""
    rows = [
        (
            amounts,
            name,
            f"{each['first']:.1f}",
            f"{each['again']:.1f}",
            f"{each['causes']:.1f}",
            f"{each['causes'] / each['first']:.1f}",
            f"{each['causes'] / each['again']:.1f}",
        )
        for amounts, generations in found["clusters"].items()
        for name, each in generations.items()
    ]
    ratios = ("causes : explained", "causes : again")
    yield from _table(("used amounts", "generation", "explained", "again", "causes", *ratios), rows)


def _rules(found: dict[str, Any]) -> Iterator[str]:
    yield "## Rules of your own"
    yield ""
    yield f"A predicate in Python about {found['nodes']:,} nodes, for one pod."
    yield ""
    loop = found["loop"]
    rows = [
        ("a plain loop over the nodes", f"{loop:.2f}", "1.00"),
        ("a rule for one node", f"{found['one_node']:.2f}", f"{found['one_node'] / loop:.2f}"),
        ("the rule in columns", f"{found['columns']:.3f}", f"{found['columns'] / loop:.3f}"),
    ]
    yield from _table(("form", "CPU-ms", "times the loop"), rows)


def _workloads(found: dict[str, Any]) -> Iterator[str]:
    yield "## All workloads"
    yield ""
    yield "`podium bench '*/5000Nodes'`, one run each."
    header = (
        "workload",
        "existing",
        "pods",
        "pods/s",
        "CPU-ms/pod",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "peak MiB",
    )
    for name, results in found.items():
        yield ""
        yield f"### Profile {name}"
        yield ""
        yield from _table(header, [_row(each) for each in results])


MIX = """\
## A realistic mix

Many classes of pods with requests as in a published trace, which come and go in a cluster in use;
some with volumes, affinity, spreading, taints; nodes report their status (`bench_mix.py`).
"""


def _mix(found: list[dict[str, Any]]) -> Iterator[str]:
    yield MIX
    rows = [
        (
            each["profile"],
            f"{each['nodes']:,}",
            f"{each['existing']:,}",
            f"{each['classes']:,}",
            f"{1000 / each['cpuMsOfFirst']:,.0f}",
            f"{1000 / each['cpuMs']:,.0f}",
            f"{each['peakMemoryMiB']:,.0f}",
        )
        for each in found
    ]
    header = (
        "profile",
        "nodes",
        "pods",
        "classes",
        "first decisions/s of CPU",
        "later",
        "peak MiB",
    )
    yield from _table(header, rows)


UPSTREAM = """\
## Upstream's workloads

The performance-config files of kube-scheduler v1.36 (`PODIUM_SCHEDULER_PERF`), in memory, on one
core. A threshold is for upstream's whole system on its machine.
"""


def _upstream(found: list[dict[str, Any]]) -> Iterator[str]:
    if not found:
        return
    yield UPSTREAM
    rows = [
        (
            each["workload"],
            f"{each['podsPerSecond']:,}" if "podsPerSecond" in each else each.get("skipped", "-"),
            f"{each['cpuMsPerPod']:.3f}" if "cpuMsPerPod" in each else NOTHING,
            f"{each['threshold']:,.0f}",
        )
        for each in found
    ]
    yield from _table(("workload", "pods/s", "CPU-ms/pod", "upstream's threshold"), rows)


DEVICES = """\
## Devices

Pods with a claim of their own, in memory, on one core: 5,000 nodes with eight devices each, and
upstream's workloads about devices (`PODIUM_SCHEDULER_PERF`), steady states for ten seconds. A
threshold is for upstream's whole system on its machine. Pods per second of processor time depend
little on other work on the machine.
"""


def _devices(found: list[dict[str, Any]]) -> Iterator[str]:
    yield DEVICES
    rows = []
    for each in found:
        limit = each["threshold"]
        if "skipped" in each:
            cells = (each["skipped"], NOTHING, f"{limit:,.0f}" if limit else NOTHING, NOTHING)
            rows.append((each["workload"], NOTHING, NOTHING, *cells))
            continue
        of_cpu = 1000 / each["cpuMsPerPod"]
        rows.append(
            (
                each["workload"],
                f"{each['nodes']:,}",
                f"{each['pods']:,}",
                f"{each['podsPerSecond']:,}",
                f"{of_cpu:,.0f}",
                f"{limit:,.0f}" if limit else NOTHING,
                f"{of_cpu / limit:.0f}" if limit else NOTHING,
            )
        )
    header = ("workload", "nodes", "pods", "pods/s", "pods/s of CPU", "threshold", "times as fast")
    yield from _table(header, rows)


def section(name: str, where: dict[str, str], found: Any) -> str:
    """The text of one section, with the load of the machine it was measured on."""
    lines = list(SECTIONS[name](found))
    noted = f"{where['date']}, load when started: {where['load when started']}"
    noted += f", at the end: {where['load at the end']}"
    return "\n".join([*lines, "", f"Measured alone: {noted}.", ""])


def with_section(text: str, section: str, *, before: str = "## On a real") -> str:
    """The results with one section replaced, or added before another one, else at the end."""
    heading = section.splitlines()[0]
    parts = _sections(text)
    kept = [part for part in parts if not part.startswith(f"{heading}\n")]
    place = next(
        (i for i, part in enumerate(parts) if part.startswith(f"{heading}\n")),
        next((i for i, part in enumerate(kept) if part.startswith(before)), len(kept)),
    )
    kept.insert(place, section.rstrip("\n") + "\n\n")
    return "".join(kept).rstrip("\n") + "\n"


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    latency = each["latencyMs"]
    return (
        each["workload"],
        f"{each['existingPods']:,}",
        f"{each['pods']:,}",
        f"{each['podsPerSecond']:,.0f}",
        f"{each['cpuMsPerPod']:.3f}",
        *(f"{latency[name]:.3f}" for name in ("p50", "p90", "p99")),
        f"{each['peakMemoryMiB']:.0f}",
    )


def _table(header: tuple[str, ...], rows: list[Any]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


CLUSTER = """\
## On a real API server

`podium run`, and kube-scheduler 1.20.2 with its client limits raised (QPS 5000), against the same
kind of control plane: a real etcd and kube-apiserver 1.20.2 on the same two cores, pods created
beforehand, all nodes scored by Podium. Pods/s is counted by the API server's own metrics; CPU-ms
per pod is that of the scheduler, start and events included. kube-scheduler v1.36.4 is quoted:
measured on two cores shared with API server and etcd.
"""
#: kube-scheduler v1.36.4: pods/s, CPU-ms per pod, MiB. Quoted, not measured here.
QUOTED_CLUSTER = {
    "basic": "358, 2.69, 165",
    "large": "277, 3.43, 197",
    "anti-affinity": "151, 6.30, -",
}


def _cluster(found: dict[str, Any]) -> Iterator[str]:
    yield from CLUSTER.splitlines()
    yield ""
    yield "| workload | nodes | pods | Podium | kube-scheduler 1.20.2 | v1.36.4, quoted |"
    yield "|---|---|---|---|---|---|"
    for name, ours in found["podium"].items():
        theirs = found["kube-scheduler"][name]
        cells = [
            f"{each['pods/s']:.0f}, {each['CPU ms/pod']:.2f}, {each['peak MiB']}"
            for each in (ours, theirs)
        ]
        quoted = QUOTED_CLUSTER[name]
        yield f"| {name} | {ours['nodes']:,} | {ours['pods']:,} | {' | '.join(cells)} | {quoted} |"
    yield ""
    yield "Cells are pods/s, CPU-ms per pod, most MiB."


LARGE_CLUSTER = """\
## A large cluster on a real API server

The start of `podium run`, from the start of the program until a pod that waited is bound, with all
nodes and pods there before; and the reports of nodes, which patch their status as kubelets do. API
server and etcd share the machine, and their time to answer the lists is part of the start.
"""


def _large_cluster(found: dict[str, Any]) -> Iterator[str]:
    yield from LARGE_CLUSTER.splitlines()
    yield ""
    yield "| nodes | pods | start, s | start, CPU-s | most MiB | CPU-ms/report | 500 reports/s |"
    yield "|---|---|---|---|---|---|---|"
    yield (
        f"| {found['nodes']:,} | {found['pods']:,} | {found['start (s)']} "
        f"| {found['start, CPU (s)']} | {found['peak MiB']} | {found['CPU ms/report']} "
        f"| {found['% of a core']} % of a core |"
    )


GOALS = "## Goals"
FULL_SIZES = "## Full sizes"


def written_elsewhere(document: str) -> str:
    """The sections of the results that `make bench` does not write: goals and full sizes."""
    return "".join(part for part in _sections(document) if part.startswith((GOALS, FULL_SIZES)))


def goals(lines: list[str], revision: str, where: dict[str, str]) -> str:
    """What `goals.py` measured of an older commit and this tree."""
    noted = f"{where['date']}, load when started: {where['load when started']}"
    return "\n".join(
        [
            GOALS,
            "",
            f"`python benchmarks/goals.py {revision}`, {noted}.",
            "",
            "Decisions per second of CPU time, of that commit and of this tree in turns, the best",
            "of all rounds. Goals hold for a machine on which SchedulingBasic did 16,000 before,",
            "and are scaled by what it did here.",
            "",
            *lines,
            "",
        ]
    )


def run_goals(lines: list[str], revision: str, where: dict[str, str]) -> str:
    """What `goals.py` measured of `podium run` of an older commit and of this tree."""
    noted = f"{where['date']}, load when started: {where['load when started']}"
    return "\n".join(
        [
            f"{GOALS} of `podium run`",
            "",
            f"`python benchmarks/goals.py {revision} --api-server`, {noted}.",
            "",
            "On a real API server that shares the machine, that commit and this tree in turns, the",
            "best of all rounds: 5,000 pods on 1,000 nodes, then the start and the reports of",
            "nodes with 5,000 nodes and 50,000 pods. Goals are scaled as above.",
            "",
            *lines,
            "",
        ]
    )


FAULTS = "### Faults of the simulated world"


def full_sizes(tests: list[dict[str, Any]], date: str, document: str = "") -> str:
    """What came of the tests of full size; of those that were not run, what a document says."""
    before = next((part for part in _sections(document) if part.startswith(FULL_SIZES)), "")
    old_rows, _, old_faults = before.partition(FAULTS)
    rows = {
        line.split(" | ")[0].removeprefix("| "): line
        for line in old_rows.splitlines()
        if line.startswith("| ") and not line.startswith("| test |")
    }
    faults: Counter[str] = Counter()
    for each in tests:
        held = world_faults.faults_of(each["figures"])
        told = [pair for pair in each["figures"] if not pair[0].startswith(world_faults.PREFIX)]
        told += [("faults", held.total())] if held else []
        figures = ", ".join(f"{name}: {value}" for name, value in told)
        minutes = each["seconds"] / 60
        rows[each["test"]] = (
            f"| {each['test']} | {each['outcome']} | {minutes:.1f} | {date} | {figures} |"
        )
        faults += held
    lines = [
        FULL_SIZES,
        "",
        "`make soak`: the same tests as `make test` runs, in the sizes that take long.",
        "",
        "| test | result | minutes | date | figures |",
        "|---|---|---|---|---|",
        *rows.values(),
    ]
    if faults:
        lines += ["", FAULTS, "", *world_faults.lines(faults)]
    elif old_faults:
        lines += ["", FAULTS + old_faults.rstrip()]
    return "\n".join((*lines, ""))


def _sections(document: str) -> list[str]:
    return re.split(r"(?m)^(?=## )", document)


READERS = """## Readers beside decisions

One pod is decided about after the other, as the scheduler's loop does it, while readers ask one
question after the other, of one kind at a time. The time from one decision to the next, in
milliseconds by the clock and in processor time of the whole program (CPU-ms), and how late a thread
wakes as that of the lease does. With readers, the 99th percentiles are to be within 10 ms of those
without.
"""


def _readers(found: dict[str, Any]) -> Iterator[str]:
    yield READERS
    rows = [
        (
            name,
            f"{each['answers']:,}",
            *(f"{each['clock ms'][part]:,.1f}" for part in ("p50", "p99")),
            *(f"{each['CPU-ms'][part]:,.1f}" for part in ("p50", "p99")),
            f"{each['lease late ms']['p99']:,.1f}",
        )
        for name, each in found["by question"].items()
    ]
    size = f"{found['nodes']:,} nodes, {found['pods']:,} pods, {found['readers']} readers"
    header = (size, "answers", "ms, median", "ms, 99th", "CPU-ms, median", "CPU-ms, 99th")
    yield from _table((*header, "lease late ms, 99th"), rows)


CHURN = """## Churn

Pods come and go for a long time: {rate:g} a second are created, and each is deleted once 500 are
there. What the program keeps of the past (decisions, histories, Events) is filled to its limits
first. Memory and descriptors are those of the program at the end of a tenth of the time, CPU-ms is
its processor time per pod, and latency is the time from the creation of a pod to the watch event
with its node.
"""


def _churn(found: dict[str, Any]) -> Iterator[str]:
    yield CHURN.format(rate=found["pods per second"])
    rows = []
    for name, each in found["programs"].items():
        for when in ("first", "fifth", "last"):
            part = each[when]
            rows.append(
                (
                    f"`podium {name}`, {when} tenth of {each['seconds']:,.0f} s",
                    f"{part['pods']:,}",
                    f"{part['memory MiB']:,.0f}",
                    f"{part['descriptors']:,}",
                    f"{part['CPU-ms per pod']:.2f}",
                    f"{part['p50 ms']:,.0f}",
                    f"{part['p99 ms']:,.0f}",
                )
            )
    header = (
        *("program", "pods bound", "memory MiB", "descriptors"),
        *("CPU-ms", "ms, median", "ms, 99th"),
    )
    yield from _table(header, rows)


#: What writes the figures of each script, in the order of the document.
SECTIONS: dict[str, Callable[[Any], Iterator[str]]] = {
    "targets": _targets,
    "growth": _growth,
    "memory": _memory,
    "preemption": _preemption,
    "startup": _startup,
    "fitting": _fitting,
    "cores": _cores,
    "history": _history,
    "rules": _rules,
    "causes": _causes,
    "mix": _mix,
    "workloads": _workloads,
    "upstream": _upstream,
    "devices": _devices,
    "cluster": _cluster,
    "large_cluster": _large_cluster,
    "readers": _readers,
    "churn": _churn,
}
