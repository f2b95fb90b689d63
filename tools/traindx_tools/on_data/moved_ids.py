"""Files of ids (tokens, items) that are those of all others, moved by a few numbers from some id on, or turned around.

A vocabulary to which `<unk>` was added moves everything behind it by one. How often an id occurs need not tell: moves
on a board, or items of a balanced catalogue, are about as frequent as their neighbours. What follows on what does: a
file whose pairs of neighbouring ids are strange to a model of the other files, and as usual as theirs once the ids are
moved, was written with another vocabulary; one that is usual from its end to its beginning has its rows the wrong way
round, newest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.shard import Shard

FEWEST = 2000
"""Ids of a file, and of the others together."""
KINDS = 12
"""Distinct ids of the others, from which on a move is told from chance."""
HIGHEST = 2**20
MOST = 60_000
"""Ids of a file that are looked at."""
MOST_FILES = 40
FARTHEST = 16
MOVES = tuple(k for n in range(1, FARTHEST + 1) for k in (n, -n))
STARTS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 64, 100, 128, 256, 257, 512, 1000)
"""Ids from which on they are moved: behind special tokens, bytes, a block of reserved ones."""
STRANGE = 0.15
"""Nats of an id, by which the file is less usual than the others are."""
UNDONE = 0.7
"""Of that difference, what a move takes away at least."""
FALLING = 0.05
"""Of the ids, what may fall onto others by a move downwards: a token that the other vocabulary lacks."""
BLOCKS = 20
SIGMAS = 6.0
"""Standard errors over blocks of a file that the gain has, after some 700 moves and starts were tried."""


@dataclass(frozen=True, eq=False)
class Moved:
    """File `index`: each id from `start` on stands for the id `by` further in all others; 0: it is turned around. Means
    of log chances."""

    index: int
    by: int
    start: int
    here: float
    undone: float
    others: float
    order: str = ""
    """In which other order the vocabulary was numbered; "" of ids that are moved or turned around."""


Orders = Sequence[tuple[str, Array]]
"""Other orders of a vocabulary, in words, and int64 (ids,): what each id of such a file is in the vocabulary's own."""


def orders_of(texts: Sequence[str]) -> Orders:
    """What a vocabulary is numbered by in other hands: its texts in the order of the alphabet, special tokens first or
    not, and from its end."""
    size = len(texts)
    special = [i for i, t in enumerate(texts) if not t or (t[0] in "<[" and t[-1] in ">]" and len(t) > 2)]
    head = special if special == list(range(len(special))) else []
    rest = [i for i in range(size) if i not in set(head)]
    return [(said, np.array(order, np.int64)) for said, order in (
        ("in the order of the alphabet", sorted(range(size), key=lambda i: texts[i])),
        ("in the order of the alphabet behind the special tokens", [*head, *sorted(rest, key=lambda i: texts[i])]),
        ("from its end", list(range(size))[::-1]),
        ("from its end behind the special tokens", [*head, *rest[::-1]]))]


class Model:
    """Chances of an id after the one before it, from counts of pairs, where they are few from counts of ids."""

    def __init__(self, files: Sequence[Array], size: int) -> None:
        self.size = size
        self.single = np.bincount(np.concatenate(files), minlength=size).astype(np.float64)
        pairs = np.concatenate([f[:-1] * size + f[1:] for f in files])
        self.pairs, counts = np.unique(pairs, return_counts=True)
        self.counts = counts.astype(np.float64)
        self.shares = (self.single + 0.1) / float((self.single + 0.1).sum())

    def usual(self, ids: Array) -> Array:
        """float64 shape (ids - 1,): the log of the chance of each id but the first."""
        before, after = ids[:-1], ids[1:]
        wanted = before * self.size + after
        at = np.minimum(np.searchsorted(self.pairs, wanted), len(self.pairs) - 1)
        met = np.where(self.pairs[at] == wanted, self.counts[at], 0.0)
        return np.asarray(np.log((met + 2.0 * self.shares[after]) / (self.single[before] + 2.0)))


def ids_of(column: Column | None) -> Array | None:
    """The ids of a file one after another, int64; None where the field holds none."""
    if column is None or column.kind not in ("sequence", "number") or column.inner != 1:
        return None
    values = column.values
    if values.dtype.kind not in "iu" or (column.kind == "number" and len(column.row_shape) > 1):
        return None
    flat = values.reshape(-1)[:MOST].astype(np.int64)
    if len(flat) < FEWEST or int(flat.min()) < 0 or int(flat.max()) > HIGHEST:
        return None
    return flat


def moved_files(group: Sequence[Shard], name: str, orders: Orders = ()) -> list[Moved]:
    """The files whose ids are moved, or numbered in another order, at most a third of them."""
    found = [ids_of(s.columns.get(name)) for s in group]
    files = [f for f in found if f is not None]
    if len(files) < max(2, len(group)) or len(files) > MOST_FILES:
        return []
    size = max(int(f.max()) for f in files) + FARTHEST + 1
    if any(len(np.unique(f[:FEWEST])) < KINDS for f in files):
        return []
    scores = []
    for i, mine in enumerate(files):
        scores.append(float(Model([f for k, f in enumerate(files) if k != i], size).usual(mine).mean()))
    if len(files) == 2:
        return _of_two(files, size, orders)
    usual = float(np.median(scores))
    strange = [i for i, s in enumerate(scores) if usual - s >= STRANGE]
    if not strange or len(strange) > max(1, len(files) // 3):
        return []
    rest = [f for i, f in enumerate(files) if i not in strange]
    made = []
    for i in strange:
        level = float(np.median([Model([f for f in rest if f is not one], size).usual(one).mean() for one in rest]
                                if len(rest) > 1 else [usual]))
        one = _moved(i, files[i], Model(rest, size), level, orders)
        made += [one] if one is not None else []
    return made


def _of_two(files: Sequence[Array], size: int, orders: Orders) -> list[Moved]:
    """Of two files each is judged by the other; what is usual is said by the halves of the larger one."""
    large = int(len(files[1]) > len(files[0]))
    whole = files[large]
    half = len(whole) // 2
    level = float(Model([whole[:half]], size).usual(whole[half:]).mean())
    one = _moved(1 - large, files[1 - large], Model([whole], size), level, orders)
    return [one] if one is not None else []


def _moved(index: int, ids: Array, model: Model, level: float, orders: Orders) -> Moved | None:
    as_stored = model.usual(ids)
    here = float(as_stored.mean())
    if level - here < STRANGE:
        return None
    some = ids[:8000]
    tried = [(float(model.usual(_moving(some, by, start)).mean()), by, start, "")
             for by in MOVES for start in STARTS if start <= int(ids.max()) and _is_free(ids, by, start)]
    tried.append((float(model.usual(some[::-1]).mean()), 0, 0, ""))
    known = {said: order for said, order in orders if int(ids.max()) < len(order) <= model.size}
    tried += [(float(model.usual(order[some]).mean()), 0, 0, said) for said, order in known.items()]
    _, by, start, said = max(tried)
    undone = model.usual(known[said][ids] if said else _moving(ids, by, start) if by else ids[::-1])
    gain = undone - as_stored
    blocks = np.array([b.mean() for b in np.array_split(gain, BLOCKS)])
    sure = float(blocks.mean()) >= SIGMAS * float(blocks.std(ddof=1)) / BLOCKS**0.5
    if sure and float(gain.mean()) >= UNDONE * (level - here):
        return Moved(index, by, start, here, float(undone.mean()), level, said)
    return None


def _is_free(ids: Array, by: int, start: int) -> bool:
    """Whether the ids move to where none of their own stay: those that fall onto others may look usual as padding."""
    return by > 0 or float(((ids >= start) & (ids < start - by)).mean()) <= FALLING


def _moving(ids: Array, by: int, start: int) -> Array:
    return np.asarray(np.maximum(0, np.where(ids >= start, ids + by, ids)))
