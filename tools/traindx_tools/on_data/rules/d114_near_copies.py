"""Held-out rows are training rows, flipped, turned, scaled or with a little noise.

Each row becomes a thumbnail without level and scale; two rows are alike where the cosine of their thumbnails is
nearly 1, as they are or mirrored, turned, or read backwards. How often that happens by nature is measured on the
training data: how many of its rows have such a neighbour in it. Held-out data must have far more. Texts are compared
by their words. Pictures and sounds in files of their own are decoded to 32 x 32 pixels (spectra over time), found by
their eight symmetries, and compared pixel by pixel, also where they were shifted a little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data import looks_alike
from traindx_tools.on_data.copies import signatures
from traindx_tools.on_data.features import narrowed, pooled, raw_features
from traindx_tools.on_data.places import percent, place, rows, short
from traindx_tools.on_data.roles import input_fields
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.summary import contained, distinct
from traindx_tools.on_data.table import Array, DataSet, Shard, View
from traindx_tools.rules import Rule, Threshold

ALIKE = 0.998
ALIKE_TEXT = 0.93
ALIKE_LOOK = 0.96
SHARE = 0.02
FEWEST = 8
TIMES = 5.0
MOST_HELD_OUT = 1000
MOST_TRAIN = 20_000
NATURE = 500
NARROWEST = 8

RULE = Rule(
    id="D114",
    name="near-copies",
    title="Rows of the held-out data are changed copies of training rows",
    severity=Severity.HIGH,
    sees="thumbnails of rows, as they are and mirrored, turned or reversed, across splits",
    matters="A model that knows the original knows the copy: the held-out score is too good.",
    alike=(
        "Frames of one video, or smooth series: alike by nature, and within training as well.",
        "Augmentation within the training data.",
    ),
    confirm=("Look at the named pairs.", "Split by source before rows are augmented."),
    thresholds={
        "alike": Threshold(ALIKE, "cosine", "noise of 6 % of a row's spread keeps above it"),
        "alike_text": Threshold(ALIKE_TEXT, "cosine", "of words: one word of ten replaced keeps above it"),
        "alike_look": Threshold(ALIKE_LOOK, "correlation of pixels", "of pictures and sounds in files, by the ranks of 32 x 32 pixels"),
        "share": Threshold(SHARE, "of held-out rows", "fewer change no score"),
        "times": Threshold(TIMES, "times as often as within training", "alike by nature"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all sets"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each held-out shard and field."""
    for data in view.sets:
        train = data.splits.get("train", ())
        held = [s for split, g in data.splits.items() if split not in ("", "train") for s in g]
        if not train or not held:
            continue
        yield from _of_files(data, train, held, view.comparisons)
        for name in input_fields(train[0], data.labels):
            having = [s for s in train if name in s.columns]
            if having and _comparable(having[0], name):
                yield from _of_field(data, having, [s for s in held if name in s.columns], name, view.comparisons)


def _of_files(data: DataSet, train: Sequence[Shard], held: Sequence[Shard], comparisons: int) -> Iterator[Finding]:
    """Pictures or sounds in files of their own, by their thumbnails or spectra."""
    sources = [s for s in train if s.contents is not None]
    shown = [s for s in held if s.contents is not None]
    if not sources or not shown:
        return
    looks = looks_alike.standard([s.contents for s in (*sources, *shown) if s.contents is not None])
    known, sounds = np.concatenate(looks[: len(sources)]), sources[0].contents is not None and sources[0].contents.sounds
    turns = looks_alike.SOUND if sounds else looks_alike.PICTURE
    origin = [(s, int(r)) for s in sources if s.contents is not None for r in s.contents.rows]
    picked = _spread(len(known), NATURE)
    if len(known) < 2 * FEWEST:
        return
    within = looks_alike.nearest(known[picked], known, turns, own=picked)
    nature = float((within.alike >= ALIKE_LOOK).mean())
    exact = distinct(np.concatenate([s.summaries["content"].digests for s in sources]))
    for shard, mine in zip(shown, looks[len(sources):], strict=True):
        assert shard.contents is not None
        index = shard.contents.rows
        found = looks_alike.nearest(mine, known, turns)
        hits = (found.alike >= ALIKE_LOOK) & ~contained(shard.summaries["content"].digests[index], exact)
        seen = float(hits.mean())
        p = share_tail(int(hits.sum()), len(hits), max(TIMES * nature, 1.0 / len(hits))) * comparisons
        if hits.sum() >= FEWEST and seen >= SHARE and p < LEVEL:
            yield _finding(shard, "content", index[hits], found.turn[hits], found.other[hits], turns, seen, nature, p,
                           origin)


def _comparable(shard: Shard, name: str) -> bool:
    column = shard.columns[name]
    if column.kind == "text":
        return bool(column.texts) and float(np.median(column.values)) >= 60
    return (
        column.kind == "number"
        and int(np.prod(column.row_shape)) >= NARROWEST
        and not (column.is_integer and column.values.ndim == 2)
    )


def _turns(row: Array) -> list[tuple[str, Callable[[Array], Array]]]:
    """The ways to look at rows of this shape, each a function of (rows, ...)."""
    ways: list[tuple[str, Callable[[Array], Array]]] = [("as it is", lambda a: a)]
    if row.ndim == 1:
        return [*ways, ("read backwards", lambda a: a[:, ::-1])]
    axes = _picture_axes(row)
    if axes is None:
        return ways
    y, x = axes[0] + 1, axes[1] + 1
    ways += [
        ("mirrored", lambda a: np.flip(a, x)),
        ("upside down", lambda a: np.flip(a, y)),
        ("turned by 180 degrees", lambda a: np.flip(a, (y, x))),
    ]
    if row.shape[axes[0]] == row.shape[axes[1]]:
        ways += [
            ("turned by 90 degrees", lambda a: np.rot90(a, 1, (y, x))),
            ("turned by 270 degrees", lambda a: np.rot90(a, 3, (y, x))),
            ("transposed", lambda a: np.swapaxes(a, y, x)),
            ("transposed and turned by 180 degrees", lambda a: np.swapaxes(np.flip(a, (y, x)), y, x)),
        ]
    return ways


def _picture_axes(row: Array) -> tuple[int, int] | None:
    long = [i for i, n in enumerate(row.shape) if n >= 4]
    return (long[0], long[1]) if len(long) == 2 else (long[-2], long[-1]) if len(long) > 2 else None


def _marks(shard: Shard, name: str, index: Array, turn: Callable[[Array], Array]) -> Array:
    """float32 shape (rows, features): thumbnails of length 1; rows without contrast are 0."""
    column = shard.columns[name]
    if column.kind == "text":
        x = raw_features(shard, (name,), index)
    else:
        x = narrowed(pooled(turn(np.nan_to_num(np.asarray(column.values[index], np.float32)))))
    x = x - x.mean(axis=1, keepdims=True)
    size = np.linalg.norm(x, axis=1, keepdims=True)
    return np.where(size > 1e-6 * np.sqrt(x.shape[1]), x / np.maximum(size, 1e-30), 0.0).astype(np.float32)


def _of_field(
    data: DataSet, train: Sequence[Shard], held: Sequence[Shard], name: str, comparisons: int
) -> Iterator[Finding]:
    share = max(1, MOST_TRAIN // len(train))
    index = [_spread(s.rows, share) for s in train]
    marks = [_marks(s, name, i, lambda a: a) for s, i in zip(train, index, strict=True)]
    known = np.concatenate(marks)
    turns = (
        _turns(np.asarray(train[0].columns[name].values[:1])[0])
        if train[0].columns[name].kind == "number"
        else [("reworded", lambda a: a)]
    )
    alike = ALIKE_TEXT if train[0].columns[name].kind == "text" else ALIKE
    nature = _natural(train, index, name, turns, known, alike)
    exact = distinct(np.concatenate([signatures(data, s)[0] for s in train]))
    for shard in held:
        if shard.columns[name].row_shape != train[0].columns[name].row_shape:
            continue
        mine = _spread(shard.rows, MOST_HELD_OUT)
        fresh = mine[~contained(signatures(data, shard)[0][mine], exact)]
        if len(fresh) < FEWEST:
            continue
        near, how, other = _nearest(shard, name, fresh, turns, known)
        hits = near >= alike
        seen = float(hits.sum() / len(mine))
        p = share_tail(int(hits.sum()), len(mine), max(TIMES * nature, 1.0 / len(mine))) * comparisons
        if hits.sum() >= FEWEST and seen >= SHARE and p < LEVEL:
            yield _finding(
                shard,
                name,
                fresh[hits],
                how[hits],
                other[hits],
                turns,
                seen,
                nature,
                p,
                [(s, int(k)) for s, i in zip(train, index, strict=True) for k in i],
            )


def _spread(total: int, most: int) -> Array:
    return np.unique(np.linspace(0, total - 1, min(total, most)).astype(np.int64))


def _natural(
    train: Sequence[Shard],
    index: Sequence[Array],
    name: str,
    turns: Sequence[tuple[str, Callable[[Array], Array]]],
    known: Array,
    least: float,
) -> float:
    """The share of training rows that have such a neighbour in the training data beside themselves (of some)."""
    each = max(1, NATURE // len(train))
    hits = rows_seen = start = 0
    for shard, rows_of in zip(train, index, strict=True):
        picked = np.arange(len(rows_of))[:: max(1, len(rows_of) // each)][:each]
        best = np.full(len(picked), -1.0, np.float32)
        for _, turn in turns:
            near = _marks(shard, name, rows_of[picked], turn) @ known.T
            near[np.arange(len(picked)), start + picked] = -1.0
            best = np.maximum(best, near.max(axis=1))
        hits += int((best >= least).sum())
        rows_seen += len(picked)
        start += len(rows_of)
    return hits / max(1, rows_seen)


def _nearest(
    shard: Shard, name: str, index: Array, turns: Sequence[tuple[str, Callable[[Array], Array]]], known: Array
) -> tuple[Array, Array, Array]:
    """For each row the cosine of its nearest training row, the turn under which it is, and which it is."""
    best, how = np.full(len(index), -1.0, np.float32), np.zeros(len(index), np.int64)
    other = np.zeros(len(index), np.int64)
    for k, (_, turn) in enumerate(turns):
        alike = _marks(shard, name, index, turn) @ known.T
        at = alike.argmax(axis=1)
        top = alike[np.arange(len(index)), at]
        better = top > best + 1e-6
        best, how, other = np.where(better, top, best), np.where(better, k, how), np.where(better, at, other)
    return best, how, other


def _finding(
    shard: Shard,
    name: str,
    where: Array,
    how: Array,
    other: Array,
    turns: Sequence[tuple[str, Callable[[Array], Array]]],
    share: float,
    nature: float,
    p: float,
    origin: list[tuple[Shard, int]],
) -> Finding:
    turn = turns[int(np.bincount(how).argmax())][0]
    source, row = origin[int(other[0])]
    told = {"as it is": "with another scale, level or a little noise"}.get(turn, turn)
    return RULE.finding(
        f"{percent(share)} of the rows of {name} of {short(shard)} are training rows, {told} (within training "
        f"{percent(nature)} are so alike): {rows(shard, where)}; the first is {source.row(row)} of {short(source)}",
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={
            "field": name,
            "share": share,
            "within_training": nature,
            "turn": turn,
            "p": p,
            "rows": tuple(int(i) for i in where[:20]),
            "kind": "changed-copies",
            "shard": short(shard),
        },
    )
