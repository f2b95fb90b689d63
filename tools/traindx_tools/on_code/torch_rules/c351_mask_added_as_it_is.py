"""A mask of ones and zeros is added to attention scores as it is.

What is added to scores has to be 0 where a position may be attended to and -inf (or -1e9) where not. A mask of ones and
zeros that is added as it is raises the score of some positions by 1 and blocks none: padding takes part, a causal model
sees the future. The same happens inside the library: `scaled_dot_product_attention` and the layers of a transformer
block by a mask of booleans, but add one of floats. The rule follows what is added back to where it was made, through
the arguments of functions and layers, and speaks only where it finds ones and zeros: a comparison, `ones`, `tril`,
`mask[i, :n] = 1`, and no step in between that makes a large negative number of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written
from traindx_tools.on_code.zero_one import Source, ones_and_zeros
from traindx_tools.rules import Rule

RULE = Rule(
    id="C351",
    name="mask-added-as-it-is",
    title="A mask of ones and zeros is added to attention scores",
    severity=Severity.HIGH,
    sees="An addition in front of a softmax, or a mask of floats for an attention layer or function of torch, whose "
         "mask holds ones and zeros.",
    matters="Nothing is blocked: padding is attended to, so results depend on the other samples of the batch.",
    alike=("a mask of 0 and -inf", "a bias of relative positions", "a mask of booleans for a layer of torch"),
    confirm=("print the weights of one query: those of padded or later keys have to be 0",),
)  # fmt: skip
_SAME = frozenset({"float", "to", "type_as", "masked_fill", "masked_fill_", "clamp", "astype"})
_LAYERS = {
    "MultiheadAttention": ("attn_mask", "key_padding_mask"),
    "TransformerEncoder": ("mask", "src_key_padding_mask"),
    "TransformerEncoderLayer": ("src_mask", "src_key_padding_mask"),
    "TransformerDecoder": ("tgt_mask", "memory_mask", "tgt_key_padding_mask", "memory_key_padding_mask"),
    "TransformerDecoderLayer": ("tgt_mask", "memory_mask", "tgt_key_padding_mask", "memory_key_padding_mask"),
    "Transformer": ("src_mask", "tgt_mask", "memory_mask", "src_key_padding_mask", "tgt_key_padding_mask",
                    "memory_key_padding_mask"),
}  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at what is added in front of a softmax, and at masks of floats for the library's attention."""
    look = lookup(project)
    told: set[int] = set()
    for code in look.codes:
        if not ("torch" in code.file.text or "jax" in code.file.text):
            continue
        for added, how in (*_summed(code), *_passed(code)):
            if id(added) in told or last_name(getattr(added, "func", None)) in ("ones", "ones_like"):
                continue
            source = ones_and_zeros(look, code, added)
            if source is not None and (how == "added" or source.floats):
                told.add(id(added))
                yield _finding(code, added, how, source)


def _summed(code: Syntax) -> Iterator[tuple[ast.expr, str]]:
    """Each side of the sums that a softmax gets."""
    for call in code.calls("softmax"):
        plain = bool(code.qualified(call.func))
        node = argument(call, 0, "input", "x") if plain else getattr(call.func, "value", None)
        if not isinstance(node, ast.expr) or (isinstance(node, ast.Name) and node.id in ("self", "F")):
            continue
        yield from ((side, "added") for side in _sides(code, node))
    for called in code.of(ast.Call) if "Softmax" in code.file.text else ():
        made = code.assigned(called.func)
        if isinstance(made, ast.Call) and last_name(made.func) == "Softmax" and called.args:
            yield from ((side, "added") for side in _sides(code, called.args[0]))


def _sides(code: Syntax, node: ast.expr) -> Iterator[ast.expr]:
    for _ in range(8):
        if isinstance(node, ast.Name):
            yield from _in_place(code, node)
            step = code.assigned(node)
            if step is None or step is node:
                yield from _under_condition(code, node)
                return
            node = step
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            yield node.right
            yield node.left
            node = node.left
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Mult)):
            node = node.left
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
            node = node.func.value
        else:
            return


def _under_condition(code: Syntax, name: ast.Name) -> Iterator[ast.expr]:
    """`if mask is not None: scores = scores + mask`, above this place."""
    for statement, value in code.bindings(name):
        if statement.lineno < name.lineno and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            sides = (value.left, value.right)
            if any(isinstance(s, ast.Name) and s.id == name.id for s in sides):
                yield from (s for s in sides if not (isinstance(s, ast.Name) and s.id == name.id))


def _in_place(code: Syntax, name: ast.Name) -> Iterator[ast.expr]:
    """`scores += mask` before this place."""
    for step in code.inside(code.scope(name), ast.AugAssign):
        if isinstance(step.op, ast.Add) and written(step.target) == name.id and step.lineno < name.lineno:
            yield step.value


def _passed(code: Syntax) -> Iterator[tuple[ast.expr, str]]:
    """Masks that are handed to the library's attention."""
    for call in code.calls("scaled_dot_product_attention"):
        given = argument(call, 3, "attn_mask")
        whole = code.origin(given.value if isinstance(given, ast.Subscript) else given) if given is not None else None
        triangle = any(w in written(whole) for w in ("tril(", "triu("))  # C176 tells of those
        if given is not None and not triangle and code.qualified(call.func).startswith("torch"):
            yield given, "scaled_dot_product_attention"
    for call in code.of(ast.Call) if any(layer in code.file.text for layer in _LAYERS) else ():
        if not call.keywords and len(call.args) < 2:
            continue
        made = code.assigned(call.func)
        names = _LAYERS.get(last_name(made.func), ()) if isinstance(made, ast.Call) else ()
        if isinstance(made, ast.Call) and names and code.qualified(made.func).startswith("torch"):
            yield from ((k.value, last_name(made.func)) for k in call.keywords if k.arg in names)


def _finding(code: Syntax, added: ast.expr, how: str, source: Source) -> Finding:
    where = source.code.at(source.node)
    if how == "added":
        does = "adds it to attention scores as it is: it raises what may be attended to by 1 and blocks nothing"
    else:
        does = f"hands it as floats to {how}, which adds it to the scores and blocks nothing (booleans would block)"
    return RULE.finding(
        f"{written(added)[:60]} holds ones and zeros ({written(source.node)[:60]}, {where}), and {code.at(added)} "
        f"{does}; a mask that is added needs -inf where nothing may be attended to",
        code.place(added),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": how},
    )


