"""Folders of pictures or sounds: the headers of the files are the rows, the folder of each is its label.

Of some files a thumbnail or a spectrum is kept beside them, where held-out files may be copies of training files.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Array, Column, Damage
from traindx_tools.on_data.names import pattern_of, split_of
from traindx_tools.on_data.readers.arrays import digest
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.deep_pictures import DeepPictures
from traindx_tools.on_data.readers.label_pictures import LabelImages
from traindx_tools.on_data.readers.looks import Looks, contents_of_looks
from traindx_tools.on_data.readers.orientation import orientation_of
from traindx_tools.on_data.readers.pictures import picture_header
from traindx_tools.on_data.readers.records import columns_of
from traindx_tools.on_data.readers.sound import flat_tops, is_turned, left_and_right, wave_header, wraps_at_full_scale
from traindx_tools.on_data.shard import Shard

PICTURES = frozenset({".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff"})
SOUNDS = frozenset({".wav"})
MOST_FILE = 2**26
"""Bytes of one file that are read."""
TOPS_SECONDS = 6.0
"""For the peaks of the sounds of a split."""
FEWEST = 8
"""Files that make a set."""


def read_folder(files: Sequence[tuple[Path, str]], name: str, sounds: bool, bounds: Bounds) -> tuple[Shard, ...]:
    """The files as rows, a shard a split. `files`: each with its name below the folder. Raises UnreadableInput."""
    if len(files) < FEWEST:
        raise UnreadableInput("too few files for a data set")
    header = wave_header if sounds else picture_header
    looked_at = Looks(sounds, bounds)
    by_split: dict[str, list[tuple[Path, str]]] = {}
    for path, below in files:
        by_split.setdefault(next(filter(None, map(split_of, Path(below).parts[:-1])), ""), []).append((path, below))
    labels = {label: i for i, label in enumerate(sorted({_label(below) for _, below in files}))}
    field = "source" if _number_sources(by_split) else "label"
    return tuple(
        _shard(found, name, split, (field, labels), header, looked_at, bounds)
        for split, found in by_split.items()
    )


def _number_sources(by_split: Mapping[str, Sequence[tuple[Path, str]]]) -> bool:
    """Whether the folders are called alike but for their number, and no split has one of another: videos, subjects."""
    sides = [{_label(below) for _, below in files} for files in by_split.values()]
    names = set().union(*sides)
    patterns = {pattern_of(n) for n in names}
    return len(sides) > 1 and len(names) == sum(map(len, sides)) and len(patterns) == 1 and "#" in patterns.pop()


def _label(below: str) -> str:
    return Path(below).parent.name


def _shard(
    files: Sequence[tuple[Path, str]],
    name: str,
    split: str,
    folders: tuple[str, Mapping[str, int]],
    header: Callable[[bytes], dict[str, int]],
    looks: Looks,
    bounds: Bounds,
) -> Shard:
    rows: list[dict[str, Any]] = []
    names: list[str] = []
    damage: list[Damage] = []
    notes: list[str] = []
    images: dict[int, Array] = {}
    tops: list[tuple[float, float]] = []
    sides: list[tuple[float, float]] = []
    wraps: list[int] = []
    turned: list[bool] = []
    turns: list[int] = []
    ends = time.monotonic() + TOPS_SECONDS
    labelled = LabelImages(bounds, len(files))
    deep = DeepPictures(bounds, len(files))
    chosen = looks.chosen(len(files), split)
    for number, (path, below) in enumerate(files):
        if bounds.over or len(rows) >= bounds.rows:
            notes.append(f"only {len(rows):,} of {len(files):,} files were read")
            break
        with path.open("rb") as stream:
            data = stream.read(MOST_FILE)
        try:
            row: dict[str, Any] = dict(header(data))
        except UnreadableInput as error:
            damage.append(Damage(str(error), row=len(rows)))
            row = {}
        if row:
            labelled.take(len(rows), data)
        image = looks.at(data) if number in chosen and row else None
        if image is not None:
            images[len(rows)] = image
        rows.append({**row, "bytes": len(data), "content": digest(data)})
        names.append(below)
        if header is picture_header:
            turns.append(orientation_of(data))
            deep.take(row, data)
        if header is wave_header:
            known = bool(row) and time.monotonic() < ends
            tops.append(flat_tops(data) if known else (math.nan, math.nan))
            wraps.append(wraps_at_full_scale(data) if known else 0)
            turned.append(known and is_turned(data))
            sides.append(left_and_right(data) if known and row["channels"] == 2 else (math.nan, math.nan))
    contents = np.array([r.pop("content") for r in rows], np.uint64)
    columns = columns_of(rows, name)
    columns["content"] = Column(
        "content", "text", np.array([r["bytes"] for r in rows], np.int64), name, digests=contents
    )
    if turns and "width" in columns:
        columns["width"] = replace(columns["width"], orientations=np.array(turns, np.int8))
    field, labels = folders
    if len(labels) > 1:
        columns[field] = Column(field, "number", np.array([labels[_label(n)] for n in names], np.int64), name)
    shown = f"{name}/{split}" if split else name
    if looks.note and chosen:
        notes.append(looks.note)
    return Shard(
        shown,
        "sounds" if header is wave_header else "pictures",
        columns,
        len(rows),
        len(files),
        split=split,
        row_names=tuple(names),
        damage=tuple(damage),
        notes=tuple(notes),
        flat_tops=np.array(tops) if tops else None,
        wraps=np.array(wraps, np.int64) if wraps else None,
        turned=np.array(turned) if turned else None,
        left_right=np.array(sides) if sides else None,
        contents=contents_of_looks(images, header is wave_header),
        label_images=labelled.found,
        deep=deep.array(),
    )
