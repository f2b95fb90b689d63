"""Which positions count, as attention is told: masks of library layers, what is added or filled before a softmax."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code import mask_truth
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.tensors import dtype_of
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Const, Site, Symbol, Tensor, Thing, Value, number
from traindx_tools.program.known import Known
from traindx_tools.program.uses import MaskUse

_GUARDS = ("nan_to_num", "isnan", "isfinite", "nan_to_num_")
_LEAVES_OUT = frozenset({"ignore_index", "reduction", "weight"})
_SAID = {mask_truth.CONTENT: "content", mask_truth.BLANK: "blank", mask_truth.TRIANGLE: "triangle"}


def mask_uses(project: Project) -> Iterator[MaskUse]:
    """Every place at which a mask is known to be given, or known to be missing."""
    softmax = [e for e in project.calls("softmax") if e.result is not None]
    softmax += [e for e in project.calls("__call__") if isinstance(e.receiver, Thing) and e.receiver.short == "Softmax"]
    yield from _given(project)
    yield from _added(project, softmax)
    yield from _filled(project, softmax)
    yield from _missing(project)
    for event in project.calls("cross_entropy", "nll_loss"):
        target, layer = event.argument(1, "target"), event.receiver
        told = {*event.kwargs, *(layer.kwargs if isinstance(layer, Thing) else ())}
        if isinstance(target, Tensor) and "padded" in target.tags and not told & _LEAVES_OUT:
            yield _use("padded labels", event, target, event.method)


def _use(how: str, event: Event, mask: Value | None, target: str, text: str = "", **more: Any) -> MaskUse:
    said = next((_SAID[t] for t in mask_truth.of(mask)), "")
    if not said and isinstance(mask, Symbol) and _words(mask.name) & set(table("masks.toml")["triangle"]["words"]):
        said = "triangle"
    known = mask if isinstance(mask, Tensor) else Tensor(low=0.0, high=1.0) if mask_truth.of(mask) else Tensor()
    boolean = None if known.dtype is None and "floating" not in known.tags else known.dtype == "bool"
    return MaskUse(how, event.spot, text or event.text, target, said, boolean, known.low,
                   known.high, origin=event, **more)


def _words(name: str) -> set[str]:
    return set(re.split(r"[^a-z]+", name.partition("@")[0].lower()))


def _given(project: Project) -> Iterator[MaskUse]:
    """Arguments of layers and functions of torch that take masks."""
    layers, functions = table("masks.toml")["layers"], table("masks.toml")["functions"]
    for event in project.calls("__call__"):
        layer = event.receiver
        if isinstance(layer, Thing) and layer.type.startswith("torch.nn.") and layer.short in layers:
            for how in ("padding", "attention"):
                for name in layers[layer.short][how]:
                    if event.kwargs.get(name, Const(None)) != Const(None):
                        yield _use(how, event, event.kwargs[name], layer.short, text=name)
    for event in project.calls(*functions):
        value = event.argument(*functions[event.method]["attention"])
        if event.name.startswith("torch.") and value is not None:
            yield _use("attention", event, value, event.method, text="attn_mask")


def _reached(softmax: list[Event]) -> dict[Site, Event]:
    """The places that what a softmax gets comes from."""
    found: dict[Site, Event] = {}
    for event in softmax:
        given = event.receiver if isinstance(event.receiver, Tensor) else event.args[0] if event.args else None
        if isinstance(given, Tensor):
            found |= {site: event for site in (given.site, *given.parents) if site is not None}
    return found


def _added(project: Project, softmax: list[Event]) -> Iterator[MaskUse]:
    """What is added to products of queries and keys in front of a softmax."""
    reached = _reached(softmax)
    products = {id(e.function) for e in project.events if e.kind == "operation" and e.name == "@"}
    products |= {id(e.function) for e in project.calls("matmul", "bmm", "einsum", "baddbmm")}
    for event in project.events:
        if event.kind != "operation" or event.name != "+" or id(event.function) not in products:
            continue
        after = reached.get(event.site)
        for scores, mask in (event.args[:2], event.args[1::-1]):
            if after is not None and after.function is event.function and _is_mask(mask) and isinstance(
                    scores, Tensor) and scores.grad is not False:
                yield _use("added", event, mask, "softmax")


def _is_mask(value: Value) -> bool:
    return bool(mask_truth.of(value)) or (
        isinstance(value, Tensor) and value.grad is False and not value.models and not value.kind)


def _filled(project: Project, softmax: list[Event]) -> Iterator[MaskUse]:
    """Numbers that stand where a mask says so."""
    spoken: bool | None = None
    guarded = {id(e.function) for e in project.calls(*_GUARDS)}
    last: dict[int, int] = {}
    for e in softmax:
        last[id(e.function)] = max(e.line, last.get(id(e.function), 0))
    for event in project.calls("masked_fill", "masked_fill_", "where"):
        values: list[Value | None]
        own = event.name.startswith("Tensor.") or not event.name.startswith(("torch.", "jax.", "numpy."))
        if event.method == "where":
            mask, values = event.argument(0, "condition"), [*event.args[1:3]]
            x: Value | None = next((v for v in values if isinstance(v, Tensor)), None)
        else:
            mask, values = event.argument(0 if own else 1, "mask"), [event.argument(1 if own else 2, "value")]
            x = event.receiver if own else event.args[0] if event.args else None
        value = next((n for v in values if v is not None and (n := number(v)) is not None), None)
        if value is None:
            continue
        spoken = _half(project) if spoken is None and math.isfinite(value) else spoken
        computed = isinstance(x, Tensor) and (x.dtype == "float16" or (x.dtype is None and event.autocast == "float16"))
        # a number that float16 does not hold is an error of torch; JAX makes it -inf
        holds = event.name.startswith("jax.") or (isinstance(x, Tensor) and x.dtype is not None and not computed)
        behind = last.get(id(event.function), -1) >= event.line
        yield _use("filled", event, mask, "softmax" if behind else "", value=value,
                   half=Known.DERIVED if computed else Known.GUESSED if spoken and not holds else None,
                   guarded=id(event.function) in guarded)


def _half(project: Project) -> bool:
    """Whether something in the program asks for float16."""
    for event in project.events:
        if event.autocast == "float16" or event.method == "half":
            return True
        for value in (*event.args, *event.kwargs.values()):
            if dtype_of(value) == "float16" or (isinstance(value, Const) and value.value in ("fp16", "16-mixed")):
                return True
    return False


def _missing(project: Project) -> Iterator[MaskUse]:
    """Self-attention that is given no mask, whose output a loss compares with the next tokens."""
    for loss in project.calls("cross_entropy"):
        logits, target = loss.argument(0, "input"), loss.argument(1, "target")
        ahead = isinstance(target, Tensor) and "without_first" in target.tags
        if not isinstance(logits, Tensor) or not logits.models or not (ahead or "without_last" in logits.tags):
            continue
        for event in project.calls("__call__"):
            layer = event.receiver
            if isinstance(layer, Thing) and id(layer) in logits.models and _is_unmasked(event, layer):
                yield MaskUse("missing", event.spot, event.text, layer.short, next_token=loss.spot, origin=event)


def _is_unmasked(event: Event, layer: Thing) -> bool:
    row: dict[str, Any] = table("masks.toml")["layers"].get(layer.short, {})
    if "before" not in row or len(event.args) > row["before"] or "**" in event.kwargs:
        return False
    others = layer.short == "MultiheadAttention" and len({id(a) for a in event.args[:2]}) > 1
    names = (*row["attention"], "is_causal")
    return not others and not any(event.kwargs.get(n, Const(None)) != Const(None) for n in names)
