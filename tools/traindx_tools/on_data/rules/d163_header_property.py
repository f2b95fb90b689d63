"""Files of one set differ in a property of their headers that readers commonly drop.

A picture is stored as the sensor saw it, and EXIF notes how the camera was held; a sound has its own rate, a file its
own depth and byte order. A reader gives the numbers and leaves the property aside, or gives it beside them, and code
that does not ask for it takes turned pictures for upright ones and slow sounds for fast ones. Told is the share, and
what files with the property have in common: a part of their names, a column of a table. Whether it harms is the
code's to say: where the code of the run is known, it is looked at for a use of the property (`used_by_code`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.origins import groups_of, in_common
from traindx_tools.on_data.places import percent, place, rows, short
from traindx_tools.on_data.roles import keys
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.used_by_code import UNKNOWN, severity_of
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST = 4
"""Files with another value; fewer may be single exceptions."""
SHARE = 0.02
"""Of the files: what fewer have changes no training."""
MOST_KINDS = 50
"""Values of a field that files may have in common."""
_MARK = {"rate": "frames", "bits": "", "channels": "width"}
"""Properties of headers, each with a field of the same header: that of a sound, or of a picture."""
_OF_HEADERS = frozenset({*_MARK, "frames", "width", "height", "bytes", "content"})
"""Fields that tell nothing of where a file is from."""
_TURNS = {2: "mirrored", 3: "by 180 degrees", 4: "mirrored upside down", 5: "mirrored and by 90 degrees",
          6: "by 90 degrees", 7: "mirrored and by 270 degrees", 8: "by 270 degrees"}

RULE = Rule(
    id="D163",
    name="header-property",
    title="Files differ in a header property that readers drop",
    severity=Severity.LOW,
    sees="sample rate, EXIF orientation, depth, channels and byte order in the headers of all files of a set, beside "
         "words of their names and columns of tables; the code of the run, for a use of the property",
    matters="A loader that takes the numbers alone sees turned pictures, faster sounds, values of another size.",
    alike=("A loader that resamples, or turns pictures as EXIF says: a remark, and one as long as no code is known.",
           "Masks beside images, each in a folder of its own: their channels and depth are not compared.",
           "Files of one origin whose header is wrong: D131 and D154."),
    confirm=("Load one named file and one other as the training does; compare both with a viewer or player.",),
    thresholds={
        "fewest": Threshold(FEWEST, "files", "fewer may be single exceptions"),
        "share": Threshold(SHARE, "of the files", "fewer change no training"),
        "level": Threshold(LEVEL, "probability", "that files with the property share a word or a value by chance"),
    },
)


@dataclass(frozen=True, eq=False)
class _Property:
    """One property of the files of a set, file by file."""

    what: str
    field: str
    shards: tuple[Shard, ...]
    values: Array
    """float64 shape (files of all shards,)."""

    @property
    def sounds(self) -> bool:
        return self.what == "rate" or any(n.endswith("frames") for s in self.shards for n in s.columns)


def check(view: View) -> Iterator[Finding]:
    """A finding for each set of files and property that is not the same in all of them."""
    for data in view.sets:
        for found in (*_orientations(data), *_numbers(data)):
            yield from _judged(found, view)
        yield from _byte_orders(data)


def _orientations(data: DataSet) -> Iterator[_Property]:
    for name in data.fields:
        shards = tuple(s for s in data.shards if name in s.columns)
        turns = [s.columns[name].orientations for s in shards]
        if any(t is not None for t in turns):
            values = [t if t is not None else np.ones(s.columns[name].rows)
                      for t, s in zip(turns, shards, strict=True)]
            yield _Property("orientation", name, shards, np.concatenate(values).astype(np.float64))


def _numbers(data: DataSet) -> Iterator[_Property]:
    """Rate, depth and channels as headers say them: `rate` of a folder of files, `wav.rate` of an archive."""
    for name in data.fields:
        before, _, what = name.rpartition(".")
        beside = f"{before}." if before else ""
        if what not in _MARK:
            continue
        shards = tuple(s for s in data.shards if name in s.columns and s.columns[name].missing is None
                       and {f"{beside}frames", f"{beside}width"} & set(s.columns))
        if shards and all(f"{beside}{_MARK[what]}" in s.columns or not _MARK[what] for s in shards):
            values = np.concatenate([np.asarray(s.columns[name].values).reshape(-1) for s in shards])
            yield _Property(what, name, shards, values.astype(np.float64))


def _judged(found: _Property, view: View) -> Iterator[Finding]:
    kinds, counts = np.unique(found.values, return_counts=True)
    if len(kinds) < 2:
        return
    usual = kinds[int(counts.argmax())]
    odd = found.values != usual
    if odd.sum() < max(FEWEST, SHARE * len(odd)):
        return
    if found.what in ("bits", "channels") and _by_folder(found, odd):
        return
    groups = _groups(found, view)
    told = in_common(odd, groups, view.comparisons)
    if told is None and len(kinds) > 2:  # one value of several may go along with something that all together do not
        each = [(k, in_common(found.values == k, groups, view.comparisons)) for k in kinds if k != usual]
        told = next(((f"{said[0]} have {_named(found.what, float(k))}", said[1]) for k, said in each if said), None)
    yield _finding(found, odd, float(usual), told[0] if told else "")


def _by_folder(found: _Property, odd: Array) -> bool:
    """Whether each folder holds files of one kind: images and masks, each with a purpose of its own."""
    names = [n.rpartition("/")[0] for s in found.shards for n in s.row_names]
    if len(names) != len(odd):
        return False
    folders = np.unique(names, return_inverse=True)[1].reshape(-1)
    share = np.bincount(folders, weights=odd) / np.bincount(folders)
    return bool(((share == 0) | (share == 1)).all())


def _groups(found: _Property, view: View) -> Mapping[str, Array]:
    """What the files have in common, each with the value of each file: words, folders, columns of tables, shards."""
    shards = found.shards
    names = [n for s in shards for n in s.row_names]
    groups = dict(groups_of(names, view)) if len(names) == len(found.values) else {}
    sizes = [s.columns[found.field].rows for s in shards]
    if len(shards) > 1:
        groups["file"] = np.repeat([short(s) for s in shards], sizes)
        groups["split"] = np.repeat([s.split for s in shards], sizes)
    for name in (n for n in shards[0].columns if n.rpartition(".")[2] not in _OF_HEADERS):
        whole = np.concatenate([_said(s, name) for s in shards])
        if len(whole) == len(found.values) and len(np.unique(whole)) <= MOST_KINDS:
            groups[name] = whole
    return groups


def _said(shard: Shard, name: str) -> Array:
    """The values of a field as text; empty where it is none that files have in common."""
    column = shard.columns.get(name)
    if column is None or column.row_shape or column.kind == "sequence" or column.missing is not None:
        return np.zeros(0, np.str_)
    if column.kind == "text":
        return np.array(column.texts) if len(column.texts) == column.rows else np.zeros(0, np.str_)
    few = column.is_integer and len(np.unique(keys(column)[:2000])) <= MOST_KINDS
    return column.values.astype(np.str_) if few else np.zeros(0, np.str_)


def _named(what: str, value: float) -> str:
    if what == "orientation":
        return f"orientation {value:g}" + (f" (to be turned {_TURNS[int(value)]})" if int(value) in _TURNS else "")
    return f"{value:g} Hz" if what == "rate" else f"{value:g} {what}"


def _finding(found: _Property, odd: Array, usual: float, common: str) -> Finding:
    sizes = [s.columns[found.field].rows for s in found.shards]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    most = int(np.argmax([odd[a:b].sum() for a, b in pairwise(starts)]))
    shard = found.shards[most]
    here = np.flatnonzero(odd[starts[most] : starts[most + 1]])
    kinds, counts = np.unique(found.values[odd], return_counts=True)
    said = ", ".join(f"{_named(found.what, float(k))} in {n:,}" for k, n in zip(kinds[:4], counts[:4], strict=True))
    of = "sounds" if found.sounds else "pictures"
    return RULE.finding(
        f"the headers of {len(odd):,} {of} are not alike: {said} ({percent(float(odd.mean()))}), "
        f"{_named(found.what, usual)} in the others{f'; {common}' if common else ''}: {rows(shard, here)}; a reader "
        f"that gives the numbers alone drops it",
        place(shard, found.field),
        shard.name,
        bearing=Bearing.SIGN,
        severity=severity_of(found.what, UNKNOWN),
        measured={"field": found.what, "value": float(kinds[int(counts.argmax())]), "usual": usual,
                  "count": int(odd.sum()), "share": float(odd.mean()), "common": common, "of": of, "kind": UNKNOWN,
                  "endings": tuple(sorted({n.rpartition(".")[2].lower() for n in shard.row_names if "." in n}))[:5],
                  "rows": tuple(int(i) for i in here[:20]), "shard": short(shard)},
    )


def _byte_orders(data: DataSet) -> Iterator[Finding]:
    """Arrays of one field that are declared in two byte orders: a reader of plain bytes drops that."""
    for name in data.fields:
        shards = [s for s in data.shards if name in s.columns and s.columns[name].values.dtype.itemsize > 1]
        swapped = [s for s in shards if s.columns[name].values.dtype.byteorder == ">"]
        if 0 < len(swapped) < len(shards):
            yield _of_bytes(name, shards, swapped)


def _of_bytes(name: str, shards: Sequence[Shard], swapped: Sequence[Shard]) -> Finding:
    shard = swapped[0]
    return RULE.finding(
        f"{name} is stored with the most significant byte first in {len(swapped):,} of {len(shards):,} files, "
        f"{short(shard)} among them, as their headers say; a reader of plain bytes drops it",
        place(shard, name),
        shard.name,
        bearing=Bearing.SIGN,
        severity=severity_of("byte order", UNKNOWN),
        measured={"field": "byte order", "fields": (name,), "count": len(swapped), "of": "arrays", "kind": UNKNOWN,
                  "share": len(swapped) / len(shards), "shard": short(shard)},
    )
