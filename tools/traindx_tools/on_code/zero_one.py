"""Whether a tensor is a mask of ones and zeros: followed back to where it was made, through arguments of the project.

Nothing is said of a mask that may have been made into large negative numbers on the way, or where two ways lead to
different things.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters, written

_KEEPS = frozenset({
    "unsqueeze", "expand", "view", "reshape", "repeat", "contiguous", "cuda", "cpu", "clone", "detach", "squeeze",
    "transpose", "expand_as", "repeat_interleave", "t", "requires_grad_", "logical_not", "logical_and", "logical_or",
    "tril", "triu", "broadcast_to", "flatten", "pin_memory", "permute",
})  # fmt: skip
_FLOATS = frozenset({"float", "double", "half", "bfloat16"})
_WHOLE = frozenset({"bool", "int", "long", "byte"})
_COMPARES = frozenset({"ne", "eq", "gt", "lt", "ge", "le", "not_equal", "greater", "less"})
_ONES = frozenset({"ones", "ones_like", "zeros", "zeros_like"})
_MASK = re.compile(r"(\w+_)?(mask|masks|pad|padding|keep|valid|causal|tril|real|present|att?n?_?mask)(_\w+)?", re.I)
_LARGE = re.compile(r"inf|1e\d|1e\+\d|10000|finfo|e9|log\(")
_DEEP = 14


@dataclass(frozen=True)
class Source:
    """Where ones and zeros come from, and whether they certainly are floats."""

    code: Syntax
    node: ast.expr
    floats: bool


def ones_and_zeros(look: Lookup, code: Syntax, node: ast.expr, left: int = _DEEP) -> Source | None:
    """What makes a value a mask of ones and zeros, None where it may be anything else."""
    if left <= 0:
        return None
    if isinstance(node, ast.Compare):
        return Source(code, node, False) if not any(isinstance(o, (ast.Is, ast.IsNot)) for o in node.ops) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Invert, ast.Not)):
        return ones_and_zeros(look, code, node.operand, left - 1)
    if isinstance(node, ast.BinOp):
        return _computed(look, code, node, left)
    if isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return Source(code, node, False) if node.slice.value == "attention_mask" else None
        return ones_and_zeros(look, code, node.value, left - 1)
    if isinstance(node, ast.Call):
        return _of_call(look, code, node, left)
    if isinstance(node, ast.Name):
        return _of_name(look, code, node, left)
    if isinstance(node, ast.Attribute) and written(node.value) == "self":
        bound = code.bindings(node)
        if len(bound) != 1 or (_all_ones(bound[0][1]) and not _MASK.fullmatch(node.attr)):
            return None
        return ones_and_zeros(look, code, bound[0][1], left - 1)
    return None


def _computed(look: Lookup, code: Syntax, node: ast.BinOp, left: int) -> Source | None:
    """`1 - mask`, `a & b`, `mask * other`."""
    if isinstance(node.op, ast.Sub) and code.number(node.left) == 1:
        return ones_and_zeros(look, code, node.right, left - 1)
    if isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.Mult)):
        a = ones_and_zeros(look, code, node.left, left - 1)
        b = ones_and_zeros(look, code, node.right, left - 1)
        return None if a is None or b is None else a
    return None


def _of_call(look: Lookup, code: Syntax, node: ast.Call, left: int) -> Source | None:
    name, plain = last_name(node.func), bool(code.qualified(node.func))
    held = (node.args[0] if node.args else None) if plain else getattr(node.func, "value", None)
    if name in _COMPARES and (plain or isinstance(node.func, ast.Attribute)):
        return Source(code, node, False)
    if plain and name in _ONES:
        kind = argument(node, 99, "dtype")
        floats = name.endswith("s") and (kind is None or "float" in written(kind))
        return Source(code, node, floats)
    if not isinstance(held, ast.expr) or name in ("masked_fill", "masked_fill_", "where"):
        return None
    if name in _FLOATS or name in _WHOLE or name in ("to", "type", "type_as", "astype"):
        found = ones_and_zeros(look, code, held, left - 1)
        if found is None:
            return _named_mask(look, code, held, name, left) if name == "bool" else None
        into = written(node)[len(written(held)):]
        floats = name in _FLOATS or ("float" in into or "dtype" in into or "half" in into) or name == "type_as"
        kept = name in ("to",) and "dtype" not in into and "float" not in into and "bool" not in into
        return Source(found.code, found.node, found.floats if kept else floats and "bool" not in into)
    if name in _KEEPS:
        return ones_and_zeros(look, code, held, left - 1)
    return None


def _named_mask(look: Lookup, code: Syntax, held: ast.expr, name: str, left: int) -> Source | None:
    """`mask.bool()` is ones and zeros whatever it came from, of a mask by name."""
    return Source(code, held, False) if _MASK.fullmatch(last_name(held)) and left > 0 and look and name else None


def _of_name(look: Lookup, code: Syntax, node: ast.Name, left: int) -> Source | None:
    bound = code.bindings(node)
    if bound:
        made = code.assigned(node)
        if made is None or made is node or _filled(code, node):
            return None
        return ones_and_zeros(look, code, made, left - 1) if _ones_stored(code, node, made) else None
    body = next((a for a in code.above(node) if isinstance(a, FunctionNode) and node.id in parameters(a)), None)
    if not isinstance(body, ast.FunctionDef):
        return None
    given = [(c, v) for c, v in _arguments(look, code, body, node.id) if not _of_loop(c, v)]
    if given:
        found = [ones_and_zeros(look, c, v, left - 1) for c, v in given[:6]]
        known = [f for f in found if f is not None]
        return known[0] if known and len(known) == len(found) else None
    return _by_name(look, node.id, left) if _MASK.fullmatch(node.id) else None


def _of_loop(code: Syntax, node: ast.expr) -> bool:
    """Whether it is the variable of a loop, a part of a batch that a loader gives."""
    if not isinstance(node, ast.Name) or code.bindings(node):
        return False
    targets = [loop.target for loop in code.loops(node) if isinstance(loop, ast.For)]
    return _in_comprehension(code, node) or any(
        isinstance(n, ast.Name) and n.id == node.id for t in targets for n in below(t))  # fmt: skip


def _in_comprehension(code: Syntax, node: ast.Name) -> bool:
    return any(isinstance(n, ast.Name) and n.id == node.id for up in code.above(node)
               if isinstance(up, (ast.GeneratorExp, ast.ListComp)) for g in up.generators
               for n in below(g.target))  # fmt: skip


def _filled(code: Syntax, node: ast.Name) -> bool:
    """Whether large negative numbers are put into it in place."""
    text = node.id
    for call in code.calls_in(code.scope(node), "masked_fill_", "fill_", "copy_"):
        if written(getattr(call.func, "value", None)).startswith(text):
            return True
    return any(_LARGE.search(written(s.value)) for s in code.item_stores.get(text, ()))


def _ones_stored(code: Syntax, node: ast.Name, made: ast.expr) -> bool:
    """Zeros that stay zeros are no mask, nor are ones by another name: something has to be stored in them."""
    if not isinstance(made, ast.Call) or last_name(made.func) not in _ONES:
        return True
    stored = [s for s in code.item_stores.get(node.id, ()) if code.scope(s) is code.scope(node)]
    if _all_ones(made) and not stored:
        return _MASK.fullmatch(node.id) is not None
    return bool(stored) and all(_is_one(s.value) or _all_ones(made) for s in stored)


def _all_ones(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in ("ones", "ones_like")


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (1, True)


def _arguments(look: Lookup, code: Syntax, body: ast.FunctionDef, name: str) -> list[tuple[Syntax, ast.expr]]:
    """What is passed for a parameter: by the callers of a function, or by those who call the layer of a class."""
    spec = [n for n in parameters(body) if n not in ("self", "cls")]
    if name not in spec:
        return []
    owner = code.owner(body)
    calls: list[tuple[Syntax, ast.Call]] = []
    if owner is not None and body.name in ("forward", "__call__"):
        calls = [c for c in _layer_calls(look, owner.name) if c[1] is not None]
    elif body.name != "__init__":
        calls = look.callers(body, code)
    place = spec.index(name)
    given = [(c, argument(call, place, name)) for c, call in calls]
    return [(c, v) for c, v in given if v is not None and not (isinstance(v, ast.Constant) and v.value is None)]


def _layer_calls(look: Lookup, name: str) -> list[tuple[Syntax, ast.Call]]:
    """The calls of objects of a class: `self.attention(x, m)`, `for block in self.blocks: block(x, m)`."""
    return [(code, call) for code in look.codes if name in code.file.text for call in _object_calls(code).get(name, ())]


def _object_calls(code: Syntax) -> dict[str, list[ast.Call]]:
    """The calls of objects, by the name of the class that an object was made of."""
    known: dict[str, list[ast.Call]] | None = code.__dict__.get("_object_calls")
    if known is None:
        known = code.__dict__["_object_calls"] = {}
        for call in code.of(ast.Call):
            if isinstance(call.func, (ast.Name, ast.Attribute)):
                for name in _classes_of(code, call.func):
                    known.setdefault(name, []).append(call)
    return known


def _classes_of(code: Syntax, func: ast.expr) -> set[str]:
    """The classes that the called object may be of: one, or those that a ModuleList or Sequential is made of."""
    made = code.assigned(func)
    if made is None and isinstance(func, ast.Name):
        for loop in code.loops(func):
            over = loop.iter if isinstance(loop, ast.For) else None
            target = loop.target if isinstance(loop, ast.For) else None
            if target is not None and func.id in {n.id for n in below(target) if isinstance(n, ast.Name)}:
                if isinstance(over, ast.Call) and over.args:
                    over = over.args[0]
                made = code.assigned(over) if over is not None else None
                break
    if not isinstance(made, ast.Call):
        return set()
    for _ in range(3):  # model = Net(...).to(device)
        if isinstance(made, ast.Call) and last_name(made.func) in ("to", "cuda", "double") and isinstance(
                made.func, ast.Attribute) and isinstance(made.func.value, ast.Call):  # fmt: skip
            made = made.func.value
    if last_name(made.func) in ("ModuleList", "Sequential"):
        return {last_name(n.func) for n in below(made) if isinstance(n, ast.Call)}
    return {last_name(made.func)}


def _by_name(look: Lookup, name: str, left: int) -> Source | None:
    """What is made under this name elsewhere in the project (in a collate function, say): ones and zeros each time."""
    found: list[Source] = []
    for code in look.codes:
        for assign in code.of(ast.Assign):
            if not any(isinstance(t, ast.Name) and t.id == name for t in assign.targets):
                continue
            if isinstance(assign.value, ast.Call) and last_name(assign.value.func) in _KEEPS | _FLOATS | {"to"}:
                inner = getattr(assign.value.func, "value", None)
                if isinstance(inner, ast.Name) and inner.id == name:
                    continue
            target = next(t for t in assign.targets if isinstance(t, ast.Name))
            if _filled(code, target) or not _ones_stored(code, target, assign.value):
                return None
            source = ones_and_zeros(look, code, assign.value, min(left - 1, 4))
            if source is None:
                return None
            found.append(source)
    return found[0] if found else None
