"""Places that a row states of words that it quotes: an answer, an entity, a label's evidence, and where it begins.

Whether the words stand at the stated place is seen exactly: no edge of a word has to be guessed, and no end is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.roles import is_identifier
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.text_spans import LONGEST, MOST_NUMBERS, MOST_SPANS, UNITS, Spans, is_prose

LOOKED = 200
QUOTED = 0.9
"""Share of the rows whose text holds the words, from which on they are quoted."""
STATED = 0.3
"""Share of the words that stand where the number says in one of the units, from which on it states their place."""
FEWEST = 40
MOST_TEXTS = 6


def quotes_of(group: Sequence[Shard]) -> Iterator[Spans]:
    """The texts that hold another text of their row, with a number that says where."""
    first = group[0]
    texts = [n for n, c in first.columns.items() if c.kind == "text" and len(c.texts) == c.rows][:MOST_TEXTS]
    numbers = [n for n, c in first.columns.items() if _is_place(c)][:MOST_NUMBERS]
    for text, quoted in product(texts, texts) if numbers else ():
        if text != quoted and is_prose(first.columns[text]) and _is_quoted(first.columns[text], first.columns[quoted]):
            for start in numbers:
                made = _made(group, text, quoted, start)
                if made is not None:
                    yield made
                    break


def _is_place(column: Column) -> bool:
    if column.kind != "number" or column.values.dtype.kind not in "iu" or int(np.prod(column.row_shape)) != 1:
        return False
    return column.rows > 0 and bool(column.values.min() >= 0) and not is_identifier(column)


def _is_quoted(text: Column, quoted: Column) -> bool:
    some = np.unique(np.linspace(0, text.rows - 1, min(text.rows, LOOKED)).astype(np.int64)).tolist()
    held = [quoted.texts[i] in text.texts[i] for i in some if quoted.texts[i] and len(text.texts[i]) < LONGEST]
    return len(held) >= FEWEST / 2 and float(np.mean(held)) >= QUOTED


def _made(group: Sequence[Shard], text: str, quoted: str, start: str) -> Spans | None:
    shards, rows, fits, changed = [], [], [], []
    share = max(LOOKED, MOST_SPANS // len(group))
    for i, shard in enumerate(group):
        columns = [shard.columns.get(n) for n in (text, quoted, start)]
        told, words, places = (c if c is not None and c.rows == shard.rows else None for c in columns)
        if told is None or words is None or places is None or not len(told.texts) == len(words.texts) == shard.rows:
            return None
        starts: Array = np.asarray(places.values).reshape(-1)
        for row in range(0, shard.rows, max(1, shard.rows // share)):
            whole, part, at = told.texts[row], words.texts[row], int(starts[row])
            if not part or part not in whole:
                continue
            found = [u(whole)(at) for _, u in UNITS]
            shards.append(i)
            rows.append(row)
            fits.append([p is not None and whole.startswith(part, p) for p in found])
            changed.append([p != at for p in found])
    if len(rows) < FEWEST or float(np.mean(fits, axis=0).max()) < STATED:
        return None
    return Spans(text, start, "", np.array(shards), np.array(rows), np.array(fits).T, np.array(changed).T, quoted)
