"""Every batch is padded to the longest sequence of the whole data set.

A batch has to be as wide as its own longest sequence. Where the width is the longest of the corpus, taken once, a few
outliers make every batch as wide as they are: most positions are padding, and the network computes them all. The cost
of attention grows with the square of the width. Loss and accuracy are those of a right padding, so that only the time
tells. Shapes that never change may be wanted for a compiler; a few fixed widths (buckets) do that too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, parameters, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C263",
    name="padded-to-corpus",
    title="Every batch is padded to the longest sequence of the data set",
    severity=Severity.INFO,
    sees="The width that a collate function or a data set pads to: the longest sequence of all rows, taken once.",
    matters="A few outliers make every batch as wide as they are: most of the computation is padding.",
    alike=("a slow data loader", "a model that is too large", "shapes that are fixed for a compiler"),
    confirm=("print the share of padding in a batch: (ids == PAD).float().mean()",),
)
_PLACES = re.compile(r"^__call__$|collat|^pad_|_pad$|^batchify|^make_batch|^to_batch|^__getitem__$")
_ALLOCATES = frozenset({"full", "zeros", "ones", "new_full", "new_zeros", "empty", "pad"})
_COMPILED = re.compile(r"torch\.compile|torch_xla|jax\.jit|@jit|xm\.|dynamic_shapes|cudagraph|CUDAGraph", re.IGNORECASE)
_SEQUENCES = re.compile(r"Transformer|MultiheadAttention|scaled_dot_product|LSTM|GRU|Attention|Embedding|Conv1d")
_MEASURES = re.compile(r"\blen\(|\.str\.len|lengths?\b|\.shape\[|\.size\(", re.IGNORECASE)
_DEEP = 6


def check(project: Project) -> Iterator[Finding]:
    """Look at every place where sequences are padded."""
    files = [f for f in project.files if "max(" in f.text and ("collat" in f.text or "__call__" in f.text
                                                              or "__getitem__" in f.text)]  # fmt: skip
    texts = "\n".join(f.text for f in project.files) if files else ""
    if not files or _COMPILED.search(texts) or not _SEQUENCES.search(texts):
        return
    look = lookup(project)
    for file in files:
        code = syntax(file)
        for body in code.of(ast.FunctionDef):
            if not _PLACES.search(body.name) or (body.name == "__call__" and "collate_fn" not in texts):
                continue
            found = _widest(look, code, body)
            if found is not None:
                yield _finding(code, body, *found)
                return


def _widest(look: Lookup, code: Syntax, body: ast.FunctionDef) -> tuple[ast.AST, Syntax, ast.Call] | None:
    """(where it is padded, where the width is made): a width that does not come from the batch."""
    for node in below(body):
        for width in _widths(node):
            made = _corpus_maximum(look, code, body, width, _DEEP)
            if made is not None:
                return node, *made
    return None


def _widths(node: ast.AST) -> Iterator[ast.expr]:
    """The sizes of an allocation, and k of `[PAD] * (k - len(x))` or of a padding (0, k - len(x))."""
    if isinstance(node, ast.Call) and last_name(node.func) in _ALLOCATES:
        for given in node.args:
            yield from (given.elts if isinstance(given, (ast.Tuple, ast.List)) else [given])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
        yield node.right


def _corpus_maximum(look: Lookup, code: Syntax, body: ast.FunctionDef, node: ast.AST, left: int
                    ) -> tuple[Syntax, ast.Call] | None:  # fmt: skip
    """The `max` over all rows that a width comes from."""
    if left <= 0:
        return None
    for part in below(node):
        if isinstance(part, ast.Call) and _takes_maximum(code, part):
            return None if _of_parameter(code, body, part) else (code, part)
        if not isinstance(part, (ast.Name, ast.Attribute)) or written(part) in code.aliases:
            continue
        if isinstance(part, ast.Attribute) and written(part.value) != "self":
            continue
        step = look.one_step(code, part)
        if step is not None and step[1] is not part:
            found = _corpus_maximum(look, step[0], body, step[1], left - 1)
            if found is not None:
                return found
    return None


def _takes_maximum(code: Syntax, call: ast.Call) -> bool:
    """`max(len(r) for r in rows)`, `max(map(len, rows))`, `lengths.max()`, `df.text.str.len().max()`."""
    if last_name(call.func) not in ("max", "amax"):
        return False
    if isinstance(call.func, ast.Name) or code.qualified(call.func):
        over = call.args[0] if len(call.args) == 1 else None
        text = "" if over is None else f"{written(over)} {written(code.origin(over))}"
        return _MEASURES.search(text) is not None or "map(len" in text
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call
    return not call.args and _MEASURES.search(f"{written(owner)} {written(code.origin(owner))}") is not None


def _of_parameter(code: Syntax, body: ast.FunctionDef, call: ast.Call) -> bool:
    """Whether the maximum is taken in the collate function itself, or over what only one batch holds."""
    around = code.function(call)
    if around is body:
        return True
    text = written(call)
    given = set(parameters(around)) if isinstance(around, FunctionNode) else set()
    one = re.search(r"\bbatch\b|\bchunk\b", text) is not None
    return one or bool({"batch", "samples", "examples", "minibatch"} & given)


def _finding(code: Syntax, body: ast.FunctionDef, padded: ast.AST, other: Syntax, made: ast.Call) -> Finding:
    where = "sample" if body.name == "__getitem__" else "batch"
    owner = code.owner(body)
    name = f"{owner.name}.{body.name}" if owner is not None else body.name
    return RULE.finding(
        f"{name} pads every {where} (at {code.at(padded)}) to {written(made)[:60]} (line {made.lineno}): the longest "
        "of the whole data set, not the longest of the batch, so a few outliers decide how much padding is computed",
        other.place(made),
        other.file.path,
        bearing=Bearing.SIGN,
        measured={"kind": "collate" if where == "batch" else "sample", "padded_line": getattr(padded, "lineno", 0)},
    )

