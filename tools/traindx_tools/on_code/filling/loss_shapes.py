"""Losses whose two sides do not stand beside each other: broadcast against each other, or shifted once too often."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.on_code.arrays import COLUMNS
from traindx_tools.on_code.filling.spots import spot_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Symbol, Tensor, Thing, Value, parts
from traindx_tools.program.uses import Mismatch

_COMPARES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "gaussian_nll_loss", "squared_error", "l2_loss")
_CAUSAL = ("LMHeadModel", "ForCausalLM")


def mismatches(project: Project) -> Iterator[Mismatch]:
    """Every one of them."""
    for event in (*project.calls(*_COMPARES), *(e for e in project.events if e.kind == "operation" and e.name == "-")):
        for one, other in ((0, 1), (1, 0)) if len(event.args) >= 2 else ():
            pred, target = event.args[one], event.args[other]
            if isinstance(pred, Tensor) and isinstance(target, Tensor) and _is_column(pred) and _is_row(target):
                yield Mismatch("broadcast", _name(event), spot_of(event), event.file.segment(event.node),
                               str(pred.kind_site or pred.site), (event, one))
                break
    for event in project.calls("cross_entropy", "softmax_cross_entropy_with_integer_labels"):
        labels = event.argument(1, "target") or event.kwargs.get("labels")
        if labels is not None and _shifts(labels) >= 2:
            yield Mismatch("shift", _name(event), spot_of(event))
    for event in project.calls("__call__"):
        model, labels, ids = event.receiver, event.kwargs.get("labels"), event.kwargs.get("input_ids")
        if isinstance(model, Thing) and model.short.endswith(_CAUSAL) and labels is not None and ids is not None and (
                _shifts(labels) >= 1 and _shifts(ids) == 0):
            yield Mismatch("shift", model.short, spot_of(event), made="itself")


def _name(event: Event) -> str:
    return event.receiver.short if isinstance(event.receiver, Thing) else (
        event.method if event.kind == "call" else "subtraction")


def _is_column(t: Tensor) -> bool:
    """(..., 1) as a layer left it, or as a model's output known to have two dimensions."""
    shape = t.shape
    if shape is None or not shape.dims or shape.dims[-1] != 1 or "batch" in t.tags or not t.tags & COLUMNS:
        return False
    return not shape.exact or (len(shape.dims) == 2 and shape.dims[0] != 1)


def _is_row(t: Tensor) -> bool:
    return t.shape is not None and t.shape.exact and len(t.shape.dims) == 1 and t.shape.dims[0] != 1 and not t.models


def _shifts(value: Value) -> int:
    if isinstance(value, Tensor):
        return 2 if "first_dropped_twice" in value.tags else int("without_first" in value.tags)
    return sum(1 for p in parts(value) if isinstance(p, Symbol) and p.role == "item" and "without_first" in p.name)
