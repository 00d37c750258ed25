"""One row of the view, as plain ints: the other form in which a rule reads rows (see `rows`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.engine.state.int64 import TOP, wrap
from podium.engine.state.pod_class import ANY_IP, Port
from podium.engine.state.tallies import Flags, Ints, Tally
from podium.engine.state.verdicts import FITS, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

    import numpy as np

    from podium.engine.state.pod_class import Resident
    from podium.engine.state.view import FactColumn, ImageState, View
    from podium.objects.selectors.selectors import FieldSelector, Requirement

NAME_FIELD = "metadata.name"


def conflict(used: Port, wanted: Port) -> bool:
    """Whether two host ports exclude each other; the ip 0.0.0.0 stands for all of them."""
    if used[1:] != wanted[1:]:
        return False
    return used[0] == wanted[0] or ANY_IP in (used[0], wanted[0])


def code_of(verdicts: Any, predicate: str, bits: int, reasons: tuple[Reason, ...]) -> int:
    """The verdict code of the reasons whose bits are set."""
    if not bits:
        return FITS
    chosen = tuple(reason for i, reason in enumerate(reasons) if bits >> i & 1)
    return verdicts.of(predicate, chosen)  # type: ignore[no-any-return]


class OneRow:
    """One row of a view, read as plain ints."""

    __slots__ = ("errors", "position", "row", "view")
    on_trial = False

    def __init__(
        self, view: View, row: int, errors: dict[int, str] | None = None, position: int = 0
    ) -> None:
        self.view = view
        self.row = row
        self.errors: dict[int, str] = {} if errors is None else errors
        self.position = position

    def __len__(self) -> int:
        return 1

    @property
    def name(self) -> str:
        """The node's name."""
        return self.view.names[self.row]

    @property
    def node_labels(self) -> dict[str, str]:
        """The node's labels."""
        node = self.view.nodes[self.row]
        return node.labels if node is not None else {}

    # Columns
    def room(self) -> tuple[int, ...]:
        """All that the row has and that its pods use up."""
        view, row = self.view, self.row
        columns = (*view.requested, *view.allocatable, *view.assumed)
        return (
            view.pod_count.item(row),
            view.allowed_pods.item(row),
            *[column.item(row) for column in columns],
        )

    def requested(self, resource: int) -> Ints:
        """As in ManyRows."""
        return self.view.requested[resource].item(self.row)

    def allocatable(self, resource: int) -> Ints:
        """As in ManyRows."""
        return self.view.allocatable[resource].item(self.row)

    def assumed(self, resource: int) -> Ints:
        """As in ManyRows."""
        return self.view.assumed[resource].item(self.row)

    def pod_count(self) -> Ints:
        """As in ManyRows."""
        return self.view.pod_count.item(self.row)

    def allowed_pods(self) -> Ints:
        """As in ManyRows."""
        return self.view.allowed_pods.item(self.row)

    def on_row(self, tally: Tally) -> Ints:
        """As in ManyRows."""
        return tally.on(self.row)

    def domain(self, tally: Tally, key: str) -> Ints:
        """As in ManyRows."""
        return tally.in_domain(key, self.view.label_column(key).ids.item(self.row))

    def look_up(self, table: np.ndarray, key: str) -> Any:
        """As in ManyRows."""
        return table.item(self.label_ids(key))

    def weighted_domain(self, weighted: list[tuple[int, Tally]], key: str) -> Ints:
        """As in ManyRows."""
        return sum(weight * self.domain(tally, key) for weight, tally in weighted)

    def total(self, tally: Tally, key: str) -> int:
        """As in ManyRows."""
        return tally.total(key)

    def residents(self) -> list[Resident]:
        """The pods of the row, in their order."""
        return self.view.residents[self.row]

    # Node facts
    def fact(self, column: FactColumn, answer: Callable[[Any], int | bool]) -> Ints:
        """As in ManyRows."""
        return answer(column.values[column.ids.item(self.row)])

    def accepts(self, requirement: Requirement) -> Flags:
        """As in ManyRows."""
        return requirement.accepts(self.node_labels.get(requirement.key))

    def has_label(self, key: str) -> Flags:
        """As in ManyRows."""
        return key in self.node_labels

    def label_ids(self, key: str) -> Ints:
        """As in ManyRows."""
        return self.view.label_column(key).ids.item(self.row)

    def named(self, fields: FieldSelector) -> Flags:
        """As in ManyRows."""
        return fields.matches({NAME_FIELD: self.name})

    def is_node(self, name: str) -> Flags:
        """As in ManyRows."""
        return self.name == name

    def port_conflict(self, wanted: Iterable[Port]) -> Flags:
        """As in ManyRows."""
        return any(conflict(port, other) for port in self.ports() for other in wanted)

    def ports(self) -> set[Port]:
        """The host ports in use on the row."""
        return self.view.ports[self.row]

    def image(self, name: str, answer: Callable[[ImageState], Ints]) -> Ints:
        """As in ManyRows."""
        state = self.view.images.get(name, {}).get(self.row)
        return answer(state) if state is not None else 0

    # Arithmetic
    def full(self, value: int | bool) -> Any:  # noqa: FBT001 - a constant column
        """As in ManyRows."""
        return value

    def where(self, condition: Flags, yes: Ints, no: Ints) -> Ints:
        """As in ManyRows."""
        return yes if condition else no

    def divide(self, number: Ints, by: Ints) -> Ints:
        """As in ManyRows."""
        if by == 0:
            return 0
        quotient = abs(number) // abs(by)
        return -quotient if (number < 0) != (by < 0) else quotient

    def ratio(self, number: Ints, by: Ints) -> Any:
        """As in ManyRows."""
        return float(number) / float(by) if by else 1.0

    def truncate(self, number: Any) -> Ints:
        """As in ManyRows."""
        return int(number) if -TOP <= number < TOP else -TOP

    def wrap(self, number: Ints) -> Ints:
        """As in ManyRows: plain ints must be told to."""
        return wrap(number)

    def highest(self, number: Ints) -> int:
        """As in ManyRows."""
        return int(max(0, number))

    # Verdicts
    def some(self, bits: Ints) -> bool:
        """As in ManyRows."""
        return bool(bits)

    def codes(self, predicate: str, bits: Ints, reasons: tuple[Reason, ...]) -> Ints:
        """As in ManyRows."""
        return code_of(self.view.verdicts, predicate, int(bits), reasons)

    def either(self, many: Callable[[], Ints], one: Callable[[OneRow], int]) -> Ints:  # noqa: ARG002
        """As in ManyRows."""
        return one(self)

    def each(self) -> Iterator[tuple[int, OneRow]]:
        """As in ManyRows."""
        yield self.position, self

    def map(self, answer: Callable[[OneRow], int]) -> Ints:
        """As in ManyRows."""
        return answer(self)

    def sparse(self, rows: Container[int], answer: Callable[[OneRow], int], other: int = 0) -> Ints:  # noqa: ARG002
        """As in ManyRows; a single row is always asked, since a trial may have changed it."""
        return answer(self)

    def by_signature(self, flags: list[Flags], answer: Callable[[tuple[bool, ...]], int]) -> Ints:
        """As in ManyRows."""
        return answer(tuple(map(bool, flags)))

    def fail_where(self, flags: Flags, text: str) -> None:
        """As in ManyRows."""
        if flags:
            self.errors.setdefault(self.position, text)

    def fail(self, text: str) -> Ints:
        """As in ManyRows."""
        self.errors.setdefault(self.position, text)
        return FITS
