"""Ids that are the same ones once they are spelled alike: without case, separators, leading zeros or a prefix.

`P-0012`, `p12` and `12` may be one patient or three. Numbers of two sources that each count from 1 meet by chance, and
so does whatever is as dense as they are: how often values that lie a few numbers beside meet tells how often. Where
that says nothing, what the rows of an id hold does: height and year of birth of one person are the same under both
spellings, of two persons they are not.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.roles import is_identifier, is_time
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, normal_tail, share_tail

LONGEST = 60
"""Characters of an id."""
FEWEST = 8
"""Ids that are the same in both."""
MOST_IDS = 200_000
AS_THEY_ARE = 0.1
"""Share of the held-out ids that are in training as they are written: above it they are spelled alike."""
SHIFTS = tuple(k for k in range(-25, 26) if k)
DENSE = 0.5
"""Share of numbers beside that meet, from which on only the rows themselves tell."""
MOST_FIELDS = 24
KINDS = 40
_RUN = re.compile(r"\d+|[^\W\d_]+")


@dataclass(frozen=True, eq=False)
class Alike:
    """Ids of two sides that are one another after `how`; `mine` and `theirs`: an example of each spelling."""

    how: str
    hits: Array
    """bool shape (ids,): which of the held-out ids are in training so."""
    beside: float
    """Share of them that meets a number a few beside."""
    log_chance: float
    """That so many meet by chance; 0 where numbers are too dense to tell."""
    told_by: str
    """A field that is the same under both spellings, "" where none is."""
    agreement: float
    log_chance_fields: float
    rows: Array
    """int64: the held-out rows of these ids."""
    pair: tuple[str, str]


def spelled(column: Column) -> tuple[str, ...] | None:
    """The ids of the rows as texts; None where a field holds no ids by its form."""
    if column.row_shape or is_time(column.name):
        return None
    if column.kind == "number" and column.values.dtype.kind in "iu":
        return tuple(map(str, column.values.tolist()))
    if column.kind != "text" or len(column.texts) != column.rows or not column.rows:
        return None
    some = column.texts[:: max(1, column.rows // 200)]
    return column.texts if max(map(len, some)) <= LONGEST else None


def _runs(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text).casefold()
    found = _RUN.findall("".join(c for c in plain if not unicodedata.combining(c)))
    return [r.lstrip("0") or "0" if r.isdigit() else r for r in found]


def _plain(text: str) -> str:
    return " ".join(_runs(text))


def _any_order(text: str) -> str:
    """Words in the order of the alphabet; numbers keep theirs: c03/up_7 and c07/up_3 are two."""
    runs = _runs(text)
    return " ".join([*sorted(r for r in runs if not r.isdigit()), *(r for r in runs if r.isdigit())])


def _number_alone(text: str) -> str:
    """The digits, where there is one run of them."""
    found = [r for r in _runs(text) if r.isdigit()]
    return found[0] if len(found) == 1 else ""


def _last_part(text: str) -> str:
    """A file's name without its folders and its ending."""
    return _plain(re.split(r"[/\\]", text)[-1].split(".")[0])


WAYS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("without case, separators and leading zeros", _plain),
    ("whatever the order of their words", _any_order),
    ("without their folders and endings", _last_part),
    ("by their number alone", _number_alone),
)


def alike(shard: Shard, train: Sequence[Shard], name: str, comparisons: float) -> Alike | None:
    """How the ids of a held-out shard are those of training shards under another spelling; None where they are not."""
    mine = spelled(shard.columns[name])
    others = [t for s in train if (t := spelled(s.columns[name])) is not None]
    if mine is None or len(others) < len(train) or _counts_rows(train[0].columns[name], shard.columns[name]):
        return None
    here = list(dict.fromkeys(t for t in mine if t.strip()))
    there = dict.fromkeys(t for some in others for t in some if t.strip())
    if not FEWEST <= len(here) <= MOST_IDS or not FEWEST <= len(there) <= MOST_IDS:
        return None
    if sum(t in there for t in here) > AS_THEY_ARE * len(here):
        return None
    for how, way in WAYS:
        found = _met(here, list(there), way)
        if found is None:
            continue
        hits, beside = found
        one = _judged(shard, train, name, (how, way), (mine, others), hits, beside, (here, list(there)), comparisons)
        if one is not None:
            return one
    return None


def _counts_rows(*columns: Column) -> bool:
    """Whether numbers only number the rows, in each file from the beginning: no text is behind them."""
    return all(c.kind == "number" and is_identifier(c) for c in columns)


def _met(here: Sequence[str], there: Sequence[str], way: Callable[[str], str]) -> tuple[Array, float] | None:
    """Which ids meet, and the share that meets numbers beside; None where spellings fall together or few meet."""
    mine, theirs = [way(t) for t in here], [way(t) for t in there]
    known = set(theirs) - {""}
    if len(set(mine)) < 0.9 * len(mine) or len(known) < 0.9 * len(theirs):
        return None
    hits = np.array([t in known for t in mine])
    if hits.sum() < FEWEST:
        return None
    moved = [_beside(mine, known, k) for k in SHIFTS]
    return hits, max(moved)


def _beside(mine: Sequence[str], known: set[str], by: int) -> float:
    """Share of ids that meet once one of their numbers is another one; words without a number do not."""
    met = 0
    for text in mine:
        runs = text.split(" ")
        met += any(r.isdigit() and " ".join([*runs[:k], str(int(r) + by), *runs[k + 1:]]) in known
                   for k, r in enumerate(runs))
    return met / len(mine)


def _judged(shard: Shard, train: Sequence[Shard], name: str, how: tuple[str, Callable[[str], str]],
            texts: tuple[Sequence[str], Sequence[Sequence[str]]], hits: Array, beside: float,
            ids: tuple[Sequence[str], Sequence[str]], comparisons: float) -> Alike | None:
    more = comparisons * len(WAYS)
    chance = 0.0
    if beside < DENSE:
        p = share_tail(int(hits.sum()), len(hits), max(1.0 / len(hits), 1.5 * beside))
        chance = min(0.0, math.log(max(p, 1e-300)) + math.log(more))
    spelling = how[1]
    there = {spelling(t): t for t in ids[1]}
    met = {t: spelling(t) for t, hit in zip(ids[0], hits, strict=True) if hit}
    number = {k: i for i, k in enumerate(sorted(met.values(), key=_in_order))}
    own = np.array([number[met[t]] if t in met else -1 for t in texts[0]], np.int64)
    known = np.concatenate([[number.get(spelling(t), -1) for t in some] for some in texts[1]]).astype(np.int64)
    told, r, fields, log_p = "", 0.0, 0, 0.0
    for field, agreement, log_chance in _same_rows(shard, train, name, own, known, len(number)):
        fields += 1
        if log_chance < log_p:
            told, r, log_p = field, agreement, log_chance
    log_p += math.log(more * max(1, fields))
    sure = told != "" and log_p < math.log(LEVEL)
    if not sure and (fields or chance >= math.log(LEVEL)):
        return None  # rows of other things, or nothing that tells
    first = next(iter(met))
    return Alike(how[0], hits, beside, chance, told if sure else "", r if sure else 0.0, log_p if sure else 0.0,
                 np.flatnonzero(own >= 0), (first, there[met[first]]))


def _in_order(spelling: str) -> tuple[str, int, str]:
    head, _, last = spelling.rpartition(" ")
    return (head, int(last), "") if last.isdigit() else (spelling, 0, last)


def _same_rows(shard: Shard, train: Sequence[Shard], name: str, own: Array, known: Array, ids: int
               ) -> Iterator[tuple[str, float, float]]:
    """Of each field that varies between ids more than within: how well both sides agree on it, and the chance of it.

    Only fields that belong to an id within the training rows are asked: of others nothing follows. Files that are
    sorted agree for neighbouring numbers as well: what counts is how much better the same number does.
    """
    made = 0
    for field, column in shard.columns.items():
        theirs = [s.columns.get(field) for s in train]
        if field == name or is_time(field) or made >= MOST_FIELDS:
            continue
        a = _numbers(column)
        whole = [c for c, s in zip(theirs, train, strict=True) if c is not None and c.rows == s.rows]
        parts = [p for c in whole if (p := _numbers(c)) is not None]
        if a is None or len(parts) < len(train):
            continue
        b = np.concatenate(parts)
        if not _belongs(b, known, ids):
            continue
        made += 1
        one, two = _means(a, own, ids), _means(b, known, ids)
        sure = np.isfinite(one) & np.isfinite(two)
        if sure.sum() >= FEWEST and one[sure].std() > 0 and two[sure].std() > 0:
            a, b = _ranks(one[sure]), _ranks(two[sure])
            r = _correlation(a, b)
            beside = max(0.0, *(_correlation(a, np.roll(b, k)) for k in (-2, -1, 1, 2)))
            z = (math.atanh(r) - math.atanh(beside)) * math.sqrt(max(1.0, float(sure.sum()) - 3.0) / 2.0)
            yield field, r, math.log(max(normal_tail(z), 1e-300))


def _correlation(one: Array, two: Array) -> float:
    return min(0.9999, max(-0.9999, float(np.corrcoef(one, two)[0, 1])))


def _numbers(column: Column) -> Array | None:
    """Numbers of the rows; of words of few kinds, the number of each."""
    if column.row_shape:
        return None
    if column.kind == "number" and column.values.dtype.kind in "iufb" and not is_identifier(column):
        values = np.asarray(column.values, np.float64)
        return values if column.missing is None else np.where(column.missing, np.nan, values)
    if column.kind == "text" and column.digests is not None and len(np.unique(column.digests[:2000])) <= KINDS:
        return np.asarray((column.digests % np.uint64(9973)).astype(np.float64))  # the same number in every file
    return None


def _belongs(values: Array, ids: Array, count: int) -> bool:
    """Whether rows of one id are more alike than rows of several; so it is taken where each id has one row."""
    kept = (ids >= 0) & np.isfinite(values)
    x, at = values[kept], ids[kept]
    counts = np.bincount(at, minlength=count)
    several = counts[at] >= 2
    if several.sum() < 2 * FEWEST:
        return len(x) >= FEWEST and float(x.std()) > 0
    x = _ranks(x[several])
    at = at[several]
    means = np.bincount(at, weights=x, minlength=count) / np.maximum(1, np.bincount(at, minlength=count))
    within = float(((x - means[at]) ** 2).sum()) / max(1, len(at) - int((counts >= 2).sum()))
    total = float(x.var())
    return total > 0 and within < 0.5 * total


def _means(values: Array, ids: Array, count: int) -> Array:
    kept = (ids >= 0) & np.isfinite(values)
    rows = np.bincount(ids[kept], minlength=count)
    sums = np.bincount(ids[kept], weights=values[kept], minlength=count)
    return np.asarray(np.where(rows > 0, sums / np.maximum(1, rows), np.nan))


def _ranks(values: Array) -> Array:
    _, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - 0.5 * counts)[at.reshape(-1)])
