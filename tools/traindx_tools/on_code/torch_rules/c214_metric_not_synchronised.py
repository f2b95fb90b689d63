"""A metric that decides is computed on one rank's share.

In a distributed Lightning run `self.log("val_loss", value)` logs the value of rank 0's shard unless `sync_dist=True` is
given (metric objects of torchmetrics synchronise themselves). Early stopping and checkpoints that monitor it then
decide by an Nth of the data.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax
from traindx_tools.rules import Rule

RULE = Rule(
    id="C214",
    name="metric-not-synchronised",
    title="A monitored metric is not synchronised over the ranks",
    severity=Severity.MEDIUM,
    sees="self.log of a monitored value in a validation hook without sync_dist, beside a Trainer on several devices.",
    matters="Model selection and early stopping depend on one rank's shard.",
    alike=("a metric object, which synchronises itself", "a run on one device"),
    confirm=("the logged value differs from that of a run on one device",),
)
_HOOKS = ("validation_step", "on_validation_epoch_end", "validation_epoch_end")


def check(project: Project) -> Iterator[Finding]:
    """Look for a distributed trainer, what is monitored, and how it is logged."""
    codes = [syntax(f) for f in project.files if "lightning" in f.text]
    if not any(_distributed(code) for code in codes):
        return
    monitored = {name for code in codes for name in _monitored(code)}
    for code in codes:
        for call in code.calls("log"):
            function, name = code.function(call), argument(call, 0, "name")
            hook = function is not None and function.name in _HOOKS
            if not hook or not isinstance(name, ast.Constant) or name.value not in monitored:
                continue
            value = argument(call, 1, "value")
            if argument(call, 99, "sync_dist") is None and not _is_metric(value):
                yield RULE.finding(
                    f"{code.file.segment(call)} at {code.at(call)} logs one rank's value of {name.value!r}, which is "
                    "monitored: sync_dist=True is missing",
                    code.place(call),
                    code.file.path,
                    bearing=Bearing.CAUSE,
                    measured={"kind": "sync", "name": str(name.value)},
                    patch=forms.keyword_given(code.file, call, "sync_dist", "True", "average over the ranks"),
                )


def _distributed(code: Syntax) -> bool:
    for call in code.calls("Trainer"):
        devices, nodes = argument(call, 99, "devices"), argument(call, 99, "num_nodes")
        several = (code.number(devices) or 1) > 1 or (code.number(nodes) or 1) > 1
        strategy = argument(call, 99, "strategy")
        named = isinstance(strategy, ast.Constant) and str(strategy.value).startswith(("ddp", "fsdp", "deepspeed"))
        if several or named:
            return True
    return False


def _monitored(code: Syntax) -> Iterator[str]:
    for call in code.calls("EarlyStopping", "ModelCheckpoint"):
        for value in (
            argument(call, 99, "monitor"),
            argument(call, 0) if last_name(call.func) == "EarlyStopping" else None,
        ):
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.value


def _is_metric(value: ast.expr | None) -> bool:
    """Whether it is an attribute of self, as metric objects are."""
    return isinstance(value, ast.Attribute)
