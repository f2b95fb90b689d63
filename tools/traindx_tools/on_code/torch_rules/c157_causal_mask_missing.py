"""A language model reads the tokens that it should predict.

The target is the input shifted by one, and the attention between them has no causal mask: position t sees token t + 1,
which is its own answer. The training loss falls far below what the data allow, and generated text is garbage because
at generation time nothing of the future is there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.trace import Event, walk
from traindx_tools.on_code.values import Const, Tensor, Thing
from traindx_tools.rules import Rule

RULE = Rule(
    id="C157",
    name="causal-mask-missing",
    title="No causal mask in a next-token model",
    severity=Severity.HIGH,
    sees="Cross entropy of shifted targets over the output of self-attention that is given no mask.",
    matters="A loss that is too good to be true, and useless generations.",
    alike=("a masked language model, whose targets are not shifted", "attention of a decoder to what an encoder gave"),
    confirm=("change the last token of an input and compare the logits before it",),
)  # fmt: skip

_MASKS = ("mask", "src_mask", "attn_mask", "is_causal", "tgt_mask")
_LAYERS = {"TransformerEncoder": 1, "TransformerEncoderLayer": 1, "MultiheadAttention": 99}
"""Layers and the position at which a mask may be given."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every loss over shifted targets, and at the attention before it."""
    seen: set[int] = set()
    for root in project.roots:
        if not {"cross_entropy"} & root.methods:
            continue
        events = [p.event for p in walk(root, frozenset({"__call__", "cross_entropy"}))]
        shifted = [e for e in events if e.method == "cross_entropy" and _is_next_token(e)]
        for loss in shifted:
            logits = loss.args[0]
            for event in events:
                if id(event.node) not in seen and _unmasked(event) and _inside(event, logits):
                    seen.add(id(event.node))
                    yield _finding(event, loss)


def _is_next_token(event: Event) -> bool:
    target = event.argument(1, "target")
    logits = event.argument(0, "input")
    return (
        isinstance(target, Tensor)
        and "without_first" in target.tags
        and isinstance(logits, Tensor)
        and bool(logits.models)
    )


def _unmasked(event: Event) -> bool:
    layer = event.receiver
    if not isinstance(layer, Thing) or layer.type.rpartition(".")[2] not in _LAYERS:
        return False
    if len(event.args) > _LAYERS[layer.short] and layer.short != "MultiheadAttention":
        return False
    if layer.short == "MultiheadAttention" and (len(event.args) > 5 or len({id(a) for a in event.args[:2]}) > 1):
        return False  # attention to something else
    return not any(event.kwargs.get(n, Const(None)) != Const(None) for n in _MASKS) and "**" not in event.kwargs


def _inside(event: Event, logits: object) -> bool:
    return isinstance(logits, Tensor) and id(event.receiver) in logits.models


def _finding(event: Event, loss: Event) -> Finding:
    name = event.receiver.short if isinstance(event.receiver, Thing) else "attention"
    return RULE.finding(
        f"{name} at {event.file.path}:{event.line} attends without a causal mask, and the loss at line {loss.line} "
        "compares its output with the next tokens of the same input: every position can read its answer",
        location(event),
        event.file.path,
        bearing=Bearing.SIGN,
        measured={"kind": "causal", "loss_line": loss.line},
    )
