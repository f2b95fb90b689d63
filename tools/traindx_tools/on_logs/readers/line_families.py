"""Records of a block that are taken together however many digits their numbers have.

Three ways, the quickest first, each for what the one before has left: patterns that an earlier block had
(`line_patterns.py`), families of lines that differ in their digits only (`arrow_cells.py`), and what is left is grouped
by where its digits stand. The first two need pyarrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from traindx_tools.on_logs.readers import arrow_cells
from traindx_tools.on_logs.readers.arrow_cells import Cells
from traindx_tools.on_logs.readers.growing import unknown
from traindx_tools.on_logs.readers.line_blocks import DIGITS_AS_ZEROS, Block, Cuts, Group
from traindx_tools.on_logs.readers.line_numbers import NOWHERE, Place, place
from traindx_tools.on_logs.readers.line_patterns import Pattern, pattern_of, varied
from traindx_tools.on_logs.readers.line_times import times
from traindx_tools.on_logs.readers.line_tokens import split
from traindx_tools.on_logs.readers.numbers import kinds
from traindx_tools.on_logs.readers.prefixes import Prefix
from traindx_tools.on_logs.run import Floats, Ints

if TYPE_CHECKING:
    from traindx_tools.on_logs.readers.line_shapes import Shape
    from traindx_tools.on_logs.readers.text_reading import TextReading

FEWEST = 48
"""Lines of a family in a block below which it is not taken by itself."""
MOST_REFUSED = 3
"""Blocks in which pyarrow did not take a family after which it is asked no more."""
MOST_PATTERNS = 4
"""Patterns that are looked for in each block: those that had lines last."""
MOST_IDLE = 3
"""Blocks without a line of a pattern after which it is looked for no more."""


@dataclass(eq=False)
class Rows:
    """The lines of one shape in a block, and their numbers."""

    shape: Shape
    tokens: tuple[Place, ...]
    """Of each token that the plan needs: step, its total, epoch, its total, then the fields."""
    places: Ints
    block: Block
    numbers: list[Floats] = field(default_factory=list)
    """Empty until they are converted."""

    @cached_property
    def times(self) -> Floats:
        """Seconds of each line, NaN where it has none."""
        at = self.shape.prefix.time_at
        return unknown(len(self.places)) if at is None else times(self.block, self.places, at)

    def within(self, start: int, end: int) -> slice:
        """Which of the lines lie between two places of the block."""
        return slice(*np.searchsorted(self.places, (start, end)))


def in_columns(shape: Shape, mask: bytes) -> tuple[Place, ...] | None:
    """Where the numbers of lines of a shape are, which are records and can be taken together; None for others."""
    plan, prefix = shape.plan, shape.prefix
    if not shape.ready or plan.bar or plan.rank is not None or prefix.rank_at is not None or prefix.rank is not None:
        return None
    if shape.fitting or shape.commas or shape.divided or not mask.isascii() or len({*shape.keys}) != len(shape.keys):
        return None
    found = [NOWHERE if t < 0 else place(*shape.spans[t], mask[slice(*shape.spans[t])]) for t in shape.tokens]
    known = tuple(p for p in found if p is not None)
    if len(known) < len(found) or any(p.constant == p.constant or (p.end and not p.differs) for p in known[:4]):
        return None  # a step that is no number is for the other way
    return known


@dataclass(eq=False)
class _Known:
    """A pattern with what its lines say. `bare`: its first line without digits; `idle`: blocks since it had lines."""

    shape: Shape
    pattern: Pattern
    bare: bytes
    idle: int = 0


class Families:
    """Takes records of blocks for a `TextReading`."""

    def __init__(self, reading: TextReading) -> None:
        self.reading = reading
        self._here: bool | None = None
        self._known: dict[bytes, tuple[Shape, Cells] | None] = {}
        self._refused: dict[tuple[Cells, int], int] = {}
        self._patterns: list[_Known] = []

    def taken(self, block: Block) -> tuple[list[Rows], list[Group]]:
        """What could be taken of a block, and the groups of the other lines."""
        rows = self._by_patterns(block)
        if self._here is False or len(block) < arrow_cells.FEWEST:
            return rows, block.groups if not rows else block.groups_among(block.without([r.places for r in rows]))
        left = block.without([r.places for r in rows]) if rows else block.short
        if len(left) < arrow_cells.FEWEST:
            return rows, block.groups_among(left)
        rest: list[Ints] = []
        together: dict[tuple[Cells, int], tuple[Shape, list[Ints]]] = {}
        for bare, places in block.other_families:
            found = self._cells(bare, block, int(places[0])) if len(places) >= FEWEST else None
            if found is None:
                rest.append(places)
            else:  # with and without an exponent
                shape, cells = found
                together.setdefault((cells, id(shape.plan)), (shape, []))[1].append(places)
        for (cells, plan), (shape, parts) in together.items():
            places = parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))
            enough = len(places) >= arrow_cells.FEWEST and self._refused.get((cells, plan), 0) < MOST_REFUSED
            unread = self._rows(block, places, shape, cells, rows) if enough else places
            if enough and len(unread) == len(places):
                self._refused[cells, plan] = self._refused.get((cells, plan), 0) + 1
            rest.append(unread)
        others = np.sort(np.concatenate(rest)) if rest else np.zeros(0, np.int64)
        return rows, block.groups if not rows else block.groups_among(others)

    def _by_patterns(self, block: Block) -> list[Rows]:
        """The lines that have a pattern which is known."""
        rows: list[Rows] = []
        cuts: dict[bytes, Cuts] = {}
        for one in self._patterns:
            if rows and sum(len(r.places) for r in rows) == len(block):
                break
            separators = one.pattern.separators
            if separators not in cuts:
                cuts[separators] = block.cut_at(separators, one.pattern.order)
            told = one.pattern.found(block, cuts[separators])
            one.idle = one.idle + 1 if told is None else 0
            if told is not None:
                places, numbers = told
                rows.append(_in_order(one.shape, places, block, numbers))
                block.told.append((one.bare, places))
        self._patterns = sorted((k for k in self._patterns if k.idle < MOST_IDLE), key=lambda k: k.idle)
        return rows

    def _rows(self, block: Block, places: Ints, shape: Shape, cells: Cells, rows: list[Rows]) -> Ints:
        """Adds the lines of a family; those that are left."""
        fits = arrow_cells.with_prefix(block, places, cells.prefix)
        mine = places[fits]
        numbers = arrow_cells.converted(block, mine, cells) if len(mine) else None
        if numbers is None:
            return places
        rows.append(_in_order(shape, mine, block, numbers))
        return places[~fits]

    def _cells(self, bare: bytes, block: Block, at: int) -> tuple[Shape, Cells] | None:
        """What is known of a family; it is learned from its first line."""
        if bare not in self._known:
            if self._here is None:
                self._here = arrow_cells.is_here()
            self._known[bare] = self._learned(bare, block, at) if self._here else None
        return self._known[bare]

    def _learned(self, bare: bytes, block: Block, at: int) -> tuple[Shape, Cells] | None:
        line = block.data[block.starts[at]:block.ends[at]]
        mask = line.translate(DIGITS_AS_ZEROS)
        shape = self.reading.known(mask)
        if shape is None:
            shape = self.reading.learn(block.text(at), mask)
        if not line.isascii() or in_columns(shape, mask) is None:
            return None
        pattern = self._pattern(shape, line)
        if pattern is not None:
            self._patterns = [_Known(shape, pattern, bare), *self._patterns[:MOST_PATTERNS - 1]]
        cells = arrow_cells.cells_of(line, shape.spans, shape.prefix.end)
        return None if cells is None else (shape, cells)

    def _pattern(self, shape: Shape, line: bytes) -> Pattern | None:
        """The pattern of a line of a shape, where other numbers in it are understood in the same way."""
        if self.reading.forms or not arrow_cells.may_vary(line, shape.spans, shape.prefix.end):
            return None
        preferred = [k.pattern.separators for k in self._patterns]
        pattern = pattern_of(line, shape.spans, shape.prefix.end, preferred)
        if pattern is None or any(k.pattern.gaps == pattern.gaps and k.pattern.prefix == pattern.prefix
                                  and k.pattern.kinds == pattern.kinds for k in self._patterns):
            return None
        text = line.decode()
        parts = split(text[shape.prefix.end:])
        if [text[a:b] for a, b in shape.spans] != parts[1::2]:
            return None
        same = (self._alike(shape.prefix, parts, other, numbers)
                for other, numbers in varied(text, shape.spans, pattern.kinds))
        return pattern if all(same) else None

    def _alike(self, prefix: Prefix, parts: list[str], other: str, numbers: list[str]) -> bool:
        """Whether another line, of which these are the numbers, has a prefix and the parts of a line, numbers aside."""
        its = self.reading.launched.prefix(other)
        cut = split(other[its.end:])
        return (replace(its, time=prefix.time, rank=prefix.rank) == prefix and cut[1::2] == numbers
                and cut[::2] == parts[::2] and kinds(cut[1::2]) == kinds(parts[1::2]))


def _in_order(shape: Shape, places: Ints, block: Block, numbers: Sequence[Floats]) -> Rows:
    """Lines with the numbers that the plan of their shape needs."""
    nothing = unknown(len(places))
    return Rows(shape, (), places, block, [nothing if t < 0 else numbers[t] for t in shape.tokens])
