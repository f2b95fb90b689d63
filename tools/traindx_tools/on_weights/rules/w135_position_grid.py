"""A table of learned positions has lines of another length than the grid that the model lays over an image.

Positions of a grid that was trained are alike along both directions. A table that was resized as one sequence, or that
comes from a grid of other sides, has its neighbours elsewhere: the model takes places for neighbours that are not. The
grid that is wanted is that of the configuration (image and patch), of the table's own shape, or a square.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.position_grid import lines_of, straightened
from traindx_tools.on_weights.seen import Seen, load_tensor
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

_SCORE, _ERRORS, _WORSE, _OFF, _RANGE = 0.1, 5.0, 0.3, 0.08, 4.0
_MOST_BYTES = 2**26
_PREFIXES = (1, 0, 2, 5)
_SMALLEST, _STEP = 4, 0.2
"""Places of a side, at least; how near a whole number the length of a line is known to be one.
"""

RULE = Rule(
    id="W135",
    name="position-grid",
    title="Positions are those of another grid",
    severity=Severity.HIGH,
    sees="How alike rows of a table of positions are by their distance, against the lines of the grid.",
    matters="Neighbours in the image are strangers by position, and training has to learn all positions anew.",
    alike=("positions of text", "tables of sines for one direction", "grids that are not square, without configuration",
           "tables before training"),
    confirm=("reshape the table to the grid and plot how alike each place is to one in the middle",
             "resize in two dimensions from the original: reshape to (rows, columns), bicubic, flatten"),
    thresholds={
        "score": Threshold(_SCORE, "of the variance", "how far a line away is more alike than half a line away"),
        "errors": Threshold(_ERRORS, "standard errors", "of the likeness of rows without any order"),
        "worse": Threshold(_WORSE, "of that score", "what the wanted grid has at most"),
        "off": Threshold(_OFF, "of the length", "by which the lines differ"),
    },
)
_SHAPE, _CONFIGURATION, _SQUARE, _GUESSED = "its shape", "the configuration", "a square", "a square of any places"
"""What says which grid it should be; the last where nothing says that the places are of an image."""
_NAME = re.compile(r"(?i)pos")
_IMAGE, _PATCH = ("image_size", "img_size", "input_size", "image_resolution", "resolution"), ("patch_size",)


def check(seen: Seen) -> Iterator[Finding]:
    """Tables of positions in a model with patches, each once."""
    for stats in seen.floats:
        if not _NAME.search(stats.name) or stats.constant or stats.nan or stats.inf or stats.size > _MOST_BYTES // 4:
            continue
        values = load_tensor(stats.tensor, _MOST_BYTES)
        if values is None:
            continue
        laid = _laid(seen, stats, values)
        if laid is not None and (found := _judged(seen, stats, *laid)) is not None:
            yield found


def _laid(seen: Seen, stats: Stats, values: NDArray[np.float64]
          ) -> tuple[NDArray[np.float64], tuple[int, int], str] | None:
    """The places as a sequence, with the grid that they should have and what says so."""
    shape = [n for n in stats.tensor.shape if n > 1]
    if len(shape) == 3:
        for axis in (0, 2):  # the width of the model first, or last
            sides = (shape[1], shape[2]) if axis == 0 else (shape[0], shape[1])
            if shape[axis] in _widths(seen, stats) and min(sides) >= _SMALLEST:
                table = np.asarray(np.moveaxis(values.reshape(shape), axis, -1).reshape(sides[0] * sides[1], -1))
                return table, sides, _SHAPE
    if len(shape) != 2:
        return None
    told = _configured(seen, stats)
    table = values.reshape(shape)
    for prefix in _PREFIXES:
        rest = shape[0] - prefix
        if told is not None and told[0] * told[1] == rest and min(told) >= _SMALLEST:
            return table[prefix:], told, _CONFIGURATION
    for prefix in _PREFIXES:
        side = math.isqrt(max(0, shape[0] - prefix))
        if told is None and side * side == shape[0] - prefix and side >= _SMALLEST:
            patches = shape[1] in _widths(seen, stats) or any("patch" in n.lower() for n in seen.part.tensors)
            return table[prefix:], (side, side), _SQUARE if patches else _GUESSED
    return None


def _widths(seen: Seen, stats: Stats) -> set[int]:
    """The numbers of outputs of kernels that make patches: as wide as what is added to them."""
    kernels = [s.tensor.shape for s in seen.floats if len(s.tensor.shape) == 4 and s is not stats]
    return {n for k in kernels for n, sides in ((k[0], k[2:]), (k[-1], k[:2])) if min(sides) > 1}


def _configured(seen: Seen, stats: Stats) -> tuple[int, int] | None:
    """Rows and columns of patches, by config.json or by what the file keeps of its configuration."""
    told = {k.rpartition(".")[2]: v for k, v in seen.checkpoint.values.items()}
    for config in (*_nested(seen.config), told):
        image = next((p for n in _IMAGE if (p := _pair(config.get(n))) is not None), None)
        patch = next((p for n in _PATCH if (p := _pair(config.get(n))) is not None), None) or _kernel(seen, stats)
        if image is not None and patch is not None and min(patch) > 0:
            return image[0] // patch[0], image[1] // patch[1]
    return None


def _nested(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield config
    yield from (v for v in config.values() if isinstance(v, dict))


def _pair(value: object) -> tuple[int, int] | None:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value, value
    if isinstance(value, (list, tuple)) and len(value) >= 2 and all(type(v) is int and v > 0 for v in value):
        return int(value[-2]), int(value[-1])
    return None


def _kernel(seen: Seen, stats: Stats) -> tuple[int, int] | None:
    found = [s.tensor.shape[2:] for s in seen.floats if len(s.tensor.shape) == 4 and s is not stats
             and s.tensor.shape[0] == stats.tensor.shape[-1] and min(s.tensor.shape[2:]) > 1]
    return (found[0][0], found[0][1]) if len(found) == 1 else None


def _judged(seen: Seen, stats: Stats, table: NDArray[np.float64], grid: tuple[int, int], why: str) -> Finding | None:
    wanted = float(grid[1])
    lines = lines_of(table, wanted)
    least = max(_SCORE, _ERRORS / math.sqrt(table.size))
    if lines is None or lines.score < least or lines.expected > _WORSE * lines.score or (
            abs(lines.length / wanted - 1) < _OFF or not wanted / _RANGE <= lines.length <= wanted * _RANGE):
        return None
    rows = len(table) / lines.length
    old = next((s * s for s in (round(rows), round(rows) - 1, round(rows) + 1) if straightened(table, s * s)), None)
    whole = abs(rows - round(rows)) < 0.02 * rows and abs(lines.length - round(lines.length)) < _STEP
    if old is None and (why == _GUESSED or (why == _SQUARE and whole)):
        return None  # a grid of other sides fits: nothing says that it should be a square
    side = math.isqrt(old) if old else 0
    said = (f": it is one of {side} x {side} places that was interpolated along the sequence, and not in two "
            "dimensions" if old else ": it was resized along the sequence, or is of another grid")
    return RULE.finding(
        f"{stats.name} in {seen.path} should be a grid of {grid[0]} x {grid[1]} ({why}), and its places are alike at a "
        f"distance of {lines.length:g} and not of {grid[1]} (scores {lines.score:.2f} and {lines.expected:.2f}){said}",
        seen.where(stats.name), seen.path, bearing=Bearing.CAUSE,
        severity=Severity.MEDIUM if why == _SQUARE and old is None else None,
        measured={"kind": "sequence" if old else "grid", "name": stats.name, "length": lines.length,
                  "wanted": grid[1], "score": round(lines.score, 3), "expected": round(lines.expected, 3)})
