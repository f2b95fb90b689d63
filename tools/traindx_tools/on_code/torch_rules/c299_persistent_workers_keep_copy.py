"""A data set is changed in the main process while persistent workers keep their copy of it.

Each worker of a DataLoader gets a copy of the data set when it starts. Without persistent_workers the workers are
started anew for every epoch and see what has changed between; with persistent_workers=True they live on, and a method
such as `set_epoch` or an attribute such as the size or the difficulty, set in the main process, never reaches them:
every batch is still made as in the first epoch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.repairs import forms
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C299",
    name="persistent-workers-keep-copy",
    title="Persistent workers never see a change of the data set",
    severity=Severity.HIGH,
    sees="A data set of a loader with persistent workers that the main process changes while training.",
    matters="A curriculum, a size or an epoch that was set has no effect on any batch.",
    alike=("the epoch of a sampler, which lives in the main process", "a value in shared memory"),
    confirm=("persistent_workers=False: do the batches change from epoch to epoch now?",),
)
_READS = ("__getitem__", "__iter__", "__getitems__")
_SHARED = re.compile(r"share_memory|\bValue\(|\bmp\.|multiprocessing|shared_memory|Manager\(\)")


def check(project: Project) -> Iterator[Finding]:
    """Look at every loader with persistent workers."""
    files = [f for f in project.files if "persistent_workers" in f.text]
    if not files:
        return
    codes = [syntax(f) for f in project.files]
    changes = _changes(codes)
    for code in (syntax(f) for f in files):
        for call in code.calls("DataLoader"):
            data = argument(call, 0, "dataset")
            if data is None or not _persistent(code, call):
                continue
            found = _changed(codes, last_name(data), changes)
            if found is not None:
                yield _finding(code, call, *found)


def _persistent(code: Syntax, call: ast.Call) -> bool:
    said, workers = argument(call, 99, "persistent_workers"), argument(call, 5, "num_workers")
    if said is None or workers is None or code.number(workers) == 0:
        return False
    return (isinstance(said, ast.Constant) and said.value is True) or (
        isinstance(said, ast.Compare) and "worker" in written(said))  # fmt: skip


def _changes(codes: list[Syntax]) -> dict[str, str]:
    """Methods of data sets, and attributes of them, that change what __getitem__ reads: what each changes."""
    found: dict[str, str] = {}
    for code in codes:
        if not any(m in code.file.text for m in _READS) or code.file.mentions(_SHARED):
            continue
        for owner in code.of(ast.ClassDef):
            methods = [m for m in owner.body if isinstance(m, FunctionNode)]
            reading = [m for m in methods if m.name in _READS]
            if not reading:
                continue
            read = {n.attr for m in methods if m.name not in ("__init__", "__len__") for n in below(m)
                    if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load) and written(n.value) == "self"}
            found.update({f".{name}": name for name in read})
            for method in methods:
                if method.name.startswith("__"):
                    continue
                stored = {n.attr for n in below(method) if isinstance(n, ast.Attribute)
                          and isinstance(n.ctx, ast.Store) and written(n.value) == "self"}  # fmt: skip
                seen = {n.attr for m in methods if m is not method and m.name not in ("__init__", "__len__")
                        for n in below(m) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}  # fmt: skip
                if stored & seen:
                    found[method.name] = sorted(stored & seen)[0]
    return found


def _changed(codes: list[Syntax], data: str, changes: dict[str, str]) -> tuple[Syntax, ast.AST, str] | None:
    for code in codes:
        for name, attribute in changes.items():
            for call in () if name.startswith(".") else code.calls(name):
                owner = call.func.value if isinstance(call.func, ast.Attribute) else None
                if owner is not None and last_name(owner) in (data, "dataset") and code.loops(call):
                    return code, call, attribute
        for node in code.of(ast.Assign):
            target = node.targets[0]
            plain = isinstance(target, ast.Attribute) and f".{target.attr}" in changes and code.loops(node)
            if plain and last_name(target.value) in (data, "dataset"):  # type: ignore[attr-defined]
                return code, node, target.attr  # type: ignore[attr-defined]
    return None


def _finding(code: Syntax, call: ast.Call, where: Syntax, change: ast.AST, attribute: str) -> Finding:
    keyword = next(k for k in call.keywords if k.arg == "persistent_workers")
    return RULE.finding(
        f"{written(change)[:60]} at {where.at(change)} changes {attribute} in the main process only: the loader at "
        f"{code.at(call)} has persistent_workers=True, and its workers keep their own copy of the dataset from the "
        "first epoch",
        code.place(keyword.value),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "copy", "attribute": attribute},
        patch=forms.keyword_given(
            code.file, call, "persistent_workers", "False", "start the workers anew in every epoch"),
    )
