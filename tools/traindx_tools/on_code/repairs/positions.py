"""Sequences cut to the rows of a positional table where the batches are padded (C118)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, syntax, written

_PADS = ("pad_sequence", "pad")


def cut_where_padded(files: Sequence[SourceFile], table: SourceFile, made: ast.AST | None) -> tuple[Patch, ...]:
    """`items = [s[:MAX_LEN] for s in items]` in the one function of the project that pads its list of sequences.

    `made`: the call that makes the table. Its size is taken as it is written where that name is known in the function.
    """
    size = argument(made, 0, "num_embeddings") if isinstance(made, ast.Call) else None
    padding = [(syntax(f), d) for f in files for d in syntax(f).of(ast.FunctionDef) if _pads(d)]
    if size is None or len(padding) != 1:
        return ()
    code, function = padding[0]
    limit = _known_there(code, table, size)
    items = next(iter(parameters(function)), None) if not isinstance(code.parent(function), ast.ClassDef) else None
    if limit is None or items is None or len(parameters(function)) != 1:
        return ()
    change = Change(code.file, f"cut what is longer than the {limit} rows of the table")
    first = function.body[1] if ast.get_docstring(function) and len(function.body) > 1 else function.body[0]
    taken = _elements(code, function, items)
    if taken is None:
        return ()
    if taken == ():
        return change.before(first, f"{items} = [s[:{limit}] for s in {items}]").patches()
    padded = {n for n in taken if _is_padded(code, function, n)}
    if len(padded) != 1:
        return ()  # a second one may be of another kind, with a length of its own
    kept = ", ".join(f"{n}[:{limit}]" if n in padded else n for n in taken)
    return change.before(first, f"{items} = [({kept}) for {', '.join(taken)} in {items}]").patches()


def _pads(function: ast.FunctionDef) -> bool:
    """Whether a function pads what it is given to the longest of them."""
    inside = [n for n in below(function) if isinstance(n, ast.Call)]
    widest = any((last_name(c.func) == "max" and "len" in written(c)) or last_name(c.func) == "pad_sequence"
                 for c in inside)  # fmt: skip
    filled = any(last_name(c.func) in (*_PADS, "zeros", "full", "new_full", "new_zeros") for c in inside)
    return widest and filled and len(parameters(function)) == 1


def _known_there(code: Syntax, table: SourceFile, size: ast.expr) -> str | None:
    """The size of a table as it can be written in another function: a number, or a name of the same file's top."""
    if isinstance(size, ast.Constant):
        return str(size.value)
    if not isinstance(size, ast.Name) or code.file.path != table.path:
        return None
    top = [s for s, _ in code.bindings(size) if code.parent(s) is table.tree]
    return size.id if len(top) == 1 and len(code.bindings(size)) == 1 else None


def _elements(code: Syntax, function: ast.FunctionDef, items: str) -> tuple[str, ...] | None:
    """() where each item is a sequence by itself, the names of its parts where it is a tuple; None where unknown."""
    found: set[tuple[str, ...]] = set()
    for use in (n for n in below(function) if isinstance(n, ast.Name) and n.id == items):
        if not isinstance(use.ctx, ast.Load):
            return None
        kind = _use(code, use)
        if kind is None:
            return None
        found |= {kind} if kind != ("",) else set()
    wide = {f for f in found if f}
    names = [n for f in wide for n in f if n != "_"]
    if not wide:
        return () if found else None
    if () in found or len({len(f) for f in wide}) != 1:
        return None
    columns = [next((f[i] for f in sorted(wide) if f[i] != "_"), "_") for i in range(len(next(iter(wide))))]
    return tuple(columns) if len(set(names)) == len({c for c in columns if c != "_"}) and "_" not in columns else None


def _use(code: Syntax, use: ast.Name) -> tuple[str, ...] | None:
    """What one use of the list takes an item for: () a sequence, names of its parts, ("",) nothing."""
    up = code.parent(use)
    if isinstance(up, ast.Call) and last_name(up.func) == "len":
        return ("",)
    if isinstance(up, ast.Call) and last_name(up.func) == "pad_sequence" and up.args[0] is use:
        return ()
    if isinstance(up, ast.Starred) and isinstance(zipped := code.parent(up), ast.Call) and last_name(
            zipped.func) == "zip" and len(zipped.args) == 1:  # fmt: skip
        bound = code.statement(zipped)
        return _names(bound.targets[0]) if isinstance(bound, ast.Assign) and bound.value is zipped else None
    if isinstance(up, ast.Call) and last_name(up.func) == "enumerate":
        loop = code.parent(up)
        target = getattr(loop, "target", None)
        target = target.elts[1] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else None
        return _item(code, loop, target)
    if isinstance(up, (ast.comprehension, ast.For)) and up.iter is use:
        return _item(code, up, up.target)
    return None


def _item(code: Syntax, loop: ast.AST | None, target: ast.expr | None) -> tuple[str, ...] | None:
    names = _names(target)
    if names is not None:
        return names
    if not isinstance(target, ast.Name) or loop is None:
        return None
    around = code.parent(loop) if isinstance(loop, ast.comprehension) else loop
    reads = [n for n in below(around) if isinstance(n, ast.Name) and n.id == target.id
             and isinstance(n.ctx, ast.Load)] if around is not None else []  # fmt: skip
    return () if reads and all(_whole(code, n) for n in reads) else None


def _whole(code: Syntax, use: ast.Name) -> bool:
    """Whether an item is used as one sequence: its length, its padding, a copy into a row."""
    up = code.parent(use)
    if isinstance(up, ast.Call):
        return last_name(up.func) in ("len", "pad", "tensor", "as_tensor", "LongTensor", "from_numpy")
    if isinstance(up, ast.Attribute):
        return up.attr in ("size", "shape", "numel", "new_zeros", "new_full")
    padding = isinstance(up, ast.BinOp) and isinstance(up.op, ast.Add)
    return padding or (isinstance(up, ast.Assign) and up.value is use) or isinstance(up, ast.ListComp)


def _names(target: ast.expr | None) -> tuple[str, ...] | None:
    if isinstance(target, ast.Tuple) and target.elts and all(isinstance(e, ast.Name) for e in target.elts):
        return tuple(written(e) for e in target.elts)
    return None


def _is_padded(code: Syntax, function: ast.FunctionDef, name: str) -> bool:
    """Whether this part of an item, or the list of all of them, is padded."""
    for call in (n for n in below(function) if isinstance(n, ast.Call) and last_name(n.func) in _PADS):
        for part in _read(code, call):
            if part == name:
                return True
    return False


def _read(code: Syntax, call: ast.Call) -> Iterator[str]:
    first = call.args[0] if call.args else None
    if first is None:
        return
    if isinstance(first, ast.Name):
        yield first.id
    for node in below(code.origin(first)):
        if isinstance(node, ast.Name):
            yield node.id
            if isinstance(node.ctx, ast.Load):
                yield from (g.iter.id for a in code.above(node) if isinstance(a, (ast.ListComp, ast.GeneratorExp))
                            for g in a.generators if written(g.target) == node.id and isinstance(g.iter, ast.Name))
