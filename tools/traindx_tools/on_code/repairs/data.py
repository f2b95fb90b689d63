"""What is fed to the model (C121, C129, C152, C192, C199, C217)."""

from __future__ import annotations

import ast
import re

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, names_in, syntax, written


def shuffled(file: SourceFile, loader: ast.AST) -> tuple[Patch, ...]:
    """shuffle=True for a loader over rows in order."""
    if not isinstance(loader, ast.Call):
        return ()
    given = argument(loader, 2, "shuffle")
    change = Change(file, "shuffle the training data")
    if given is not None:
        return change.replace(given, "True").patches()
    return change.pass_argument(loader, "shuffle", "True").patches()


def ordered_together(
    file: SourceFile, statement: ast.stmt, name: str, partner: str, how: str, other: ast.stmt | None
) -> tuple[Patch, ...]:
    """One order for both: indices sorted, shuffled or permuted once, then applied to inputs and labels."""
    code = syntax(file)
    taken = names_in(code.scope(statement))
    order = "order" if "order" not in taken else f"{name}_order"
    change = Change(file, f"put {name} and {partner} into the same order")
    if order in taken or statement.lineno != statement.end_lineno:
        return ()
    if how == "permuted":
        return _permuted(code, change, statement, name, partner, order, other)
    if other is not None or code.parent(statement) is None:
        return ()
    call = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    if not isinstance(call, ast.Call):
        return ()
    moved = [_taken(code, statement, n, order) for n in (name, partner)]
    first = _sorted_indices(file, call, name, order) if how == "sorted" else _shuffled_indices(file, call, name, order)
    if first is None or None in moved:
        return ()
    return change.after(statement, "\n".join([*first, *(m for m in moved if m)])).delete(statement).patches()


def _permuted(
    code: Syntax, change: Change, statement: ast.stmt, name: str, partner: str, order: str, other: ast.stmt | None
) -> tuple[Patch, ...]:
    index = statement.value.slice if isinstance(statement, ast.Assign) and isinstance(
        statement.value, ast.Subscript) else None  # fmt: skip
    if index is None:
        return ()
    change.before(statement, f"{order} = {source_of(change.file, index)}").replace(index, order)
    if other is None:
        return change.after(statement, f"{partner} = {partner}[{order}]").patches()
    theirs = other.value.slice if isinstance(other, ast.Assign) and isinstance(other.value, ast.Subscript) else None
    return change.replace(theirs, order).patches() if code.parent(other) is code.parent(statement) else ()


def _taken(code: Syntax, statement: ast.stmt, name: str, order: str) -> str | None:
    """How the elements of a list or of an array are taken in an order."""
    bound = [v for s, v in code.bindings(_reader(code, statement, name)) if s.lineno < statement.lineno]
    made = bound[-1] if bound else None
    if isinstance(made, (ast.ListComp, ast.List)) or (
        isinstance(made, ast.Call) and last_name(made.func) in ("list", "sorted")
    ):
        return f"{name} = [{name}[i] for i in {order}]"
    if isinstance(made, ast.Call) and code.qualified(made.func).startswith(("torch.", "numpy.")):
        return f"{name} = {name}[{order}]"
    return None


def _reader(code: Syntax, statement: ast.stmt, name: str) -> ast.Name:
    node = ast.copy_location(ast.Name(name, ast.Load()), statement)
    code._walked[1][id(node)] = statement  # a name that could stand here
    _KEPT.append(node)
    return node


_KEPT: list[ast.Name] = []


def _sorted_indices(file: SourceFile, call: ast.Call, name: str, order: str) -> list[str] | None:
    """`order = sorted(range(len(x)), key=..., reverse=...)` of x.sort(...) or sorted(x, ...)."""
    key = argument(call, 99, "key")
    item = f"{name}[i]"
    if key is None:
        by = item
    elif isinstance(key, ast.Lambda) and len(key.args.args) == 1:
        by = re.sub(rf"\b{re.escape(key.args.args[0].arg)}\b", item, source_of(file, key.body))
    elif isinstance(key, (ast.Name, ast.Attribute)):
        by = f"{source_of(file, key)}({item})"
    else:
        return None
    backwards = argument(call, 99, "reverse")
    tail = f", reverse={source_of(file, backwards)}" if backwards is not None else ""
    return [f"{order} = sorted(range(len({name})), key=lambda i: {by}{tail})"]


def _shuffled_indices(file: SourceFile, call: ast.Call, name: str, order: str) -> list[str] | None:
    if not isinstance(call.func, ast.Attribute):
        return None
    return [f"{order} = list(range(len({name})))", f"{source_of(file, call.func)}({order})"]


def filled(file: SourceFile, scaling: ast.expr) -> tuple[Patch, ...]:
    """What is missing set to the mean, which is 0 after the scaling."""
    text = written(scaling)
    code = syntax(file)
    uses_torch = any(
        code.qualified(c.func).startswith("torch.") and "nan" in last_name(c.func) for c in code.of(ast.Call)
    )
    library = "torch" if uses_torch else next((k for k, v in code.aliases.items() if v == "numpy"), "")
    if not library or "nan_to_num" in text:
        return ()
    return Change(file, "set what is missing to the mean, 0 after scaling").wrap(
        scaling, f"{library}.nan_to_num(", ")").patches()  # fmt: skip


_PACKED = '''class PackedRows:
    """Rows pickled into one buffer, which forked workers share: reading a row changes nothing in it."""

    def __init__(self, rows):
        packed = [pickle.dumps(row, -1) for row in rows]
        self.ends = np.cumsum([len(row) for row in packed])
        self.buffer = np.frombuffer(b"".join(packed), dtype=np.uint8)

    def __len__(self):
        return len(self.ends)

    def __getitem__(self, index):
        end = self.ends[index]
        start = self.ends[index - 1] if index % len(self.ends) else 0
        return pickle.loads(self.buffer[start:end].tobytes())


'''


def packed_rows(file: SourceFile, owner: ast.AST, name: str) -> tuple[Patch, ...]:
    """The rows of a data set in one buffer, where they are only counted and read one by one."""
    code = syntax(file)
    if not isinstance(owner, ast.ClassDef) or code.parent(owner) is not file.tree or owner.decorator_list:
        return ()
    init = next((n for n in owner.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
    if init is None or "PackedRows" in file.text:
        return ()
    uses = [n for n in below(owner) if isinstance(n, ast.Attribute) and written(n) == f"self.{name}"]
    outside = [n for n in code.of(ast.Attribute) if n.attr == name and not any(n is u for u in uses)]
    later = [u for u in uses if code.function(u) is not init]
    if outside or not later or not all(_counted_or_read(code, u) for u in later):
        return ()
    filled = [s for s in init.body if any(n is u for u in uses for n in below(s))]
    change = Change(file, f"keep the rows of {name} in one buffer that the workers share")
    imports = [s for s in file.tree.body if isinstance(s, (ast.Import, ast.ImportFrom))]
    if not filled or not imports:
        return ()
    wanted = [
        line for line, alias in (("import pickle", "pickle"), ("import numpy as np", "np")) if alias not in code.aliases
    ]
    if wanted:
        change.after(imports[-1], "\n".join(wanted))
    return (
        change.before(owner, _PACKED.rstrip("\n") + "\n\n")
        .after(filled[-1], f"self.{name} = PackedRows(self.{name})")
        .patches()
    )


def _counted_or_read(code: Syntax, use: ast.Attribute) -> bool:
    up = code.parent(use)
    if isinstance(up, ast.Subscript) and up.value is use:
        return isinstance(up.ctx, ast.Load) and not isinstance(up.slice, ast.Slice)
    return isinstance(up, ast.Call) and last_name(up.func) == "len"
