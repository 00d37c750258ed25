"""An explanation as tables for a terminal, readable with 5 and with 500 nodes."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from podium.render.columns import TextTable, styled
from podium.render.decision import pod_group, sentences, trace
from podium.render.decision.analysis import (
    differing_columns,
    extender_points,
    margin,
    outcome,
    ranking,
    rejection_groups,
    score_gaps,
)
from podium.render.decision.causes import (
    cause_lines,
    causes_of_groups,
    causes_of_node,
    formula_of,
    no_candidate_lines,
    numbers_of,
    score_lines,
    scored_text,
    victim_text,
)
from podium.render.decision.plain_reason import plain_reason
from podium.render.plain import common_suffix, counted, format_amount, listed

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from podium.engine.framework.decision import Preemption, ScoreColumn
    from podium.engine.framework.trace import DecisionTrace
    from podium.library.explanation import Explanation
    from podium.render.columns import Line
    from podium.render.decision.analysis import NodeReport

#: How many nodes of a group are named; half as many on a narrow terminal.
_SAMPLE: Final = 4
_NARROW: Final = 120
#: How wide the table of scores may be in a pipe.
_PIPE_WIDTH: Final = 160
#: The most rows of scores and of candidates.
_MOST_ROWS: Final = 10
#: The most lines of causes for a group of rejections.
_MOST_CAUSES: Final = 5
#: For how many scores it is said how they are computed.
_MOST_FORMULAS: Final = 3
#: A shorter common domain is not left out of the names of nodes.
_SHORTEST_DOMAIN: Final = len(".internal")
_TOTAL: Final = "TOTAL"
_STYLES: Final = {"placed": "bold green", "nominated": "bold yellow"}


def explanation_tables(found: Explanation, width: int | None) -> Iterator[Line]:
    """The lines of an explanation for a terminal; a *width* of None is that of a pipe."""
    return _Layout(found, width or _PIPE_WIDTH).parts()


def _heading(text: str) -> Iterator[Line]:
    yield styled()
    yield styled(text, "bold")


def _table(first: str, *others: str, right: Container[str] = ()) -> TextTable:
    """A table whose first column is not broken over lines."""
    return TextTable(first, *others, right=right, whole={first})


class _Layout:
    """An explanation laid out for a terminal of a certain width."""

    def __init__(self, found: Explanation, width: int) -> None:
        self.found = found
        self.decision = found.decision
        self.width = width
        self.rule, self.scorer = (name.upper() for name in sentences.rule_names(found.decision))
        #: The common domain of the nodes, which tables leave out.
        self.domain = common_suffix(self.decision.examined, shortest=_SHORTEST_DOMAIN)

    def short(self, name: str) -> str:
        return name.removesuffix(self.domain) if self.domain else name

    def sample(self, names: Sequence[str]) -> str:
        count = _SAMPLE if self.width >= _NARROW else _SAMPLE // 2
        return listed([self.short(name) for name in names], count)

    def parts(self) -> Iterator[Line]:
        yield from self.headline()
        yield from self.group()
        if self.found.trace is not None:
            yield from self.trace(self.found.trace)
            yield from self.timings() if self.found.timings else ()
            return
        if self.found.asked is not None:
            yield from self.why_not(self.found.asked)
        yield from self.rejections()
        if self.decision.totals is not None:
            yield from self.scores()
            yield from self.lead()
        yield from self.volumes()
        yield from self.devices()
        yield from self.preemption()
        if self.found.timings:
            if self.decision.totals is not None:
                yield from self.formulas()
            yield from self.timings()

    def headline(self) -> Iterator[Line]:
        decision, found = self.decision, self.found
        nodes = counted(decision.nodes, "node")
        pods = "" if found.pods is None else f", {counted(found.pods, 'pod')}"
        domain = f" (tables leave out {self.domain})" if self.domain else ""
        yield styled(f"{decision.profile}: {nodes}{pods}{domain}", "bold")
        yield styled()
        style = _STYLES.get(outcome(decision), "bold red")
        yield styled(sentences.headline(decision), style)
        for sentence in (
            plain_reason(decision),
            sentences.reason_for_choice(decision, found.ties),
            sentences.compare_with_actual(decision, found.actual) if found.actual else "",
            sentences.unexamined_nodes(decision),
        ):
            if sentence:
                yield styled(f"  {sentence}")
        for note in found.notes:
            yield styled(f"  note: {note}", "yellow")

    def group(self) -> Iterator[Line]:
        """The pod group that the pod was tried with."""
        if self.found.group is None:
            return
        yield from _heading(pod_group.headline(self.found.group))
        header, *rows = pod_group.rows(self.found.group)
        table = _table(*header)
        for row in rows:
            table.add(*row, style="bold" if row[0] == self.decision.pod else "")
        yield from table.lines()
        for sentence in pod_group.sentences(self.found.group):
            yield styled(f"  {sentence}")

    def rejections(self) -> Iterator[Line]:
        found = rejection_groups(self.decision)
        if not found:
            return
        count = sum(group.count for group in found)
        yield from _heading(f"Rejected: {count} of {counted(self.decision.nodes, 'node')}")
        table = _table(self.rule, "REASON", "NODES", "WHICH", right=["NODES"])
        for group, causes in zip(found, causes_of_groups(self.decision, found), strict=True):
            reasons = sentences.group_reasons(group, found)
            rule = sentences.group_rules(group)
            table.add(rule, reasons, group.count, self.sample(group.nodes))
            for line in cause_lines(causes, _MOST_CAUSES):
                number, which = self.fewer(line.nodes, group.nodes)
                table.add("", f"  {line.text}", number, which, style="dim")
        yield from table.lines()

    def fewer(self, nodes: Sequence[str], group: Sequence[str]) -> tuple[object, str]:
        """How many nodes of a group, and which; nothing if it is all of them."""
        return ("", "") if len(nodes) == len(group) else (len(nodes), self.sample(nodes))

    def scores(self) -> Iterator[Line]:
        order = ranking(self.decision)[:_MOST_ROWS]
        differing, same = differing_columns(self.decision)
        count = len(self.decision.feasible)
        best = f", the best {len(order)}" if count > len(order) else ""
        yield from _heading(f"Scores: {counted(count, 'node')} that fit{best}")
        yield from self.matrix(order, differing).lines()
        if same:
            given = (
                f"{sentences.short(c.name)} {int(c.score[0])} {sentences.times(c.weight)}"
                for c in same
            )
            yield styled(f"the same for all: {', '.join(given)}", "dim")

    def matrix(self, order: list[int], differing: list[ScoreColumn]) -> TextTable:
        """Scores with a row per node, or with a column per node if that is too wide."""
        decision = self.decision
        assert decision.totals is not None
        extra = extender_points(decision)
        heads = [
            [*sentences.split_name(column.name), sentences.times(column.weight)]
            for column in differing
        ]
        values = [[int(column.score[at]) for at in order] for column in differing]
        if extra.any():
            heads.append(["Extenders"])
            values.append([int(extra[at]) for at in order])
        values.append([int(decision.totals[at]) for at in order])
        names = [self.short(decision.feasible[at]) for at in order]
        needed = max(map(len, names)) + 3
        for head, column in zip([*heads, [_TOTAL]], values, strict=True):
            needed += max(map(len, [*head, *map(str, column)])) + 3
        if needed <= self.width:
            return self.node_rows(names, heads, values)
        return self.node_columns(names, heads, values)

    def node_rows(
        self, names: list[str], heads: list[list[str]], values: list[list[int]]
    ) -> TextTable:
        columns = [*("\n".join(head) for head in heads), _TOTAL]
        table = TextTable("NODE", *columns, right=columns, whole=None)
        winner = self.short(self.decision.node or "")
        for place, name in enumerate(names):
            style = "green" if name == winner else ""
            table.add(name, *(column[place] for column in values), style=style)
        return table

    def node_columns(
        self, names: list[str], heads: list[list[str]], values: list[list[int]]
    ) -> TextTable:
        labels = [*(f"{''.join(head[:-1])} {head[-1]}" for head in heads), _TOTAL]
        left, fitting = self.width - max(map(len, labels)) - 3, 0
        for name in names:
            left -= max(len(name), len(str(values[-1][0]))) + 3
            if left < 0 and fitting > 1:
                break
            fitting += 1
        table = _table(self.scorer, *names[:fitting], right=names)
        for label, row in zip(labels, values, strict=True):
            table.add(label, *row[:fitting], style="bold" if label == _TOTAL else "")
        return table

    def lead(self) -> Iterator[Line]:
        """The chosen node compared with the best one that has a lower total."""
        found = margin(self.decision)
        if found is None:
            return
        first, second, points = found
        winner, loser = (self.short(self.decision.feasible[at]) for at in (first, second))
        yield from _heading(f"What puts {winner} ahead of {loser}: {counted(points, 'point')}")
        yield from self.compare(first, second).lines()
        yield from self.numbers(first, second)

    def numbers(self, first: int, second: int) -> Iterator[Line]:
        """How the scores that differ are computed, and from which numbers on both nodes."""
        decision = self.decision
        for gap in score_gaps(decision, first, second)[:_MOST_FORMULAS]:
            formula = formula_of(decision, gap.priority)
            if not formula:
                continue
            yield styled(f"{gap.priority}: {formula}", "dim")
            column = next(each for each in decision.scores if each.name == gap.priority)
            for at in (first, second):
                told = scored_text(decision, column, at)
                text = f"{self.short(decision.feasible[at])}: {told}"
                yield styled(f"  {text}", "dim")

    def formulas(self) -> Iterator[Line]:
        """How every score of the best node is computed, also those that are the same for all."""
        best = ranking(self.decision)[0]
        lines = score_lines(self.decision, [best])
        if not lines:
            return
        yield from _heading(
            f"How the scores of {self.short(self.decision.feasible[best])} come about"
        )
        for line in lines:
            weight = sentences.times(line.weight)
            yield styled(f"{line.priority} {weight}: {line.formula}")
            yield styled(f"  {line.nodes[0][1]}", "dim")

    def compare(self, first: int, second: int) -> TextTable:
        decision = self.decision
        mine, theirs = (self.short(decision.feasible[at]) for at in (first, second))
        numbers = ("WEIGHT", mine, theirs, "POINTS")
        table = _table(self.scorer, *numbers, right=numbers)
        for gap in score_gaps(decision, first, second):
            style = "green" if gap.points > 0 else "red"
            cells = (gap.priority, gap.weight, gap.mine, gap.theirs, f"{gap.points:+d}")
            table.add(*cells, style=style)
        return table

    def volumes(self) -> Iterator[Line]:
        plan = self.decision.volumes
        if plan is None or not (plan.bind or plan.provision):
            return
        yield from _heading("Volumes")
        table = _table("CLAIM", "GETS")
        for claim, volume in plan.bind.items():
            table.add(claim, volume)
        for claim in plan.provision:
            table.add(claim, "a new volume")
        yield from table.lines()

    def devices(self) -> Iterator[Line]:
        plan = self.decision.devices
        allocated = [each for each in plan.claims if each.allocation is not None] if plan else []
        if not allocated:
            return
        yield from _heading("Devices")
        table = _table("CLAIM", "REQUEST", "GETS")
        for each in allocated:
            results = (each.allocation.devices.results if each.allocation else None) or ()
            for result in results:
                device = f"{result.driver}/{result.pool}/{result.device}"
                table.add(each.claim.key, result.request, device)
        yield from table.lines()

    def preemption(self) -> Iterator[Line]:
        preemption = self.decision.preemption
        if self.found.group is not None:
            return  # the group preempts, its pods do not
        if preemption is None or not preemption.candidates:
            sentence = sentences.why_no_preemption(self.decision, never=self.found.never_preempts)
            if sentence:
                yield from _heading("Preemption")
                yield styled(f"  {sentence}")
                yield from self.no_candidates()
            return
        yield from _heading(sentences.preemption_head(preemption))
        if preemption.node is not None:
            why = sentences.criterion_text(preemption)
            yield styled(f"  {self.short(preemption.node)} is chosen: {why}")
        if len(preemption.tie) > 1:
            yield styled(f"  equally good: {self.sample(preemption.tie)}")
        yield from self.candidates(preemption).lines()
        yield from self.victims(preemption.node)
        if preemption.cleared:
            lost = listed([key for _, key in preemption.cleared], _SAMPLE)
            yield styled(f"  lose their nominated node: {lost}")

    def victims(self, chosen: str | None) -> Iterator[Line]:
        """Why the victims on the chosen node, and on the one that is asked about, are victims."""
        causes = self.decision.preemption_causes
        if causes is None:
            return
        asked = self.found.asked.node if self.found.asked is not None else None
        for candidate in causes.candidates:
            if candidate.node in {chosen, asked}:
                for victim in candidate.victims[:_SAMPLE]:
                    text = f"{self.short(candidate.node)}: {victim_text(victim)}"
                    yield styled(f"  {text}", "dim")
        yield from self.no_candidates()

    def no_candidates(self) -> Iterator[Line]:
        """Why evicting pods does not help on the other nodes."""
        causes = self.decision.preemption_causes
        found = causes.no_candidates if causes is not None else ()
        for line in no_candidate_lines(found, _MOST_CAUSES):
            text = f"no candidate: {self.sample(line.nodes)}: {line.text}"
            yield styled(f"  {text}", "dim")

    def candidates(self, preemption: Preemption) -> TextTable:
        """The candidates of preemption, with the criteria in the order in which they apply."""
        columns = ("PDB VIOLATIONS", "TOP PRIORITY", "SUM", "VICTIMS")
        table = _table("NODE", *columns, "PODS TO EVICT", right=columns)
        for name, *cells in islice(sentences.candidate_rows(preemption, _SAMPLE), _MOST_ROWS):
            table.add(self.short(name), *cells, style="yellow" if name == preemption.node else "")
        more = len(preemption.candidates) - _MOST_ROWS
        if more > 0:
            table.add(f"and {more} more", style="dim")
        return table

    def why_not(self, report: NodeReport) -> Iterator[Line]:
        decision = self.decision
        chosen = report.node == decision.node
        yield from _heading(f"Why {report.node}?" if chosen else f"Why not {report.node}?")
        for sentence in sentences.node_sentences(decision, report):
            yield styled(f"  {sentence}")
        if report.position is not None and not chosen and decision.totals is not None:
            winner = ranking(decision)[0]
            if score_gaps(decision, winner, report.position):
                yield from self.compare(winner, report.position).lines()
                yield from self.numbers(winner, report.position)
        if report.room:
            yield styled()
            yield from self.room(report).lines()

    def trace(self, found: DecisionTrace) -> Iterator[Line]:
        """The decision step by step."""
        yield from self.prepared(found)
        if found.filters:
            yield from self.filter_walk(found)
        yield from self.passes(found)
        yield from self.workings(found)
        if found.selection is not None:
            yield from _heading("Choice")
            yield styled(f"  {trace.selection_text(found.selection)}")
        yield from self.eviction_walk(found)

    def prepared(self, found: DecisionTrace) -> Iterator[Line]:
        yield from _heading("Prepared for the pod, once for all nodes")
        table = _table(self.rule, "WHAT", "VALUE")
        for each in found.prepared:
            table.add(each.rule, each.name, trace.prepared_text(each))
        yield from table.lines() if found.prepared else [styled("  nothing", "dim")]

    def filter_walk(self, found: DecisionTrace) -> Iterator[Line]:
        """Each rule in order: for one node, or for all."""
        if found.answers:
            yield from _heading(f"{found.node}, rule by rule")
            table = _table(self.rule, "", "REASON")
            causes = causes_of_node(self.decision, found.node)
            for answer in found.answers:
                style = {True: "", False: "red", None: "dim"}[answer.fits]
                table.add(answer.rule, trace.mark(answer), trace.answer_text(answer), style=style)
                for line in cause_lines((c for c in causes if c.predicate == answer.rule), 5):
                    table.add("", "", f"  {line.text}", style="dim")
            yield from table.lines()
            return
        yield from _heading(f"Rule by rule: {counted(found.asked, 'node')}")
        yield styled(f"  {trace.order_text(found)}", "dim")
        table = _table(self.rule, "", "REJECTED", "LEFT", "WHICH", right=["REJECTED", "LEFT"])
        for step in found.filters:
            style = "red" if step.rejected else "" if step.checks and step.asked else "dim"
            sign, text = trace.step_mark(step), trace.step_text(step)
            cells = (step.rule, sign, step.rejected or "", step.left, text)
            table.add(*cells, style=style)
        yield from table.lines()

    def passes(self, found: DecisionTrace) -> Iterator[Line]:
        """The two passes of nodes with nominated pods, side by side."""
        for each in found.passes:
            if found.node not in {"", each.node}:
                continue
            yield from _heading(f"Asked twice: {trace.passes_head(each)}")
            for note in trace.passes_notes(each):
                yield styled(f"  {note}", "dim")
            table = _table(self.rule, "PASS ONE, WITH THEM", "PASS TWO, WITHOUT")
            for row in trace.passes_rows(each):
                style = "red" if trace.FAILED in row[1] + row[2] else ""
                table.add(*row, style=style)
            yield from table.lines()

    def workings(self, found: DecisionTrace) -> Iterator[Line]:
        """Map, Reduce and sum, with the numbers put in."""
        if not found.sums:
            return
        yield from _heading("Scores, with the numbers put in")
        for step in found.scores:
            yield styled(f"  {step.rule} ×{step.weight}: {step.formula}", "bold")
            if step.uniform:
                yield styled(f"    {trace.same_text(step)}", "dim")
                continue
            width = max(len(self.short(working.node)) for working in step.nodes)
            for working in step.nodes:
                name = self.short(working.node)
                numbers = numbers_of(self.decision, step.rule, working.node)
                lines = [("from", numbers)] if numbers else []
                for what, text in (*lines, *trace.workings(step, working)):
                    style = "dim" if what == "from" else ""
                    yield styled(f"    {name:{width}} {what:6} {text}", style)
                    name = ""
        yield styled("  sum of score × weight", "bold")
        width = max(len(self.short(each.node)) for each in found.sums)
        for each in found.sums:
            equation = trace.equation(each.text, each.total)
            yield styled(f"    {self.short(each.node):{width}} {equation}")

    def eviction_walk(self, found: DecisionTrace) -> Iterator[Line]:
        """The search for victims, and the criteria."""
        for walk in found.evictions:
            yield from _heading(f"Preemption on {trace.eviction_head(walk)}")
            for tried in walk.put_back:
                style = "" if tried.stays else "yellow"
                yield styled(f"  {trace.tried_text(tried)}", style)
        if found.criteria:
            yield from _heading("Which candidate")
            for step in found.criteria:
                yield styled(f"  {trace.criterion_text(step)}")
        preemption = self.decision.preemption
        if preemption is not None and preemption.node is not None:
            yield styled(f"  {preemption.node}: {preemption.criterion}", "bold yellow")

    def room(self, report: NodeReport) -> TextTable:
        promised = any(room.promised for room in report.room)
        columns = ("WANTED", "FREE", "USED", *(["PROMISED"] if promised else []), "ALLOCATABLE")
        table = _table("RESOURCE", *columns, right=columns)
        for room in report.room:
            nominated = (room.promised,) if promised else ()
            amounts = (room.wanted, room.free, room.used, *nominated, room.allocatable)
            cells = (format_amount(room.resource, amount) for amount in amounts)
            style = "red" if room.wanted > room.free else ""
            table.add(room.resource, *cells, style=style)
        return table

    def timings(self) -> Iterator[Line]:
        yield from _heading("Time")
        table = _table("STEP", "MILLISECONDS", right=["MILLISECONDS"])
        for step, seconds in self.found.timings:
            table.add(step, f"{seconds * 1000:.1f}")
        yield from table.lines()
        if self.found.plan:
            yield from _heading("What a scheduler keeps of each rule between such pods")
            plan = _table("RULE", "STAGE", "KEPT", "ASKED AGAIN")
            for each in self.found.plan:
                plan.add(each.rule, each.stage, each.kept, each.again)
            yield from plan.lines()
