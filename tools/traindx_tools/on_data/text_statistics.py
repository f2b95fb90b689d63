"""Numbers of each text: shares of kinds of characters, its ends, how usual its letter pairs are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.on_data.column import Array

MOST_CHARACTERS = 600
"""Of each text: its beginning and its end tell its form."""
SHORT = 12
"""Characters of the typical text below which they are words and codes."""
PAIRS = 64
_ENDS = tuple(".!?…\"'”’)]}>;:。！？`|*")


def text_statistics(texts: Sequence[str]) -> Iterator[tuple[str, Array]]:
    """What of each text is compared, float64 shape (texts,). Nothing of words and codes."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    if not len(texts) or float(np.median(lengths)) < SHORT:
        return
    yield "the logarithm of its length", np.log1p(lengths.astype(np.float64))
    cut = [t[:MOST_CHARACTERS] for t in texts]
    points = np.frombuffer("".join(cut).encode("utf-32-le", "surrogatepass"), np.uint32)
    ends = np.cumsum(np.fromiter(map(len, cut), np.int64, len(cut)))
    starts = np.concatenate([[0], ends[:-1]])
    for told, marks in _kinds(points).items():
        sums = np.concatenate([[0], np.cumsum(marks)])
        yield told, (sums[ends] - sums[starts]) / np.maximum(1, ends - starts)
    yield "how usual its letter pairs are", _usual(points, starts, ends)
    whole = [t.rstrip() for t in texts]
    yield "whether it ends as a sentence ends", np.fromiter((t.endswith(_ENDS) for t in whole), np.float64, len(texts))


def _kinds(points: Array) -> dict[str, Array]:
    letters = ((points >= 65) & (points <= 90)) | ((points >= 97) & (points <= 122))
    space = points == 32
    twice = space & np.concatenate([[False], space[:-1]])
    return {
        "the share of capitals": (points >= 65) & (points <= 90),
        "the share of letters beyond ASCII": (points >= 192) & (points != 0xFFFD),
        "the share of digits": (points >= 48) & (points <= 57),
        "the share of spaces": space,
        "the share of spaces behind a space": twice,
        "the share of line ends": points == 10,
        "the share of other signs": ~letters & ~space & (points < 192) & ~((points >= 48) & (points <= 57)),
    }


def _usual(points: Array, starts: Array, ends: Array) -> Array:
    """The mean logarithm of the share that each pair of letters has in all texts."""
    folded = np.where((points >= 65) & (points <= 90), points + 32, points)
    code = np.where((folded >= 97) & (folded <= 122), folded - 96, np.where(folded == 32, 0, np.where(
        folded < 128, 27, 28 + folded % 32))).astype(np.int64)
    pairs = code[:-1] * PAIRS + code[1:] if len(code) > 1 else np.zeros(0, np.int64)
    counts = np.bincount(pairs, minlength=PAIRS * PAIRS) + 0.5
    logs = np.log(counts / counts.sum())
    sums = np.concatenate([[0.0], np.cumsum(logs[pairs]), [0.0]])
    last = np.maximum(starts, ends - 1)
    means = (sums[last] - sums[starts]) / np.maximum(1, last - starts)
    return np.asarray(np.round(means, 6))  # differences of a running sum: equal texts must stay equal
