"""How findings name files, fields and rows."""

from __future__ import annotations

import os
from collections.abc import Sequence

from traindx_tools.finding import Location
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.shard import Shard

MOST = 5
MOST_COUNTED = 2**26
"""Bytes of a text whose lines are counted."""


def place(shard: Shard, field: str = "") -> Location:
    """The file of a field of a shard."""
    column = shard.columns.get(field)
    return Location(file=column.file if column is not None else shard.name)


def line_of(shard: Shard, index: int) -> int | None:
    """The line (1-based) of a row of a text table; None where lines and rows do not answer to each other."""
    lines = {"csv": 1, "json lines": 0}.get(shard.format)
    path = next((c.file for c in shard.columns.values()), shard.name)
    try:
        if lines is None or shard.numbers is not None or os.path.getsize(path) > MOST_COUNTED:
            return None
        with open(path, "rb") as stream:
            text = stream.read()
    except OSError:
        return None
    held = text.count(b"\n") + (not text.endswith(b"\n"))
    return index + lines + 1 if held == shard.rows + lines else None


def short(shard: Shard) -> str:
    """The shard's file without its folders."""
    return os.path.basename(shard.name.rstrip("/")) or shard.name


def of(field: str, shard: Shard) -> str:
    """`labels of shard_3.npz`; a file that is the field is named once."""
    return f"{field} of {short(shard)}"


def rows(shard: Shard, indices: Array | Sequence[int], count: int | None = None) -> str:
    """`row 3, row 17 and 90 more`."""
    shown = [shard.row(int(i)) for i in indices[:MOST]]
    rest = (len(indices) if count is None else count) - len(shown)
    return ", ".join(shown) + (f" and {rest:,} more" if rest > 0 else "")


def number(value: float) -> str:
    """Four digits."""
    return f"{value:.4g}"


def percent(share: float) -> str:
    """A share in percent, with as many digits as it needs."""
    return f"{100 * share:.1f} %" if share >= 0.001 or share == 0 else f"{100 * share:.2g} %"


def listed(names: Sequence[str], most: int = MOST) -> str:
    """`a, b and 3 more`."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
