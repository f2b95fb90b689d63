"""A recurrent network is computed again on labelled sequences beside it, and only another order of its gates fits them.

Keras keeps the gates of a GRU as update, reset, new; torch as reset, update, new. A file that was carried over without
putting the blocks into the other order loads without a word: all shapes agree. Computed with each order of the blocks,
the outputs go with the labels best in the one that training had.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.significance import LEVEL, paired_tail
from traindx_tools.on_weights.labelled_rows import FEWEST, Rows, rows_beside
from traindx_tools.on_weights.recurrent import CALLED, Array, Recurrent, recurrent_of
from traindx_tools.on_weights.seen import Seen
from traindx_tools.rules import Rule, Threshold

_CLEAR, _GAIN, _LEFT = 0.6, 0.1, 0.5
_PRODUCTS = 2**30
"""Of a weight and an input, over all orders."""

RULE = Rule(
    id="W157",
    name="gates-in-other-order",
    title="The gates of a recurrent layer stand in another order than its library reads",
    severity=Severity.HIGH,
    sees="outputs of one GRU or LSTM with a dense layer behind its last state, on labelled sequences beside it, for "
         "each order of the gates",
    matters="Update and reset do each other's work: the outputs are others, and still not noise.",
    alike=("inputs that the code prepares in a way that is not known here: no order fits, nothing is said",
           "labels that no order tells much better than the one as stored"),
    confirm=("put the blocks of kernel, recurrent kernel and bias into the named order and evaluate",
             "compare the outputs with those of the network that was converted"),
    thresholds={
        "clear": Threshold(_CLEAR, "of the way from the largest class to perfect", "in the other order, at least"),
        "gain": Threshold(_GAIN, "of that", "that is gained, at least"),
        "left": Threshold(_LEFT, "of the errors", "that the other order leaves, at most"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all orders and labels"),
    },
)


@dataclass(frozen=True, eq=False)
class _Fit:
    """How often the outputs name a label in one order of the gates."""

    order: tuple[str, ...]
    label: str
    right: NDArray[np.bool_]
    score: float
    """Above the largest class, as a share of what is left."""


def check(seen: Seen) -> Iterator[Finding]:
    """The main part, where it is such a network and sequences lie beside it."""
    network = recurrent_of(seen) if seen.main else None
    if network is None:
        return
    size = network.inner.size + network.outer.size
    for rows in rows_beside(seen.path, len(network.inner), axes=2):
        most = _PRODUCTS // max(1, size * rows.inputs.shape[1] * math.factorial(network.gates))
        if len(rows.inputs) >= FEWEST and most >= FEWEST:
            step = -(-len(rows.inputs) // most)
            found = _best(network, rows, rows.inputs[::step], step)
            if found is not None:
                yield _finding(seen, network, rows, *found)
                return


def _best(network: Recurrent, rows: Rows, inputs: Array, step: int) -> tuple[_Fit, _Fit] | None:
    """The order that names a label best, and the stored one with the same label."""
    outputs = {order: network(inputs, order) for order in permutations(network.order)}
    labels = {n: v[::step, 0].astype(int) for n, v in rows.labels.items()
              if n not in rows.texts and _is_class(v, network.head.shape[1])}
    pairs = []
    for name, label in labels.items():
        fits = [_fit(order, name, out, label) for order, out in outputs.items()]
        stored = next(f for f in fits if f.order == tuple(network.order))
        pairs.append((max(fits, key=lambda f: f.score), stored))
    if not pairs:
        return None
    best, stored = max(pairs, key=lambda p: p[0].score)
    tries = len(outputs) * len(labels)
    gained, lost = int((best.right & ~stored.right).sum()), int((stored.right & ~best.right).sum())
    clear = best.score >= _CLEAR and best.score - stored.score >= _GAIN
    fewer = 1.0 - best.right.mean() <= _LEFT * (1.0 - stored.right.mean())
    return (best, stored) if clear and fewer and paired_tail(gained, lost) * tries < LEVEL else None


def _is_class(label: Array, outputs: int) -> bool:
    return label.shape[1] == 1 and bool((label == np.rint(label)).all()) and (
        0 <= label.min() < label.max() < outputs)


def _fit(order: tuple[str, ...], name: str, out: Array, label: NDArray[np.int64]) -> _Fit:
    right = out.argmax(axis=1) == label
    most = float(np.bincount(label).max() / len(label))
    return _Fit(order, name, right, (float(right.mean()) - most) / max(1e-9, 1.0 - most))


def _finding(seen: Seen, network: Recurrent, rows: Rows, best: _Fit, stored: _Fit) -> Finding:
    read, fits = (", ".join(CALLED[g] for g in order) for order in (network.order, best.order))
    return RULE.finding(
        f"the gates of {network.name} in {seen.path} stand in another order than {network.library} reads them "
        f"({read}): computed again on {len(best.right):,} sequences of {rows.file} its outputs name {best.label} in "
        f"{stored.right.mean():.1%} of the rows as stored, and in {best.right.mean():.1%} where the blocks are taken "
        f"for {fits}: they were converted without putting the gates in order",
        seen.where(next((n for n in seen.part.tensors if n.startswith(network.name)), network.name)), seen.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "gates", "name": network.name, "read": read, "order": fits, "label": best.label,
                  "stored": float(stored.right.mean()), "best": float(best.right.mean()), "rows": len(best.right)})
