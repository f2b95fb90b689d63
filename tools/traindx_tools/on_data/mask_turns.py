"""Pictures with the masks that lie on them: what pictures say of masks at the same place, and after eight turns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from traindx_tools.on_data.column import THUMBNAIL, Array, Column
from traindx_tools.on_data.cuts import Cut, crossed, cuts_of, in_two
from traindx_tools.on_data.origins import groups_of
from traindx_tools.on_data.pairs import Side, agreement, cells, predicted
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View

FEWEST = 60
MOST_ROWS = 2000
SIDE = 16
VALUES = 64
"""Values of a mask."""
COMMON = 0.3
"""Share of a mask's pixels that its most frequent value has."""
MOST_GROUPS = 60

BLOCK = 64
"""Pictures that are made smaller at once."""

TURNS: tuple[tuple[str, Callable[[Array], Array]], ...] = (
    ("mirrored", lambda x: x[:, :, ::-1]),
    ("turned upside down", lambda x: x[:, ::-1]),
    ("turned by 180 degrees", lambda x: x[:, ::-1, ::-1]),
    ("turned with height and width exchanged", lambda x: x.swapaxes(1, 2)),
    ("turned by 90 degrees", lambda x: np.rot90(x, 3, (1, 2))),
    ("turned by 270 degrees", lambda x: np.rot90(x, 1, (1, 2))),
    ("turned with both axes exchanged and reversed", lambda x: x.swapaxes(1, 2)[:, ::-1, ::-1]),
)
"""What was done, and what undoes it."""


@dataclass(frozen=True, eq=False)
class Overlaid:
    """Pictures and masks of the same rows. `cuts`: the ways in which the rows come in parts, `member` of `row`."""

    shards: tuple[Shard, ...]
    fields: tuple[str, str]
    pictures: Array
    """float32 shape (rows, 16, 16, channels)."""
    masks: Array
    """float32 shape (rows, 16, 16): how much of each cell is no background."""
    shard: Array
    row: Array
    """int64 shape (rows,): of which shard, and which row of it."""
    cuts: tuple[Cut, ...]


def overlaid(view: View) -> Iterator[Overlaid]:
    """Masks in arrays beside pictures, and folders of pictures whose names are those of masks."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        if group:
            yield from _arrays(group, data.labels)
    yield from _files(view)


def _arrays(group: Sequence[Shard], labels: Sequence[str]) -> Iterator[Overlaid]:
    names = [n for n, c in group[0].columns.items() if _is_picture(c)
             and all(n in s.columns and s.columns[n].row_shape == c.row_shape for s in group)]
    if len(names) < 2:
        return
    share = max(8, MOST_ROWS // len(group))
    rows = [np.unique(np.linspace(0, s.rows - 1, min(s.rows, share)).astype(np.int64)) for s in group]
    masks = [n for n in names[:4] if _is_mask(np.concatenate([s.columns[n].values[:40] for s in group]))]
    shard = np.concatenate([np.full(len(r), i) for i, r in enumerate(rows)])
    cuts = [*cuts_of(group, labels), *in_two(group)]
    for files in [c for c in cuts if not c.by][:1]:
        cuts += crossed(files, [c for c in cuts if c.by not in ("", "split", "name")])
    for mask in masks:
        common = _most_frequent(np.concatenate([s.columns[mask].values[:40] for s in group]))
        for name in (n for n in names[:4] if n not in masks):
            pictures, inside = (_small(group, rows, n, c) for n, c in ((name, None), (mask, common)))
            yield Overlaid(
                tuple(group), (name.removesuffix(THUMBNAIL), mask.removesuffix(THUMBNAIL)), pictures,
                inside.mean(axis=3), shard, np.concatenate(rows),
                tuple(replace(c, member=(np.concatenate([m[r] for m, r in zip(c.member, rows, strict=True)]),))
                      for c in cuts))


def _is_picture(column: Column) -> bool:
    shape = column.row_shape
    long = [n for n in shape if n >= SIDE]
    return column.kind == "number" and len(long) == 2 and int(np.prod(shape)) <= 4 * int(np.prod(long))


def _is_mask(some: Array) -> bool:
    """Whether pictures hold few whole values, one of them often."""
    if some.dtype.kind == "f" and not (some == np.round(some)).all():
        return False
    kinds, counts = np.unique(some, return_counts=True)
    return 2 <= len(kinds) <= VALUES and bool(counts.max() >= COMMON * counts.sum())


def _most_frequent(some: Array) -> float:
    kinds, counts = np.unique(some, return_counts=True)
    return float(kinds[counts.argmax()])


def _small(group: Sequence[Shard], rows: Sequence[Array], name: str, background: float | None) -> Array:
    """float32 shape (rows, 16, 16, channels): pictures, or how much of each cell is no background."""
    made = []
    for shard, some in zip(group, rows, strict=True):
        for start in range(0, len(some), BLOCK):
            x = np.nan_to_num(np.asarray(shard.columns[name].values[some[start : start + BLOCK]], np.float32))
            made.append(cells(x if background is None else (x != background).astype(np.float32)))
    return np.concatenate(made)


def _files(view: View) -> Iterator[Overlaid]:
    """Pictures and masks in folders, by what their names have in common."""
    shown = [s for d in view.sets for s in d.shards if s.contents is not None and s.contents.colours is not None]
    masks = [s for s in shown if len(s.label_images) >= 0.9 * min(s.rows, FEWEST) and s.label_images]
    for mask in masks:
        for pictures in (s for s in shown if s is not mask and s.split == mask.split and not s.label_images):
            made = _pair(view, pictures, mask)
            if made is not None:
                yield made


_WORDS = re.compile(r"[A-Za-z]+|\d+")


def _named(shard: Shard) -> dict[tuple[str, ...], int]:
    """The files by the words of their paths that not all of them have."""
    words = [_WORDS.findall(Path(n).with_suffix("").as_posix().lower()) for n in shard.row_names]
    common = set.intersection(*map(set, words)) if words else set()
    return {tuple(w for w in some if w not in common): i for i, some in enumerate(words)}


def _pair(view: View, pictures: Shard, mask: Shard) -> Overlaid | None:
    assert pictures.contents is not None
    assert mask.contents is not None
    assert pictures.contents.colours is not None
    assert mask.contents.colours is not None
    at, on = (dict(zip(s.contents.rows.tolist(), range(len(s.contents.rows)), strict=True))  # type: ignore[union-attr]
              for s in (pictures, mask))
    known, pairs = _named(mask), []
    for key, row in _named(pictures).items():
        if row in at and key in known and known[key] in on:
            pairs.append((row, at[row], on[known[key]]))
    if len(pairs) < FEWEST:
        return None
    rows, first, second = (np.array(v) for v in zip(*pairs[: 2 * MOST_ROWS], strict=True))
    looks = mask.contents.colours[second].astype(np.float32)
    flat = looks.reshape(-1, looks.shape[-1])
    kinds, counts = np.unique(flat, axis=0, return_counts=True)
    apart = np.abs(looks - kinds[counts.argmax()]).sum(axis=-1)
    top = np.maximum(apart.max(axis=(1, 2), keepdims=True), 1e-6)
    names = [pictures.row_names[r] for r in rows]
    cuts = []
    for by, values in groups_of(names, view):
        groups, codes = np.unique(values, return_inverse=True)
        if 2 <= len(groups) <= min(MOST_GROUPS, len(names) // 8):
            cuts.append(Cut(by, tuple(str(g) for g in groups), (codes.reshape(-1).astype(np.int64),), True))
    return Overlaid((pictures,), ("the pictures", "their masks"), cells(pictures.contents.colours[first]),
                    np.asarray(cells(apart / top).mean(axis=3), np.float32), np.zeros(len(rows), np.int64), rows,
                    tuple(cuts))


def fits(found: Overlaid) -> tuple[Array, list[tuple[str, Array]]] | None:
    """float64 shape (rows,): how well each mask is what its picture says of it, as it is and turned; None: no model."""
    a = Side(found.fields[0], (found.pictures,), True)
    b = Side(found.fields[1], (found.masks[..., None],), True)
    said = predicted(a, b)
    if said is None:
        return None

    def as_turned(turn: Callable[[Array], Array]) -> Array:
        return agreement(said[0], turn(found.masks).reshape(len(found.masks), -1))

    return as_turned(lambda x: x), [(told, as_turned(turn)) for told, turn in TURNS]
