"""Codes are looked up by cosine similarity, and the table is not normalised.

A normalised codebook chooses the code of the largest cosine: both the output of the encoder and the codes are brought
to length 1. Where only the encoder's output is, the product with a code grows with the length of that code, and the
argmax prefers the longest ones whatever their direction. A few long codes win everywhere, the others are never chosen
and never move. An output of the encoder that is not normalised is harmless by itself: its length is the same for all
codes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C290",
    name="codes-not-normalised",
    title="A look-up by cosine takes codes that are not normalised",
    severity=Severity.HIGH,
    sees="argmax over the product of a normalised vector with a table that is looked up and never normalised.",
    matters="The longest codes win whatever their direction: most of the codebook is never used.",
    alike=("dead codes of a bad initialisation", "a codebook that is too large", "a distance instead of a product"),
    confirm=("compare the norms of the codes in use with those of the others",),
)
_CHOOSES = frozenset({"argmax", "argmin", "max", "topk", "argsort", "top_k"})
_PRODUCTS = frozenset({"matmul", "mm", "bmm", "einsum", "linear", "dot", "inner", "tensordot"})
_NORMS = re.compile(r"^(l2_?|safe_|row_?)?(re)?normali[sz]ed?_?(rows)?$|^l2_?norm|^renorm_?$|^unit", re.IGNORECASE)
_TABLES = frozenset({"Embedding", "Parameter", "Embed", "param", "randn", "rand", "normal", "uniform", "empty"})
_NAMED = re.compile(r"code_?book|codes|centroid|codewords|vq_?emb", re.IGNORECASE)
_WRITES = ("div_", "copy_", "weight_norm")
_ASIDE = frozenset({"t", "transpose", "permute", "float", "detach", "to", "type_as", "unsqueeze", "view", "reshape",
                    "contiguous", "clone", "swapaxes", "rearrange"})  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at every choice of a code by a product."""
    for file in project.files:
        if not any(w in file.text for w in ("argm", "topk", "max(")) or "norm" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls(*_CHOOSES):
            found = _judged(project, code, call)
            if found is not None:
                yield found


def _judged(project: Project, code: Syntax, call: ast.Call) -> Finding | None:
    plain = bool(code.qualified(call.func)) or isinstance(call.func, ast.Name)
    subject = (call.args[0] if call.args else None) if plain else getattr(call.func, "value", None)
    product = _product(code, subject) if isinstance(subject, ast.expr) else None
    if product is None:
        return None
    sides = _sides(product)
    for raw, other in (sides, sides[::-1]):
        table = _table(code, raw)
        if table is None or not _unit(code, other) or not _looked_up(code, table):
            continue
        kept = _normalised_elsewhere(project, code, table)
        if kept is None:
            return _finding(code, call, product, raw, table, other)
    return None


def _product(code: Syntax, node: ast.expr, left: int = 8) -> ast.expr | None:
    """The product of two matrices below scalings, signs, `1 - x` and views."""
    for _ in range(left):
        node = code.origin(node) if isinstance(node, (ast.Name, ast.Attribute)) else node
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return node
        if isinstance(node, ast.Call) and last_name(node.func) in _PRODUCTS:
            return node
        if isinstance(node, ast.UnaryOp):
            node = node.operand
        elif isinstance(node, ast.BinOp):
            scalar = code.number(node.left) is not None
            node = node.right if scalar else node.left
            if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Pow)):
                return None  # a distance written out
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and last_name(node.func) in _ASIDE:
            node = node.func.value
        else:
            return None
    return None


def _sides(product: ast.expr) -> tuple[ast.expr, ast.expr]:
    if isinstance(product, ast.BinOp):
        return product.left, product.right
    assert isinstance(product, ast.Call)
    given = [a for a in product.args if not isinstance(a, ast.Constant)]
    if isinstance(product.func, ast.Attribute) and len(given) == 1:
        return product.func.value, given[0]
    return (given[0], given[1]) if len(given) >= 2 else (product, product)


def _core(node: ast.expr) -> ast.expr:
    """What a transposed, detached or unsqueezed table is: `self.table.weight` of `self.table.weight.data.t()[None]`."""
    for _ in range(8):
        if isinstance(node, ast.Attribute) and node.attr in ("T", "mT", "data"):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ASIDE:
            inner = node.args[0] if node.func.attr in ("rearrange",) and node.args else node.func.value
            if isinstance(inner, ast.Name) and inner.id in ("torch", "jnp", "np", "einops"):
                inner = node.args[0] if node.args else inner
            node = inner
        elif isinstance(node, ast.Subscript) and "None" in written(node.slice):
            node = node.value
        else:
            break
    return node


def _table(code: Syntax, node: ast.expr) -> ast.expr | None:
    """The learned table that a side of the product is; None where it is anything else."""
    core = _core(node)
    if isinstance(core, ast.Name):
        made = code.assigned(core)
        if isinstance(made, (ast.Attribute, ast.Call, ast.Subscript)) and not _is_made(made):
            core = _core(made)
    holder = core.value if isinstance(core, ast.Attribute) and core.attr in ("weight", "embedding") else core
    values = [v for _, v in code.bindings(holder)] if isinstance(holder, (ast.Name, ast.Attribute)) else []
    if any(_is_made(v) for v in values):
        return core
    named = isinstance(core, (ast.Subscript, ast.Attribute)) and _NAMED.search(written(core)) is not None
    return core if named and not values and not isinstance(core, ast.Call) else None


def _is_made(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and last_name(value.func) in _TABLES


def _unit(code: Syntax, node: ast.expr) -> bool:
    """Whether a vector was brought to length 1."""
    made = _core(code.origin(_core(node)))
    made = code.origin(made)
    if isinstance(made, ast.Call):
        return _NORMS.match(last_name(made.func)) is not None
    return isinstance(made, ast.BinOp) and isinstance(made.op, ast.Div) and "norm" in written(code.origin(made.right))


def _stem(table: ast.expr) -> str:
    """`table` of `self.table.weight`: the name that other places call it by."""
    text = written(table)
    for end in (".weight", ".embedding", ".data"):
        text = text.removesuffix(end)
    return re.split(r"[.\[\]'\"]", text.rstrip("]'\""))[-1]


def _looked_up(code: Syntax, table: ast.expr) -> bool:
    """Whether rows of the table are taken by an index in this file: by a call, a subscript, one-hot codes."""
    stem = re.escape(_stem(table))
    text = code.file.text
    return re.search(
        rf"\b{stem}\((?!\))|\b{stem}(\.weight|\.data)*\[(?!None)|embedding\([^()\n]+,\s*[\w.]*{stem}"
        rf"|(one_hot|hard|onehot|encodings|assign)\w*\W[^\n]*@\s*[\w.]*{stem}"
        rf"|(index_select|take|gather)\([^\n]*{stem}"
        rf"|{stem}['\"]\]\[|{stem}(\.weight)?\.index_select|matmul\([^\n]*hot[^\n]*{stem}",
        text) is not None  # fmt: skip


def _normalised_elsewhere(project: Project, code: Syntax, table: ast.expr) -> ast.AST | None:
    """A place that brings the table itself to length 1 again and again: not where it is made."""
    stem = re.escape(_stem(table))
    own = re.compile(rf"(^|[.\['\"]){stem}(['\"]\])?(\.(weight|embedding|data|detach\(\)|clone\(\)))*$")
    for file in project.files:
        if _stem(table) not in file.text:
            continue
        other = syntax(file)
        for call in other.of(ast.Call):
            if not _NORMS.match(last_name(call.func)) and last_name(call.func) not in _WRITES:
                continue
            inner = written(call.func.value) if isinstance(call.func, ast.Attribute) else ""
            given = [written(_core(a)) for a in call.args] + [written(_core(other.origin(a))) for a in call.args]
            if last_name(call.func) in ("div_", "copy_") and not ("norm" in written(call) and own.search(inner)):
                continue
            given = [*given, *(written(d.left) for a in call.args if (d := _divided(a)) is not None)]
            if any(own.search(g) for g in given) or own.search(inner):
                body = other.function(call)
                if body is not None and body.name == "__init__" and last_name(call.func) != "weight_norm":
                    continue
                return call
        for division in other.of(ast.BinOp):
            made = getattr(other.function(division), "name", "") == "__init__"
            if not made and _divided(division) is not None and own.search(written(_core(division.left))):
                return division
    return None


def _divided(node: ast.expr) -> ast.BinOp | None:
    """`w / w.norm(...)`."""
    divides = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and "norm" in written(node.right)
    return node if isinstance(node, ast.BinOp) and divides else None


def _finding(code: Syntax, call: ast.Call, product: ast.expr, raw: ast.expr, table: ast.expr,
             unit: ast.expr) -> Finding:  # fmt: skip
    return RULE.finding(
        f"{written(product)[:80]} at {code.at(product)} multiplies the normalised {written(_core(unit))[:40]} with "
        f"{written(table)}, which is not normalised: the {last_name(call.func)} at line {call.lineno} prefers the "
        "codes with the largest norm, whatever their direction",
        code.place(product),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "cosine", "table": written(table)[:60]},
        patch=_patch(code, product, raw, table),
    )


def _patch(code: Syntax, product: ast.expr, raw: ast.expr, table: ast.expr) -> tuple[Patch, ...]:
    """Normalise the table where it is multiplied, over the axis of its components."""
    name = next((n for n, full in code.aliases.items() if full == "torch.nn.functional"), None)
    here = next((n for n in below(raw) if written(n) == written(table) and isinstance(n, type(table))), None)
    turned = isinstance(product, ast.Call) and last_name(product.func) == "linear"
    turned = turned or re.search(r"\.(t\(\)|T|mT)$|transpose\(", written(raw)) is not None
    if name is None or here is None or not isinstance(product, ast.BinOp) or not turned:
        return ()
    return Change(code.file, "normalise the codes as well").wrap(here, f"{name}.normalize(", ", dim=-1)").patches()
