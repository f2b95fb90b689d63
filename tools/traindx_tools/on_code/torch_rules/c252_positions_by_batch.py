"""A table of positions is cut to the size of the batch.

With sequences first, (time, batch, features), `pe[: x.size(0)]` takes one row for each position. Where the batch comes
first the same line takes one row for each sample: all positions of a sample get one vector, the samples of a batch
another one each. The model has no order, and what it says depends on where in the batch a sample stands.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C252",
    name="positions-by-batch",
    title="The positional table is indexed by the batch axis",
    severity=Severity.HIGH,
    sees="A table of positions cut to x.size(0), where every attention layer of the project has batch_first=True.",
    matters="All positions of a sample get the same vector: the model has no order.",
    alike=("inputs of (time, batch, features), where axis 0 is time", "a transpose around the positions"),
    confirm=("swap two samples of a batch: a model whose outputs change otherwise counts along the batch",),
)
_TABLE = re.compile(
    r"(^|_)(pe|pos|position|positions|positional|pos_?emb\w*|pos_enc\w*|positional_\w+|wpe)$", re.IGNORECASE
)
_LAYERS = ("TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer", "MultiheadAttention")
_WORDS = ("transpose", "permute", "swapaxes", "rearrange", ".T", ".mT")
_MOVES = re.compile(r"transpose\(\s*0|transpose\(\s*1\s*,\s*0|permute\(|swapaxes|rearrange|\.T\b|\.mT\b")


def _moves(text: str) -> bool:
    return any(word in text for word in _WORDS) and _MOVES.search(text) is not None


def check(project: Project) -> Iterator[Finding]:
    """Look at every slice of a positional table, where the layers of the project say which axis comes first."""
    layers = [c for f in project.files for c in syntax(f).calls(*_LAYERS) if "torch" in syntax(f).qualified(c.func)]
    if not layers or not all(_batch_first(c) for c in layers) or any(_moves(f.text) for f in project.files):
        return
    for file in project.files:
        code = syntax(file)
        for node in code.of(ast.Subscript):
            name = _cut_by_batch(code, node)
            if name:
                yield _finding(code, node, name, layers[0])


def _batch_first(call: ast.Call) -> bool:
    given = argument(call, 99, "batch_first")
    return isinstance(given, ast.Constant) and given.value is True


def _cut_by_batch(code: Syntax, node: ast.Subscript) -> str:
    """The input by whose axis 0 a table is cut: `self.pe[: x.size(0)]`; "" where it is none."""
    table, part = node.value, node.slice
    if isinstance(part, ast.Tuple) and part.elts:
        part = part.elts[0]
    if not isinstance(table, ast.Attribute) or not _TABLE.search(table.attr) or not isinstance(part, ast.Slice):
        return ""
    size = code.origin(part.upper) if part.upper is not None and part.lower is None else None
    if isinstance(size, ast.Call) and last_name(size.func) == "size" and isinstance(size.func, ast.Attribute):
        tensor, axis = size.func.value, argument(size, 0, "dim")
    elif isinstance(size, ast.Subscript) and isinstance(size.value, ast.Attribute) and size.value.attr == "shape":
        tensor, axis = size.value.value, size.slice
    else:
        return ""
    function = code.function(node)
    own = isinstance(function, FunctionNode) and isinstance(tensor, ast.Name) and tensor.id in parameters(function)
    added = any(isinstance(u, ast.BinOp) and isinstance(u.op, ast.Add) for u in code.above(node))
    return written(tensor) if own and added and code.number(axis) == 0 else ""


def _finding(code: Syntax, node: ast.Subscript, name: str, layer: ast.Call) -> Finding:
    return RULE.finding(
        f"{written(node)} at {code.at(node)} takes one row for each entry of axis 0 of {name}, which is the batch: "
        f"{last_name(layer.func)} (line {layer.lineno}) has batch_first=True",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "batch", "table": written(node.value)},
    )
