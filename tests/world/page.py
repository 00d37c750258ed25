"""The history of a seed as one page: writes, faults, decisions, lines, and what does not hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

from world import changes
from world.plan import Plan
from world.run import Entry, Outcome, World

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem; color: #1d2733; background: #fff }
table { border-collapse: collapse; width: 100% }
td, th { padding: .15rem .6rem; text-align: left; vertical-align: top }
td, th { border-bottom: 1px solid #e4e8ee }
td:first-child { font-variant-numeric: tabular-nums; white-space: nowrap }
.finding { color: #b00020; font-weight: 600 }
.fault { background: #fff3e0 }
.decision { background: #e8f1ff }
.line { background: #fdecef }
.accident { background: #ece6f7; font-weight: 600 }
.marked td:nth-child(4) { border-left: 4px solid #b00020 }
td:nth-child(3) { white-space: nowrap }
a { color: inherit }
body:has(#no-write:checked) .write:not(.marked), body:has(#no-fault:checked) .fault:not(.marked),
body:has(#no-decision:checked) .decision:not(.marked), body:has(#no-line:checked) .line:not(.marked)
{ display: none }
@media (prefers-color-scheme: dark) {
  body { background: #12181f; color: #dbe3ec }
  td, th { border-color: #2a3440 }
  .fault { background: #3a2c14 }
  .decision { background: #17283f }
  .line { background: #3a1a20 }
  .accident { background: #2c2440 }
}
"""


#: The pods, replicas and other objects that a text names, and the times.
_NAME = re.compile(r"\b(?:p\d+|set\d-\w+|g\d|d-\d|c-p\d+)\b")
_TIME = re.compile(r"(\d+\.\d{3}) s\b")


class Row(NamedTuple):
    """Something that happened."""

    time: float
    kind: str
    who: str
    what: str


def page_of(plan: Plan) -> tuple[str, Outcome]:
    """Carry a plan out; its page, and what came of it."""
    world = World(plan)
    outcome = world.run()
    rows = sorted(_rows(world), key=lambda row: row.time)
    title = f"Seed {plan.seed}, {plan.generation}"
    counts = (
        f"{len(plan.rates)} replicas, {len(plan.changes)} changes, "
        f"{sum(outcome.injected.values())} faults, {outcome.bound} bindings"
    )
    about = [counts, *([f"With {', '.join(plan.features)}"] if plan.features else [])]
    findings = "".join(f'<li class="finding">{_linked(each)}</li>' for each in outcome.findings)
    held = "<p>Everything holds.</p>" if not findings else f"<ul>{findings}</ul>"
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style><h1>{title}</h1><p>{'. '.join(map(escape, about))}.</p>{held}"
        f"{_planned_faults(plan)}<p>{_choices(bool(findings))}</p>"
        "<table><thead><tr><th>Time</th><th>What</th><th>Who</th><th></th></tr></thead>"
        f"<tbody>\n{''.join(_lines(rows, outcome.findings))}</tbody></table></html>\n"
    )
    return page, outcome


def _lines(rows: list[Row], findings: list[str]) -> Iterator[str]:
    """The rows of the table; those about what a finding names are marked."""
    named = {word for each in findings for word in _NAME.findall(each)}
    last = ""
    for row in rows:
        time = f"{row.time:.3f}"
        anchor = f' id="t{time}"' if time != last else ""
        last = time
        marked = " marked" if named & set(_NAME.findall(row.what)) else ""
        yield (
            f'<tr class="{row.kind}{marked}"{anchor}><td>{time} s</td><td>{row.kind}</td>'
            f"<td>{escape(row.who)}</td><td>{escape(row.what)}</td></tr>\n"
        )


def _linked(finding: str) -> str:
    """A finding, with a link from each time to what happened then."""
    return _TIME.sub(r'<a href="#t\1">\1 s</a>', escape(finding))


def _planned_faults(plan: Plan) -> str:
    """The faults that the plan has, with their times."""
    faults = "".join(
        f"<li>{each.start:.3f} to {each.end:.3f} s: {each.verb} {each.kind}, "
        f"{each.chance:.0%} of the requests</li>"
        for each in plan.faults
    )
    about = f"<summary>{len(plan.faults)} faults are planned</summary>"
    return f"<details>{about}<ul>{faults}</ul></details>"


def _choices(has_findings: bool) -> str:
    """What can be left out of the table."""
    kept = ", except what a finding names" if has_findings else ""
    boxes = (
        f'<label><input type="checkbox" id="no-{kind}"> {kind}s</label>'
        for kind in ("write", "fault", "decision", "line")
    )
    return f"Hide {' '.join(boxes)}{kept}"


def _rows(world: World) -> Iterator[Row]:
    for entry in world.history:
        yield Row(entry.time, "write", entry.writer or "cluster", _written(entry))
    for sent in world.network.sent:
        if sent.fault:
            answer = f"answered {sent.answered}" if sent.answered else "no answer"
            done = ", carried out" if sent.done else ""
            text = f"{sent.fault}: {sent.method} {sent.path}: {answer}{done}"
            yield Row(sent.time, "fault", sent.replica, text)
    names = {_uid(entry): _name(entry) for entry in world.history if entry.kind == "Pod"}
    for time, replica, decision in world.decisions:
        went = f"goes to {decision.node}" if decision.node else f"waits: {decision.message}"
        yield Row(time, "decision", replica, f"{names.get(decision.uid, decision.pod)} {went}")
    for change in world.plan.changes:
        if change.act not in changes.acts():
            yield Row(change.at, "accident", "plan", change.act)
    yield Row(world.plan.seconds, "accident", "plan", "faults and changes cease")
    for line in world.lines:
        yield Row(line.time, "line", line.replica, line.text)


def _object(entry: Entry) -> Any:
    found = entry.after or entry.before
    assert found is not None
    return found


def _name(entry: Entry) -> str:
    return str(_object(entry)["metadata"].get("name", ""))


def _uid(entry: Entry) -> str:
    return str(_object(entry)["metadata"].get("uid", ""))


def _written(entry: Entry) -> str:
    """What a write did to an object, in a few words."""
    about = f"{entry.kind} {_name(entry)}"
    if entry.before is None:
        return f"{about} is created"
    if entry.after is None:
        return f"{about} is deleted"
    before = (entry.before.get("spec") or {}).get("nodeName")
    after = (entry.after.get("spec") or {}).get("nodeName")
    if entry.kind == "Pod" and after and not before:
        return f"{about} is bound to {after}"
    changed = [
        name
        for name in ("metadata", "spec", "status")
        if entry.before.get(name) != entry.after.get(name)
    ]
    told = "".join(f", {each}" for each in _told(entry))
    return f"{about}: {', '.join(changed) or 'nothing'} changed{told}"


def _told(entry: Entry) -> Iterator[str]:
    """What a write says of a pod: where it is nominated, that it goes, and why it waits."""
    before, after = entry.before, entry.after
    if entry.kind != "Pod" or before is None or after is None:
        return
    old, new = (each.get("status") or {} for each in (before, after))
    for name in ("nominatedNodeName", "phase"):
        if old.get(name) != new.get(name):
            yield f"{name} {new.get(name) or 'none'}"
    if after["metadata"].get("deletionTimestamp") and not before["metadata"].get(
        "deletionTimestamp"
    ):
        yield "it is being deleted"
    known = {each["type"]: each for each in old.get("conditions") or ()}
    for each in new.get("conditions") or ():
        if each.get("message") and each != known.get(each["type"]):
            yield f"{each['type']} {each['status']}: {each['message']}"
