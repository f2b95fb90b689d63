"""Names with numbers in them that the program holds, or reads files by, in the order of their signs.

`scan10` comes before `scan2` there. That is harmless by itself, and a fault where something else goes by the numbers
(labels, rows of an array). An experiment decides: the part `names-by-text` says that it has something to take hold of.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import Any

from traindx_tools.live.files_read import FileRead
from traindx_tools.live.number_order import FEWEST, by_number, texts_of
from traindx_tools.on_variables.visiting import visit

PART = "names-by-text"
LOOKED_AT = 2_000
"""Names of a list from its start on, by which its order is known."""
SECONDS = 0.1
"""Of this thread's processor time that a look may take."""


def seen(read: Sequence[FileRead] = (), seconds: float = SECONDS) -> str:
    """Where such names are, "" where there are none: files in the order in which one line opened them first, lists."""
    for files in _by_line(read):
        found = apart([os.path.basename(f.path) for f in files])
        if found:
            line = f"{os.path.basename(files[0].file)}:{files[0].line}"
            return f"{line} reads {len(files)} files in the order of their signs, {found}"
    for held in visit(_listed, seconds):
        name = f"{held.path} of {os.path.basename(held.file)}"
        return f"{name} holds {len(held.value)} names in the order of their signs, {held.taken}"
    return ""


def apart(names: Sequence[str]) -> str:
    """Two names whose order by sign is not that by number, where all are in the order of their signs; else ""."""
    if len(names) < FEWEST or any(a >= b for a, b in pairwise(names)):
        return ""
    return next((f"{a!r} before {b!r}" for a, b in pairwise(names) if by_number(a) > by_number(b)), "")


def _listed(value: Any) -> str | None:
    if type(value) not in (list, tuple) or len(value) < FEWEST:
        return None
    texts = texts_of(list(islice(value, LOOKED_AT)))
    if texts is None:
        return None
    return apart([os.path.basename(t) for t in texts]) or apart(texts) or None


def _by_line(read: Sequence[FileRead]) -> list[list[FileRead]]:
    groups: dict[tuple[str, int, str], list[FileRead]] = {}
    for one in read:
        if one.file:
            groups.setdefault((one.file, one.line, os.path.dirname(one.path)), []).append(one)
    return list(groups.values())
