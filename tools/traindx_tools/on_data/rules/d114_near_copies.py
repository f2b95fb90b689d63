"""Held-out rows are training rows, flipped, turned, scaled or with a little noise.

Each row becomes a thumbnail without level and scale; two rows are alike where the cosine of their thumbnails is
nearly 1, as they are or mirrored, turned, or read backwards. How often that happens by nature is measured on the
training data: how many of its rows have such a neighbour in it. Held-out data must have far more. Texts are compared
by their words. Signals are compared by their spectra as well, which a shift in time does not move. Pictures and
sounds in files of their own are decoded to 32 x 32 pixels (spectra over time), found by
their eight symmetries, and compared pixel by pixel, also where they were shifted a little; pictures that all look alike
by what remains of them without what is common (`look_details.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data import look_details, looks_alike
from traindx_tools.on_data.column import Array, Contents
from traindx_tools.on_data.copies import signatures
from traindx_tools.on_data.features import narrowed, pooled, raw_features
from traindx_tools.on_data.places import percent, place, rows, short
from traindx_tools.on_data.roles import input_fields
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.summary import contained, distinct
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

ALIKE = 0.998
ALIKE_TEXT = 0.93
ALIKE_LOOK = 0.96
ALIKE_SHIFTED = 0.93
ALIKE_CUT = 0.94
MOST_CUT = 200
MOST_CUT_FROM = 1500
SIGNAL = 32
USUAL = 0.005
MOST_LOOKS = 4000
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
        "alike_look": Threshold(ALIKE_LOOK, "correlation", "of pictures and sounds, by the ranks of 32 x 32 pixels"),
        "alike_details": Threshold(look_details.ALIKE, "correlation", "of what pictures have beyond what is common"),
        "alike_cut": Threshold(ALIKE_CUT, "correlation", "of a picture and a part of another, enlarged"),
        "alike_shifted": Threshold(ALIKE_SHIFTED, "cosine", "of the log spectra of signals"),
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
    sources = [(s, s.contents) for s in train if s.contents is not None]
    shown = [(s, s.contents) for s in held if s.contents is not None]
    if sources and shown:
        exact = distinct(np.concatenate([s.summaries["content"].digests for s, _ in sources]))
        fresh = {id(s): ~contained(s.summaries["content"].digests[c.rows], exact) for s, c in shown}
        yield from _by_looks(sources, shown, "content", fresh, comparisons)


_Shown = tuple[Shard, Contents]


def _by_looks(
    sources: Sequence[_Shown], shown: Sequence[_Shown], name: str, fresh: Mapping[int, Array], comparisons: int
) -> Iterator[Finding]:
    """`fresh`: which of the rows shown are no exact copies, which D113 tells."""
    looks = looks_alike.standard([c for _, c in (*sources, *shown)])
    known = np.concatenate(looks[: len(sources)])
    if len(known) < 2 * FEWEST:
        return
    turns = looks_alike.SOUND if sources[0][1].sounds else looks_alike.PICTURE
    origin = [(s, int(r)) for s, c in sources for r in c.rows]
    picked = _spread(len(known), NATURE)
    least, nature = _least(looks_alike.nearest(known[picked], known, turns, own=picked).alike, ALIKE_LOOK)
    for (shard, contents), mine in zip(shown, looks[len(sources) :], strict=True):
        found = looks_alike.nearest(mine, known, turns)
        hits = (found.alike >= least) & fresh[id(shard)]
        seen, p = _told(int(hits.sum()), len(hits), nature, comparisons)
        if p < LEVEL:
            where, turn, other = contents.rows[hits], found.turn[hits], found.other[hits]
            yield _finding(shard, name, where, turn, other, turns, seen, nature, p, origin)
            continue
        said = [] if contents.sounds else list(_by_details(shard, contents, mine, known, fresh[id(shard)], name, origin,
                                                           comparisons))
        yield from said or _cut(shard, contents, mine, known, fresh[id(shard)], name, origin, comparisons)


def _by_details(
    shard: Shard, contents: Contents, mine: Array, known: Array, fresh: Array, name: str,
    origin: list[tuple[Shard, int]], comparisons: int,
) -> Iterator[Finding]:
    """Held-out pictures that have in common with a training picture what no two of either have."""
    seen = look_details.details(mine, known, looks_alike.PICTURE)
    if seen is None:
        return
    at, found, least = seen
    hits = (found.alike > least) & fresh[at]
    share, p = _told(int(hits.sum()), len(at), USUAL, comparisons)
    if p < LEVEL:
        yield _finding(shard, name, contents.rows[at[hits]], found.turn[hits], found.other[hits], looks_alike.PICTURE,
                       share, USUAL, p, origin)


CUT: tuple[tuple[str, looks_alike.Turn], ...] = (
    ("cut to a part and enlarged", looks_alike.PICTURE[0][1]), ("cut and mirrored", looks_alike.PICTURE[1][1]))


CUT_SOUND: tuple[tuple[str, looks_alike.Turn], ...] = (("cut to a part in time", looks_alike.PICTURE[0][1]),)


def _cut(
    shard: Shard, contents: Contents, mine: Array, known: Array, fresh: Array, name: str,
    origin: list[tuple[Shard, int]], comparisons: int,
) -> Iterator[Finding]:
    """Held-out pictures that are parts of training pictures."""
    own = _spread(len(known), NATURE // 5)
    picked, some = _spread(len(mine), MOST_CUT), _spread(len(known), MOST_CUT_FROM)
    place_of = {int(k): i for i, k in enumerate(some)}
    own = np.array([k for k in own if int(k) in place_of])
    least, nature = _least(looks_alike.cropped(known[own], known[some],
                                               own=np.array([place_of[int(k)] for k in own]),
                                               sounds=contents.sounds).alike, ALIKE_CUT)
    found = looks_alike.cropped(mine[picked], known[some], sounds=contents.sounds)
    hits = (found.alike >= least) & fresh[picked]
    seen, p = _told(int(hits.sum()), len(hits), nature, comparisons)
    if p < LEVEL:
        yield _finding(shard, name, contents.rows[picked[hits]], found.turn[hits], some[found.other[hits]],
                       CUT_SOUND if contents.sounds else CUT, seen,
                       nature, p, origin)


def _told(hits: int, of: int, nature: float, comparisons: int) -> tuple[float, float]:
    """The share of rows that are alike and its chance, 1 where they are too few to matter."""
    share = hits / max(1, of)
    few = hits < FEWEST or share < SHARE
    return share, 1.0 if few else share_tail(hits, of, max(TIMES * nature, 1.0 / of)) * comparisons


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
    index = [_spread(s.rows, max(1, MOST_TRAIN // len(train))) for s in train]
    exact = distinct(np.concatenate([signatures(data, s)[0] for s in train]))
    origin = [(s, int(k)) for s, i in zip(train, index, strict=True) for k in i]
    left = [s for s in held if s.columns[name].row_shape == train[0].columns[name].row_shape]
    of = {id(s): _spread(s.rows, MOST_HELD_OUT) for s in left}
    new = {id(s): ~contained(signatures(data, s)[0][of[id(s)]], exact) for s in left}
    for turns, first, alike in _passes(train[0], name):
        known = np.concatenate([_marks(s, name, i, first) for s, i in zip(train, index, strict=True)])
        least, nature = _least(_natural(train, index, name, turns, known), alike)
        for shard in list(left):
            fresh = of[id(shard)][new[id(shard)]]
            if len(fresh) < FEWEST:
                continue
            near, how, other = _nearest(shard, name, fresh, turns, known)
            hits = near >= least
            seen, p = _told(int(hits.sum()), len(of[id(shard)]), nature, comparisons)
            if p < LEVEL:
                left.remove(shard)
                yield _finding(shard, name, fresh[hits], how[hits], other[hits], turns, seen, nature, p, origin)
    sources = [(s, looks_alike.contents_of(s.columns[name], _spread(s.rows, MOST_LOOKS // len(train)))) for s in train]
    shown = [(s, looks_alike.contents_of(s.columns[name], of[id(s)])) for s in left]
    if left and all(c is not None for _, c in (*sources, *shown)):
        yield from _by_looks(
            [(s, c) for s, c in sources if c is not None], [(s, c) for s, c in shown if c is not None], name, new,
            comparisons
        )


_Turns = Sequence[tuple[str, Callable[[Array], Array]]]


def _passes(shard: Shard, name: str) -> Iterator[tuple[_Turns, Callable[[Array], Array], float]]:
    """Ways to compare: how held-out rows are turned, what is done to training rows, and the least cosine."""
    column = shard.columns[name]
    if column.kind == "text":
        yield [("reworded", lambda a: a)], lambda a: a, ALIKE_TEXT
        return
    yield _turns(np.asarray(column.values[:1])[0]), lambda a: a, ALIKE
    if len(column.row_shape) == 1 and column.row_shape[0] >= SIGNAL:
        yield [("shifted in time", _spectrum)], _spectrum, ALIKE_SHIFTED


def _spectrum(signals: Array) -> Array:
    """Log power by frequency, which a shift does not move."""
    window = np.hanning(signals.shape[1]).astype(np.float32)
    power = np.abs(np.fft.rfft((signals - signals.mean(axis=1, keepdims=True)) * window, axis=1)) ** 2
    return np.asarray(np.log(power + 1e-3 * power.mean(axis=1, keepdims=True) + 1e-30), np.float32)


def _spread(total: int, most: int) -> Array:
    return np.unique(np.linspace(0, total - 1, min(total, most)).astype(np.int64))


def _natural(
    train: Sequence[Shard],
    index: Sequence[Array],
    name: str,
    turns: Sequence[tuple[str, Callable[[Array], Array]]],
    known: Array,
) -> Array:
    """Of some training rows, how alike the nearest other row of the training data is."""
    each = max(1, NATURE // len(train))
    start, found = 0, []
    for shard, rows_of in zip(train, index, strict=True):
        picked = np.arange(len(rows_of))[:: max(1, len(rows_of) // each)][:each]
        best = np.full(len(picked), -1.0, np.float32)
        for _, turn in turns:
            near = _marks(shard, name, rows_of[picked], turn) @ known.T
            near[np.arange(len(picked)), start + picked] = -1.0
            best = np.maximum(best, near.max(axis=1))
        found.append(best)
        start += len(rows_of)
    return np.concatenate(found)


def _least(within: Array, least: float) -> tuple[float, float]:
    """How alike rows must be, and the share of training rows that have such a neighbour in training by nature.

    Where training rows are very much alike, only what is more alike than nearly all of them tells.
    """
    least = max(least, float(np.quantile(within, 1.0 - USUAL)))
    return least, float((within >= least).mean())


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
    counts = np.bincount(how, minlength=len(turns))
    turn = turns[int(counts.argmax())][0]
    source, row = origin[int(other[0])]
    plain = {"as it is": "with another scale, level, place or a little noise"}
    ways = [f"{plain.get(turns[k][0], turns[k][0])} ({counts[k]:,})" for k in np.argsort(-counts) if counts[k]]
    told = ", ".join(ways) if len(ways) > 1 else plain.get(turn, turn)
    files = shard.columns[name].kind == "text" and not shard.columns[name].texts
    what = f"files of {short(shard)} are changed copies of training files" if files else (
        f"rows of {name} of {short(shard)} are changed copies of training rows")
    return RULE.finding(
        f"{percent(share)} of the {what}, {told} (within training "
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
            "run": _run(where),
            "kind": "changed-copies",
            "shard": short(shard),
        },
    )


def _run(where: Array) -> tuple[int, ...]:
    """The first and the last row where most rows between them are such copies; nothing where they are scattered."""
    first, last = int(where.min()), int(where.max())
    return (first, last) if len(where) >= 0.5 * (last - first + 1) else ()
