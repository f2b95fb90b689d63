"""The last rows of a table were never trained: equal to each other, or all drawn alike beside rows that differ.

Rows of tokens that training saw have norms that differ from token to token. Rows that were added and never trained are
copies of one (a mean, zeros) or independent draws, whose squared norms scatter by sqrt(2/width) and no more. Rare
tokens, scattered or thinning out by frequency, are neither. Fewer than 128 such rows, or one percent of all, are
padding or reserved tokens, and only remarked. Tokens that the tokenizer beside the model adds and its chat template
writes are neither: their rows must differ from each other and from the mean of all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.named_rows import untrained_rows
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.on_weights.tokenizer_beside import TokensBeside, tokens_beside
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W106",
    name="embedding-rows-untrained",
    title="Rows at the end of an embedding were never trained",
    severity=Severity.MEDIUM,
    sees="Norms of the rows of tables that are taller than wide, from the end on.",
    matters="Tokens or positions of these rows mean nothing to the model, or all the same.",
    alike=("padding of the vocabulary to a round size", "rare tokens with small norms", "reserved tokens"),
    confirm=("count how often these ids occur in the training data", "compare the rows with the checkpoint before"),
    thresholds={
        "padding": Threshold(128, "rows", "what libraries pad vocabularies to (8, 64, 128)"),
        "share": Threshold(0.01, "of all rows", "reserved tokens of public tokenizers are fewer"),
        "scatter": Threshold(1.4, "times the scatter of draws that the trained rows must have",
                             "of a hundred draws the scatter is known to 7 %"),
    },
)
_PADDING, _SCATTER, _SHARE = 128, 1.4, 0.01
_FEWEST = 8


def check(seen: Seen) -> Iterator[Finding]:
    """Every table that is taller than wide."""
    tokens = tokens_beside(seen.path)
    for stats in seen.floats:
        rows = len(stats.row_squares)
        width = stats.size // max(1, rows)
        if stats.tensor.matrix and rows >= 32 and width >= 4 and rows > 2 * width and not stats.constant and not (
                stats.nan or stats.inf) and len(stats.tensor.shape) == 2 and is_embedding(stats):
            named = list(_named(seen, stats, tokens)) if tokens is not None else []
            yield from named or _judged(seen, stats, rows, width)


def _named(seen: Seen, stats: Stats, tokens: TokensBeside) -> Iterator[Finding]:
    """Rows of tokens that the tokenizer adds and the chat template writes into every conversation."""
    for found in untrained_rows(stats, tokens.names):
        used = [tokens.names[n] for n in found.rows if n in tokens.used]
        if not used:
            continue
        listed = ", ".join(f"{tokens.names[n]} ({n})" for n in found.rows[:4])
        yield RULE.finding(
            f"the {len(found.rows)} rows of {stats.name} in {seen.path} of {listed} are {found.how}: the chat template "
            f"writes {', '.join(used[:3])}, and the model was never trained on it", seen.where(stats.name), seen.path,
            bearing=Bearing.SIGN, measured={"name": stats.name, "rows": len(found.rows), "of": len(stats.row_squares),
                                            "kind": "named", "tokens": tuple(used[:20])})


def is_embedding(stats: Stats) -> bool:
    """Whether a tall matrix may be a table of tokens or positions: by its name, or by a thousand rows."""
    name = stats.name.lower()
    return any(w in name for w in ("emb", "wte", "wpe", "tok", "vocab", "lm_head")) or stats.tensor.shape[0] >= 1000


def _judged(seen: Seen, stats: Stats, rows: int, width: int) -> Iterator[Finding]:
    equal = _equal_tail(stats)
    if equal >= 2:
        value = "zero" if stats.row_squares[-1] == 0 else "equal to each other"
        yield _finding(seen, stats, equal, rows, f"are {value}", "equal")
        return
    drawn = _drawn_tail(stats.row_squares, width)
    if drawn >= _FEWEST:
        yield _finding(seen, stats, drawn, rows, "are draws of one distribution (their norms scatter as chance does), "
                                                 "and "
                       "the rows before scatter more", "drawn")


def _equal_tail(stats: Stats) -> int:
    """How many rows at the end are the same."""
    same = stats.row_squares == stats.row_squares[-1]
    count = len(same) if same.all() else int(np.argmin(same[::-1]))
    if count < 2 or count > 0.9 * len(same):
        return 0
    last = stats.tensor.row(len(same) - 1)
    sampled = range(len(same) - count, len(same), max(1, count // 32))
    return count if all(stats.tensor.row(i) == last for i in sampled) else 0


def _drawn_tail(squares: NDArray[np.float64], width: int) -> int:
    """The longest tail of at least 8 rows that scatters as independent draws do, beside a head that scatters more."""
    chance = (2 / width) ** 0.5
    found = 0
    for count in _lengths(len(squares)):
        tail = squares[-count:]
        if tail.mean() <= 0 or tail.std() / tail.mean() > 1.3 * chance:
            break
        found = count
    if not found:
        return 0
    found = _to_border(squares, found)
    tail, head = squares[-found:], squares[:-found]
    if len(head) < _FEWEST:
        return 0
    middle = np.sort(head)[len(head) // 20: len(head) - len(head) // 20]
    apart = abs(np.log(tail.mean() / middle.mean())) > 4 * chance
    scatters = middle.std() / middle.mean() > _SCATTER * chance
    return found if apart and scatters and _steps(squares, found) else 0


def _to_border(squares: NDArray[np.float64], count: int) -> int:
    """The tail, grown by the rows before it that lie in its range."""
    low, high = squares[-count:].min() * 0.95, squares[-count:].max() * 1.05
    before = squares[:-count]
    outside = np.flatnonzero((before < low) | (before > high))
    return len(squares) - (int(outside[-1]) + 1 if len(outside) else 0)


def _steps(squares: NDArray[np.float64], count: int) -> bool:
    """Whether the norms step at the border: rows that thin out by frequency pass it smoothly."""
    before, tail = squares[-count - max(8, count // 8):-count], squares[-count:]
    return bool(((before > tail.min()) & (before < tail.max())).mean() < 0.25)


def _lengths(rows: int) -> list[int]:
    return sorted({n for n in (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096, 8192)
                   if n <= rows // 2} | {rows // 10, rows // 5, rows // 4, rows // 3, rows // 2} - set(range(8)))


def _finding(seen: Seen, stats: Stats, count: int, rows: int, what: str, kind: str) -> Finding:
    padding = count < _SHARE * rows or (count < _PADDING and (kind == "drawn" or rows % 8 == 0))
    return RULE.finding(
        f"the last {count:,} of the {rows:,} rows of {stats.name} in {seen.path} {what}"
        f"{': as padding to a round size is, and reserved tokens' if padding else ''}",
        seen.where(stats.name), seen.path, bearing=Bearing.SIGN, severity=Severity.INFO if padding else None,
        measured={"name": stats.name, "rows": count, "of": rows, "kind": kind})
