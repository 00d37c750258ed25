"""A comparison of configurations as text, and as a page with pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.render.columns import BOLD, PLAIN, YELLOW, table
from podium.render.html_page import Square, bar, node_map, page, text, text_list, text_table
from podium.render.plain import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.render.columns import Line
    from podium.what_if.compare.results import Comparison, ConfigurationOutcome, NodeUse

_NO_NODE: Final = "<none>"


def comparison_lines(found: Comparison, most: int) -> Iterator[Line]:
    """The result as text for a terminal, with the first differences only."""
    yield f"{counted(found.nodes, 'node')}, {counted(found.pods, 'pod')} placed anew", BOLD
    names = [each.name for each in found.done()]
    if names:
        yield from table(("", *(f" {name}" for name in names)), list(found.measures()))
    if found.hopeless:
        pods = ", ".join(found.hopeless[:3])
        yield "", PLAIN
        yield f"nodes needed without {counted(len(found.hopeless), 'pod')}: {pods}", YELLOW
    if found.interrupted:
        yield "interrupted: not all seeds are done", YELLOW
    yield from _bound_lines(found)
    if len(names) < len(found.outcomes):
        return
    different = found.differences()
    yield "", PLAIN
    yield found.summary(), BOLD
    cells = [(pod, *(node or _NO_NODE for node in nodes)) for pod, nodes in different[:most]]
    yield from table(("POD", *(name.upper() for name in names)), cells)
    if len(different) > most:
        yield f"and {len(different) - most} more", PLAIN
    yield from _message_lines(found, names, most)


def _message_lines(found: Comparison, names: list[str], most: int) -> Iterator[Line]:
    """Other messages of pods that wait in all outcomes."""
    changed = found.changed_messages()
    if not changed:
        return
    yield "", PLAIN
    yield f"{counted(len(changed), 'message')} of waiting pods would be another", BOLD
    width = max(map(len, names))
    for pod, texts in changed[:most]:
        yield pod, PLAIN
        for name, message in zip(names, texts, strict=True):
            yield f"  {name:{width}}  {message}", PLAIN
    if len(changed) > most:
        yield f"and {len(changed) - most} more", PLAIN


def _bound_lines(found: Comparison) -> Iterator[Line]:
    ignored = found.bound_ignores()
    if ignored:
        yield "", PLAIN
        yield "The lower bound ignores:", PLAIN
        for each in ignored:
            yield f"  {each}", PLAIN


def comparison_page(found: Comparison) -> str:
    """The page as one document."""
    done = found.done()
    names = [each.name for each in done]
    is_same = len({frozenset(each.left_over) for each in done}) <= 1
    verdict = "all leave the same pods over" if is_same else "not all leave the same pods over"
    size = f"{counted(found.nodes, 'node')}, {counted(found.pods, 'pod')} placed anew"
    body = f"""<p class="{"good" if is_same else "bad"}">{text(f"{found.summary()}; {verdict}")}</p>
<p>{text(size)}</p>
{text_list(_notes(found))}
<h2>Measures</h2>
{text_table(("", *names), list(found.measures()))}
{_nodes_needed(done, found.nodes)}
{_utilisation(done)}
<h2>Nodes</h2>
<p>Each square is a node: the darker, the more of its CPU is requested. Outlined ones do not
have the same pods in all configurations.</p>
{_maps(done, found.changed_nodes())}
{_differences(found, names)}
{_bound_ignores(found)}"""
    return page(f"Compare: {', '.join(each.name for each in found.outcomes)}", body)


def _notes(found: Comparison) -> list[str]:
    notes = []
    if found.interrupted:
        notes.append("interrupted: not everything is done")
    if found.hopeless:
        pods = ", ".join(found.hopeless[:3])
        notes.append(f"nodes needed without {counted(len(found.hopeless), 'pod')}: {pods}")
    return notes


def _nodes_needed(done: Sequence[ConfigurationOutcome], nodes: int) -> str:
    """The nodes that each configuration needs, a row for each seed, as bars."""
    seeds = sorted({seed for outcome in done for seed in outcome.needed})
    rows = [
        _needed_row(str(seed), [_needed(outcome, seed, nodes) for outcome in done])
        for seed in seeds
    ]
    if seeds:
        rows.append(_needed_row("median", [_drawn(each.median_needed, nodes) for each in done]))
    if any(outcome.bound is not None for outcome in done):
        rows.append(_needed_row("lower bound", [_drawn(each.bound, nodes) for each in done]))
    if not rows:
        return ""
    head = "".join(f"<th>{text(outcome.name)}</th>" for outcome in done)
    return (
        "<h2>Cell compaction</h2><p>How many nodes each configuration needs for the whole "
        f"workload; a full bar is all {nodes}.</p>"
        f"<table><thead><tr><th>SEED</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def _needed_row(name: str, cells: Sequence[str]) -> str:
    return f"<tr><td>{name}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _needed(outcome: ConfigurationOutcome, seed: int, nodes: int) -> str:
    if seed not in outcome.needed:
        return "-"  # interrupted before
    number = outcome.needed[seed]
    return f"more than all {nodes}" if number is None else _drawn(number, nodes)


def _drawn(number: float | None, nodes: int) -> str:
    return "-" if number is None else f"{bar(number / nodes)} {number:g}"


def _utilisation(done: Sequence[ConfigurationOutcome]) -> str:
    rows = []
    for outcome in done:
        for use in outcome.resources:
            shares = (use.utilisation, use.utilisation_in_use, use.highest)
            cells = "".join(f"<td>{bar(share)} {share:.0%}</td>" for share in shares)
            rows.append(
                f"<tr><td>{text(outcome.name)}</td><td>{text(use.resource)}</td>{cells}</tr>"
            )
    if not rows:
        return ""
    head = (
        "<tr><th>CONFIGURATION</th><th>RESOURCE</th><th>ALL NODES</th><th>NODES IN USE</th>"
        "<th>FULLEST NODE</th></tr>"
    )
    return f"<h2>Utilisation</h2><table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _maps(done: Sequence[ConfigurationOutcome], changed: set[str]) -> str:
    """A map of all nodes for each configuration; squares have the numbers as title."""
    return "".join(
        f"<h3>{text(outcome.name)}</h3>"
        f"{node_map([_square(node, changed) for node in outcome.nodes])}"
        for outcome in done
    )


def _square(node: NodeUse, changed: set[str]) -> Square:
    shares = ", ".join(f"{name} {node.share(name):.0%}" for name in node.allocatable)
    title = f"{node.name}: {shares}, {counted(node.pods, 'pod')}"
    return Square(node.share("cpu"), title, node.name in changed)


def _differences(found: Comparison, names: Sequence[str]) -> str:
    rows = [(pod, *(node or _NO_NODE for node in nodes)) for pod, nodes in found.differences()]
    if not rows:
        return ""
    return f"<h2>Placements that differ</h2>{text_table(('POD', *names), rows)}"


def _bound_ignores(found: Comparison) -> str:
    ignored = found.bound_ignores()
    return f"<h2>The lower bound ignores</h2>{text_list(ignored)}" if ignored else ""
