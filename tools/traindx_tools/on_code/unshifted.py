"""Inputs and targets of a language model that are one and the same: pairs that are made alike, ids that come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written

FLAT = frozenset({"view", "reshape", "flatten", "contiguous", "transpose", "long", "to", "permute", "clone", "int",
                   "cuda", "float", "astype", "copy", "detach", "type", "pin_memory", "ravel"})  # fmt: skip
"""Methods that leave the values of an array as they are."""
_BOTTLENECK = re.compile(r"[Dd]ecoder(?!Layer|_only)|latent|[Aa]uto_?[Ee]nc|bottleneck|reconstruct|codebook|quantiz"
                         r"|logvar|log_var")  # fmt: skip
_RECURRENT = re.compile(r"\b(LSTM|GRU|RNN)\(")
_CAUSAL = re.compile(r"is_causal|\btril\(|\.tril\b|triu|generate_square_subsequent_mask|make_causal_mask|[Cc]ausal")
_IDS = ("input_ids", "ids", "tokens", "input", "inputs", "x", "idx")
_MODEL = re.compile(r"model|net|lm$|gpt|head|^self$", re.IGNORECASE)
_MOST_STEPS = 12

Pair = tuple[Syntax, ast.AST, ast.expr, ast.expr]
"""Where it is given out, the input, the target."""


def causal(project: Project) -> bool:
    """Whether a model of the project sees only what was before: a causal mask, or a recurrence in one direction."""
    files = project.files
    if any(f.mentions(_CAUSAL) for f in files):
        return True
    one_way = any(f.mentions(_RECURRENT) for f in files) and not any("bidirectional" in f.text for f in files)
    return one_way and any("Embed" in f.text for f in files)


def bottleneck(project: Project) -> bool:
    """Whether a model is to give back its input on purpose."""
    return any(f.mentions(_BOTTLENECK) for f in project.files)


def plain(node: ast.expr | None) -> ast.expr | None:
    """Without reshapes, casts and copies."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FLAT:
        node = node.func.value
    return node


def same(code: Syntax, one: ast.expr, other: ast.expr) -> bool:
    """Whether two expressions of one function hold the same, by the assignments that reach them."""
    a, b = _followed(code, one), _followed(code, other)
    if a is None or b is None or isinstance(a, ast.Constant) or _changed(code, one) or _changed(code, other):
        return False
    text = written(a)
    if a is b:
        return not isinstance(a, ast.Call) or bool(a.args) or isinstance(a.func, ast.Attribute)
    return text == written(b) and "rand" not in text and "next(" not in text and "pop(" not in text and all(
        len(code.bindings(n)) <= 1 or code.loops(n) for n in below(a) if isinstance(n, ast.Name))  # fmt: skip


def _followed(code: Syntax, node: ast.expr) -> ast.expr | None:
    found = plain(node)
    for _ in range(_MOST_STEPS):
        made = plain(code.assigned(found)) if isinstance(found, ast.Name) else None
        if made is None or made is found:
            break
        found = made
    return found


def _changed(code: Syntax, node: ast.expr) -> bool:
    """Whether something is written into it: `labels[mask] = -100`, `ids.masked_fill_(...)`."""
    name = plain(node)
    if not isinstance(name, ast.Name):
        return False
    stores = [s for s in code.item_stores.get(name.id, ()) if code.scope(s) is code.scope(name)]
    in_place = (c for c in code.of(ast.Call) if isinstance(c.func, ast.Attribute) and c.func.attr.endswith("_")
                and written(c.func.value) == name.id and code.scope(c) is code.scope(name))  # fmt: skip
    ignores = all(written(s.value).startswith("-") for s in stores)
    return (bool(stores) and not ignores) or next(in_place, None) is not None


def read_by(look: Lookup, code: Syntax, logits: ast.expr) -> Iterator[ast.expr]:
    """What logits were computed from, position by position: the inputs of the layers before them, nearest first."""
    node: ast.expr | None = plain(logits)
    for _ in range(_MOST_STEPS):
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield node
            made = node.value if isinstance(node, ast.Attribute) and node.attr == "logits" else code.assigned(node)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value in (
                0, "logits"):  # fmt: skip
            made = node.value
        elif isinstance(node, ast.Call) and _is_layer(look, code, node):
            made = argument(node, 0, *_IDS)
        else:
            return
        node = plain(made) if isinstance(made, ast.expr) else None


def _is_layer(look: Lookup, code: Syntax, call: ast.Call) -> bool:
    """Whether a call is that of a module or model, which keeps the positions apart."""
    if code.qualified(call.func) or not isinstance(call.func, (ast.Name, ast.Attribute)):
        return code.qualified(call.func).rpartition(".")[2] in ("dropout", "relu", "gelu", "layer_norm")
    made = code.origin(call.func)
    if isinstance(made, ast.Call):
        return last_name(made.func)[:1].isupper() or last_name(made.func) in ("to", "cuda", "compile", "prepare")
    if isinstance(call.func, ast.Attribute):
        own = isinstance(call.func.value, ast.Name) and call.func.value.id == "self"
        return own and (call.func.attr == "forward" or look.function(code, call.func) is None)
    return look.function(code, call.func) is None and bool(_MODEL.search(call.func.id))
