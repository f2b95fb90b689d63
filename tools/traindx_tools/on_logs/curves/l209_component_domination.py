"""One term of the loss outweighs the others, so that the optimizer works for it alone.

What counts is the share of each term in the sum that is differentiated. Three signs are read.

"auxiliary": a term that should only regularise (KL, commitment, codebook, penalty, balance, adversarial) is ten
times the term that carries the task (reconstruction, likelihood, classification) or more. Typical: one of the two is
summed over elements and the other averaged.

"weighted": the configuration states a weight for the term, and weight times value is twice the task's term or more. A
log that prints terms before they are weighted hides this. Where the total is logged and equals the plain sum of the
terms, they are weighted already and the weight is not applied again.

"growing": an auxiliary term outweighs the task but has grown to that during training. A term that the optimizer
works for falls; one that grows is not being minimised, so that its size is a consequence and no cause.

"scale": two terms of the task differ a hundredfold, and the small one does not fall while the large one does.

A term that the logged total does not hold is no part of what is differentiated: nothing is said of it.

A reconstruction that outweighs its KL term is the rule in a VAE and no finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, curve, drop, last_part, median, ratio
from traindx_tools.on_logs.curves.learning import (
    AUXILIARY,
    PRIMARY,
    is_adversarial,
    is_reinforcement,
    key_of,
    number,
    percent,
    span,
)
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

AUXILIARY_TIMES = 10.0
WEIGHTED_TIMES = 2.0
SCALE_TIMES = 100.0
GROWN = 2.0
RECORDS = 4
LEFT_OUT = 0.1
"""Share of the smaller of both by which the total may differ from the task's terms where another term is not in it."""

RULE = Rule(
    id="L209",
    name="component-domination",
    title="One term of the loss outweighs the others",
    severity=Severity.MEDIUM,
    sees="the terms of the loss over the last half of the log, weights in the configuration",
    matters="The task's term gets next to no gradient; the model collapses onto what pleases the other term.",
    alike=(
        "A term that is large and does not change contributes no gradient, whatever its share.",
        "Early in training a task term may be small because it is learned first.",
    ),
    confirm=(
        "Print the gradient norm that each term alone gives at the shared part of the model.",
        "Train 100 steps with the weight of the dominating term divided by 10 and compare the task's term.",
    ),
    thresholds={
        "auxiliary_times": Threshold(AUXILIARY_TIMES, "times the task's terms", "one order of magnitude"),
        "weighted_times": Threshold(WEIGHTED_TIMES, "times the task's terms", "weight times value"),
        "scale_times": Threshold(SCALE_TIMES, "times", "100: Systematic Debugging skill, of gradients"),
        "grown": Threshold(GROWN, "times its first quarter", "a term that is minimised falls"),
        "records": Threshold(RECORDS, "records", "fewer say nothing of a course"),
    },
)

_FAMILIES = {"commit": ("commit", "vq", "codebook", "quant"), "kl": ("kl", "beta"), "adv": ("adv", "gan"),
             "reg": ("reg", "penalty", "l2"), "aux": ("aux", "balanc"), "sparsity": ("sparsity", "l1")}


@dataclass(frozen=True, eq=False)
class _Term:
    name: str
    curve: Curve
    level: float


def check(run: Run) -> Iterator[Finding]:
    """At most one finding: the auxiliary term that outweighs the task, else two task terms of unlike scale."""
    if is_reinforcement(run) or is_adversarial(run):
        return
    terms = _terms(run)
    task = [t for t in terms if PRIMARY.search(t.name) and not AUXILIARY.search(t.name)]
    total = sum(t.level for t in task)
    if task and total > 0:
        for term in sorted(terms, key=lambda t: -t.level):
            if AUXILIARY.search(term.name) and (finding := _outweighs(run, term, task, total)) is not None:
                yield finding
                return
    yield from _scale(task if len(task) >= 2 else [t for t in terms if not AUXILIARY.search(t.name)])


def _terms(run: Run) -> list[_Term]:
    series = {s.name: s for s in [*run.components(), *run.find("kl", "mse", "nll", group="train")]}
    curves = [(name, curve(s)) for name, s in series.items()]
    return [_Term(name, c, _level(c)) for name, c in curves if len(c) >= RECORDS]


def _level(c: Curve) -> float:
    """The size over the last half."""
    return median(np.abs(last_part(c.values, 0.5)))


def _outweighs(run: Run, term: _Term, task: list[_Term], total: float) -> Finding | None:
    if _left_out(run, term, total):
        return None
    if term.level >= AUXILIARY_TIMES * total:
        return _finding("growing" if _grows(term) else "auxiliary", term, task, term.level, total, None)
    weight = _weight(run, term)
    if weight is None or _already_weighted(run, term, total) or weight[1] * term.level < WEIGHTED_TIMES * total:
        return None
    return _finding("weighted", term, task, weight[1] * term.level, total, weight)


def _grows(term: _Term) -> bool:
    start = median(np.abs(term.curve.values[: max(2, len(term.curve) // 4)]))
    return term.level >= GROWN * start


def _weight(run: Run, term: _Term) -> tuple[str, float] | None:
    family = next((words for words in _FAMILIES.values() if any(w in term.name for w in words)), None)
    if family is None:
        return None
    for name, value in run.config.items():
        key = key_of(str(name))
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 1.0 < value < 1e12 and (
                key.startswith(family) or (key.endswith(("weight", "coef", "coeff", "lambda", "scale", "cost"))
                                           and any(w in key for w in family))):
            return str(name), float(value)
    return None


def _already_weighted(run: Run, term: _Term, total: float) -> bool:
    loss = run.first("loss", group="train")
    return loss is not None and abs(_level(curve(loss)) - total - term.level) <= 0.05 * (total + term.level)


def _left_out(run: Run, term: _Term, total: float) -> bool:
    """Whether the loss is the task's terms alone: the term is logged and not, or hardly, part of the sum."""
    loss = run.first("loss", group="train")
    return loss is not None and abs(_level(curve(loss)) - total) <= LEFT_OUT * min(total, term.level)


def _finding(kind: str, term: _Term, task: list[_Term], weighted: float, total: float,
             weight: tuple[str, float] | None) -> Finding:
    s = term.curve.series
    start, end = term.curve.where(len(term.curve) // 2, len(term.curve) - 1)
    amount = f"{number(term.level)}" if weight is None else (
        f"{number(term.level)} times {weight[0]} = {weight[1]:g} is {number(weighted)}")
    names = " + ".join(t.curve.series.original for t in task)
    return RULE.finding(
        f"{s.original}: {amount}, {number(ratio(weighted, total))} times {names} ({number(total)}) "
        f"{span(s, start, end)}",
        s.at(start, end), s.source, bearing=Bearing.COMPANION if kind == "growing" else Bearing.SIGN,
        severity=Severity.HIGH if kind == "weighted" else Severity.MEDIUM,
        measured={"kind": kind, "term": term.name, "level": term.level, "weighted": weighted, "task": names,
                  "task_level": total, "times": ratio(weighted, total),
                  "weight": weight[1] if weight else None, "weight_name": weight[0] if weight else None},
    )


def _scale(terms: list[_Term]) -> Iterator[Finding]:
    if len(terms) < 2:
        return
    largest = max(terms, key=lambda t: t.level)
    starved = [t for t in terms if 0 < t.level <= largest.level / SCALE_TIMES and drop(t.curve.values) < 0.05]
    if not starved or drop(largest.curve.values) < 0.2:
        return
    term = starved[0]
    s = largest.curve.series
    start, end = largest.curve.where(0, len(largest.curve) - 1)
    yield RULE.finding(
        f"{s.original} is {number(ratio(largest.level, term.level))} times {term.curve.series.original} "
        f"({number(largest.level)} against {number(term.level)}) {span(s, start, end)}; it fell by "
        f"{percent(drop(largest.curve.values))}, the small one did not fall",
        s.at(start, end), s.source, bearing=Bearing.COMPANION, severity=Severity.MEDIUM,
        measured={"kind": "scale", "term": largest.name, "level": largest.level, "starved": term.name,
                  "starved_level": term.level, "times": ratio(largest.level, term.level)},
    )
