"""CSV files of traces: rows with named columns, and errors that name file, line and column."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium.errors import InputError
from podium.objects.reading.encoding import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table."""

    where: str
    line: int
    values: dict[str, str]

    def has(self, column: str) -> bool:
        """Whether the table has the column and the line a value in it."""
        return bool(self.values.get(column))

    def text(self, column: str) -> str:
        """The value of a column, which must not be empty."""
        found = self.values.get(column)
        if not found:
            raise self.error(column, "has no value")
        return found

    def whole(self, column: str) -> int:
        """The value of a column as a whole number that is not negative."""
        text = self.text(column)
        if not text.isdecimal():
            raise self.error(column, f"is {text!r}, expected a whole number, 0 or more")
        return int(text)

    def number(self, column: str) -> float:
        """The value of a column as a number that is not negative."""
        text = self.text(column)
        try:
            found = float(text)
        except ValueError:
            found = -1.0
        if not 0 <= found < float("inf"):
            raise self.error(column, f"is {text!r}, expected a number, 0 or more")
        return found

    def error(self, column: str, what: str) -> InputError:
        """An error about the value of a column."""
        return InputError(what, where=self.where, path=f"line {self.line}: {column}")


class CsvTable:
    """A CSV file with a line of column names; gzip is unpacked."""

    def __init__(self, where: str, content: bytes) -> None:
        self.where = where
        if content.startswith(_GZIP):
            try:
                content = gzip.decompress(content)
            except (OSError, EOFError, zlib.error) as error:
                raise InputError(f"is not a whole gzip file: {error}", where=where) from None
        try:
            self._text = text_of(content)
        except InputError as error:
            raise error.located(where=where) from None
        self.columns: tuple[str, ...] = tuple(next(csv.reader(io.StringIO(self._text)), ()))

    def needs(self, *columns: str) -> None:
        """Refuse the table if it lacks one of these columns."""
        missing = [column for column in columns if column not in self.columns]
        if missing:
            hint = f"its first line names the columns: {', '.join(self.columns) or 'none'}"
            raise InputError(f"has no column {missing[0]}", where=self.where, hint=hint)

    def rows(self) -> Iterator[Row]:
        """The lines after the first."""
        lines = csv.reader(io.StringIO(self._text))
        next(lines, None)
        for values in lines:
            if not values:
                continue
            if len(values) > len(self.columns):
                what = f"has {len(values)} values for {len(self.columns)} columns"
                raise InputError(what, where=self.where, path=f"line {lines.line_num}")
            pairs = zip(self.columns, values, strict=False)
            yield Row(self.where, lines.line_num, {k: v.strip() for k, v in pairs})
