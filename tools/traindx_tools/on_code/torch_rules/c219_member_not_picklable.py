"""A data set, its collate function or its worker_init_fn cannot be pickled for spawned workers.

Workers that are spawned (the default on macOS and Windows; `multiprocessing_context="spawn"`, `set_start_method`) get a
pickled copy of the data set. Lambdas, functions defined inside a function, generators, open files and locks cannot be
pickled, so the first iteration raises. Forked workers inherit them and are left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Const, Function, Instance, Symbol, Thing, Value, number
from traindx_tools.rules import Rule

RULE = Rule(
    id="C219",
    name="member-not-picklable",
    title="A data set cannot be pickled for its workers",
    severity=Severity.HIGH,
    sees="Lambdas, nested functions and open files in a data set (or as collate_fn) of a loader that spawns workers.",
    matters="Starting the workers raises: Can't pickle local object, cannot pickle ... object.",
    alike=("a worker that runs out of memory", "CUDA in forked workers, for which spawning is the way out"),
    confirm=("import pickle; pickle.dumps(dataset)",),
)
_SPAWNS = ("spawn", "forkserver")


def check(project: Project) -> Iterator[Finding]:
    """Look at loaders with workers of a project that spawns them."""
    everywhere = any(_named(e) in _SPAWNS for e in project.calls("set_start_method"))
    for event in project.calls("DataLoader"):
        loader = event.result
        if not isinstance(loader, Thing) or not (number(loader.kwargs.get("num_workers")) or 0) > 0:
            continue
        if not everywhere and _context(loader) not in _SPAWNS:
            continue
        dataset = loader.argument(0, "dataset")
        members = list(dataset.attrs.items()) if isinstance(dataset, Instance) else []
        members += [(n, loader.kwargs[n]) for n in ("collate_fn", "worker_init_fn") if n in loader.kwargs]
        for name, value in members:
            why = _why(value)
            if why is not None:
                yield _finding(event, name, why, value)
                break


def _named(event: Event) -> object:
    first = event.argument(0, "method")
    return first.value if isinstance(first, Const) else None


def _context(loader: Thing) -> object:
    given = loader.kwargs.get("multiprocessing_context")
    if isinstance(given, Const):
        return given.value
    first = given.args[0] if isinstance(given, Thing) and given.args else None
    return first.value if isinstance(first, Const) else _text(loader)


def _text(loader: Thing) -> object:
    """The method where it is written as get_context("spawn")."""
    keywords = loader.node.keywords if isinstance(loader.node, ast.Call) else []
    texts = [ast.unparse(k.value) for k in keywords if k.arg == "multiprocessing_context"]
    return next((s for s in _SPAWNS for t in texts if s in t), None)


def _why(value: Value) -> str | None:
    if isinstance(value, Function):
        node = value.info.node
        if isinstance(node, ast.Lambda):
            return "a lambda"
        nested = syntax(value.info.file).function(node) is not None
        return "a function defined inside another one" if nested and value.owner is None else None
    if isinstance(value, Symbol) and value.name.partition("@")[0] in ("open", "builtins.open"):
        return "an open file"
    return None


def _finding(event: Event, name: str, why: str, value: Value) -> Finding:
    at = value.info.node.lineno if isinstance(value, Function) else event.line
    return RULE.finding(
        f"{name}, which the spawned workers of the loader at {event.file.path}:{event.line} are sent, is {why} "
        f"(line {at}) and cannot be pickled",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "pickle", "member": name, "what": why},
    )
