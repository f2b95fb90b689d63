"""Names of the columns of what a model is given, from a table with as many columns among the user's variables."""

from __future__ import annotations

import sys
import time
from typing import Any

from traindx_tools.on_variables.roots import roots

MOST_COLUMNS = 512
SECONDS = 0.5


def column_names(columns: int, rows: int) -> tuple[str, ...]:
    """The names of the only kind of table (pandas) that has so many columns and at least so many rows; else none."""
    pandas: Any = sys.modules.get("pandas")
    frame = getattr(pandas, "DataFrame", None)
    if not isinstance(frame, type) or not 2 <= columns <= MOST_COLUMNS:
        return ()
    until, found = time.monotonic() + SECONDS, set()
    for _, _, _, value in roots():
        if time.monotonic() > until:
            return ()
        if type(value) is frame:
            table: Any = value
            if len(table.columns) == columns and len(table) >= rows:
                found.add(tuple(str(c) for c in table.columns))
    return next(iter(found)) if len(found) == 1 else ()
