"""The learning rate is far outside what its optimizer is used with.

Adam and its kin normalise the gradient: a step is about as long as the learning rate, and 1e-5 to 1e-2 is the usual
range. SGD is used from 1e-3 to about 1. A rate above that range by an order of magnitude blows the weights up within
a few steps; one far below it, or exactly 0, trains nothing. Optimizers with a rate of 1 by design (Adadelta, LBFGS,
Prodigy, D-Adaptation) are left alone, and so are optimizers over something that is no module's parameters.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.fine_tuning_rates import FAULT, REMARK, rates
from traindx_tools.on_code.held import held
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import numbers
from traindx_tools.on_code.syntax import last_name, syntax, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.training import is_optimizer
from traindx_tools.on_code.values import Const, Thing, number
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C128",
    name="learning-rate-extreme",
    title="The learning rate is far outside its usual range",
    severity=Severity.HIGH,
    sees="The learning rate given to an optimizer or a trainer: a constant, an option's default, a hyperparameter of a "
         "module or a value of a configuration file.",
    matters="Training diverges in the first steps, or does not move.",
    alike=("exploding gradients of another cause", "a frozen model"),
    confirm=("train with a tenth of it", "look at the size of the first updates against that of the weights"),
    thresholds={
        "SGD": Threshold(2.0, "above", "usual range 1e-3 to 1 (He et al. 2016, Goyal et al. 2017 with warm-up)"),
        "pretrained": Threshold(1e-2, "above", "usual range 1e-5 to 1e-4 (Devlin et al. 2019; transformers: 5e-5)"),
        "Adam": Threshold(0.1, "above", "usual range 1e-5 to 1e-2 (Kingma and Ba 2015: 1e-3)"),
        "from scratch": Threshold(1e-6, "below", "a tenth of the lowest usual rate of Adam, with nothing loaded"),
        "small": Threshold(1e-8, "below", "no update survives float32 rounding of weights near 1"),
    },
)
_HIGHEST = {
    "SGD": (2.0, 10.0),
    "RMSprop": (0.1, 0.5),
    "Adam": (0.1, 0.5),
    "AdamW": (0.1, 0.5),
    "NAdam": (0.1, 0.5),
    "RAdam": (0.1, 0.5),
    "Adamax": (0.1, 0.5),
    "Lion": (0.02, 0.1),
    "adam": (0.1, 0.5),
    "adamw": (0.1, 0.5),
    "sgd": (2.0, 10.0),
    "lion": (0.02, 0.1),
}
"""Above the first it is remarked, above the second it is called a fault."""

_LATER = re.compile(r"load_state_dict|torch\.load|pretrained|weights=|load_from|checkpoint|sched|warm_?up|\[.lr.\]|"
                    r"\blr_|reduction=.sum|\.sum\(\)\.backward|fine_?tun|from_hub|load_model|create_model", re.I)
"""Weights that are learned already, a rate that is set later, or a loss that is a sum."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every optimizer that is made, and at the arguments of trainers."""
    told: set[tuple[str | None, int | None]] = set()
    for finding in (*_made(project), *_handed(project)):
        place = finding.where.file, finding.where.line
        if place not in told:
            told.add(place)
            yield finding


def _handed(project: Project) -> Iterator[Finding]:
    """Rates given to a trainer, to an optimizer over a pretrained model, and ones from hparams."""
    if not any("from_pretrained" in f.text or "hparams" in f.text for f in project.files):
        return
    frozen = any("requires_grad" in f.text or "peft" in f.text for f in project.files)
    for rate in rates(lookup(project)):
        remark, fault = (REMARK, FAULT) if rate.pretrained else _HIGHEST[rate.optimizer]
        if frozen and rate.pretrained:
            remark, fault = _HIGHEST[rate.optimizer]  # an adapter or a head alone
        if rate.value <= remark * (1 + 1e-9):
            continue
        what = "a pretrained model is tuned with 1e-5 to 1e-4" if rate.pretrained else "1e-5 to 1e-2 is usual"
        yield RULE.finding(
            f"{last_name(rate.call.func)} at {rate.code.at(rate.given)} has a learning rate of {rate.value:g} "
            f"({written(rate.given)[:40]}) for {rate.optimizer}: {what}",
            rate.code.place(rate.call if rate.call.args else rate.given),
            rate.code.file.path,
            bearing=Bearing.SIGN,
            severity=Severity.HIGH if rate.value >= fault * (1 - 1e-9) else Severity.MEDIUM,
            measured={"kind": "high", "learning_rate": rate.value, "optimizer": rate.optimizer,
                      "usual_highest": remark},
        )  # fmt: skip


def _made(project: Project) -> Iterator[Finding]:
    whole = [e.result.argument(0, "optimizer") for e in project.calls("LambdaLR") if isinstance(e.result, Thing)]
    for event in project.events:
        made = event.result
        if event.kind != "call" or not isinstance(made, Thing) or event.name != made.type or made.short not in _HIGHEST:
            continue
        if number(made.argument(1, "lr")) == 1.0 and any(w is made for w in whole):
            continue  # the function of the schedule gives the rate itself
        if made.type.startswith("optax.") or (is_optimizer(made) and held(made)):
            yield from _judged(project, event, made)


def _is_one_of_several(event: Event) -> bool:
    """Whether the optimizer is made under a condition: a default of the command line may be another one's."""
    return any(isinstance(up, (ast.If, ast.IfExp)) for up in syntax(event.file).above(event.node))


def _judged(project: Project, event: Event, made: Thing) -> Iterator[Finding]:
    given = made.argument(0, "learning_rate") if made.type.startswith("optax.") else made.argument(1, "lr")
    rate = number(given)
    if rate is None:
        return
    remark, fault = _HIGHEST[made.short]
    chosen = "" if isinstance(given, Const) and given.fixed else " (a default that may be overridden)"
    if rate > remark:
        worst = rate > fault and not (chosen and _is_one_of_several(event))
        beyond = ("one step leaves no weight finite" if math.isinf(rate) else
                  f"{rate / remark * 2:.0f} times what it is usually trained with at most")
        yield RULE.finding(
            f"{made.short} at {event.file.path}:{event.line} has a learning rate of {rate:g}{chosen}, "
            f"{beyond}",
            location(event),
            event.file.path,
            bearing=Bearing.CAUSE if worst and not _plain_sgd(made, rate) else Bearing.SIGN,
            severity=Severity.HIGH if worst and not _plain_sgd(made, rate) else _of_plain(event),
            measured={"kind": "high", "learning_rate": rate, "optimizer": made.short, "usual_highest": remark},
            patch=numbers.usual_rate(event, made, rate) if worst and not _plain_sgd(made, rate) else (),
        )
    elif 1e-8 <= rate < 1e-6 and made.type.startswith("torch.") and _from_scratch(project):
        yield RULE.finding(
            f"{made.short} at {event.file.path}:{event.line} has a learning rate of {rate:g}{chosen}, and nothing is "
            f"loaded or scheduled: {'1e-3 to 1' if made.short == 'SGD' else '1e-5 to 1e-2'} is usual from scratch",
            location(event),
            event.file.path,
            bearing=Bearing.SIGN,
            severity=Severity.MEDIUM,
            measured={"kind": "low", "learning_rate": rate, "optimizer": made.short},
        )
    elif 0 < rate < 1e-8:
        yield RULE.finding(
            f"{made.short} at {event.file.path}:{event.line} has a learning rate of {rate:g}{chosen}: weights "
            "near 1 do not change "
            "in float32",
            location(event),
            event.file.path,
            bearing=Bearing.SIGN,
            severity=Severity.MEDIUM,
            measured={"kind": "low", "learning_rate": rate, "optimizer": made.short},
        )


def _from_scratch(project: Project) -> bool:
    """Whether the program loads no weights, changes no rate and sums no loss."""
    return not any(f.mentions(_LATER) for f in project.files)


def _of_plain(event: Event) -> Severity:
    """A remark where the gradients are clipped as well."""
    return Severity.LOW if "clip" in event.file.text else Severity.MEDIUM


def _plain_sgd(made: Thing, rate: float) -> bool:
    """SGD without momentum: recurrent language models were trained with rates up to 30 under a tight gradient clip."""
    return made.short.lower() == "sgd" and not number(made.kwargs.get("momentum")) and rate <= 50
