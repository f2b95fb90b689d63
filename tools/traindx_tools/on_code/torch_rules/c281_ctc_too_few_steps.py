"""CTC has fewer time steps than the text needs.

CTC writes one character a time step, and a blank between two equal ones: a text of L characters with R repeats needs
L + R steps. Strides and pooling divide the time axis, so that a wide input may leave too few. Where they do not
suffice no alignment exists: the loss is infinite and its gradient NaN, or, with `zero_infinity=True`, 0, and that text
is never learned. Two more faults of the lengths: those of the input before the strides, which are longer than the
output, and those of the padded targets, by which the padding (0, the blank) becomes part of the text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, names_in, written
from traindx_tools.on_code.time_steps import Reduction, longest, reduction, widths
from traindx_tools.rules import Rule

RULE = Rule(
    id="C281",
    name="ctc-too-few-steps",
    title="CTC has fewer time steps than the text needs, or wrong lengths",
    severity=Severity.HIGH,
    sees="The strides of the network before a CTC loss, the width of its input, the longest text, and where the "
         "lengths that the loss is given come from.",
    matters="The loss of such a text is infinite (or a silent 0 with zero_infinity), and its gradient NaN.",
    alike=("a learning rate that is too high", "a blank with the number of a character", "a log of 0"),
    confirm=("print (input_lengths < target_lengths + repeats).sum() of a batch",),
)  # fmt: skip
_LOSSES = ("CTCLoss", "ctc_loss")
_ONE_PROGRAM = 25
_GUARD = re.compile(
    r"(input|out|logit|frame|feat|pred)\w*len\w*\s*(>=|>|<|<=)\s*\(?\s*(target|label|text|tgt)\w*len", re.IGNORECASE)
_LENGTH = re.compile(r"len|size|dur|frames", re.IGNORECASE)


def check(project: Project) -> Iterator[Finding]:
    """Look at every call of a CTC loss."""
    files = [f for f in project.files if "CTCLoss" in f.text or "ctc_loss" in f.text]
    if not files or len(project.files) > _ONE_PROGRAM:
        return
    look = lookup(project)
    shrinks = reduction(look)
    for code in look.codes:
        for call in (c for c in code.of(ast.Call) if _is_loss(look, code, c)):
            lengths, targets = argument(call, 2, "input_lengths"), argument(call, 1, "targets")
            own = argument(call, 3, "target_lengths")
            if own is not None and targets is not None and (why := _padded(look, code, own, targets)) is not None:
                yield why
            if shrinks is None or lengths is None:
                continue
            early = _before(look, code, lengths, shrinks)
            if early is not None:
                yield early
                continue
            short = _short(look, code, call, shrinks)
            if short is not None:
                yield short


def _is_loss(look: Lookup, code: Syntax, call: ast.Call) -> bool:
    """Whether a call computes the loss: `ctc_loss(...)`, or a name that holds CTCLoss()."""
    if len(call.args) + len(call.keywords) < 4:
        return False
    if last_name(call.func) == "ctc_loss" and look.function(code, call.func) is None:
        return True
    made = look.origin(code, call.func)[1] if isinstance(call.func, (ast.Name, ast.Attribute)) else call.func
    return isinstance(made, ast.Call) and last_name(made.func) == "CTCLoss"


def _before(look: Lookup, code: Syntax, lengths: ast.expr, shrinks: Reduction) -> Finding | None:
    """Lengths that come from the batch as they are, although the network divides time."""
    made = code.origin(lengths)
    part = made.value if isinstance(made, ast.Subscript) else made
    plain = isinstance(made, ast.Name) and _from_loop(code, made)
    plain = plain or (isinstance(made, ast.Subscript) and isinstance(part, ast.Name) and _from_loop(code, part))
    if not plain or not _LENGTH.search(written(made)):
        return None
    divided = any(isinstance(n, ast.BinOp) and isinstance(n.op, (ast.FloorDiv, ast.Div)) and _LENGTH.search(written(n))
                  for c in look.codes for n in c.of(ast.BinOp))  # fmt: skip
    if divided or any("div" in c.file.text and "len" in c.file.text and "//" in c.file.text for c in look.codes):
        return None
    where, layer = shrinks.place
    return RULE.finding(
        f"The input lengths {written(lengths)} at {code.at(lengths)} are those of the input, and the network divides "
        f"time by {shrinks.factor:g} before (last at {where.at(layer)}): they are longer than its output",
        code.place(lengths),
        code.file.path,
        bearing=Bearing.SIGN,
        measured={"kind": "before", "factor": shrinks.factor},
    )


def _from_loop(code: Syntax, name: ast.Name) -> bool:
    if code.bindings(name):
        return False
    targets = [getattr(loop, "target", None) for loop in code.loops(name)]
    return any(t is not None and name.id in names_in(t) for t in targets)


def _padded(look: Lookup, code: Syntax, lengths: ast.expr, targets: ast.expr) -> Finding | None:
    """`torch.full((B,), targets.size(1))`: every text is as long as the padded one."""
    made = code.origin(lengths)
    if not isinstance(made, ast.Call) or last_name(made.func) not in ("full", "full_like", "LongTensor", "tensor"):
        return None
    name = re.escape(written(targets))
    whole = re.search(rf"\b{name}\.(size\((1|-1)\)|shape\[(1|-1)\])", written(made))
    pads = any(c.calls("pad_sequence") for c in look.codes)
    if whole is None or not pads:
        return None
    return RULE.finding(
        f"{written(made)[:80]} at {code.at(made)} gives every target the length of the padded batch: the padding is "
        "taken for text (with 0, for the blank)",
        code.place(made),
        code.file.path,
        bearing=Bearing.SIGN,
        measured={"kind": "padding"},
    )


def _short(look: Lookup, code: Syntax, call: ast.Call, shrinks: Reduction) -> Finding | None:
    """The steps that are left of the input beside the longest text."""
    text = longest(look)
    known = sorted(set(widths(look, shrinks.last)))
    if text is None or not known or any(c.file.mentions(_GUARD) for c in look.codes):
        return None
    steps = shrinks.left(known[-1])
    need, need_with = text[0], 2 * text[0] - 1
    if not 0 < steps < need_with or text[0] < 2:
        return None
    hides = any("zero_infinity=True" in c.file.text.replace(" ", "") for c in look.codes)
    certain = steps < need and len(known) == 1
    what = f"{need:g} characters" if steps < need else f"{need:g} characters and up to {need - 1:g} repeats"
    is_short = "is shorter than the target" if steps < need else "is too short for a target with repeats"
    seen = "zero_infinity hides it as a loss of 0" if hides else "the loss of such a text is inf and its gradient NaN"
    where, layer = shrinks.place
    return RULE.finding(
        f"The strides of the network leave {steps:g} time steps of an input of {known[-1]:g} (last at "
        f"{where.at(layer)}), and CTC at {code.at(call)} has to write texts of {what} (line {text[2].lineno}): the "
        f"input {is_short}, no alignment exists, {seen}",
        where.place(layer),
        where.file.path,
        bearing=Bearing.CAUSE if certain else Bearing.SIGN,
        severity=Severity.CRITICAL if certain and not hides else None,
        measured={"kind": "short", "steps": steps, "characters": need, "factor": shrinks.factor, "hidden": hides},
    )
