"""Whole numbers that a program states, and ranges of ids between them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from traindx_tools.on_code.syntax import Syntax


@dataclass(frozen=True)
class Number:
    """A whole number, or the length of something (`of`) plus one number."""

    value: int
    of: str = ""
    name: str = field(default="", compare=False)

    def shifted(self, by: int) -> Number:
        """A number so much higher."""
        return Number(self.value + by, self.of, self.name)

    def __str__(self) -> str:
        if not self.of:
            return str(self.value)
        return f"len({self.name})" + (f" {'+' if self.value > 0 else '-'} {abs(self.value)}" if self.value else "")


@dataclass(frozen=True)
class Range:
    """The lowest and the highest number that occur, and where they are made."""

    low: int
    high: Number
    code: Syntax
    made: ast.AST


def union(found: list[Range | None], whole: bool = False) -> Range | None:
    """What any of several holds. `whole`: nothing where one is not known."""
    known = [r for r in found if r is not None]
    if not known or (whole and len(known) != len(found)):
        return None
    plain = [r for r in known if not r.high.of]
    highest = max(plain, key=lambda r: r.high.value) if plain else known[0]
    return Range(min(r.low for r in known), highest.high, highest.code, highest.made)


def beyond(highest: Number, size: Number) -> bool:
    """Whether the highest number certainly has no place among `size`, which are numbered from 0."""
    return highest.of == size.of and highest.value >= size.value
