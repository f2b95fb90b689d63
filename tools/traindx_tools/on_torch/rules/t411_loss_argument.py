"""An argument of a loss lies in another domain than the loss reads.

Each loss of `torch.nn.functional` says what its arguments must hold (`knowledge/losses.toml`): logits,
log-probabilities over the class axis, shares in [0, 1], signs. The values of sampled calls are compared with that;
torch itself raises only for a few of them. `kind` says what went into what: "probabilities into cross_entropy"
(normalised twice), "sigmoid into binary_cross_entropy_with_logits", "scores into nll_loss" (nothing is normalised, the
loss has no lower bound), "wrong axis into ..." (normalised over the batch), "log target into kl_div", "zero-one target
into hinge_embedding_loss" (signs are meant), "target outside 0-1 into ...", "several ones a row into cross_entropy",
"one class into cross_entropy" (the loss is always 0), "rates into poisson_nll_loss", "swapped into ...".

Soft labels, label smoothing, ignored labels and weights are part of the contracts. Log-probabilities into cross
entropy are left alone: the second log-softmax changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.knowledge.contracts import Argument, Contract
from traindx_tools.rules import Rule, Threshold

if TYPE_CHECKING:
    from traindx_tools.on_torch.measures.domain import Numbers

SOURCE = "torch probe: losses"
CALLS, VALUES = 3, 64
SURE_CALLS, SURE_VALUES = 5, 1024
"""Where the operation that made the values is no sigmoid that autograd knows (one written out, say)."""

RULE = Rule(
    id="T411",
    name="loss-argument-domain",
    title="A loss is given what it does not read",
    severity=Severity.CRITICAL,
    sees="ranges and sums over each axis of the arguments of torch.nn.functional's losses, in sampled calls",
    matters="the loss has another minimum than the labels, or none: training optimises something else",
    alike=("log-probabilities into cross entropy: log-softmax is idempotent",
           "soft or smoothed labels, ignored labels, weights",
           "squared errors of probabilities (Brier score)"),
    confirm=("print(output.min(), output.max(), output.sum(1)[:4], output.exp().sum(1)[:4])  # before the loss",),
    thresholds={"calls": Threshold(CALLS, "measured calls, all of which agree", "one batch may look like it by chance"),
                "values": Threshold(VALUES, "values in them", "few numbers lie in a range by chance"),
                "tolerance": Threshold("1e-3 / 2e-3 / 2e-2 / 6e-2", "of a sum of 1, in float64 / 32 / 16 / bfloat16",
                                       "a few times the resolution of the dtype")},
)


@dataclass(frozen=True)
class Call:
    """One measured call."""

    step: int
    arguments: Mapping[str, Numbers]
    settings: Mapping[str, Any]
    """Plain arguments: `reduction`, `log_target`, whether `weight` is there."""
    gradients: bool
    """Whether gradients were on: an evaluation is not judged for swapped arguments."""


@dataclass
class Site:
    """A loss, called from one line."""

    contract: Contract
    file: str | None
    line: int | None
    calls: list[Call] = field(default_factory=list)
    rank: int = 0

    def where(self, step: int) -> Location:
        """The line, and the first step at which it was measured."""
        return Location(file=self.file, line=self.line, step=float(step), rank=self.rank)


def check(sites: Sequence[Site]) -> Iterator[Finding]:
    """At most one finding an argument of a line."""
    for site in sites:
        if len(site.calls) < CALLS:
            continue
        for argument in site.contract.arguments:
            said = _said(site, argument)
            if said is not None:
                yield _finding(site, argument, *said)
                break


def _finding(site: Site, argument: Argument, what: str, told: str, bearing: Bearing) -> Finding:
    name, first = site.contract.name, site.calls[0]
    numbers = site.calls[-1].arguments[argument.name]
    return RULE.finding(
        f"{name} is given {told} as its {argument.name}, in all {len(site.calls)} measured calls (shape "
        f"{list(numbers.shape)}, values {numbers.low:.3g} to {numbers.high:.3g})", site.where(first.step), SOURCE,
        bearing=bearing, severity=RULE.severity if bearing is Bearing.CAUSE else Severity.HIGH,
        measured={"kind": f"{what} into {name}", "loss": name, "argument": argument.name, "what": what,
                  "low": round(numbers.low, 6), "high": round(numbers.high, 6), "calls": len(site.calls)})


def _said(site: Site, argument: Argument) -> tuple[str, str, Bearing] | None:
    """What the argument holds instead: a word for it, the sentence's words, and how near to the cause it is."""
    seen = [c.arguments[argument.name] for c in site.calls if argument.name in c.arguments]
    if len(seen) < len(site.calls) or sum(n.values for n in seen) < VALUES:
        return None
    if site.contract.directed and argument is site.contract.arguments[0] and _swapped(site):
        return "swapped", "a value without a gradient (its target has one: they are exchanged)", Bearing.SIGN
    domains = {argument.domain_for(c.settings) for c in site.calls}
    judge = _JUDGES.get(domains.pop()) if len(domains) == 1 else None
    return judge(site, argument, seen) if judge is not None else None


def _swapped(site: Site) -> bool:
    names = [a.name for a in site.contract.arguments[:2]]
    pairs = [(c.arguments[names[0]], c.arguments[names[1]]) for c in site.calls
             if c.gradients and all(n in c.arguments for n in names)]
    return len(pairs) >= CALLS and all(t.gradient and not i.gradient for i, t in pairs)


Said = tuple[str, str, Bearing] | None


def _logits(site: Site, argument: Argument, seen: Sequence[Numbers]) -> Said:
    if all(len(n.shape) > 1 and n.shape[argument.axis or 1] == 1 for n in seen):
        return "one class", "a single class (its loss is 0 whatever the values are)", Bearing.CAUSE
    if all(n.sums_to_one(argument.axis) for n in seen):
        return "probabilities", "probabilities (they are normalised a second time)", Bearing.CAUSE
    return _activated(seen)


def _scores(site: Site, argument: Argument, seen: Sequence[Numbers]) -> Said:
    inside = all(n.low >= 0 and n.high <= 1 for n in seen)
    made = {n.made_by for n in seen}
    known = made <= {"Sigmoid", "Softmax"}
    if inside and (known or (len(seen) >= SURE_CALLS and sum(n.values for n in seen) >= SURE_VALUES
                             and _goals_of_both_kinds(site) and all(n.fractions > 0.5 * n.values for n in seen))):
        return "sigmoid", "values in [0, 1] (they go through a sigmoid a second time)", Bearing.CAUSE
    return _activated(seen)


def _activated(seen: Sequence[Numbers]) -> Said:
    """What comes straight out of an activation is cut or bounded."""
    made = {n.made_by for n in seen}
    if len(made) == 1 and made <= {"Relu", "Tanh", "Softplus"}:
        name = made.pop().lower()
        return name, f"the output of {name} (scores that are {'bounded' if name == 'tanh' else 'never negative'})", \
            Bearing.SIGN
    return None


def _goals_of_both_kinds(site: Site) -> bool:
    goals = [c.arguments["target"] for c in site.calls if "target" in c.arguments]
    return bool(goals) and any(g.zeros for g in goals) and any(g.ones for g in goals)


def _log_probabilities(site: Site, argument: Argument, seen: Sequence[Numbers]) -> Said:
    axis = argument.axis
    if argument is not site.contract.arguments[0]:
        return ("probabilities as log target", "probabilities where log-probabilities are asked for",
                Bearing.CAUSE) if all(n.sums_to_one(axis) for n in seen) else None
    if axis is not None and all(
            len(n.shape) > 1 and n.logs_sum_to_one(0) and not n.logs_sum_to_one(axis) for n in seen):
        return "wrong axis", "log-probabilities that are normalised over axis 0, not over the classes", Bearing.CAUSE
    if all(n.below_one(axis) for n in seen):
        return None
    if all(n.sums_to_one(axis) for n in seen):
        return "probabilities", "probabilities where it reads log-probabilities", Bearing.CAUSE
    if all(not n.below_one(axis) and max(n.highest_log, default=0.0) > 20 * n.tolerance for n in seen):
        return "scores", "scores whose exponentials do not sum to 1 where it reads log-probabilities", Bearing.CAUSE
    return None


def _probabilities(site: Site, argument: Argument, seen: Sequence[Numbers]) -> Said:
    """Of a target: ids of classes are integers and are torch's own to check."""
    floats = [n for n in seen if n.sums]
    if len(floats) < CALLS or len(floats) < len(seen):
        return None
    if all(n.low < -1e-3 for n in floats):
        if site.contract.name == "kl_div":
            return "log target", "negative values as a target of probabilities (`log_target` is off)", Bearing.CAUSE
        return "scores as target", "negative values as a target of probabilities", Bearing.CAUSE
    several = all(n.zeros + n.ones == n.values and n.largest_sum[(argument.axis or 0) % len(n.largest_sum)] >= 2
                  for n in floats)
    if several and site.contract.name == "cross_entropy":
        return "several ones a row", "several ones a row (its classes exclude each other)", Bearing.SIGN
    return None


def _shares(site: Site, argument: Argument, seen: Sequence[Numbers]) -> Said:
    if argument is site.contract.arguments[0]:
        return None  # torch raises
    outside = [n for n in seen if n.low < -1e-6 or n.high > 1 + 1e-6]
    masked = any(c.settings.get("weight") or c.settings.get("reduction") == "none" for c in site.calls)
    if len(outside) < max(CALLS, len(seen) // 2) or masked:
        return None
    return "target outside 0-1", "a target outside [0, 1]", Bearing.CAUSE


def _signs(site: Site, argument: Argument, seen: Sequence[Numbers]) -> Said:
    total = sum(n.values for n in seen)
    zeros, ones, minus = (sum(getattr(n, k) for n in seen) for k in ("zeros", "ones", "minus_ones"))
    if minus == 0 and ones and zeros >= 0.05 * total and zeros + ones == total:
        return "zero-one target", "0 and 1 where it reads -1 and 1", Bearing.CAUSE
    return None


def _log_rates(site: Site, argument: Argument, seen: Sequence[Numbers]) -> Said:
    made = {n.made_by for n in seen}
    if len(made) == 1 and made <= {"Exp", "Softplus"} and all(n.low >= 0 for n in seen):
        return "rates", "rates (the output of exp or softplus) where it reads their logarithm", Bearing.CAUSE
    return None


_JUDGES = {"logits": _logits, "scores": _scores, "log-probabilities": _log_probabilities,
           "probabilities": _probabilities, "shares": _shares, "signs": _signs, "log-rates": _log_rates}
