"""Which part of the rows is answered no better than by guessing while the others are learned.

Rows lie in the order of their dataset; a part is a range of them, or what a grouping of the dataset names (a file, a
source). The loss of a row is compared with that of a guess which knows how often each label occurs, so that rare labels
and noisy targets cost what they must. A part that is only harder stays below that guess; labels that say otherwise than
everywhere else, or inputs that were spoilt, do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.rows.book import VISITS, RowsSeen
from traindx_tools.rows.groupings import Grouping
from traindx_tools.rows.profile import Floats

ROWS, PART = 150, 20
"""Rows below which nothing is said, and rows of a part."""
LEARNED, GUESS, WORSE = 0.6, 0.9, 1.2
"""Share of a guess's loss: the other rows below it, a part above it at its last visit or (worse) at half of all."""
SURE = 7.0
"""Standard deviations of the rank sum: below 1e-11, so that a search over all ranges finds none by chance."""
MOST_SHARE = 0.45
HARDER = 2.0
"""Times the others' loss, from which a part whose inputs are other ones is told."""
OTHER_INPUTS, OTHER_LEVEL = 2.5, 2.0
MAPPED = 0.7


@dataclass(frozen=True)
class Part:
    """A part and how it was answered. `name`: "rows 4000 to 4999", "source = b". `kind`: "labels-mapped",
    "labels-unrelated" or "inputs-otherwise"."""

    name: str
    kind: str
    rows: int
    of: int
    loss: float
    """As a share of the loss of a guess, and that of the other rows."""
    others: float
    visit: int
    text: str
    below_guess: bool = False
    """It is learned in part: harder than the others, and no contradiction."""
    first: int | None = None
    last: int | None = None


def unlearned(seen: RowsSeen, groups: Sequence[Grouping] = ()) -> Iterator[Part]:
    """The parts that stand out, the most certain first, those of groupings before ranges that say the same."""
    guess = _guess(seen)
    if guess is None or seen.rows < ROWS:
        return
    told: list[NDArray[np.bool_]] = []
    for name, which in (*_of_groupings(seen, groups), *_ranges(seen, guess)):
        if any((which & t).sum() > 0.5 * min(which.sum(), t.sum()) for t in told):
            continue
        part = _judged(seen, guess, name, which)
        if part is not None:
            told.append(which)
            yield part
        if len(told) == 3:
            return


def _guess(seen: RowsSeen) -> Floats | None:
    """The loss that each row would have by a guess that knows the frequencies of labels, or their mean."""
    if seen.kind == "tokens":  # of sequences the loss of the beginning stands for that of a guess
        return np.full(seen.rows, seen.start) if np.isfinite(seen.start) and seen.start > 0 else None
    known = np.isfinite(seen.label)
    if known.sum() < ROWS:
        return None
    if seen.kind == "classes":
        kinds, codes, counts = np.unique(seen.label[known], return_inverse=True, return_counts=True)
        if len(kinds) < 2 or len(kinds) > len(codes) // 4:
            return None
        out = np.full(seen.rows, np.nan)
        out[known] = -np.log(counts / counts.sum())[codes]
        return out
    if seen.kind == "squared":
        spread = float(np.var(seen.label[known]))
        return np.where(known, spread, np.nan) if spread > 0 else None
    return None


def _judged(seen: RowsSeen, guess: Floats, name: str, which: NDArray[np.bool_]) -> Part | None:
    if not PART <= which.sum() <= MOST_SHARE * seen.rows:
        return None
    looks = []
    for v in range(seen.loss.shape[1]):
        ok = np.isfinite(seen.loss[:, v]) & np.isfinite(guess)
        mine, rest = which & ok, ~which & ok
        if mine.sum() < PART or rest.sum() < ROWS // 2 or ok.sum() < 0.6 * seen.rows:
            continue
        own, others = (float(seen.loss[m, v].sum() / guess[m].sum()) for m in (mine, rest))
        if others < LEARNED:
            looks.append((v, own, others, _rank_sum(seen.loss[mine, v], seen.loss[rest, v])))
    if not looks or max(z for *_, z in looks) < SURE:
        return None
    worse = sum(own >= WORSE and z >= SURE for _, own, _, z in looks)
    last = looks[-1]
    wrong = (last[1] >= GUESS and last[3] >= SURE) or 2 * worse >= max(len(looks), 2)
    harder = last[1] >= HARDER * last[2] and last[3] >= SURE and bool(_inputs(seen, which))
    if not wrong and not harder:
        return None
    v, own, others, _ = max(looks, key=lambda a: (a[1] - a[2]))
    kind, text = _why(seen, which, v)
    at = seen.order[which]
    ranged = seen.numbered and int(at[-1] - at[0]) + 1 <= 1.05 * len(at)
    return Part(name, kind, int(which.sum()), seen.rows, own, others, VISITS[v], text, not wrong,
                int(at[0]) if ranged else None, int(at[-1]) if ranged else None)


def _rank_sum(a: Floats, b: Floats) -> float:
    """Standard deviations by which the ranks of `a` lie above what chance gives (Mann and Whitney)."""
    ranks = np.concatenate([a, b]).argsort(kind="stable").argsort(kind="stable")[:len(a)]
    n, m = len(a), len(b)
    return float((ranks.mean() - (n + m - 1) / 2) / np.sqrt(m * (n + m + 1) / (12.0 * n)))


def _of_groupings(seen: RowsSeen, groups: Sequence[Grouping]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    for g in groups:
        if not seen.numbered or seen.order.max() >= len(g.codes) or _says_the_label(seen, g):
            continue
        codes = g.codes[seen.order]
        for k, kind in enumerate(g.kinds):
            yield f"{g.name} = {kind}", codes == k


def _says_the_label(seen: RowsSeen, g: Grouping) -> bool:
    """Whether the grouping is the label itself: each of its kinds has one label."""
    codes = g.codes[seen.order]
    known = np.isfinite(seen.label)
    if not known.any():
        return False
    pairs = np.unique(np.stack([codes[known], seen.label[known]]), axis=1).shape[1]
    return bool(pairs <= 1.2 * len(np.unique(codes[known])))


def _ranges(seen: RowsSeen, guess: Floats) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Ranges of neighbouring rows whose losses rank high, at each visit: the heaviest sub-arrays (Kadane)."""
    if not seen.numbered:
        return
    for v in range(seen.loss.shape[1] - 1, -1, -1):
        ok = np.flatnonzero(np.isfinite(seen.loss[:, v]) & np.isfinite(guess))
        if len(ok) < max(ROWS, 0.6 * seen.rows):
            continue
        height = (seen.loss[ok, v] / np.maximum(guess[ok], 1e-12)).argsort().argsort() / len(ok) - 0.65
        for _ in range(2):
            first, last = _heaviest(height)
            if last - first + 1 < PART:
                break
            which = np.zeros(seen.rows, bool)
            which[ok[first]:ok[last] + 1] = True
            yield f"rows {seen.order[ok[first]]} to {seen.order[ok[last]]}", which
            height = height.copy()
            height[first:last + 1] = -1.0


def _heaviest(height: Floats) -> tuple[int, int]:
    """First and last place of the sub-array with the largest sum."""
    sums = np.concatenate([[0.0], np.cumsum(height)])
    least = np.minimum.accumulate(sums)
    last = int(np.argmax(sums - least))
    return int(np.argmin(sums[:last + 1])), last - 1


def _why(seen: RowsSeen, which: NDArray[np.bool_], v: int) -> tuple[str, str]:
    """What of the part is other than elsewhere: its inputs, or what its labels mean."""
    inputs = _inputs(seen, which)
    if inputs:
        return "inputs-otherwise", inputs
    if seen.kind == "classes":
        mapped = _mapped(seen, which, v)
        if mapped:
            return "labels-mapped", mapped
        hits = seen.answer[which, v] == seen.label[which]
        rest = seen.answer[~which, v] == seen.label[~which]
        return "labels-unrelated", (f"the model names {hits.mean():.0%} of its labels and {rest.mean():.0%} of the "
                                    "others, and its inputs have the spread of the others")
    return "labels-unrelated", "its inputs have the spread of the others"


def _inputs(seen: RowsSeen, which: NDArray[np.bool_]) -> str:
    mean, std = seen.sums[:, 0], seen.sums[:, 1]
    own, rest = float(np.median(std[which])), float(np.median(std[~which]))
    if rest > 0 and (own >= OTHER_INPUTS * rest or own <= rest / OTHER_INPUTS):
        return f"its inputs have {own / rest:.3g} times the spread of the others ({own:.4g} against {rest:.4g})"
    scale = float(np.median(np.abs(mean[~which] - np.median(mean[~which])))) * 1.4826
    away = float(np.median(mean[which]) - np.median(mean[~which]))
    if abs(away) >= max(OTHER_LEVEL * scale, 0.5 * rest) > 0:
        return f"its inputs have a mean of {np.median(mean[which]):.4g}, the others of {np.median(mean[~which]):.4g}"
    across = seen.x[~which].std(0)
    flat = (seen.x[which].std(0) <= 1e-9) & (across > 1e-9)
    if flat.any() and flat.mean() >= 0.1:
        return f"{int(flat.sum())} of {len(flat)} values that were looked at are constant in it and vary elsewhere"
    return ""


def _mapped(seen: RowsSeen, which: NDArray[np.bool_], v: int) -> str:
    """Labels that the model answers with one other class each."""
    moved = []
    for label in np.unique(seen.label[which & np.isfinite(seen.label)]):
        answers = seen.answer[which & (seen.label == label), v]
        answers = answers[np.isfinite(answers)]
        if len(answers) < 5:
            continue
        kinds, counts = np.unique(answers, return_counts=True)
        top = int(counts.argmax())
        if counts[top] >= MAPPED * len(answers) and kinds[top] != label:
            moved.append((label, kinds[top]))
    if len(moved) < 2 or len({b for _, b in moved}) < len(moved):
        return ""
    shown = ", ".join(f"{a:g} as {b:g}" for a, b in moved[:5]) + (", ..." if len(moved) > 5 else "")
    return f"the model answers its labels with one other class each ({shown}), as if it were numbered otherwise"
