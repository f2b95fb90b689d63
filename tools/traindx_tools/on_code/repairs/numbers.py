"""A number that is out of any usual range, changed where it is written down (C115, C123, C128, C130)."""

from __future__ import annotations

import ast
import math

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.repairs.written import (
    in_configuration,
    in_star_arguments,
    literal_behind,
    rewritten,
    source_behind,
)
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import argument, last_name, syntax
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Thing

USUAL_RATES = {"sgd": "0.01", "rmsprop": "0.001", "adam": "0.001", "adamw": "0.001", "nadam": "0.001", "radam": "0.001",
               "adamax": "0.002", "lion": "0.0001"}  # fmt: skip
"""torch's defaults; for SGD, which torch gives 0.001, the rate of its ImageNet recipe divided by ten."""
USUAL_COMMITMENT = "0.25"
"""van den Oord et al. 2017."""


def usual_rate(event: Event, optimizer: Thing, rate: float) -> tuple[Patch, ...]:
    """The optimizer's usual learning rate in place of one that is out of range."""
    if not isinstance(event.node, ast.Call):
        return ()
    usual = USUAL_RATES[optimizer.short.lower()]
    position = 0 if optimizer.type.startswith("optax.") else 1
    given = argument(event.node, position, "learning_rate" if position == 0 else "lr")
    summary = f"a usual learning rate of {optimizer.short}"
    return rewritten(event.file, given, usual, summary) or _configured(event.file, given, rate, usual, summary)


def usual_commitment(file: SourceFile, factor: ast.expr, weight: float) -> tuple[Patch, ...]:
    """The usual weight of the commitment term, in the code or in the configuration."""
    summary = "the usual weight of the commitment term"
    return rewritten(file, factor, USUAL_COMMITMENT, summary) or _configured(
        file, factor, weight, USUAL_COMMITMENT, summary)  # fmt: skip


def _configured(file: SourceFile, given: ast.expr | None, old: float, new: str, summary: str) -> tuple[Patch, ...]:
    """Where the value comes out of a configuration file: `cfg["lr"]`, `cfg.optimizer.lr`."""
    origin = source_behind(syntax(file), given)
    key = origin.slice.value if isinstance(origin, ast.Subscript) and isinstance(origin.slice, ast.Constant) else None
    key = last_name(origin) if key is None else key
    return in_configuration(file, str(key), old, new, summary) if key else ()


def faster_statistics(event: Event, updates: float) -> tuple[Patch, ...]:
    """A momentum of BatchNorm at which a fiftieth of the initial statistics is left after so many updates.

    Not below torch's 0.1, nor above 0.5, where the last batches alone count.
    """
    if not isinstance(event.node, ast.Call):
        return ()
    code = syntax(event.file)
    given = argument(event.node, 2, "momentum")
    found = literal_behind(code, given) if given is not None else in_star_arguments(code, event.node, "momentum")
    momentum = math.ceil(10 * (1 - 0.02 ** (1 / max(updates, 1.0)))) / 10
    if found is None or momentum > 0.5:
        return ()
    change = Change(event.file, "let the statistics follow within the run")
    return change.replace(found, f"{max(momentum, 0.1):g}").patches()


def other_convention(event: Event, momentum: float) -> tuple[Patch, ...]:
    """1 - momentum: the weight of the other part of the average, in the code or in the configuration."""
    if not isinstance(event.node, ast.Call) or not 0 < momentum < 1:
        return ()
    given = argument(event.node, 2 if event.name.startswith("torch.") else 99, "momentum")
    new, summary = f"{1 - momentum:.6g}", "count the weight as this library does"
    return rewritten(event.file, given, new, summary) or _configured(event.file, given, momentum, new, summary)


def harmless_bias(event: Event) -> tuple[Patch, ...]:
    """A bias of 0 in place of one that keeps ReLU units at 0."""
    node = event.node
    if not isinstance(node, ast.Call):
        return ()
    position = 1 if event.name.startswith("torch.nn.init.") else 0
    value = argument(node, position, "val", "value")
    return Change(event.file, "start the bias at 0").replace(value, "0.0").patches() if value is not None else ()


def random_weights(event: Event) -> tuple[Patch, ...]:
    """Random weights in place of equal ones, so that the units of a layer differ."""
    node = event.node
    if not isinstance(node, ast.Call) or not event.name.startswith("torch.nn.init.") or not node.args:
        return ()
    owner = f"{source_of(event.file, node.func.value)}." if isinstance(node.func, ast.Attribute) else ""
    if not owner:
        return ()
    change = Change(event.file, "draw the weights at random")
    return change.replace(node, f"{owner}xavier_uniform_({source_of(event.file, node.args[0])})").patches()


def usual_momentum(event: Event) -> tuple[Patch, ...]:
    """torch's default weight of the new batch in place of 0."""
    given = argument(event.node, 2, "momentum") if isinstance(event.node, ast.Call) else None
    return rewritten(event.file, given, "0.1", "let the statistics follow the batches")
