"""How large a value may grow that holds other values, so that whoever walks over one comes to an end.

Shared objects make small programs large: after 30 lines of `m = nn.Sequential(m, m)` a walk over the last one passes
a billion layers. A container therefore knows how many parts a walk over it passes, and keeps at most `MOST_PARTS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MOST_PARTS = 2_000
"""Most parts that a walk over a nested value passes; the largest models written out by hand have some hundreds."""
MOST_LEVELS = 40
"""Deepest nesting of values; a Python function that recurses over one stays far from the interpreter's own limit."""


class Nested:
    """A value that holds values. `parts` and `levels` are those of a full walk; `cut` says that something was left out.

    Plain values directly inside are always kept (a dict of 5,000 numbers is no nesting), and so is the first container.
    """

    parts: int = 1
    levels: int = 1
    cut: bool = False

    def kept(self, items: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Those of the keyed items for which there is room; sets `parts`, `levels` and `cut`."""
        found: list[tuple[Any, Any]] = []
        total, levels, held = 1, 1, False
        for key, item in items:
            if isinstance(item, Nested):
                if item.levels >= MOST_LEVELS or (held and total + item.parts > MOST_PARTS):
                    self.cut = True
                    continue
                held, levels = True, max(levels, item.levels + 1)
                total += item.parts
            else:
                total += 1
            found.append((key, item))
        self.parts, self.levels = total, levels
        return found
