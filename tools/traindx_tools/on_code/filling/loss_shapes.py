"""Losses whose two sides do not stand beside each other: broadcast against each other, or shifted once too often."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.knowledge.tables import words
from traindx_tools.on_code import axes
from traindx_tools.on_code.filling.spots import spot_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Symbol, Tensor, Thing, Value, parts
from traindx_tools.program.uses import Mismatch

_CAUSAL = ("LMHeadModel", "ForCausalLM")


def mismatches(project: Project) -> Iterator[Mismatch]:
    """Every one of them."""
    for event in project.events:
        if event.kind == "clash" and (column := _column(event)) is not None:
            pred = event.args[column]
            made = (pred.kind_site or pred.site) if isinstance(pred, Tensor) else None
            yield Mismatch("broadcast", event.name, spot_of(event), event.file.segment(event.node), str(made or ""),
                           (event, column), str(axes.of(pred)), str(axes.of(event.args[1 - column])))
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


def _column(event: Event) -> int | None:
    """Which side has the axis of length 1, where its samples meet all of the other side's without anybody's asking.

    An axis that the program inserted is taken for meant, except where one side alone is a model's output.
    """
    known = [axes.of(a) for a in event.args]
    one = axes.clash(*known)
    column = 0 if len(known[0].dims if known[0] else ()) > len(known[1].dims if known[1] else ()) else 1
    if one is None:
        return column
    of_models = [bool(a.models) if isinstance(a, Tensor) else False for a in event.args]
    meant = one is not None and one.role == "inserted" and event.name not in words("axes.toml", "elementwise_losses")
    return None if (meant or event.name not in ("-", "==")) and of_models[0] == of_models[1] and (
        meant or event.name in "+*/") else column


def _shifts(value: Value) -> int:
    if isinstance(value, Tensor):
        return 2 if "first_dropped_twice" in value.tags else int("without_first" in value.tags)
    return sum(1 for p in parts(value) if isinstance(p, Symbol) and p.role == "item" and "without_first" in p.name)
