"""A stored table differs from what its formula gives: sine positions, rotary frequencies, causal masks.

Tables are told by what is in them: most of the rows must be rows of the formula, wherever they stand, or enough of them
at their own place that no chance makes them; then those that are not are told, and what they hold instead. What follows
no formula is a trained table and left alone, and so are frequencies that were stretched for long contexts. Of
copies that a model keeps in every block, one that differs is told whatever its formula.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.seen import Seen, load_tensor, stacks_of
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.on_weights.table_formulas import (
    BASES,
    MOST_ROWS,
    Rows,
    matched,
    of_base,
    rotary,
    said,
    sines,
    window_index,
)
from traindx_tools.on_weights.table_settings import settings_of
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
_ROWS, _PART = 8, 0.15
"""Rows that all agree with a formula at their own place, in number and share, below which it may be chance."""
_MASK = 0.95
"""Share of the rows of a square table of two values that are rows of a triangle, wherever they stand."""
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
    for found in (*_masks(seen), *_indexes(seen)):
        told.add(str(found.measured["name"]))
        yield found
    yield from (f for f in _copies(seen) if f.measured["name"] not in told)


def _frequencies(seen: Seen, stats: Stats) -> Finding | None:
    """Falling powers of a base, the first of them one: 1/base^(2i/d)."""
    if not 8 <= stats.size <= 4096 or stats.tensor.matrix:
        return None
    if stats.nan or stats.inf or not 0 < stats.low <= stats.high <= 1.001:
        return None
    x = stats.tensor.load().astype(np.float64).reshape(-1)
    logs = np.log(x)
    if (shuffled := _permuted(seen, stats, logs)) is not None:
        return shuffled
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
    asked = seen.config.get("rope_theta", settings_of(seen.checkpoint).number("rope_theta") if named else None)
    if len(wrong) == 0 and isinstance(asked, (int, float)) and named and asked > 0 and abs(
            np.log(theta / asked)) > 0.02 and not seen.config.get("rope_scaling"):
        return _finding(seen, stats, f"follows a base of {theta:.6g}; the configuration beside it says rope_theta "
                        f"{asked:g}", "base", Severity.HIGH)
    if len(wrong) == 0 and named and asked and abs(logs[0]) > 0.02 and not seen.config.get("rope_scaling"):
        return _finding(seen, stats, f"is 1/{theta:.6g}^(i/{len(x)}) divided by {float(1 / x[0]):.4g}, as a linear "
                        "scaling of the positions makes it; the configuration beside it says of no scaling", "base",
                        Severity.HIGH)
    again = len(x) // 2
    if len(x) % 2 == 0 and np.array_equal(x[:again], x[again:]) and "inv_freq" in stats.name:  # axial positions repeat
        return _finding(seen, stats, f"is 1/{theta:.6g}^(i/{len(x)}) in entries 0..{again - 1}, and entries "
                        f"{again}..{len(x) - 1} hold the same again", "frequencies", None, row=again, rows=again)
    if 0 < len(wrong) < 0.4 * len(x) and not _stretched(wrong, len(x)):
        return _finding(seen, stats, f"is 1/{theta:.6g}^(i/{len(x)}) but for {len(wrong)} of {len(x)} values (the "
                                     "first "
                        f"at {int(wrong[0])}: {x[wrong[0]]:.4g} instead of "
                        f"{float(np.exp(line + step * wrong[0])):.4g})", "frequencies", None)
    return None


def _permuted(seen: Seen, stats: Stats, logs: NDArray[np.float64]) -> Finding | None:
    """Frequencies that are geometric once they are sorted, and do not stand sorted."""
    order = np.argsort(-logs, kind="stable")
    moved = np.flatnonzero(order != np.arange(len(logs)))
    steps = np.diff(logs[order])
    digits = {"bfloat16": 8e-3, "float16": 2e-3}.get(stats.tensor.dtype, 1e-4)
    if not len(moved) or "freq" not in stats.name.lower() or (np.diff(logs) > 0).all():
        return None
    if steps[0] > -1e-3 or np.abs(steps - steps[0]).max() > max(2 * digits, 1e-3 * abs(steps[0])):
        return None
    at = int(moved[0])
    theta = float(np.exp(-steps[0] * len(logs)))
    return _finding(seen, stats, f"holds 1/{theta:.6g}^(i/{len(logs)}) with {len(moved)} of {len(logs)} permuted (the "
                    f"first is entry {at}, which holds that of {int(np.flatnonzero(order == at)[0])})", "frequencies",
                    None, row=at, rows=len(moved))


def _stretched(wrong: NDArray[np.intp], size: int) -> bool:
    """Whether all of the lowest frequencies differ, as methods for long contexts make them."""
    return bool(wrong[-1] == size - 1 and len(wrong) == wrong[-1] - wrong[0] + 1 and len(wrong) > 2)


def _positions(seen: Seen, stats: Stats) -> Finding | None:
    """Rows of sines and cosines, in turn or in halves, or of one of the two."""
    if not stats.tensor.matrix:
        return None
    shape = tuple(n for n in stats.tensor.shape if n > 1)
    if len(shape) != 2 or stats.largest > 1e3 or shape[0] < 4 or shape[1] < 4 or stats.nan or stats.inf:
        return None
    if np.median(np.abs(stats.sample)) > 1.0 or (np.abs(stats.sample) > 1.001).mean() > 0.1:
        return None
    low, high = (0.3, 1.01) if shape[0] <= MOST_ROWS else (0.45, 0.55)  # sine and cosine: half; a cosine alone: more
    if len(stats.row_squares) == shape[0] and not low < np.median(stats.row_squares) / shape[1] < high:
        return None
    table = load_tensor(stats.tensor, _READ)
    if table is None:
        return None
    table = table.reshape(shape)
    found = _fitting(table)
    if found is None or not len(found.wrong) or (len(found.wrong) == 1 and not table[found.wrong[0]].any()):
        return None  # the row of the padding is zero by design
    if any(of_base(table, formulas, other) for formulas in (sines, rotary) for other in BASES):
        return None  # W148 asks whether the configuration says so
    row = int(found.wrong[0])
    return _finding(seen, stats, f"is the table of sine positions ({found.formula}; {found.found} of {shape[0]} rows "
                                 f"are of it) but {said(found)}", "positions", None, row=row, rows=len(found.wrong))


def _fitting(table: NDArray[np.float64]) -> Rows | None:
    """The formula of which most rows are rows, or enough that no chance makes them."""
    best: Rows | None = None
    for formula, made in (*sines(*table.shape), *rotary(*table.shape)):
        found = matched(formula, table, made)
        if best is None or (found.found, -len(found.wrong)) > (best.found, -len(best.wrong)):
            best = found
    if best is None:
        return None
    if 2 * len(np.unique(best.place[best.place >= 0])) < best.found:
        return None  # one position again and again: a matrix of ones is the cosine of 0
    own = len(best.place) - len(best.wrong)
    few = own >= max(_ROWS, _PART * len(best.place)) and table.shape[1] >= 8
    return best if best.found >= _MOST * len(best.place) or few else None


def _indexes(seen: Seen) -> Iterator[Finding]:
    """Tables of whole numbers: places in order, and relative places in a window."""
    for name, tensor in seen.part.tensors.items():
        if tensor.floating:
            continue
        stats = seen.stats.get(name)
        shape = tuple(n for n in tensor.shape if n > 1)
        if stats is None or not 16 <= tensor.size <= _READ // 8 or tensor.dtype == "bool":
            continue
        if len(shape) == 1 and stats.high <= tensor.size and stats.high >= tensor.size // 2 - 1:
            yield from _index(seen, stats, matched("0, 1, 2, ...", _column(stats), _column(stats, counted=True), 0.0))
        elif len(shape) == 2 and shape[0] == shape[1] and (made := window_index(shape[0])) is not None and (
                made.max() == stats.high or made.max() / 2 <= stats.high < made.max()):
            yield from _index(seen, stats, matched(f"the relative places in a window of {round(shape[0]**0.5)} by "
                                                   f"{round(shape[0]**0.5)}",
                                                   tensor.load().astype(np.float64).reshape(shape), made, 0.0))


def _column(stats: Stats, counted: bool = False) -> NDArray[np.float64]:
    values = np.arange(stats.size) if counted else stats.tensor.load()
    return np.asarray(values, np.float64).reshape(-1, 1)


def _index(seen: Seen, stats: Stats, found: Rows) -> Iterator[Finding]:
    own = len(found.place) - len(found.wrong)
    most = own >= max(_ROWS, len(found.place) / 2 - 1)
    if len(found.wrong) and (most or (stats.tensor.matrix and found.found >= _MASK * len(found.place))):
        yield _finding(seen, stats, f"is {found.formula}, but {said(found)}", "index", None, row=int(found.wrong[0]),
                       rows=len(found.wrong))


def _masks(seen: Seen) -> Iterator[Finding]:
    """Square tables of two values that are nearly a triangle."""
    for name, tensor in seen.part.tensors.items():
        if not tensor.matrix:
            continue
        shape = tuple(n for n in tensor.shape if n > 1)
        stats = seen.stats.get(name)
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 8 or tensor.nbytes > _READ or stats is None:
            continue
        if stats.nan or stats.constant or len(np.unique(stats.sample[:: max(1, len(stats.sample) // 4096)])) > 2:
            continue
        table = tensor.load().reshape(shape)
        yield from _triangle(seen, name, table == table[-1, 0], shape[0])


def _triangle(seen: Seen, name: str, lower: NDArray[np.bool_], size: int) -> Iterator[Finding]:
    """`lower`: where the mask is as in its lower left corner. The diagonal may be on either side."""
    wrong = {k: lower != np.tri(size, k=k, dtype=bool) for k in (0, -1)}
    best = min(wrong, key=lambda k: int(wrong[k].sum()))
    count = int(wrong[best].sum())
    rows = [matched("", lower.astype(np.float64), np.tri(size, k=k), 0.0) for k in (0, -1)]
    places = max(rows, key=lambda r: r.found)
    stats = seen.stats.get(name)
    distinct = len(np.unique(places.place[places.place >= 0]))
    if not count or not (count <= 0.2 * lower.size or (places.found >= _MASK * size and 2 * distinct >= size)):
        return
    if places.found == size and (places.place >= np.arange(size)).all() and (np.diff(places.place) >= 0).all():
        return  # a prefix, or chunks, that see each other on purpose
    row, column = (int(i) for i in np.argwhere(wrong[best])[0])
    known = places.found == size and len(places.wrong) >= 2
    what = said(places) if known else (f"for {count:,} of {lower.size:,} places (the first is row {row}, column "
                                       f"{column})")
    yield RULE.finding(
        f"{name} in {seen.path} is a causal mask but {what}", seen.where(name), seen.path, bearing=Bearing.CAUSE,
        measured={"name": name, "kind": "mask", "wrong": count, "row": row,
                  "largest": stats.largest if stats else None})


def _copies(seen: Seen) -> Iterator[Finding]:
    """Of tensors that all blocks but one hold alike, the one."""
    masks = tuple(s for s in seen.stats.values() if not s.tensor.floating and s.size >= _COPIED)
    for stack in (s for s in (*seen.stacks, *stacks_of(masks)) if s.members[0].size > 1):
        keys = [(s.low, s.high, s.squares, s.stored_sample.tobytes()) for s in stack.members]  # orders share the rest
        usual, count = Counter(keys).most_common(1)[0]
        if stack.members[keys.index(usual)].constant:
            continue
        odd = [s for s, k in zip(stack.members, keys, strict=True) if k != usual]
        if count >= max(3, 0.7 * len(keys)) and len(odd) == 1:
            yield _finding(seen, odd[0], f"differs from the {count} other blocks, which hold the same "
                                         "table "
                           "to the bit", "copy", None)


def _finding(seen: Seen, stats: Stats, what: str, kind: str, severity: Severity | None,
             **measured: int) -> Finding:
    return RULE.finding(f"{stats.name} in {seen.path} {what}", seen.where(stats.name), seen.path, bearing=Bearing.CAUSE,
                        severity=severity, measured={"name": stats.name, "kind": kind, **measured})
