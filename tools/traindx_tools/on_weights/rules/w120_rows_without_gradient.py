"""A run of rows of a table has second moments of exactly zero: no gradient ever reached them.

Adam's mean of squares keeps a trace of every gradient; exactly zero after many steps means none. Tokens that the data
lack are scattered among others, thin out to the end of the table, or are reserved; a long run between rows that were
trained is none of these: ids were mapped around it, or clipped, or the rows were cut out of the graph.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_weights.checkpoint import OptimizerState
from traindx_tools.on_weights.rules.w106_embedding_rows import is_embedding
from traindx_tools.on_weights.rules.w128_moments_exchanged import moments_by_name
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats, measure
from traindx_tools.on_weights.tensor import Tensor
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W120",
    name="rows-without-gradient",
    title="A run of rows of an embedding never had a gradient",
    severity=Severity.MEDIUM,
    sees="Rows of an optimizer's second moments that are exactly zero, beside rows of the table that hold values.",
    matters="The rows are what they were at the start: these tokens mean nothing to the model.",
    alike=("tokens that the data lack: scattered, reserved, or of one script", "bytes, of a byte-level vocabulary",
           "rows frozen by a mask"),
    confirm=("count how often these ids occur in the training data",),
    thresholds={
        "run": Threshold(0.05, "share of the rows", "a script that the data lack is up to 3 % of a common vocabulary"),
        "level": Threshold(LEVEL, "probability", "that rows without a gradient make such a run by chance"),
        "steps": Threshold(10, "steps", "before, many rows had no chance"),
    },
)
_RUN, _STEPS, _FEWEST = 0.05, 10, 8
_SPECIAL = 64
"""Special tokens before the bytes, at most."""
MOST_BYTES, MOST_TEXT = 2**30, 2**24
_SQUARES = ("exp_avg_sq", "nu", "square_avg", "v")


def check(seen: Seen) -> Iterator[Finding]:
    """Every table whose second moments can be told to be its own."""
    if not seen.main:
        return
    for stats, moment in moments_of_tables(seen):
        if moment.nbytes <= MOST_BYTES:
            yield from _judged(seen, stats, measure(moment))


def moments_of_tables(seen: Seen) -> Iterator[tuple[Stats, Tensor]]:
    """Each table of tokens, items or positions beside the second moments that are its own."""
    called = {n.replace("/", "."): n for n in seen.part.tensors}
    named = {called.get(n, n): m.second.tensor for n, m in moments_by_name(seen).items()
             if m.second is not None and m.optimizer is None}
    for name, moment in {**named, **second_moments(seen)}.items():
        stats = seen.stats.get(name)
        if stats is not None and _table(stats):
            yield stats, moment


def _table(stats: Stats) -> bool:
    shape = stats.tensor.shape
    return len(shape) == 2 and shape[0] >= 32 and shape[0] > 2 * shape[1] and is_embedding(stats)


def second_moments(seen: Seen) -> Mapping[str, Tensor]:
    """The mean of squares of each weight: by place and shape in torch, by name in trees of moments."""
    auxiliary = [p for p in seen.checkpoint.parts if p.auxiliary]
    if not (auxiliary or seen.checkpoint.optimizers):
        return {}
    found: dict[str, Tensor] = {}
    weights = seen.parameters
    for optimizer in seen.checkpoint.optimizers:
        found |= _by_place(optimizer, weights)
    shapes = {t.name: t.shape for t in weights}
    for name, tensor in (named for part in auxiliary for named in part.tensors.items()):
        for head, weight in _split(name):
            if shapes.get(weight) == tensor.shape and any(f".{s}." in f".{head}." for s in _SQUARES):
                found[weight] = tensor
    return found


def _split(name: str) -> Iterator[tuple[str, str]]:
    """What stands before and behind each dot of a name."""
    for dot in re.finditer(r"\.", name):
        yield name[:dot.start()], name[dot.end():]


def _by_place(optimizer: OptimizerState, weights: Sequence[Tensor]) -> Mapping[str, Tensor]:
    keys = [p for g in optimizer.groups for p in (g.get("params") or ())]
    states = [optimizer.state.get(k) for k in keys]
    moments = [s.get("exp_avg_sq") if isinstance(s, Mapping) else None for s in states]
    steps = [s.get("step") for s in states if isinstance(s, Mapping)]
    if len(keys) != len(weights) or not steps or _number(steps[0]) < _STEPS:
        return {}
    pairs = [(w, m) for w, m in zip(weights, moments, strict=True) if isinstance(m, Tensor)]
    if any(w.shape != m.shape for w, m in pairs):
        return {}
    return {w.name: m for w, m in pairs}


def _number(value: object) -> float:
    if isinstance(value, Tensor):
        return float(np.asarray(value.load()).reshape(-1)[0]) if value.size == 1 else 0.0
    return float(value) if isinstance(value, (int, float)) else 0.0


def _judged(seen: Seen, stats: Stats, moments: Stats) -> Iterator[Finding]:
    zero = moments.row_squares == 0
    rows = len(zero)
    if moments.nan + moments.inf or zero.all() or not zero.any() or len(stats.row_squares) != rows:
        return
    at, count = _longest(zero)
    else_zero = (int(zero.sum()) - count + 1) / max(1, rows - count)
    chance = count * math.log(min(1.0, else_zero)) + math.log(rows)
    if count < _FEWEST or at == 0 or at + count == rows or chance > math.log(LEVEL) or not (
            stats.row_squares[at:at + count] > 0).any():
        return
    yield RULE.finding(
        f"rows {at}..{at + count - 1} of {stats.name} {list(stats.tensor.shape)} in {seen.path} have second moments of "
        f"exactly zero in the optimizer: no gradient reached these {count:,} rows; of the others "
        f"{else_zero:.1%} have none",
        seen.where(stats.name), seen.path, bearing=Bearing.SIGN,
        severity=None if count >= _RUN * rows and not _bytes(seen.path, at, count) else Severity.INFO,
        measured={"name": stats.name, "at": at, "rows": count, "of": rows, "kind": "no-gradient"})


def _bytes(path: str, at: int, count: int) -> bool:
    """Whether the run may be the bytes of a byte-level vocabulary that text does not hold: they come first in it.

    There are 256, behind some special tokens; plain text has no more than 97 of them. A tokeniser beside the weights
    says whether it has them.
    """
    if at + count > 256 + _SPECIAL or count > 256:
        return False
    beside = Path(path if os.path.isdir(path) else os.path.dirname(path)) / "tokenizer.json"
    try:
        with beside.open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(MOST_TEXT)
    except OSError:
        return False
    return "ByteLevel" in text or "<0x" in text


def _longest(zero: NDArray[np.bool_]) -> tuple[int, int]:
    """Where the longest run begins, and its length."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], zero, [False]]).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    at = int(np.argmax(ends - starts))
    return int(starts[at]), int(ends[at] - starts[at])
