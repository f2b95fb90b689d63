"""The bits of weights are those of the other 16-bit type: float16 read as bfloat16, or the reverse.

Both have a sign, an exponent and a fraction of 16 bits, so that a wrong label costs no byte and no error. The exponent
of bfloat16 has eight bits: read with the five of float16 all weights lie between a half and two; the other way round
one power of two becomes eight. How far weights spread over powers of two is known: the logarithm of the size of normal
numbers has a standard deviation of pi / sqrt(8) / ln 2 = 1.60, of uniform ones 1 / ln 2 = 1.44, and a long tail down.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.on_weights.tensor import as_numbers
from traindx_tools.rules import Rule, Threshold

NARROW, WIDE, USUAL, TAIL = 0.8, 5.0, (1.1, 2.6), -0.5
FEWEST, MATRICES, SHARE = 256, 3, 0.8
_OTHER = {"float16": "bfloat16", "bfloat16": "float16"}

RULE = Rule(
    id="W177",
    name="bits-of-another-type",
    title="Weights are stored under the label of another type",
    severity=Severity.CRITICAL,
    sees="how far the sizes of 16-bit weights spread over powers of two, as they are labelled and as the other type",
    matters="Every weight is another number: what is loaded, without an error, is nothing that was trained.",
    alike=("Binary and ternary weights: they have few sizes in both types.", "Scales near one: they are no matrices.",
           "Weights of a very wide spread, as after pruning by size: the other type does not make them usual."),
    confirm=("print(w.view(torch.bfloat16).float().std(), w.float().std()): one of both is near 1 / sqrt(fan_in)",),
    thresholds={
        "narrow": Threshold(NARROW, "standard deviation of log2 of the size", "half of what normal numbers have"),
        "wide": Threshold(WIDE, "the same", "three times of it"),
        "usual": Threshold(USUAL[1], "the same, at most, as the other type; at least 1.1", "1.60 and 1.44 are known"),
        "tail": Threshold(TAIL, "skewness of log2 of the size, at most", "-1.5 of normal numbers, 0 of few sizes"),
        "share": Threshold(SHARE, "of the matrices of a file in these types, three at least", "a converter does all"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """One finding for each file and type."""
    groups: dict[tuple[str, str], list[Stats]] = {}
    for stats in seen.floats:
        if stats.tensor.dtype in _OTHER and stats.tensor.matrix and stats.size >= FEWEST and not stats.constant:
            groups.setdefault((stats.tensor.file, stats.tensor.dtype), []).append(stats)
    for (_, dtype), members in groups.items():
        odd = [s for s in members if _is_odd(s)]
        if len(odd) >= max(MATRICES, SHARE * len(members)):
            yield _finding(seen, odd, len(members), dtype, _OTHER[dtype])


def _is_odd(stats: Stats) -> bool:
    own, _ = _spread(as_numbers(stats.stored_sample, stats.tensor.dtype))
    if NARROW <= own <= WIDE:
        return False
    spread, tail = _spread(_read_as(stats, _OTHER[stats.tensor.dtype]))
    return USUAL[0] <= spread <= USUAL[1] and tail <= TAIL


def _read_as(stats: Stats, dtype: str) -> NDArray[np.floating] | NDArray[np.integer]:
    bits = np.ascontiguousarray(stats.stored_sample).view(np.uint16)
    return as_numbers(bits if dtype == "bfloat16" else bits.view(np.float16), dtype)


def _spread(values: NDArray[np.floating] | NDArray[np.integer]) -> tuple[float, float]:
    """Standard deviation and skewness of log2 of the sizes; 1.6 and -1.5 where that cannot be told."""
    sizes = np.abs(values[np.isfinite(values)].astype(np.float64))
    logs = np.log2(sizes[sizes > 0]) if (sizes > 0).any() else np.zeros(0)
    if len(logs) < FEWEST // 2:
        return 1.6, -1.5
    spread = float(logs.std())
    return spread, float((((logs - logs.mean()) / spread) ** 3).mean()) if spread > 0 else 0.0


def _finding(seen: Seen, odd: list[Stats], of: int, dtype: str, other: str) -> Finding:
    first = max(odd, key=lambda s: s.size)
    usual, own = (float(np.std(v.astype(np.float64))) for v in (
        _read_as(first, other), as_numbers(first.stored_sample, dtype)))
    return RULE.finding(
        f"{len(odd)} of {of} matrices in {seen.path} are labelled {dtype} and hold the bits of {other}: {first.name} "
        f"has a spread of {own:.3g} as it is labelled and of {usual:.3g} as {other}",
        seen.where(first.name), seen.path, bearing=Bearing.CAUSE,
        measured={"kind": "bits", "form": f"the bits of {other} under the label {dtype}", "dtype": dtype,
                  "other": other, "names": tuple(s.name for s in odd[:20]), "count": len(odd), "of": of})
