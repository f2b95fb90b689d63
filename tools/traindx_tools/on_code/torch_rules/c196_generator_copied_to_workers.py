"""A data set's random generator is copied into every worker.

A generator that the data set makes in `__init__` (`np.random.default_rng(seed)`, `random.Random(seed)`) is copied into
each worker process with its state: all workers draw the same numbers, and every epoch starts from the same state again.
torch seeds `random`, `numpy.random` and its own generator in each worker; a generator of one's own it does not know.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.loaders import has_workers
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C196",
    name="generator-copied-to-workers",
    title="A data set's random generator is copied into every worker",
    severity=Severity.MEDIUM,
    sees="A generator made in a data set's __init__, used in __getitem__, and a loader with workers.",
    matters="Augmentation and sampling repeat across workers and epochs.",
    alike=("torch's and numpy's global generators, which torch seeds in each worker",),
    confirm=("print the first random number of each worker",),
)
_MAKERS = frozenset({"default_rng", "RandomState", "Random"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every data set with a generator of its own."""
    if not has_workers(project) or any(
        "worker_init_fn" in f.text or "get_worker_info" in f.text for f in project.files
    ):
        return
    for file in project.files:
        if "__getitem__" not in file.text or not any(m in file.text for m in _MAKERS):
            continue
        code = syntax(file)
        for owner in code.of(ast.ClassDef):
            methods = {n.name: n for n in owner.body if isinstance(n, ast.FunctionDef)}
            init, item = methods.get("__init__"), methods.get("__getitem__")
            if init is None or item is None:
                continue
            for node in (n for n in below(init) if isinstance(n, ast.Assign)):
                made, target = node.value, node.targets[0]
                if not (isinstance(target, ast.Attribute) and isinstance(made, ast.Call)):
                    continue
                if last_name(made.func) in _MAKERS and f"{written(target)}." in written(item):
                    yield _finding(code, node, written(target))


def _finding(code: Syntax, node: ast.Assign, name: str) -> Finding:
    return RULE.finding(
        f"{name} at {code.at(node)} is copied into every worker with its state: all workers, and all epochs, draw the "
        "same numbers in __getitem__",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "generator", "name": name},
    )
