"""An explanation as one HTML page that loads nothing else."""

from __future__ import annotations

from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from podium.render.decision import sentences
from podium.render.decision.analysis import margin, outcome, ranking, rejection_groups, score_gaps
from podium.render.decision.causes import (
    cause_lines,
    causes_of_groups,
    formula_of,
    no_candidate_lines,
    numbers_of,
    score_lines,
    victim_text,
)
from podium.render.decision.plain_reason import plain_reason
from podium.render.html_page import html_page, text
from podium.render.plain import counted, format_amount, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from podium.engine.framework.decision import Decision, Preemption
    from podium.library.explanation import Explanation
    from podium.render.decision.analysis import NodeReport

#: How many nodes or victims are named, and how many candidates are listed.
_SAMPLE: Final = 20
_MOST_CANDIDATES: Final = 100
_MOST_CAUSES: Final = 20
_HELP: Final = (
    "Select a node with the mouse or the arrow keys to compare it with the one that was chosen, "
    "a score to see how it is computed, a heading to sort."
)


def explanation_page(found: Explanation) -> str:
    """The page as one document."""
    sections = "\n".join(_sections(found))
    data = msgspec.json.encode(
        found.as_json() | sentences.node_table_data(found.decision, found.max_score)
    ).decode()
    # The data must not end the script element that contains it.
    data = data.replace("<", "\\u003c")
    style = "".join(map(_asset, ("tokens.css", "explain.css", "node_table.css", "player.css")))
    scripts = f"""<script type="application/json" id="decision">{data}</script>
<script type="module">
{_asset("node_table.js")}
const place = document.getElementById("map");
if (place) nodeTable(place, JSON.parse(document.getElementById("decision").textContent));
</script>
<script type="module">
{_asset("player.js")}
const place = document.getElementById("player");
if (place) player(place, JSON.parse(document.getElementById("decision").textContent));
</script>
"""
    return html_page(sentences.headline(found.decision), style, sections, scripts)


def _asset(name: str) -> str:
    return files("podium.render.decision").joinpath("assets", name).read_text(encoding="utf-8")


def _sections(found: Explanation) -> Iterator[str]:
    decision = found.decision
    yield _head(found)
    if found.asked is not None:
        yield _why_not(decision, found.asked)
    if decision.examined and not decision.error:
        yield _section("Step by step", '<div id="player"></div>')
    yield _heat_map(decision)
    yield _lead(decision)
    yield _devices(decision)
    yield _rejections(decision)
    yield _preemption(found)
    if found.timings:
        rows = [(step, f"{seconds * 1000:.1f}") for step, seconds in found.timings]
        yield _section("Time", _table(("Step", "Milliseconds"), rows, numbers=(1,)))
        kept = [(each.rule, each.stage, each.kept, each.again) for each in found.plan]
        if kept:
            title = "What a scheduler keeps of each rule between such pods"
            yield _section(title, _table(("Rule", "Stage", "Kept", "Asked again"), kept))


def _head(found: Explanation) -> str:
    decision = found.decision
    plain = plain_reason(decision)
    paragraphs = [
        sentences.reason_for_choice(decision, found.ties),
        sentences.compare_with_actual(decision, found.actual) if found.actual else "",
        sentences.unexamined_nodes(decision),
    ]
    nodes = counted(decision.nodes, "node")
    pods = "" if found.pods is None else f", {counted(found.pods, 'pod')}"
    return "\n".join(
        [
            f'<p class="quiet">{text(decision.profile)}: {nodes}{pods}</p>',
            f'<h1 class="{outcome(decision)}">{text(sentences.headline(decision))}</h1>',
            f'<p class="plain">{text(plain)}</p>' if plain else "",
            *(f"<p>{text(sentence)}</p>" for sentence in paragraphs if sentence),
            *(f'<p class="note">{text(note)}</p>' for note in found.notes),
        ]
    )


def _heat_map(decision: Decision) -> str:
    """The container of the table of nodes, which the script fills."""
    if not decision.examined:
        return ""
    return _section(
        "Scores, node by node" if decision.totals is not None else "Nodes",
        f"""<div id="map"></div>
<p class="quiet">{_HELP}</p>
<noscript><p>The table needs JavaScript; everything else on this page does not.</p></noscript>""",
    )


def _lead(decision: Decision) -> str:
    found = margin(decision)
    if found is None:
        return ""
    first, second, points = found
    winner, loser = decision.feasible[first], decision.feasible[second]
    return _section(
        f"What puts {winner} ahead of {loser}: {counted(points, 'point')}",
        _comparison_table(decision, first, second),
    )


def _comparison_table(decision: Decision, first: int, second: int) -> str:
    scorer = sentences.rule_names(decision)[1].capitalize()
    columns = (scorer, "Weight", decision.feasible[first], decision.feasible[second], "Points")
    rows = [
        (gap.priority, gap.weight, gap.mine, gap.theirs, f"{gap.points:+d}")
        for gap in score_gaps(decision, first, second)
    ]
    return _table(columns, rows, numbers=(1, 2, 3, 4)) + _numbers(decision, first, second)


def _numbers(decision: Decision, first: int, second: int) -> str:
    """How the scores that differ are computed, and from which numbers on both nodes."""
    items = []
    for gap in score_gaps(decision, first, second):
        formula = formula_of(decision, gap.priority)
        if formula:
            nodes = (decision.feasible[at] for at in (first, second))
            parts = [f"{n}: {numbers_of(decision, gap.priority, n) or 'nothing'}" for n in nodes]
            line = f"{gap.priority}: {formula}. {'; '.join(parts)}"
            items.append(f"<li>{text(line)}</li>")
    told = f'<ul class="quiet">{"".join(items)}</ul>' if items else ""
    others = []
    for each in score_lines(decision, [first]):
        [(node, words)] = each.nodes
        others.append(f"<li>{text(f'{each.priority}: {each.formula}. {node}: {words}')}</li>")
    if not others:
        return told
    title = "<summary>How every score is computed</summary>"
    return f'{told}<details>{title}<ul class="quiet">{"".join(others)}</ul></details>'


def _devices(decision: Decision) -> str:
    """The devices that each claim of the pod gets."""
    claims = decision.devices.claims if decision.devices is not None else ()
    rows = [
        (each.claim.key, result.request, f"{result.driver}/{result.pool}/{result.device}")
        for each in claims
        for result in (each.allocation.devices.results if each.allocation else None) or ()
    ]
    return _section("Devices", _table(("Claim", "Request", "Device"), rows)) if rows else ""


def _rejections(decision: Decision) -> str:
    found = rejection_groups(decision)
    if not found:
        return ""
    count = sum(group.count for group in found)
    rows: list[tuple[object, ...]] = []
    for group, causes in zip(found, causes_of_groups(decision, found), strict=True):
        reasons, nodes = sentences.group_reasons(group, found), group.nodes
        which = listed(nodes, _SAMPLE)
        rows.append((sentences.group_rules(group), reasons, group.count, which))
        for line in cause_lines(causes, _MOST_CAUSES):
            which = listed(line.nodes, _SAMPLE) if len(line.nodes) < len(nodes) else ""
            rows.append(("", line.text, len(line.nodes), which))
    rule = sentences.rule_names(decision)[0].capitalize()
    table = _table((rule, "Reason", "Nodes", "Which"), rows, numbers=(2,))
    return _section(f"Rejected: {count} of {counted(decision.nodes, 'node')}", table)


def _preemption(found: Explanation) -> str:
    preemption = found.decision.preemption
    if preemption is None or not preemption.candidates:
        sentence = sentences.why_no_preemption(found.decision, never=found.never_preempts)
        why = f"<p>{text(sentence)}</p>{_preemption_causes(found.decision)}"
        return _section("Preemption", why) if sentence else ""
    chosen = (
        f"{preemption.node} is chosen: {sentences.criterion_text(preemption)}"
        if preemption.node
        else ""
    )
    causes = _preemption_causes(found.decision)
    title = sentences.preemption_head(preemption)
    return _section(title, f"<p>{text(chosen)}</p>{_candidates(preemption)}{causes}")


def _preemption_causes(decision: Decision) -> str:
    """Why victims were not reprieved, and why nodes are no candidates."""
    causes = decision.preemption_causes
    if causes is None:
        return ""
    lines = [f"{c.node}: {victim_text(v)}" for c in causes.candidates for v in c.victims]
    lines = lines[:_MOST_CANDIDATES]
    lines += [
        f"no candidate: {listed(line.nodes, _SAMPLE)}: {line.text}"
        for line in no_candidate_lines(causes.no_candidates, _MOST_CANDIDATES)
    ]
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f'<ul class="quiet">{items}</ul>' if items else ""


def _candidates(preemption: Preemption) -> str:
    rows = islice(sentences.candidate_rows(preemption, _SAMPLE), _MOST_CANDIDATES)
    columns = ("Node", "PDB violations", "Top priority", "Sum", "Victims", "Pods to evict")
    return _table(columns, rows, numbers=(1, 2, 3, 4), chosen=preemption.node)


def _why_not(decision: Decision, report: NodeReport) -> str:
    chosen = report.node == decision.node
    parts = [f"<p>{text(sentence)}</p>" for sentence in sentences.node_sentences(decision, report)]
    if report.position is not None and not chosen and decision.totals is not None:
        winner = ranking(decision)[0]
        if score_gaps(decision, winner, report.position):
            parts.append(_comparison_table(decision, winner, report.position))
    rows = [
        (
            r.resource,
            *(
                format_amount(r.resource, n)
                for n in (r.wanted, r.free, r.used, r.promised, r.allocatable)
            ),
        )
        for r in report.room
    ]
    columns = ("Resource", "Wanted", "Free", "Used", "Promised", "Allocatable")
    parts.append(_table(columns, rows, numbers=(1, 2, 3, 4, 5)))
    return _section(f"Why {report.node}?" if chosen else f"Why not {report.node}?", "".join(parts))


def _section(title: str, content: str) -> str:
    return f"<section>\n<h2>{text(title)}</h2>\n{content}\n</section>"


def _table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers: Sequence[int] = (),
    chosen: str | None = None,
) -> str:
    kinds = [' class="number"' if at in numbers else "" for at in range(len(columns))]
    head = "".join(
        f'<th scope="col"{kind}>{text(name)}</th>'
        for kind, name in zip(kinds, columns, strict=True)
    )
    lines = []
    for row in rows:
        mark = ' class="chosen"' if chosen is not None and row[0] == chosen else ""
        cells = zip(kinds, row, strict=True)
        lines.append(f"<tr{mark}>" + "".join(f"<td{k}>{text(c)}</td>" for k, c in cells) + "</tr>")
    body = "\n".join(lines)
    head, body = f"<thead><tr>{head}</tr></thead>", f"<tbody>\n{body}\n</tbody>"
    return f'<div class="scroll"><table>{head}{body}</table></div>'
