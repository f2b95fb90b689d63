"""Input and output embedding are nearly the same and not the same: they were tied and came apart.

Equal tables are tied, or copies, and nothing to tell. Unrelated tables are two parameters by design, unless the
configuration beside the file says `tie_word_embeddings`. Copies under another prefix (a moving average, a target
network, a teacher) are near on purpose and are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding
from traindx_tools.finding import Severity as S
from traindx_tools.on_weights.seen import Seen, load_tensor
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W107",
    name="tied-weights-differ",
    title="Two weights that should be one differ",
    severity=S.HIGH,
    sees="Tables of the same shape under different names, by the correlation of their values; config.json beside them.",
    matters="Each gets a part of the gradient; what loads one of them for both loads something that was not trained.",
    alike=("moving averages and target networks", "embeddings that are apart by design"),
    confirm=("print(model.get_input_embeddings().weight is model.get_output_embeddings().weight)",),
    thresholds={"near": Threshold(0.8, "correlation", "independent tables of a thousand values reach 0.1")},
)
_NEAR = 0.8
_EMBEDDINGS = ("emb", "wte", "shared", "tok")
_COPY = frozenset({"ema", "average", "averaged", "avg", "swa", "teacher", "target", "momentum", "ref", "reference"})
_MOST = 2**26
_HEADS = ("head", "output", "decoder", "unembed", "proj_out", "classifier", "generator", "logits", "out")


def check(seen: Seen) -> Iterator[Finding]:
    """Pairs of tables of the same shape, of which one may be an embedding and the other an output."""
    tables = [s for s in seen.weights if len(s.tensor.shape) == 2 and s.size >= 64]
    by_shape: dict[tuple[int, ...], tuple[list[int], list[int]]] = {}
    for at, table in enumerate(tables):
        name = table.name.lower()
        rows, columns = table.tensor.shape
        embeds, heads = by_shape.setdefault((min(rows, columns), max(rows, columns)), ([], []))
        if any(w in name for w in _EMBEDDINGS):
            embeds.append(at)
        elif any(w in name for w in _HEADS):
            heads.append(at)
    pairs = sorted((min(p), max(p)) for embeds, heads in by_shape.values() for p in product(embeds, heads))
    for one, other in pairs:
        yield from _judged(seen, tables[one], tables[other])


def _copies(name: str) -> frozenset[str]:
    """The parts of a name that say which copy of the model it is of."""
    return frozenset(re.split(r"[./_]", name.lower())) & _COPY


def _values(one: Stats, other: Stats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same values of both: of a square the samples, of a kernel that lies the other way round all of its turned."""
    if one.tensor.shape == other.tensor.shape:
        return one.sample.astype(np.float64), other.sample.astype(np.float64)
    tables = [load_tensor(s.tensor, _MOST) for s in (one, other)]
    if tables[0] is None or tables[1] is None:
        return np.zeros(1), np.zeros(1)
    return tables[0].reshape(-1), tables[1].T.reshape(-1)


def _judged(seen: Seen, one: Stats, other: Stats) -> Iterator[Finding]:
    if one.tensor.storage is not None and one.tensor.storage == other.tensor.storage:
        return
    if _copies(one.name) != _copies(other.name):
        return  # of an average and of the weights
    x, y = _values(one, other)
    if np.array_equal(x, y) or not x.std() or not y.std():
        return
    near = float(np.corrcoef(x, y)[0, 1])
    told = seen.config.get("tie_word_embeddings") is True
    if near < _NEAR and not told:
        return
    moved = float(np.linalg.norm(x - y) / np.linalg.norm(x))
    why = "the configuration says tie_word_embeddings" if told else "they were one and came apart"
    yield RULE.finding(
        f"{one.name} and {other.name} in {seen.path} differ by {moved:.3g} of their norm (correlation {near:.3f}): "
        f"{why}",
        seen.where(one.name), seen.path, bearing=Bearing.CAUSE, severity=S.HIGH if told else S.MEDIUM,
        measured={"name": one.name, "other": other.name, "difference": moved, "correlation": near,
                  "kind": "configured" if told else "came-apart"})
