"""What is fed to the model (C121, C129, C152, C192, C199, C217)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, syntax, written


def shuffled(file: SourceFile, loader: ast.AST) -> tuple[Patch, ...]:
    """shuffle=True for a loader over rows in order."""
    if not isinstance(loader, ast.Call):
        return ()
    given = argument(loader, 2, "shuffle")
    change = Change(file, "shuffle the training data")
    if given is not None:
        return change.replace(given, "True").patches()
    return change.pass_argument(loader, "shuffle", "True").patches()


_KEPT: list[ast.Name] = []


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
