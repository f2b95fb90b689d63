"""Whether the arrays of an npz are those of a model and of what its optimizer keeps, by their shapes alone."""

from __future__ import annotations

import math
import zipfile
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from traindx_tools.on_weights.unnamed_moments import repeated

MOST_ARRAYS, MOST_HEADER = 2_000, 10_000
LAYERS = 2
FEWEST = 3
"""Times that a shape is there: weights, and two moments of each."""


def holds_weights_and_moments(archive: zipfile.ZipFile) -> bool:
    """Whether a series of shapes stands there twice, behind each other, and once more for the weights.

    Tables of data have one number of rows in all their arrays, and a series of weights has several.
    """
    names = [n for n in archive.namelist() if n.endswith(".npy")]
    if not 3 * FEWEST <= len(names) <= MOST_ARRAYS:
        return False
    shapes = [s for n in names if (s := _shape(archive, n)) is not None]
    often = Counter(shapes)
    return any(
        length >= FEWEST and len({s[0] for s in series}) > 1 and any(len(s) > 1 for s in series)
        and all(often[s] >= FEWEST for s in series)
        for place, length in repeated(shapes) if (series := shapes[place:place + length]))


def holds_layers(archive: zipfile.ZipFile) -> bool:
    """Whether all arrays are matrices of one model and their biases, in turn."""
    names = [n for n in archive.namelist() if n.endswith(".npy")]
    if not 2 * LAYERS <= len(names) <= MOST_ARRAYS:
        return False
    held = [_header(archive, n) for n in names]
    return all(h is not None and h[1] == "f" for h in held) and are_layers([h[0] for h in held if h is not None])


def are_layers(shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether shapes are those of layers, matrix and bias in turn: each vector is as long as its matrix is wide, what
    one matrix gives the next one takes, and the first axes differ. Tables have one number of rows."""
    pairs = list(zip(shapes[::2], shapes[1::2], strict=False))
    if len(shapes) % 2 or len(pairs) < LAYERS:
        return False
    for turned in (False, True):
        layers = [(b, a) if turned else (a, b) for a, b in pairs]
        for first, last in ((0, -1), (-1, 0)):  # JAX stores in x out, torch out x in
            if all(len(m) >= 2 and len(v) == 1 and v[0] == m[last] for m, v in layers) and all(
                    a[last] == b[first] for (a, _), (b, _) in pairwise(layers)):
                return len({m[0] for m, _ in layers}) > 1 or len({len(m) for m, _ in layers}) > 1
    return False


def holds_masks(archive: zipfile.ZipFile) -> bool:
    """Whether all arrays are truth values of matrices with other numbers of rows: what was pruned, and no labels."""
    names = [n for n in archive.namelist() if n.endswith(".npy")]
    if not FEWEST <= len(names) <= MOST_ARRAYS:
        return False
    held = [_header(archive, n) for n in names]
    shapes = [h[0] for h in held if h is not None and h[1] == "b" and len(h[0]) > 1]
    return len(shapes) == len(names) and len({s[0] for s in shapes}) > 1


def _shape(archive: zipfile.ZipFile, name: str) -> tuple[int, ...] | None:
    """Of an array of real numbers with more than one value; None of any other."""
    held = _header(archive, name)
    return held[0] if held is not None and held[1] == "f" and held[0] and math.prod(held[0]) > 1 else None


def _header(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], str] | None:
    """The shape of an array and the kind of its numbers; None where it cannot be read."""
    try:
        with archive.open(name) as stream:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(stream, max_header_size=MOST_HEADER)
    except (ValueError, SyntaxError, TypeError, EOFError, OSError, RecursionError, RuntimeError, MemoryError,
            zipfile.BadZipFile):
        return None
    return shape, dtype.kind
