"""Sequences of letters or ids that are others turned around, complemented, or both: found by their runs of letters.

A strand of DNA is written in either direction, with A for T and C for G: the same molecule twice. Each sequence is cut
into all its runs of a few letters; one of which nearly all runs stand in the training data after it was turned is there
already. Runs find it also where it begins a few letters later, or differs in some.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.summary import contained, distinct, mixed

BITS = 40.0
"""Of a run: no two runs of 10^6 letters are alike by chance."""
SHORTEST = 12
"""Letters of the typical sequence."""
MOST_LETTERS = 4_000_000
"""Of all files together: of larger ones the first sequences are looked at."""
MOST_ALPHABET = 64
SHARE = 0.7
"""Of a sequence's runs that must stand in the other ones."""
ITSELF = 0.3
"""Of a sequence's runs that may stand in itself once it is turned: palindromes and repeats."""
FEWEST_RUNS = 4
_COMPLEMENT = {"A": "T", "T": "A", "U": "A", "C": "G", "G": "C", "R": "Y", "Y": "R", "K": "M", "M": "K", "N": "N",
               "S": "S", "W": "W", "B": "V", "V": "B", "D": "H", "H": "D", "-": "-"}


@dataclass(frozen=True, eq=False)
class Letters:
    """Sequences one behind the other. `codes`: int64 shape (letters,); row i at `starts[i]:starts[i + 1]`."""

    codes: Array
    starts: Array


@dataclass(frozen=True, eq=False)
class Turned:
    """How sequences were turned, and bool shape (rows,): which of them stand in the others so."""

    how: str
    hits: Array


def letters_of(shards: Sequence[Shard], name: str) -> tuple[list[Letters], list[Array | None]] | None:
    """The sequences of each shard over one alphabet, and its complements; None of fields that hold none."""
    columns = [s.columns[name] for s in shards]
    if all(c.kind == "text" and len(c.texts) == c.rows for c in columns):
        return _of_texts(columns)
    if all(c.values.dtype.kind in "iub" and c.inner == 1 for c in columns):
        return _of_ids(columns)
    return None


def _of_texts(columns: Sequence[Column]) -> tuple[list[Letters], list[Array | None]] | None:
    some = [t for c in columns for t in c.texts[:50]]
    if not some or np.median([len(t) for t in some]) < SHORTEST or any(" " in t or len(set(t)) > MOST_ALPHABET
                                                                    for t in some):
        return None
    made = []
    most = MOST_LETTERS // len(columns)
    for column in columns:
        raw = np.frombuffer("".join(column.texts).upper().encode("latin-1", "replace"), np.uint8)[:most]
        starts = np.minimum(np.concatenate([[0], np.cumsum([len(t) for t in column.texts])]), len(raw))
        made.append(Letters(raw.astype(np.int64), starts.astype(np.int64)))
    seen = np.unique(np.concatenate([m.codes for m in made]))
    if len(seen) > MOST_ALPHABET or len(seen) < 3:
        return None
    complement = np.arange(256)
    if all(chr(k) in _COMPLEMENT for k in seen):
        of_rna = ord("U") in seen and ord("T") not in seen
        for one, other in _COMPLEMENT.items():
            complement[ord(one)] = ord("U") if other == "T" and of_rna else ord(other)
        return made, [None, complement]
    return made, [None]


def _of_ids(columns: Sequence[Column]) -> tuple[list[Letters], list[Array | None]] | None:
    made = []
    most = MOST_LETTERS // len(columns)
    for column in columns:
        if column.offsets is not None:
            codes, starts = np.asarray(column.values, np.int64), np.asarray(column.offsets)
        elif len(column.row_shape) == 1 and column.row_shape[0] >= SHORTEST:
            codes = np.asarray(column.values, np.int64).reshape(-1)
            starts = np.arange(column.rows + 1) * column.row_shape[0]
        elif len(column.row_shape) == 2 and 3 <= min(column.row_shape) <= 6 and max(column.row_shape) >= SHORTEST:
            axis = int(np.argmin(column.row_shape)) + 1
            if not bool((np.asarray(column.values[:50]).sum(axis=axis) <= 1).all()):
                return None
            codes = np.asarray(column.values).argmax(axis=axis).astype(np.int64).reshape(-1)
            starts = np.arange(column.rows + 1) * max(column.row_shape)
        else:
            return None
        made.append(Letters(codes[:most], np.minimum(starts, most)))
    seen, counts = np.unique(np.concatenate([m.codes[:200_000] for m in made]), return_counts=True)
    if not 3 <= len(seen) <= MOST_ALPHABET or seen[0] < 0 or np.median(np.diff(made[0].starts)) < SHORTEST:
        return None
    return made, [None, *_pairings(seen, counts)]


def _pairings(seen: Array, counts: Array) -> list[Array]:
    """The three ways in which four letters are each other's complement; all others stay."""
    four = np.sort(seen[np.argsort(-counts)[:4]])
    if len(four) < 4 or counts[np.argsort(-counts)[:4]].sum() < 0.9 * counts.sum():
        return []
    out = []
    for order in ((3, 2, 1, 0), (1, 0, 3, 2), (2, 3, 0, 1)):
        way = np.arange(int(seen.max()) + 1)
        way[four] = four[list(order)]
        out.append(way)
    return out


def turned(mine: Letters, others: Sequence[Letters], complements: Sequence[Array | None]) -> Iterator[Turned]:
    """The ways of turning after which sequences stand in the others, and did not before."""
    alphabet = max(2, len(np.unique(mine.codes[:100_000])))
    run = int(np.clip(math.ceil(BITS / math.log2(alphabet)), 6, 24))
    known = distinct(np.concatenate([_runs(o.codes, run)[_within(o, run)] for o in others]))
    there = _within(mine, run)
    forward = _shares(mine, contained(_runs(mine.codes, run), known), there, run)
    for complement in complements:
        codes = mine.codes if complement is None else np.asarray(complement)[mine.codes]
        for back in (True, False) if complement is not None else (True,):
            runs = np.roll(_runs(codes[::-1], run)[::-1], 1 - run) if back else _runs(codes, run)
            shares = _shares(mine, contained(runs, known), there, run)
            itself = _shares(mine, contained(runs, distinct(_runs(mine.codes, run)[there])), there, run)
            hits = (shares >= SHARE) & (forward < SHARE) & (itself <= ITSELF)
            yield Turned(_told(complement is not None, back), np.asarray(hits))


def _told(complemented: bool, back: bool) -> str:
    return "the reverse complement" if complemented and back else "the complement" if complemented else "the reverse"


def _runs(codes: Array, run: int) -> Array:
    """uint64 shape (letters,): a hash of the run that begins at each letter, 0 where the end is too near."""
    size = max(0, len(codes) - run + 1)
    out = np.zeros(len(codes), np.uint64)
    total = np.zeros(size, np.uint64)
    letters = mixed(codes.astype(np.uint64) + np.uint64(1))
    for k in range(run):
        total = total * np.uint64(0x100000001B3) + letters[k:k + size]
    out[:size] = total
    return out


def _within(letters: Letters, run: int) -> Array:
    """bool shape (letters,): where a run lies within its sequence."""
    row = np.repeat(np.arange(len(letters.starts) - 1), np.diff(letters.starts))
    end = letters.starts[1:][row]
    out = np.zeros(len(letters.codes), bool)
    out[:len(row)] = np.arange(len(row)) + run <= end[:len(out)]
    return out


def _shares(letters: Letters, hit: Array, there: Array, run: int) -> Array:
    """float64 shape (rows,): the share of the runs of each sequence that are hits; 0 where it has few."""
    row = np.repeat(np.arange(len(letters.starts) - 1), np.diff(letters.starts))
    counts = np.bincount(row[there[:len(row)]], minlength=len(letters.starts) - 1)
    hits = np.bincount(row[(there & hit)[:len(row)]], minlength=len(letters.starts) - 1)
    return np.where(counts >= FEWEST_RUNS, hits / np.maximum(counts, 1), 0.0)
