"""The learning rate that is logged is not the one that is configured.

A configuration file or the printed arguments name one learning rate; the log shows another. A schedule explains values
below the configured one, never above it, and a rate that never moves is no schedule. Where the two differ all the same
the setting does not arrive: a misspelt key, a default that wins, a value set by hand in the code, an old file.

Left alone: a ratio that is the world size, the accumulation or a batch size over 256 (rates are scaled by these on
purpose), configurations with more than one learning rate, a difference below 5 %, and a
moving rate that passes through the very value: the setting was read off the log's own line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.schedules import learning_rates
from traindx_tools.on_logs.curves.shapes import Track, number, ratio
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

APART, ENOUGH, BELOW = 0.05, 4, 2.0

RULE = Rule(
    id="L311",
    name="lr-not-as-configured",
    title="The logged learning rate is not the configured one",
    severity=Severity.MEDIUM,
    sees="The one learning rate of the configuration (file or printed arguments) and the logged rates.",
    matters="The run is not the one that was planned, and no change of the setting will have an effect.",
    alike=("Linear scaling with the batch size or the number of processes.",
           "Rates of parameter groups or of layers: several settings.", "A warm-up that has not ended."),
    confirm=("grep the code for the key: is it read under exactly this name?",
             "Change the setting to another value for ten steps: the logged rate must follow."),
    thresholds={"apart": Threshold(APART, "relative", "beyond rounding in a log"),
                "below": Threshold(BELOW, "times", "more than 15 % of an even decay takes away")},
)

_ONE = frozenset({"lr", "learningrate", "baselr", "maxlr", "peaklr", "initiallr", "initlr", "learnrate"})
_SCALES = frozenset({"worldsize", "numgpus", "ngpus", "gpus", "nprocpernode", "gradientaccumulationsteps", "accumsteps",
                     "accumulategradbatches", "gradaccum"})
_SCALED = frozenset({"scalelr", "autoscalelr", "lrscale", "lrscaling", "lrmult", "lrmultiplier", "blr", "lrdecay",
                     "layerdecay", "lrfind", "autolrfind"})


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    setting, rates = _setting(run.config), learning_rates(run)
    if setting is None or len(rates) != 1 or len(rates[0]) < ENOUGH:
        return
    name, wanted = setting
    t = rates[0]
    highest, steady = float(t.y.max()), float(np.ptp(t.y)) == 0.0
    began = None if steady else _began(t)
    if began is not None and began < wanted / BELOW:
        highest = began
    elif highest <= 0 or (not steady and highest <= (1 + APART) * wanted):
        return
    if not steady and bool(np.isclose(t.y, wanted, rtol=1e-6).any()):
        return  # a rate on the way of a schedule that was taken for a setting
    factor = ratio(highest, wanted)
    if abs(factor - 1) <= APART or _meant(run, factor):
        return
    how = "in every record" if steady else "at its start" if highest == began else "at its highest"
    i = 0 if steady else int(np.argmax(t.y))
    yield RULE.finding(
        f"{name} is {number(wanted)} in the configuration, and the log says {number(highest)} {how} "
        f"({number(factor)} times as much)", t.at(i, -1 if steady else i), t.series.source, bearing=Bearing.SIGN,
        measured={"setting": name, "configured": wanted, "lr": highest, "factor": factor, "steady": steady})


def _began(t: Track) -> float | None:
    """Where an even decay began; None for every other course.

    Even: half is left in the middle, almost nothing at the end. The first record has to lie in the first 15 % of the
    run: a linear decay has 85 % of its start there, a cosine 95 %.
    """
    x, y = t.x, t.y
    if len(y) < ENOUGH or float(np.diff(y).max()) > 0 or x[-1] <= 0 or not 0 <= x[0] <= 0.15 * x[-1]:
        return None
    middle = float(np.interp((x[0] + x[-1]) / 2, x, y))
    even = 0.4 * y[0] <= middle <= 0.65 * y[0] and y[-1] <= 0.15 * y[0]
    return float(y[0]) if even and y[0] > 0 else None


def _key(name: str) -> str:
    return "".join(c for c in name.rpartition(".")[2].lower() if c.isalnum())


def _setting(config: Mapping[str, Any]) -> tuple[str, float] | None:
    """The only learning rate that is configured: its key and value."""
    named = {str(k): v for k, v in config.items() if "lr" in _key(str(k)) or "learningrate" in _key(str(k))}
    if any(_key(k) in _SCALED for k in named):
        return None
    rates = {k: float(v) for k, v in named.items() if _is_rate(k, v)}
    if len({_key(k) for k in rates}) != 1 or len(set(rates.values())) != 1:
        return None
    return next(iter(rates.items()))


def _is_rate(key: str, value: Any) -> bool:
    known = _key(key) in _ONE or _key(key).startswith("lr") or _key(key).endswith("lr")
    return known and isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 100


def _meant(run: Run, factor: float) -> bool:
    """Whether the ratio is one by which learning rates are scaled on purpose."""
    scales = [float(v) for k, v in run.config.items()
              if _key(str(k)) in _SCALES and isinstance(v, (int, float)) and not isinstance(v, bool)]
    batches = [float(v) / 256 for k, v in run.config.items()
               if "batchsize" in _key(str(k)) and isinstance(v, (int, float)) and not isinstance(v, bool)]
    known = [x for x in (*scales, *batches, float(run.world_size or 1)) if x > 0]
    products = {a * b for a in [*known, 1.0] for b in [*known, 1.0]}
    return any(math.isclose(factor, x, rel_tol=0.02) or math.isclose(factor, 1 / x, rel_tol=0.02)
               or math.isclose(factor, x**0.5, rel_tol=0.02) for x in products if x != 1.0)
