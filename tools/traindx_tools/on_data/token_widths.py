"""Files of tokens without a header whose numbers have another width than their siblings' or than is declared."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_data.names import pattern_of, split_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View

_FORMATS = {"tokens (uint8)": "uint8", "tokens (uint16)": "uint16", "tokens (uint32)": "uint32"}

WIDTHS = {"uint8": 1, "uint16": 2, "uint32": 4}
"""Bytes of a number."""
WHOLE = 4
"""Files of a series that are whole multiples of a width: of 2 bytes by chance once in 16, and their bytes look so."""


@dataclass(frozen=True, eq=False)
class OtherWidth:
    """A file, what its numbers are, and what reads its siblings takes them for."""

    shard: Shard
    dtype: str
    expected: str
    siblings: int
    """Files of the same series that are as expected."""
    declared_by: str
    """Where the expected type is written down, "" where only the siblings tell."""
    others: int = 0
    """More files of the series that differ as this one does."""


def other_widths(view: View) -> Iterator[OtherWidth]:
    """For each series the files that differ; one where all do, and none where neither siblings nor a setting decide."""
    for series in _series(view):
        having = {s: _FORMATS[s.format] for s in series}
        declared = view.hints.token_dtype
        expected = declared or _usual(list(having.values()))
        odd = [s for s in series if having[s] != expected] if expected else []
        if len(odd) == len(series) and set(having.values()) == {"uint8"}:
            continue  # bytes that nobody reads as tokens, such as the text itself
        sound = len(series) - len(odd)
        by = view.hints.told_by.get("token_dtype", "a setting") if declared else ""
        if odd and not sound:
            yield OtherWidth(odd[0], having[odd[0]], expected, 0, by, len(odd) - 1)
        else:
            yield from (OtherWidth(s, having[s], expected, sound, by) for s in odd)


def width_is_told(view: View, shard: Shard) -> bool:
    """Whether something beside a file of tokens says how wide its numbers are.

    A dtype that a setting or the code names, a vocabulary that needs as many bytes, or siblings that are all whole.
    """
    width = WIDTHS[_FORMATS[shard.format]]
    hints = view.hints
    if hints.token_dtype:
        return WIDTHS[hints.token_dtype] == width
    highest = max(hints.highest_id or 0, (hints.vocabulary or 1) - 1)
    if highest > 255:
        return highest < 256**width and not (width == 4 and highest < 2**16)
    series = next(s for s in _series(view) if shard in s)
    whole = [s for s in series if s is not shard and s.format == shard.format and not s.damage]
    return len(whole) >= WHOLE and len(whole) >= 0.75 * len(series)


def _series(view: View) -> list[list[Shard]]:
    """Files of one folder, but for the split, whose names differ by split and number only."""
    found: dict[tuple[str, str], list[Shard]] = {}
    for shard in (s for d in view.sets for s in d.shards if s.format in _FORMATS):
        folder, base = os.path.split(shard.name)
        parts = [p for p in folder.split(os.sep) if not split_of(p)]
        found.setdefault((os.sep.join(parts), pattern_of(os.path.splitext(base)[0])), []).append(shard)
    return list(found.values())


def _usual(dtypes: list[str]) -> str:
    """What all but a few of three files and more have, "" where that is not so."""
    common, count = Counter(dtypes).most_common(1)[0]
    return common if len(dtypes) >= 3 and len(dtypes) - count <= max(1, len(dtypes) // 4) else ""
