"""A network is computed again on labelled rows beside it, and one of its parts does not do what the others were trained
with.

What the labels say is the proof that inputs and layers are put together as in training: outputs that go with them far
beyond chance. From there three things are asked. Are most units of a hidden layer zero for every row? Do the outputs go
with the labels much better where a normalisation takes the statistics of the rows than with the stored ones? Do they go
with them much better where the outputs are put in another order? Networks whose outputs go with no label in any usual
way of computing them are left alone: something about them is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.assignment import assigned
from traindx_tools.on_weights.forward import RECTIFIERS, Network, Norm, Pass, Way, network_of
from traindx_tools.on_weights.labelled_rows import FEWEST, Rows, rows_beside
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.trained import steps_of
from traindx_tools.rules import Rule, Threshold

_VALID, _TIMES, _GAIN = 0.35, 0.6, 0.25
_DEAD, _NEARLY_ALL, _UNITS = 0.6, 0.8, 8
_TIE, _NEARLY, _LEFT = 0.005, 0.9, 3.0
_PRODUCTS = 2**29
"""Of a weight and an input, in one pass over the rows."""
_SAME, _CLASSES, _CLEAR, _YOUNG = 0.25, 3, 0.65, 500
_STEPS = re.compile(r"(\d+(?:\.\d+)?(?:e\+?\d+)?)$")
"""Steps that a file says it has made. A young network changes faster than averages follow."""

RULE = Rule(
    id="W153",
    name="recomputed",
    title="Computed again on the data beside it, a part of the network does not fit the rest",
    severity=Severity.HIGH,
    sees="outputs and hidden units of a network of dense layers on labelled rows beside it, with stored statistics, "
         "with those of the rows, and with outputs in another order",
    matters="Evaluation uses what training never did: statistics of another network, units that are gone.",
    alike=("inputs that the code prepares in a way that is not known here: no way of computing fits, nothing is said",
           "sparse networks: a few units are zero for every row of a small file"),
    confirm=("run the named rows through the model in train mode and in evaluation mode and compare the metric",
             "count the units that are ever above zero"),
    thresholds={
        "valid": Threshold(_VALID, "of what is to be explained", "accuracy above the largest class, or correlation"),
        "times": Threshold(_TIMES, "times", "that the stored statistics or order explain of it, at most"),
        "gain": Threshold(_GAIN, "of what is to be explained", "that is gained, at least"),
        "clear": Threshold(_CLEAR, "of what is to be explained", "with the rows' statistics, or in the other order"),
        "dead": Threshold(_DEAD, "of the units of a hidden layer", "that are below zero in every row"),
        "nearly_all": Threshold(_NEARLY_ALL, "of them", "from which on it is no sparse network"),
    },
)
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Try:
    """One way of computing, and how well it goes with a label."""

    score: float
    way: Way
    label: str
    rows: Rows
    inputs: Array
    passed: Pass


def check(seen: Seen) -> Iterator[Finding]:
    """The main part, where it is a network that is understood and rows lie beside it."""
    network = network_of(seen) if seen.main else None
    if network is None:
        return
    most = max(FEWEST, _PRODUCTS // sum(one.weight.size for one in network.layers))
    for rows in rows_beside(seen.path, network.inputs, most):
        stored = _best(network, rows, frozenset())
        if stored.score >= _VALID:
            yield from _dead(seen, network, stored)
        found = _statistics(seen, network, rows, stored) or _order(seen, network, rows, stored)
        if found is not None:
            yield found
        if stored.score >= _VALID or found is not None:
            return


def _best(network: Network, rows: Rows, own: frozenset[int]) -> _Try:
    """The way that goes best with any of the labels."""
    tries = []
    for inputs in _scaled(rows.inputs):
        for way in network.ways(own):
            passed = network(inputs, way)
            if np.isfinite(passed.out).all():
                tries += [_Try(score(passed.out, v, n in rows.texts), way, n, rows, inputs, passed)
                          for n, v in rows.labels.items()]
    nothing = _Try(0.0, Way("relu"), "", rows, rows.inputs, Pass(rows.inputs, (), {}))
    return max(tries, key=lambda t: t.score + _TIE * (t.way.activation == "relu"), default=nothing)


def _alike(network: Network, best: _Try, own: frozenset[int]) -> float:
    """How well the same way goes with the same label where other normalisations take the statistics of the rows."""
    out = network(best.inputs, replace(best.way, own=own)).out
    label, words = best.rows.labels[best.label], best.label in best.rows.texts
    return score(out, label, words) if np.isfinite(out).all() else 0.0


def _scaled(inputs: Array) -> Iterator[Array]:
    """As they are, and standardised by themselves."""
    yield inputs
    spread = inputs.std(axis=0)
    if (spread > 0).all():
        yield (inputs - inputs.mean(axis=0)) / spread


def score(out: Array, label: Array, any_order: bool = False) -> float:
    """How well outputs go with a label: accuracy above the largest class, as a share of what is left, or correlation.

    `any_order`: classes that are numbered by their words may stand in any order.
    """
    if label.shape[1] == 1 and out.shape[1] > 1 and (label == np.rint(label)).all():
        classes, shares = np.unique(label, return_counts=True)
        if not 2 <= len(classes) <= out.shape[1] or label.min() < 0 or label.max() >= out.shape[1]:
            return 0.0
        table = confusion(out, label)
        right = float(table[np.arange(len(table)), _matched(table)].sum() if any_order else np.trace(table))
        most = float(shares.max() / shares.sum())
        return (right / len(out) - most) / (1 - most)
    if label.shape[1] != out.shape[1]:
        return 0.0
    spreads = out.std(axis=0) * label.std(axis=0)
    if not (spreads > 0).all():
        return 0.0
    return float(np.mean(((out - out.mean(axis=0)) * (label - label.mean(axis=0))).mean(axis=0) / spreads))


def confusion(out: Array, label: Array) -> Array:
    """Rows by class and by the largest output."""
    table = np.zeros((out.shape[1], out.shape[1]))
    np.add.at(table, (label[:, 0].astype(int), out.argmax(axis=1)), 1.0)
    return table


def _matched(table: Array) -> NDArray[np.int64]:
    return np.asarray(assigned(table.max() - table))


def _dead(seen: Seen, network: Network, best: _Try) -> Iterator[Finding]:
    """Hidden layers most of whose units no row opens; the activation has to be a rectifier for all of the best ways."""
    if best.way.activation not in RECTIFIERS:
        return
    for layer, values in zip(network.layers, best.passed.before, strict=False):
        closed = int((values.max(axis=0) < (0 if best.way.activation == "relu" else -4.0)).sum())
        if values.shape[1] >= _UNITS and closed >= _DEAD * values.shape[1]:
            yield _finding(
                seen, layer.weight.name, best, "dead", f"{closed} of {values.shape[1]} units of {layer.weight.name} "
                f"are below zero in each of {len(values):,} rows of {best.rows.file}: what follows hangs on the other "
                f"{values.shape[1] - closed}", closed >= _NEARLY_ALL * values.shape[1], units=closed,
                of=values.shape[1])


def _statistics(seen: Seen, network: Network, rows: Rows, stored: _Try) -> Finding | None:
    """Normalisations whose own statistics keep the network from doing what it was trained for."""
    if not network.norms:
        return None
    own = _best(network, rows, frozenset(network.norms))
    if own.score < _CLEAR or not _gained(stored.score, own.score) or _explained(seen, network, own):
        return None
    single = {at: _alike(network, own, frozenset({at})) for at in network.norms}
    at, alone = max(single.items(), key=lambda s: s[1])
    one = _gained(stored.score, alone) and alone >= 0.9 * own.score and len(single) > 1
    modules = [network.norms[at].module] if one else [n.module for n in network.norms.values()]
    return _finding(
        seen, modules[0], own, "statistics", f"the stored running statistics of {', '.join(modules[:4])} are not those "
        f"of this network: on {len(rows.inputs):,} rows of {rows.file} its outputs explain "
        f"{max(stored.score, 0):.2f} of {own.label} with them, and {alone if one else own.score:.2f} where "
        f"{'this layer takes' if one else 'the layers take'} the mean and variance of the rows, as in training",
        layers=len(modules), stored=round(stored.score, 3), own=round(own.score, 3))


def _gained(stored: float, other: float) -> bool:
    """Whether much is explained that was not, or where nearly all is, three times as much is left without it."""
    if other >= _NEARLY and 1 - stored**2 >= _LEFT * (1 - other**2) and stored <= _NEARLY * other:
        return True
    return other >= _VALID and stored <= _TIMES * other and other - stored >= _GAIN


def _explained(seen: Seen, network: Network, own: _Try) -> bool:
    """Whether the inputs may only be prepared otherwise, or the averages be on their way.

    One factor on all inputs, or any of each where they are normalised first, changes the first normalisation alone.
    """
    first = min(network.norms)
    off = {at: _log_ratio(network.norms[at].variance, own.passed.normed[at]) for at in network.norms}
    rest = all(float(np.median(np.abs(v))) < _SAME for at, v in off.items() if at != first)
    if rest and (first == 0 or float(np.std(off[first])) < _SAME):
        return True
    steps = _STEPS.search(steps_of(seen.checkpoint))
    if steps is not None:
        return float(steps[1]) < _YOUNG
    return all(_on_the_way(network.norms[at], own.passed.normed[at]) for at in network.norms)


def _log_ratio(variance: Array, rows: Array) -> Array:
    return np.asarray(np.log(np.maximum(variance, 1e-30) / np.maximum(rows.var(axis=0), 1e-30)))


def _on_the_way(norm: Norm, rows: Array) -> bool:
    """Whether averages lie between where they begin (0 and 1) and the statistics of the rows."""
    mean, variance = rows.mean(axis=0), rows.var(axis=0)
    share = float((norm.mean * mean).sum() / max((mean**2).sum(), 1e-30))
    low, high = np.minimum(1.0, variance), np.maximum(1.0, variance)
    between = ((norm.variance > 0.7 * low) & (norm.variance < 1.4 * high)).mean()
    return 0.05 < share < 0.97 and float(between) > 0.9


def _order(seen: Seen, network: Network, rows: Rows, stored: _Try) -> Finding | None:
    """Outputs that are those of other classes than the labels say."""
    labels = {n: v for n, v in rows.labels.items() if n not in rows.texts and v.shape[1] == 1
              and (v == np.rint(v)).all() and len(np.unique(v)) == network.outputs >= _CLASSES}
    if not labels:
        return None
    other = _best(network, replace(rows, labels=labels, texts=frozenset(labels)), frozenset())
    plain = score(other.passed.out, rows.labels[other.label]) if other.label else 0.0
    if other.score < _CLEAR or not _gained(max(plain, stored.score), other.score):
        return None
    places = _matched(confusion(other.passed.out, rows.labels[other.label]))
    moved = [f"{k} in output {int(p)}" for k, p in enumerate(places) if p != k]
    last = network.layers[-1].weight.name
    return _finding(
        seen, last, other, "classes", f"the outputs of {last} stand in another order than the classes of {other.label} "
        f"in {rows.file}: as they stand they explain {max(plain, 0):.2f} of it on {len(rows.inputs):,} rows, and "
        f"{other.score:.2f} with {', '.join(moved[:6])}", moved=len(moved), of=network.outputs)


def _finding(seen: Seen, name: str, best: _Try, kind: str, statement: str, sure: bool = True, **measured: float
             ) -> Finding:
    way = f"; computed with {best.way.activation}, which fits best"
    return RULE.finding(f"{statement} ({seen.path}{way})", seen.where(name), seen.path,
                        bearing=Bearing.CAUSE if sure else Bearing.SIGN, severity=None if sure else Severity.MEDIUM,
                        measured={"kind": kind, "name": name, "score": round(best.score, 3), **measured})
