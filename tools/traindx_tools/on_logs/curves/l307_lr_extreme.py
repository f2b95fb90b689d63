"""The learning rate is far outside what is usual for its optimizer, and the run shows it.

Usual ranges are wide, and a rate outside them is no fault by itself: what makes it one is a loss that blows up (too
high) or does not move at all (too low). With both, the extreme rate and a ramp from the first steps on, little else
fits. Optimizers that set their own step (Prodigy, D-Adaptation, L-BFGS) are run at 1.0 and are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_logs.curves.outcomes import RAMP, improved, main_loss, trouble
from traindx_tools.on_logs.curves.schedules import config_number, learning_rates, rounds_to_zero
from traindx_tools.on_logs.curves.shapes import end_words, number, start_words, tail_level, track
from traindx_tools.on_logs.curves.skill import harm
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

USUAL: dict[str, tuple[float, float]] = {
    "sgd": (1e-5, 1.0), "momentum": (1e-5, 1.0), "nesterov": (1e-5, 1.0),
    "adam": (1e-7, 1e-2), "adamw": (1e-7, 1e-2), "nadam": (1e-7, 1e-2), "radam": (1e-7, 1e-2), "adamax": (1e-6, 2e-2),
    "lion": (1e-8, 3e-3), "rmsprop": (1e-7, 1e-2), "adagrad": (1e-5, 0.5), "adadelta": (1e-4, 1.0),
    "adafactor": (1e-6, 5e-2), "lamb": (1e-5, 5e-2), "lars": (1e-3, 30.0), "muon": (1e-5, 0.1), "sophia": (1e-7, 1e-2),
}
"""Lowest and highest rate in common use, a factor of three beyond published recipes and library defaults."""

ADAPTS = ("prodigy", "dadapt", "d_adapt", "lbfgs", "l-bfgs", "schedulefree", "rprop")
ANY = (1e-8, 0.5)
EXTREME = 10.0
UNMOVED = 0.02

RULE = Rule(
    id="L307",
    name="lr-extreme",
    title="The learning rate is far outside the usual",
    severity=Severity.HIGH,
    sees="The largest learning rate against the range usual for the optimizer (for any, where it is not named), and "
         "what became of the loss.",
    matters="Too high: the weights blow up within steps. Too low: nothing is learned in any time.",
    alike=("Optimizers that find their own step and are run at 1.0.", "LARS and Muon: rates that look huge elsewhere.",
           "A usual rate with a ramp: data, initialisation or a missing zero_grad."),
    confirm=("Run 50 steps at a tenth (too high) or a hundred times the rate (too low) and compare the loss.",
             "Check for a unit slip: 1e-3 and 1e3, a percent, a rate multiplied by the world size or batch size."),
    thresholds={
        "sgd": Threshold(1.0, "highest usual rate", "library examples use 0.1; 1.0 with batch norm and warm-up"),
        "adam": Threshold(1e-2, "highest usual rate", "default 1e-3; ten times that in small-model recipes"),
        "any": Threshold(0.5, "highest usual rate where no optimizer is named", "arithmetic: five times the usual 0.1"),
        "extreme": Threshold(EXTREME, "times the highest usual rate", "arithmetic: a decade beyond"),
        "unmoved": Threshold(UNMOVED, "share of the starting loss", "less is scatter"),
    },
)


@dataclass(frozen=True)
class Rate:
    """The largest learning rate of the run and where it is told."""

    value: float
    where: Location
    source: str
    from_config: bool


def check(run: Run) -> Iterator[Finding]:
    """At most one finding: too high with a run that blows up, or too low with a run that does not move."""
    rate, optimizer = _rate(run), optimizer_of(run)
    if rate is None or (optimizer is not None and optimizer in ADAPTS):
        return
    low, high = USUAL.get(optimizer or "", ANY)
    if rate.value > high:
        yield from _too_high(run, rate, optimizer, high)
    elif 0 < rate.value < low:
        yield from _too_low(run, rate, optimizer, low)


def optimizer_of(run: Run) -> str | None:
    """The optimizer's name in lower case, from the configuration or the log's notes; None where neither tells."""
    told = [str(v) for k, v in run.config.items() if re.search(r"\boptim(izer)?(\.(name|type|class|_target_))?$",
                                                              str(k).lower())]
    told += [n.text for n in run.notes if "optim" in n.text.lower()]
    names = sorted((*USUAL, *ADAPTS), key=len, reverse=True)
    for text in told:
        if found := re.search("|".join(re.escape(n) for n in names), text.lower()):
            return found[0]
    return None


def _rate(run: Run) -> Rate | None:
    rates = learning_rates(run)
    if rates:
        t = rates[0]
        if rounds_to_zero(t) and float(t.y.max()) == 0:
            return None
        i = int(np.argmax(t.y))
        return Rate(float(t.y[i]), t.at(i), t.series.source, False)
    value = config_number(run.config, ("learning_rate", "lr", "base_lr", "max_lr", "peak_lr"))
    loss = main_loss(run)
    if value is None or loss is None:
        return None
    return Rate(value, loss.at(0), loss.source, True)


def _too_high(run: Run, rate: Rate, optimizer: str | None, high: float) -> Iterator[Finding]:
    after, score = trouble(run), harm(run)
    if not (after.diverged or after.nonfinite or score):
        return
    factor = rate.value / high
    ruined = score is not None and score.kind == "unbounded" and factor >= EXTREME
    specific = ruined or after.growth >= (RAMP if factor >= EXTREME else RAMP**3)
    grew = f" after growing {number(after.growth)} times" if after.growth >= RAMP else ""
    fate = f"the loss turns non-finite{grew}" if after.nonfinite else "the loss rises and stays up"
    if score and not after.diverged and not after.nonfinite:
        fate = f"{score.curve.series} ends at {number(tail_level(score.curve.series.values))}, worse than no skill"
    yield RULE.finding(
        f"the learning rate of {number(rate.value)} is {number(factor)} times the highest usual for "
        f"{optimizer or 'any common optimizer'} ({number(high)}), and {fate}", rate.where, rate.source,
        bearing=Bearing.SIGN, severity=Severity.HIGH if after.diverged or score else Severity.MEDIUM,
        measured={"kind": "high", "lr": rate.value, "optimizer": optimizer, "usual": high, "factor": factor,
                  "diverged": after.diverged, "growth": after.growth, "specific": specific,
                  "nonfinite": after.nonfinite, "from_config": rate.from_config})


def _too_low(run: Run, rate: Rate, optimizer: str | None, low: float) -> Iterator[Finding]:
    loss = track(main_loss(run))
    if loss is None or len(loss) < 10 or trouble(run).nonfinite or trouble(run).diverged:
        return
    if improved(loss) > UNMOVED or not bool((loss.y > 0).all()) or float(np.median(loss.y)) < 1e-6:
        return
    yield RULE.finding(
        f"the learning rate is {number(rate.value)} at its largest, {number(low / rate.value)} times below the lowest "
        f"usual for {optimizer or 'any common optimizer'} ({number(low)}), and the loss stays at "
        f"{end_words(loss)}, where it began at {start_words(loss)}", rate.where, rate.source,
        bearing=Bearing.SIGN, severity=Severity.HIGH,
        measured={"kind": "low", "lr": rate.value, "optimizer": optimizer, "usual": low, "factor": rate.value / low,
                  "diverged": False, "growth": 1.0, "specific": True, "nonfinite": False,
                  "from_config": rate.from_config})
