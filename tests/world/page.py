"""The history of a seed as one page: writes, faults, decisions, lines, and what does not hold."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

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
@media (prefers-color-scheme: dark) {
  body { background: #12181f; color: #dbe3ec }
  td, th { border-color: #2a3440 }
  .fault { background: #3a2c14 }
  .decision { background: #17283f }
  .line { background: #3a1a20 }
}
"""


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
    findings = "".join(f'<li class="finding">{escape(each)}</li>' for each in outcome.findings)
    lines = "".join(
        f'<tr class="{row.kind}"><td>{row.time:.3f} s</td><td>{row.kind}</td>'
        f"<td>{escape(row.who)}</td><td>{escape(row.what)}</td></tr>\n"
        for row in rows
    )
    title = f"Seed {plan.seed}, {plan.generation}"
    counts = (
        f"{len(plan.rates)} replicas, {len(plan.changes)} changes, "
        f"{sum(outcome.injected.values())} faults, {outcome.bound} bindings"
    )
    held = "<p>Everything holds.</p>" if not findings else f"<ul>{findings}</ul>"
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style><h1>{title}</h1><p>{counts}</p>{held}"
        "<table><thead><tr><th>Time</th><th>What</th><th>Who</th><th></th></tr></thead>"
        f"<tbody>\n{lines}</tbody></table></html>\n"
    )
    return page, outcome


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
    for placement in world.placements:
        pod = names.get(placement.uid, placement.uid)
        yield Row(placement.time, "decision", placement.replica, f"{pod} goes to {placement.node}")
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
    return f"{about}: {', '.join(changed) or 'nothing'} changed"
