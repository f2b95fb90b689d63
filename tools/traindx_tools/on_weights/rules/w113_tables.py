"""A stored table differs from what its formula gives: sine positions, rotary frequencies, causal masks.

Tables are told by what is in them: most of the values must follow the formula, then those that do not are told. What
follows no formula is a trained table and left alone, and so are frequencies that were stretched for long contexts. Of
copies that a model keeps in every block, one that differs is told whatever its formula.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.seen import Seen, load_tensor, stacks_of
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W113",
    name="stored-table",
    title="A stored table differs from its formula",
    severity=Severity.HIGH,
    sees="Tables of sine and cosine, geometric frequencies and triangular masks, recomputed; copies in other blocks.",
    matters="Positions or masks are wrong, and nothing trains them back: they are loaded over what the code computed.",
    alike=("trained position tables", "frequencies stretched for long contexts (YaRN, Llama 3)"),
    confirm=("recompute the table and compare", "save it with persistent=False"),
    thresholds={"most": Threshold(0.6, "share of the values that follow the formula", "else it is another formula")},
)
_MOST = 0.6
_READ = 64 * 2**20
_COPIED = 16
"""Values of a table of whole numbers below which copies say nothing: counters."""


def check(seen: Seen) -> Iterator[Finding]:
    """Tables of real numbers, then masks of any type, then copies."""
    told = set()
    for stats in seen.floats:
        found = _frequencies(seen, stats) or _positions(seen, stats)
        if found is not None:
            told.add(stats.name)
            yield found
    for found in _masks(seen):
        told.add(str(found.measured["name"]))
        yield found
    yield from (f for f in _copies(seen) if f.measured["name"] not in told)


def _frequencies(seen: Seen, stats: Stats) -> Finding | None:
    """Falling powers of a base, the first of them one: 1/base^(2i/d)."""
    bounded = stats.low > 0 and stats.high <= 1.001 and not (stats.nan or stats.inf)
    if stats.tensor.matrix or not 8 <= stats.size <= 4096 or not bounded:
        return None
    x = stats.tensor.load().astype(np.float64).reshape(-1)
    logs = np.log(x)
    steps = np.diff(logs)
    step = float(np.median(steps))
    digits = {"bfloat16": 8e-3, "float16": 2e-3}.get(stats.tensor.dtype, 1e-4)
    right = np.abs(steps - step) < max(2 * digits, 1e-3 * abs(step))
    named = "freq" in stats.name.lower()
    if step > -1e-3 or abs(logs[0] - step) < 1e-9 or right.mean() < _MOST or not (named or abs(x[0] - 1) < digits):
        return None
    line = logs[0] + 0.0 if abs(logs[0]) < digits else float(np.median(logs - step * np.arange(len(x))))
    wrong = np.flatnonzero(np.abs(logs - line - step * np.arange(len(x))) > np.maximum(4 * digits, 0.01))
    theta = float(np.exp(-step * len(x)))
    asked = seen.config.get("rope_theta")
    if len(wrong) == 0 and isinstance(asked, (int, float)) and named and asked > 0 and abs(
            np.log(theta / asked)) > 0.02 and not seen.config.get("rope_scaling"):
        return _finding(seen, stats, f"follows a base of {theta:.6g}; the configuration beside it says rope_theta "
                        f"{asked:g}", "base", Severity.HIGH)
    if 0 < len(wrong) < 0.4 * len(x) and not _stretched(wrong, len(x)):
        return _finding(seen, stats, f"is 1/{theta:.6g}^(i/{len(x)}) but for {len(wrong)} of {len(x)} values (the "
                                     "first "
                        f"at {int(wrong[0])}: {x[wrong[0]]:.4g} instead of "
                        f"{float(np.exp(line + step * wrong[0])):.4g})", "frequencies", None)
    return None


def _stretched(wrong: NDArray[np.intp], size: int) -> bool:
    """Whether all of the lowest frequencies differ, as methods for long contexts make them."""
    return bool(wrong[-1] == size - 1 and len(wrong) == wrong[-1] - wrong[0] + 1 and len(wrong) > 2)


def _positions(seen: Seen, stats: Stats) -> Finding | None:
    """Rows of sines and cosines, in turn or in halves."""
    shape = tuple(n for n in stats.tensor.shape if n > 1)
    if len(shape) != 2 or stats.largest > 1e3 or shape[0] < 4 or shape[1] < 4 or stats.nan or stats.inf:
        return None
    if len(stats.row_squares) == shape[0] and abs(np.median(stats.row_squares) / (shape[1] / 2) - 1) > 0.1:
        return None  # sine and cosine of an angle: the squares of a row add up to half its width
    if np.median(np.abs(stats.sample)) > 1.0 or (np.abs(stats.sample) > 1.001).mean() > 0.4:
        return None
    table = load_tensor(stats.tensor, _READ)
    if table is None:
        return None
    table = table.reshape(shape)
    best = max(_sinusoids(*shape), key=lambda t: float((np.abs(table - t) < 0.02).mean()))
    right = np.abs(table - best) < 0.02
    wrong = np.flatnonzero(~right.all(axis=1))
    if right.mean() < _MOST or not len(wrong):
        return None
    row = int(wrong[0])
    return _finding(seen, stats, f"is the table of sine positions but for {len(wrong)} of {shape[0]} rows (the first "
                                 "is "
                    f"row {row}, off by {np.abs(table[row] - best[row]).max():.3g})", "positions", None)


def _sinusoids(rows: int, width: int) -> Iterator[NDArray[np.float64]]:
    """Vaswani et al. 2017, section 3.5: base 10000, in turn as there, and in halves as fairseq has them."""
    half = width // 2
    for exponent in (np.arange(half) / half, np.arange(half) / max(1, half - 1)):
        for start in (0, 1):
            angle = np.arange(start, rows + start)[:, None] * 10000.0 ** -exponent
            for a, b in ((np.sin(angle), np.cos(angle)), (np.cos(angle), np.sin(angle))):
                turn = np.zeros((rows, width))
                turn[:, 0: 2 * half: 2], turn[:, 1: 2 * half: 2] = a, b
                yield turn
                yield np.concatenate([a, b, np.zeros((rows, width - 2 * half))], axis=1)


def _masks(seen: Seen) -> Iterator[Finding]:
    """Square tables of two values that are nearly a triangle."""
    for name, tensor in seen.part.tensors.items():
        shape = tuple(n for n in tensor.shape if n > 1)
        stats = seen.stats.get(name)
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 8 or tensor.nbytes > _READ or stats is None:
            continue
        if stats.nan or len(np.unique(stats.sample[:: max(1, len(stats.sample) // 4096)])) > 2:
            continue
        table = tensor.load().reshape(shape)
        yield from _triangle(seen, name, table == table[-1, 0], shape[0])


def _triangle(seen: Seen, name: str, lower: NDArray[np.bool_], size: int) -> Iterator[Finding]:
    """`lower`: where the mask is as in its lower left corner. The diagonal may be on either side."""
    wrong = {k: lower != np.tri(size, k=k, dtype=bool) for k in (0, -1)}
    best = min(wrong, key=lambda k: int(wrong[k].sum()))
    count = int(wrong[best].sum())
    if count and count <= 0.2 * lower.size:
        row, column = (int(i) for i in np.argwhere(wrong[best])[0])
        stats = seen.stats.get(name)
        yield RULE.finding(
            f"{name} in {seen.path} is a causal mask but for {count:,} of {lower.size:,} places (the first is row "
            f"{row}, "
            f"column {column})", seen.where(name), seen.path, bearing=Bearing.CAUSE,
            measured={"name": name, "kind": "mask", "wrong": count, "largest": stats.largest if stats else None})


def _copies(seen: Seen) -> Iterator[Finding]:
    """Of tensors that all blocks but one hold alike, the one."""
    masks = tuple(s for s in seen.stats.values() if not s.tensor.floating and s.size >= _COPIED)
    for stack in (*seen.stacks, *stacks_of(masks)):
        keys = [(s.low, s.high, s.squares, s.mean) for s in stack.members]
        usual = max(set(keys), key=keys.count)
        if stack.members[keys.index(usual)].constant:
            continue
        odd = [s for s, k in zip(stack.members, keys, strict=True) if k != usual]
        if keys.count(usual) >= max(3, 0.7 * len(keys)) and len(odd) == 1:
            yield _finding(seen, odd[0], f"differs from the {keys.count(usual)} other blocks, which hold the same "
                                         "table "
                           "to the bit", "copy", None)


def _finding(seen: Seen, stats: Stats, what: str, kind: str, severity: Severity | None) -> Finding:
    return RULE.finding(f"{stats.name} in {seen.path} {what}", seen.where(stats.name), seen.path, bearing=Bearing.CAUSE,
                        severity=severity, measured={"name": stats.name, "kind": kind})
