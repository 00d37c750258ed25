"""Many rows with copies of one pod added, a number of copies per row.

Only the resource numbers of the rows change: what rules of the scopes `NODE` and `RESOURCES` read.
Nothing is written to the view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from podium.engine.rows.rows import ManyRows

if TYPE_CHECKING:
    import numpy as np

    from podium.engine.state.pod_class import PodClass
    from podium.engine.state.view import View


class FilledRows(ManyRows):
    """Rows of the view, with *copies* pods of the class *cls* added to each."""

    __slots__ = ("cls", "copies")
    modified = True

    def __init__(self, view: View, index: np.ndarray, cls: PodClass, copies: np.ndarray) -> None:
        super().__init__(view, index)
        self.cls, self.copies = cls, copies

    @override
    def only(self, places: np.ndarray) -> FilledRows:
        return FilledRows(self.view, self.index[places], self.cls, self.copies[places])

    @override
    def requested(self, resource: int) -> Any:
        taken = sum(amount for column, amount in self.cls.taken if column == resource)
        return super().requested(resource) + self.copies * taken

    @override
    def nonzero_requested(self, resource: int) -> Any:
        each = self.cls.nonzero_requests[resource]
        return super().nonzero_requested(resource) + self.copies * each

    @override
    def pod_count(self) -> Any:
        return super().pod_count() + self.copies
