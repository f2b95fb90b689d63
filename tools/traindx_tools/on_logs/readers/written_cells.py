"""Cells of a table that are numbers with words (percent signs, units, quoted decimal commas), and those that are none.

"12.3 %", "3.2s", "1.9 GB" and "2.1 nats" are numbers where all of a column is written so. What cannot be read in a
column whose name is that of a metric is counted, for a person has to know that it was not judged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from traindx_tools.on_logs.readers.names import identify
from traindx_tools.on_logs.readers.numbers import as_memory, unit, value

_QUANTITY = re.compile(r"([+-]?[\d.,]+(?:[eE][+-]?\d+)?)(\s*)([^\W\d_][^\W\d_]*(?:/[^\W\d_]+)?|%)")
_DIGIT = re.compile(r"\d")
_ABSENT = frozenset({"", "-", "--", "—", "n/a", "na", "none", "null", "?", ".", "true", "false"})
_QUOTED_COMMA = re.compile(r'"\s*([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)(\s*[^",\d]{0,12})"')
_NO_THOUSANDS = re.compile(r'"\s*[+-]?(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))(?:[eE][+-]?\d+)?\s*[^",\d]{0,12}"')
_BEGINS = frozenset("+-.0123456789")
FEWEST = 3
"""Cells in quotes that can only be decimal commas, from which on all of them are."""
LONGEST = 60
"""Characters of a cell that are shown, and that a quantity may have."""
MOST_TOLD = 3
"""Columns that are named one by one."""


def has_quoted_commas(text: str) -> bool:
    """Whether the numbers of a comma-separated table are written "0,693" in quotes: three at least no thousands."""
    return len(_NO_THOUSANDS.findall(text)) >= FEWEST


def with_quoted_points(line: str) -> str:
    """The line with decimal points for the decimal commas in quotes."""
    return _QUOTED_COMMA.sub(r'"\1.\2\3"', line) if '"' in line else line


@dataclass
class _Column:
    """What was met in a column: the unit that its numbers have, and cells that are none."""

    measured: bool
    """Whether its name is that of a metric, and cannot be that of a setting ("precision")."""
    unit: str | None = None
    unread: int = 0
    first: tuple[int, str] = (0, "")
    numbers: bool = False
    """Whether cells that could not be read hold digits."""


@dataclass
class WrittenCells:
    """Reads the cells that are no plain numbers, and remembers those that could not be read."""

    texts: bool = False
    """Whether cells may be texts of any kind (JSON): then a name that is no metric's needs a unit that is one, and only
    what begins as a number is counted."""
    _columns: dict[str, _Column] = field(default_factory=dict)

    def read(self, line: int, names: Sequence[str], cells: Sequence[object], values: Sequence[float | None]
             ) -> list[float | None]:
        """The values of the metric columns of a row, with those filled in that are quantities."""
        return [value if value is not None or not isinstance(cell, str) or not self._may_be_one(cell.strip())
                else self._quantity(line, name, cell.strip())
                for name, cell, value in zip(names, cells, values, strict=True)]

    def _may_be_one(self, cell: str) -> bool:
        return cell[:1] in _BEGINS if self.texts and cell else cell.lower() not in _ABSENT

    def _quantity(self, line: int, name: str, cell: str) -> float | None:
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = _Column(_is_measured(name))
        read = _number(cell, name, column) if column.measured or not self.texts else _of_unit(cell)
        if read is not None:
            return read
        if not column.unread:
            column.first = (line, cell[:LONGEST])
        column.unread += 1
        column.numbers = column.numbers or _DIGIT.search(cell) is not None
        return None

    def remark(self, read: Mapping[str, int]) -> str:
        """Which metric columns hold what is mostly no number, with an example and what to do; "" where none do.

        `read`: how many numbers were read of each column.
        """
        bad = [(name, c) for name, c in self._columns.items() if c.measured and c.unread > read.get(name, 0)]
        told = [_told(name, c) for name, c in bad[:MOST_TOLD]]
        more = f"{len(bad) - MOST_TOLD} more columns likewise" if len(bad) > MOST_TOLD else ""
        return "; ".join(filter(None, (*told, more)))


def _is_measured(name: str) -> bool:
    own = identify(name)
    return own.known and own.measured


def _told(name: str, column: _Column) -> str:
    line, cell = column.first
    what = "are text around numbers" if column.numbers else "are words"
    todo = "write the number alone, or one unit behind it" if column.numbers else "write its values as numbers"
    return f'column "{name}" was not read: {column.unread:,} of its cells {what}, first "{cell}" in line {line}: {todo}'


def _of_unit(cell: str) -> float | None:
    """The number of a cell with a unit of time, memory or speed, whatever it is of: "12 ms", but no "7B"."""
    match = _QUANTITY.fullmatch(cell) if len(cell) <= LONGEST else None
    number = value(match[1]) if match is not None else None
    found = unit(match[3], not match[2]) if match is not None else None
    return None if number is None or found is None or found[0] == "count" else number * found[1]


def _number(cell: str, name: str, column: _Column) -> float | None:
    """The number of a cell with a unit: a known one in the canonical unit, another where the column has just one."""
    match = _QUANTITY.fullmatch(cell) if len(cell) <= LONGEST else None
    number = value(match[1]) if match is not None else None
    if match is None or number is None:
        return None
    word, glued = match[3], not match[2]
    if word == "%":
        return number
    found, own = unit(word, glued), identify(name)
    if found is not None:
        factor = as_memory(word) if own.canonical.startswith("memory") and glued else None
        return number * ((factor or found[1]) if own.factor == 1.0 else 1.0)
    if glued or not own.known or (column.unit or word) != word:
        return None
    column.unit = word
    return number
