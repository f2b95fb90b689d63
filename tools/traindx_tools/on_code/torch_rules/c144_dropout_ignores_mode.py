"""Dropout that stays on in evaluation.

`torch.nn.functional.dropout` has `training=True` as its default and knows nothing of `model.eval()`. Called in a
forward pass without `training=self.training`, it also drops units in validation and in use: metrics are noisy and
worse than the model is, and two evaluations of one sample differ.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.syntax import syntax, written
from traindx_tools.on_code.values import Const
from traindx_tools.rules import Rule

RULE = Rule(
    id="C144",
    name="dropout-ignores-mode",
    title="Functional dropout ignores eval()",
    severity=Severity.MEDIUM,
    sees="A call of functional dropout in a method of a module without its training argument.",
    matters="Validation and inference run with dropout.",
    alike=("a model that overfits", "Monte Carlo dropout on purpose"),
    confirm=("compare two forward passes of one batch in eval mode",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every functional dropout."""
    for event in project.calls(
        "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"
    ):
        owner = event.function.owner if event.function else None
        if not event.name.startswith("torch.nn.functional.") or owner is None or not owner.is_module:
            continue
        given = event.argument(2, "training")
        if "**" in event.kwargs or "*" in event.kwargs or (given is not None and given != Const(True)):
            continue
        around = [up for up in syntax(event.file).above(event.node) if isinstance(up, (ast.If, ast.IfExp))]
        if any("training" in written(up.test) for up in around):
            continue
        yield RULE.finding(
            f"{event.file.segment(event.node)} at {event.file.path}:{event.line} drops units in eval mode too: "
            "functional dropout needs training=self.training",
            location(event),
            event.file.path,
            bearing=Bearing.CAUSE,
            severity=Severity.MEDIUM if given is None else Severity.LOW,
            measured={"kind": "dropout", "explicit": given is not None},
            patch=() if given is not None else forms.keyword_given(
                event.file, event.node, "training", "self.training", "drop units in training only"
            ),
        )
