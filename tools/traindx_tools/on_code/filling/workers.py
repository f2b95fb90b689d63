"""What the workers of a loader are sent, and what they share with it."""

from __future__ import annotations

import ast

from traindx_tools.on_code.filling.spots import spot_at
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.values import Bag, Const, Function, Instance, Symbol, Table, Tensor, Thing, Value, number
from traindx_tools.program.moments import Spot

_SPAWNS = ("spawn", "forkserver")


def spawned_member(project: Project, loader: Thing, data: Value) -> tuple[str, str, int] | None:
    """The first member that cannot be pickled: its name, what it is, its line."""
    everywhere = any(_text(e.argument(0, "method")) in _SPAWNS for e in project.calls("set_start_method"))
    if not (number(loader.kwargs.get("num_workers")) or 0) > 0 or not (everywhere or _context(loader) in _SPAWNS):
        return None
    members = list(data.attrs.items()) if isinstance(data, Instance) else []
    members += [(n, loader.kwargs[n]) for n in ("collate_fn", "worker_init_fn") if n in loader.kwargs]
    return next(((name, *why) for name, value in members if (why := _why(value, loader.site.line)) is not None), None)


def _text(value: Value | None) -> object:
    return value.value if isinstance(value, Const) else None


def _context(loader: Thing) -> object:
    given = loader.kwargs.get("multiprocessing_context")
    if isinstance(given, Thing) and given.args:
        return _text(given.args[0])
    keywords = loader.node.keywords if isinstance(loader.node, ast.Call) else []
    texts = [ast.unparse(k.value) for k in keywords if k.arg == "multiprocessing_context"]
    return _text(given) or next((s for s in _SPAWNS for t in texts if s in t), None)  # get_context("spawn")


def _why(value: Value, line: int) -> tuple[str, int] | None:
    if isinstance(value, Function):
        node = value.info.node
        if isinstance(node, ast.Lambda):
            return "a lambda", node.lineno
        nested = syntax(value.info.file).function(node) is not None and value.owner is None
        return ("a function defined inside another one", node.lineno) if nested else None
    opened = isinstance(value, Symbol) and value.name.partition("@")[0] in ("open", "builtins.open")
    return ("an open file", line) if opened else None


def objects_of(project: Project, data: Value) -> tuple[str, str, float | None, Spot] | None:
    """A list of Python objects that a data set keeps: its attribute, the class, how many they are, where it is made."""
    for name, value in data.attrs.items() if isinstance(data, Instance) else ():
        if isinstance(value, Bag) and value.kind == "list" and value.items and _is_object(value.items[0]):
            count = number(value.size) if value.open else float(len(value.items))
            at = spot_at(value.site, project) if value.site is not None else None
            if at is not None and isinstance(data, Instance):
                return name, data.klass.info.name, count, at
    return None


def _is_object(value: Value) -> bool:
    if isinstance(value, Bag):
        return not all(isinstance(v, Tensor) for v in value.items)
    text = isinstance(value, Const) and isinstance(value.value, str)
    return text or isinstance(value, (Table, Instance)) or (isinstance(value, Symbol) and value.role == "text")
