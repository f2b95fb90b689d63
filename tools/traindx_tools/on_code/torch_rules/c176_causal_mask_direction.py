"""A causal mask points the wrong way.

A position may see itself and what was before it: query i, key j with j <= i, the lower triangle. `masked_fill(m, -inf)`
and the `attn_mask` of torch's attention layers block where the mask is true, so it has to be the upper triangle above
the diagonal; `masked_fill(m == 0, -inf)`, `where(m, scores, -inf)` and `scaled_dot_product_attention` keep where it is
true, so it has to be the lower one. Inverted, every position sees only the future; with the diagonal blocked, the first
row has nothing left and becomes NaN; a triangle of numbers (not booleans) is added to the scores and masks nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Finding, Severity, Strength
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax
from traindx_tools.on_code.triangles import Triangle, triangle
from traindx_tools.rules import Rule

RULE = Rule(
    id="C176",
    name="causal-mask-direction",
    title="The causal mask points the wrong way",
    severity=Severity.HIGH,
    sees="tril or triu, its diagonal, and whether the place where it is used blocks or keeps what is true.",
    matters="The model reads its answers (a loss far too low, useless generations), or only the future, or NaN.",
    alike=("a mask that is missing", "a padding mask that is inverted"),
    confirm=("print(weights[0, 0]): everything above the diagonal has to be 0",),
)
_LAYERS = ("MultiheadAttention", "TransformerEncoder", "TransformerEncoderLayer", "TransformerDecoder", "Transformer",
           "TransformerDecoderLayer")  # fmt: skip
_MASKS = ("attn_mask", "mask", "src_mask", "tgt_mask")


def check(project: Project) -> Iterator[Finding]:
    """Look at every use of a triangular mask."""
    for file in project.files:
        if "tri" not in file.text or not ("tril" in file.text or "triu" in file.text):
            continue
        code = syntax(file)
        for call, blocked, whole in _uses(code):
            why = _wrong(blocked)
            if why is not None:
                yield RULE.finding(
                    f"{code.file.segment(call)} at {code.at(call)} {why[1]}",
                    code.place(call),
                    file.path,
                    strength=Strength.DIRECT if whole else Strength.CIRCUMSTANTIAL,
                    measured={"kind": why[0], "blocked": str(blocked)},
                    patch=forms.causal(file, call, blocked) if whole else (),
                )


def _uses(code: Syntax) -> Iterator[tuple[ast.Call, Triangle, bool]]:
    """(call, the positions that it blocks, whether the layer is known) of every use of a triangle."""
    for call in code.calls("masked_fill", "masked_fill_"):
        own = isinstance(call.func, ast.Attribute) and code.qualified(call.func) != "torch.masked_fill"
        mask, value = triangle(code, argument(call, 0 if own else 1, "mask")), argument(call, 1 if own else 2, "value")
        if mask is not None and _is_low(code, value) and _softmax_follows(code, call):
            yield call, mask, True
    for call in code.calls("where"):
        mask = triangle(code, argument(call, 0, "condition"))
        if mask is not None and len(call.args) == 3 and _softmax_follows(code, call):
            if _is_low(code, call.args[2]):
                yield call, mask.complement(), True
            elif _is_low(code, call.args[1]):
                yield call, mask, True
    for call in code.calls("scaled_dot_product_attention"):
        mask = triangle(code, argument(call, 3, "attn_mask"))
        if mask is not None:
            yield call, mask if mask.infinite else mask.complement() if mask.boolean else _numbers(mask), True
    for keyword in code.of(ast.keyword):
        up = code.parent(keyword)
        if keyword.arg in _MASKS and isinstance(up, ast.Call) and last_name(up.func) != "scaled_dot_product_attention":
            mask = triangle(code, keyword.value)
            if mask is not None and _is_layer(code, up):
                yield up, mask if mask.infinite or mask.boolean else _numbers(mask), True


def _numbers(mask: Triangle) -> Triangle:
    """A mask of 0 and 1 that is added to the scores: nothing is blocked."""
    return Triangle(mask.lower, -10_000, False)


def _wrong(blocked: Triangle) -> tuple[str, str] | None:
    if blocked.offset == -10_000:
        return "numbers", "adds a triangle of numbers to the scores: it is no mask of booleans, and nothing is blocked"
    if blocked.lower:
        past = "the past and the position itself" if blocked.offset >= 0 else "the past"
        return "inverted", f"blocks {past} and lets the future through: the triangle is on the wrong side"
    if blocked.offset <= 0:
        return "diagonal", "also blocks the position itself (the diagonal): the first row has nothing left and is NaN"
    if blocked.offset >= 2:
        return "leak", f"blocks only from {blocked.offset} positions ahead on: every position sees its next token"
    return None


def _is_low(code: Syntax, node: ast.expr | None) -> bool:
    """Whether it is -inf or a large negative number."""
    if node is None:
        return False
    text = ast.unparse(code.origin(node))
    number = code.number(node)
    return (number is not None and number <= -1e3) or "-inf" in text or "finfo" in text or text.startswith("-")


def _softmax_follows(code: Syntax, call: ast.Call) -> bool:
    return any(
        (isinstance(n, ast.Call) and last_name(n.func) in ("softmax", "log_softmax", "Softmax")) or (
            isinstance(n, ast.Attribute) and n.attr == "softmax")
        for n in ast.walk(code.scope(call))
    )  # fmt: skip


def _is_layer(code: Syntax, call: ast.Call) -> bool:
    """Whether a call is that of an attention layer of torch."""
    if not isinstance(call.func, (ast.Name, ast.Attribute)):
        return False
    made = code.origin(call.func)
    return (
        isinstance(made, ast.Call)
        and last_name(made.func) in _LAYERS
        and code.qualified(made.func).startswith("torch.")
    )
