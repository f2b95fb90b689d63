"""Which number each class has, as the files of a split say it: in lists of files with a number, or in maps of names.

`images/cat/001.jpg 3` says that cat is 3, where the folder (or the first word of the name) tells the number in all
lines of the file. What a file says is held against what the file of another split says of the same names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traindx_tools.on_data.column import Column
from traindx_tools.on_data.name_list import NameList
from traindx_tools.on_data.names import pattern_of, split_of, words_only
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet

AGREE = 0.99
"""Share of the lines whose name has its number."""
FEWEST_LINES = 20
FEWEST_NAMES, MOST_NAMES = 2, 2000
EACH = 3
"""Lines of a name."""
MOST_BYTES = 8 * 2**20
MOST_ROWS = 20_000
"""Of a table, evenly spaced."""
MOST_FILES = 40
SPARSE = 3
"""Numbers are below this many times the names: larger ones are counts or ids."""
_LINE = re.compile(r"(\S.*?)[\s,;]+(\d{1,6})")
_NAME = re.compile(r".*\.[A-Za-z0-9]{1,8}")


@dataclass(frozen=True, eq=False)
class Numbered:
    """What one file says. `rows`: lines by name, empty where it is a list of names."""

    file: str
    split: str
    pattern: str
    numbers: Mapping[str, int]
    rows: Mapping[str, int]
    shard: Shard | None = None
    field: str = ""


def numbered_of(files: Iterable[tuple[Path, str]]) -> tuple[Numbered, ...]:
    """What text files say that list files, each with a number."""
    out = []
    for path, name in [f for f in files if f[0].suffix.lower() in (".txt", ".lst", ".list")][:MOST_FILES]:
        try:
            text = path.read_text(encoding="utf-8") if path.stat().st_size <= MOST_BYTES else ""
        except (OSError, UnicodeDecodeError):
            continue
        found = [_LINE.fullmatch(line.strip()) for line in text.splitlines() if line.strip()]
        lines = [m for m in found if m is not None and _NAME.fullmatch(m[1])]
        if len(lines) >= FEWEST_LINES and len(lines) == len(found):
            made = _numbers([m[1] for m in lines], [int(m[2]) for m in lines])
            if made is not None:
                out.append(Numbered(name, _split(name), pattern_of(path.stem), *made))
    return tuple(out)


def of_tables(sets: Sequence[DataSet]) -> Iterator[Numbered]:
    """What tables say of a column of names of files beside a column of whole numbers."""
    for shard in (s for d in sets for s in d.shards):
        paths = [c for c in shard.columns.values() if _lists_files(c, shard)]
        for number in shard.columns.values() if paths else ():
            if number.kind != "number" or number.row_shape or number.values.dtype.kind not in "iu" or (
                    number.rows != shard.rows or number.missing is not None):
                continue
            step = max(1, -(-shard.rows // MOST_ROWS))
            made = _numbers(paths[0].texts[::step], number.values[::step].tolist())
            if made is not None:
                stem = os.path.splitext(os.path.basename(shard.name))[0]
                yield Numbered(shard.name, shard.split, pattern_of(stem), *made, shard, number.name)


def of_lists(lists: Sequence[NameList]) -> Iterator[Numbered]:
    """What maps of names to numbers say, of files that are called as those of splits are."""
    for found in lists:
        split = _split(found.file, found.field)
        if found.numbered and split:
            stem = Path(found.file).stem
            yield Numbered(found.file, split, pattern_of(f"{stem} {found.field}"),
                           {n: i + found.first for i, n in enumerate(found.names)}, {})


def _split(file: str, field: str = "") -> str:
    stem = Path(file).stem
    return next(filter(None, (split_of(field), split_of(stem), *map(split_of, reversed(Path(file).parts[:-1])))), "")


def _lists_files(column: Column, shard: Shard) -> bool:
    if column.kind != "text" or len(column.texts) != shard.rows or shard.rows < FEWEST_LINES:
        return False
    return all(_NAME.fullmatch(t) for t in column.texts[:: max(1, shard.rows // 200)])


def _numbers(paths: Sequence[str], numbers: Sequence[int]) -> tuple[dict[str, int], dict[str, int]] | None:
    """The number and the lines of each name, by the part of the paths that tells the number."""
    split = [p.replace("\\", "/").split("/") for p in paths]
    for names in ([p[-2] if len(p) > 1 else "" for p in split], [p[-3] if len(p) > 2 else "" for p in split],
                  [words_only(os.path.splitext(p[-1])[0]) for p in split]):
        made = _told(names, numbers)
        if made is not None:
            return made
    return None


def _told(names: Sequence[str], numbers: Sequence[int]) -> tuple[dict[str, int], dict[str, int]] | None:
    kinds, at = np.unique(np.asarray(names), return_inverse=True)
    values, of = np.unique(np.asarray(numbers, np.int64), return_inverse=True)
    if not FEWEST_NAMES <= len(kinds) <= MOST_NAMES or len(values) != len(kinds) or "" in kinds.tolist():
        return None
    table = np.zeros((len(kinds), len(values)), np.int64)
    np.add.at(table, (at.reshape(-1), of.reshape(-1)), 1)
    best = table.argmax(axis=1)
    if table.max(axis=1).sum() < AGREE * len(names) or len(np.unique(best)) < len(kinds) or (
            values[-1] > SPARSE * len(kinds) + 1):
        return None
    return ({str(k): int(values[b]) for k, b in zip(kinds, best, strict=True)},
            {str(k): int(n) for k, n in zip(kinds, table.sum(axis=1), strict=True)})


def moved(usual: Numbered, odd: Numbered) -> list[str]:
    """The names that both have and that have another number."""
    return [n for n, k in usual.numbers.items() if odd.numbers.get(n, k) != k
            and min(usual.rows.get(n, EACH), odd.rows.get(n, EACH)) >= EACH]
