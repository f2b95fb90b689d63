"""Label images whose values are classes, and the rows in which values stand between them along borders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_data.column import Array, Column

SIDE = 8
MOST_SIDE = 512
MOST_ROWS = 600
MOST_VALUES = 2**25
INSIDE = 0.3
"""Share of the pixels of a class whose four neighbours have it too."""
THIN = 0.1
"""The same of a value between classes, at most."""
CLASSES = 64
NEW = 3
"""Distinct values between classes in one image."""
SHARE = 0.001
"""Share of the pixels of an image that hold them."""
BETWEEN = 0.5
"""Share of them that lie between the lowest and the highest class within two pixels: thin classes are gone there."""
SOME = 0.25
"""The same of an image with values that surely interpolated images hold and no others: of a pole that was one pixel
wide nothing is left that they could lie beside."""
OFTEN = 0.1
"""Share of the sound images that hold a thin class, at least."""
FEWEST = 8


@dataclass(frozen=True, eq=False)
class LabelImages:
    """What the values of label images are."""

    classes: Array
    interpolated: Array
    """bool shape (images,)."""
    examples: tuple[int, ...]
    """Values that are no class."""
    pixels: float
    """Share of the pixels of these images that hold such values."""


def label_images(column: Column) -> tuple[Array, Array] | None:
    """Images shape (some rows, height, width) as int64 and their rows; None of a field that holds none."""
    values = column.values
    if column.kind != "number" or values.dtype.kind not in "iuf":
        return None
    shape = [n for n in column.row_shape if n != 1]
    if len(shape) != 2 or min(shape) < SIDE or len(column.row_shape) > 3 or max(shape) > 4096:
        return None
    step = max(1, -(-len(values) // max(FEWEST, min(MOST_ROWS, MOST_VALUES // (shape[0] * shape[1])))))
    some = np.asarray(values[::step]).reshape(-1, *shape)[:, :MOST_SIDE, :MOST_SIDE]
    rows = np.arange(0, len(values), step)
    if values.dtype.kind == "f":
        whole = np.isfinite(some).all() and (some == np.round(some)).reshape(len(some), -1).all(axis=1).mean() >= 0.5
        top = float(np.abs(some).max(initial=0.0)) if whole else 0.0
        if not whole or top > 2**15:
            return None
        some = np.round(some * 100)  # hundredths stand for what is between
    return some.astype(np.int64), rows


def judged(images: Sequence[Array]) -> LabelImages | None:
    """Which images hold values between classes, where at least half of them hold a few classes alone."""
    if len(images) < FEWEST:
        return None
    inside, total = _counts(images)
    kinds = np.array(sorted(total))
    share = np.array([inside.get(k, 0) / total[k] for k in kinds.tolist()])
    classes = kinds[share >= INSIDE]
    thin = kinds[share <= THIN]
    if not 2 <= len(classes) <= CLASSES:
        return None
    thin = thin[(thin > classes.min()) & (thin < classes.max())]
    marks = [_interpolated(i, classes, thin) for i in images]
    found = np.array([m is not None for m in marks])
    if not found.any() or float(found.mean()) > 0.5:
        return None
    kinds, counts = np.unique(np.concatenate(
        [np.unique(i) for i, m in zip(images, marks, strict=True) if m is None]), return_counts=True)
    sound = kinds[np.isin(kinds, classes) | (counts >= OFTEN * (~found).sum())]
    if len(sound) > CLASSES:
        return None
    new = np.unique(np.concatenate([m[0] for m in marks if m is not None]))
    new = new[~np.isin(new, sound)]
    if len(new) < NEW:
        return None
    thin = thin[~np.isin(thin, sound)]
    marks = [_interpolated(i, classes, thin, 1) or _interpolated(i, classes, new, between=SOME) for i in images]
    found = np.array([m is not None for m in marks])
    pixels = float(np.mean([m[1] for m in marks if m is not None]))
    return LabelImages(sound, found, tuple(int(v) for v in new[:6]), pixels)


def _counts(images: Sequence[Array]) -> tuple[dict[int, int], dict[int, int]]:
    """Of each value how many pixels hold it, and how many with all four neighbours."""
    inside: dict[int, int] = {}
    total: dict[int, int] = {}
    for image in images:
        core = image[1:-1, 1:-1]
        same = (core == image[:-2, 1:-1]) & (core == image[2:, 1:-1]) & (core == image[1:-1, :-2]) & (
            core == image[1:-1, 2:])
        for found, values in ((total, core), (inside, core[same])):
            for k, n in zip(*np.unique(values, return_counts=True), strict=True):
                found[int(k)] = found.get(int(k), 0) + int(n)
    return inside, total


def _interpolated(
    image: Array, classes: Array, thin: Array, least: int = NEW, between: float = BETWEEN
) -> tuple[Array, float] | None:
    """The values between classes along the borders of an image and their share of its pixels; None of a sound one."""
    marks = np.isin(image, thin)
    values = np.unique(image[marks])
    if len(values) < least or float(marks.mean()) < SHARE:
        return None
    known = np.isin(image, classes)
    low = _window(np.where(known, image, np.iinfo(np.int64).max), np.minimum)
    high = _window(np.where(known, image, np.iinfo(np.int64).min), np.maximum)
    inside = (low < image) & (image < high)
    return (values, float(marks.mean())) if float(inside[marks].mean()) >= between else None


def _window(values: Array, least: np.ufunc) -> Array:
    """The lowest or highest value within two pixels."""
    out = values
    for axis in (0, 1):
        padded = np.pad(out, [(2, 2) if a == axis else (0, 0) for a in (0, 1)], mode="edge")
        size = out.shape[axis]
        out = least.reduce([np.take(padded, range(k, k + size), axis=axis) for k in range(5)])
    return np.asarray(out)
