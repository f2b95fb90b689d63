"""Dropout with a probability of 1 drops everything.

torch's and flax's argument is the probability to drop: with 1 the layer gives zeros in training, so that nothing
behind it sees the input and nothing before it gets a gradient. In evaluation it passes everything on, to layers that
were never trained with it. TensorFlow 1 counted the other way round (`keep_prob=1.0` drops nothing), which is where
the number comes from. A stochastic depth of 1 removes its branch for good.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs.written import rewritten
from traindx_tools.on_code.syntax import argument, written
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Const, Thing, Value, number, truth
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C265",
    name="everything-dropped",
    title="Dropout drops everything",
    severity=Severity.HIGH,
    sees="The probability given to a layer or a function of dropout or stochastic depth.",
    matters="In training the layer gives zeros: what lies before it never learns, what lies behind sees a constant.",
    alike=("a layer that gets its probability from outside", "dropout that is switched off: training=False"),
    confirm=("print(layer(torch.ones(4))) in training mode: zeros",),
    thresholds={"probability": Threshold(1.0, "at or above", "every unit is dropped; torch's default is 0.5")},
)
_FUNCTIONS = {"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"}
_LAYERS = ("Dropout", "AlphaDropout", "FeatureAlphaDropout", "DropPath", "StochasticDepth")


def check(project: Project) -> Iterator[Finding]:
    """Look at every layer and every function that drops units."""
    seen: set[int] = set()
    for event in project.events:
        if event.kind != "call" or id(event.node) in seen or _switched_off(event):
            continue
        given = _probability(event)
        if given is not None and number(given) == 1.0:
            seen.add(id(event.node))
            yield _finding(event, given)


def _probability(event: Event) -> Value | None:
    """The probability to drop that a call is given; None for another call."""
    made = event.result
    if event.method in _FUNCTIONS and event.name.startswith("torch.nn.functional."):
        return event.argument(1, "p")
    if not isinstance(made, Thing) or event.name != made.type or not made.short.startswith(_LAYERS):
        return None
    if made.type.startswith("flax."):
        return made.argument(0, "rate")
    if made.short == "DropPath":
        return made.argument(0, "drop_prob")
    return made.argument(0, "p") if made.type.startswith(("torch.nn.", "torchvision.ops.")) else None


def _switched_off(event: Event) -> bool:
    """Whether a call of the function says that it does not train."""
    given = event.argument(2, "training")
    return given is not None and truth(given) is False


def _finding(event: Event, given: Value) -> Finding:
    fixed = isinstance(given, Const) and given.fixed
    node = event.node if isinstance(event.node, ast.Call) else None
    called = written(node.func) if node is not None else event.method
    names = ("rate",) if event.name.startswith("flax.") else ("p", "drop_prob")
    position = 1 if event.name.startswith("torch.nn.functional.") else 0
    value = argument(node, position, *names) if node is not None else None
    return RULE.finding(
        f"{called} at {event.file.path}:{event.line} drops with probability 1"
        f"{'' if fixed else ' (a default that may be overridden)'}: in training it gives nothing but zeros",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE if fixed else Bearing.SIGN,
        severity=Severity.HIGH if fixed else Severity.MEDIUM,
        measured={"kind": "all", "probability": 1.0},
        patch=rewritten(event.file, value, "0.1", "drop a tenth") if isinstance(value, ast.Constant) else (),
    )
