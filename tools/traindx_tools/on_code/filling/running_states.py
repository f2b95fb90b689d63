"""What modules keep of their past in plain attributes: running statistics, codes, queues."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.on_code.definitions import ClassInfo
from traindx_tools.on_code.filling.spots import spot_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Const, Tensor
from traindx_tools.program.parts import RunningState

_OWN_WAYS = frozenset({"get_extra_state", "set_extra_state", "_save_to_state_dict", "_load_from_state_dict",
                       "state_dict", "on_save_checkpoint", "add_state", "__getstate__"})
_SAVES = ("state_dict", "save_pretrained", "save_state", "ModelCheckpoint", "save_checkpoint", "from_pretrained")


def running_states(project: Project) -> Iterator[RunningState]:
    """Every plain tensor of a module that the module itself updates, uses for a result, and never sets back."""
    made: dict[tuple[int, str], Event] = {}
    changed: dict[tuple[int, str], list[Event]] = {}
    stored: list[tuple[tuple[int, str], Event]] = []
    for event in project.events:
        owner, name = event.function.owner if event.function is not None else None, attribute_set(event)
        if owner is None or name is None or not owner.is_module or _OWN_WAYS & _methods(owner):
            continue
        key = id(owner), name
        if event.kind == "store" and event.name.startswith("attribute."):
            first = event.args[0] if event.function is not None and event.function.name == "__init__" else None
            if isinstance(first, Tensor) and first.grad is not True:
                made.setdefault(key, event)
            stored.append((key, event))
        else:
            changed.setdefault(key, []).append(event)
    named = {(id(e.function.owner), a.value) for e in project.calls("register_buffer", "register_parameter")
             if e.function is not None for a in e.args[:1] if isinstance(a, Const)}
    saved = any(True for _ in project.calls(*_SAVES))
    hooks = {r.function.name for r in project.roots if r.framework and r.function is not None}
    for key, event in made.items():
        owner = event.function.owner if event.function is not None else None
        updates = changed.get(key, [])
        lines = {u.line for u in updates} | {event.line}
        if owner is None or not updates or key in named or any(k == key and e.line not in lines for k, e in stored):
            continue
        mine = owner.foreign_bases
        if _is_used(owner, key[1], updates, hooks) and not _is_saved_apart(project, owner, key[1]):
            yield RunningState(owner.name, key[1], spot_of(event), spot_of(updates[0]),
                               saved or any("Lightning" in b for b in mine))


def attribute_set(event: Event) -> str | None:
    """The attribute of `self` that an event stores, updates from itself or changes in place."""
    node = event.node
    if event.kind in ("augmented", "blended"):
        target = node.target if isinstance(node, ast.AugAssign) else getattr(node, "targets", [None])[0]
        return _own(target)
    if event.kind == "store":
        return _own(node)
    in_place = event.kind == "call" and event.method.endswith("_") and not event.method.endswith("__")
    return _own(node.func.value) if in_place and isinstance(node, ast.Call) and isinstance(
        node.func, ast.Attribute) else None


def _own(node: ast.AST | None) -> str | None:
    """The name in `self.name`, through `.data`, entries and what was changed in place before."""
    while True:
        if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "data"):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
            node = node.func.value
        else:
            break
    plain = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if plain and isinstance(node, ast.Attribute) else None


def _methods(owner: ClassInfo) -> set[str]:
    return {n.name for c in owner.lineage() for n in c.node.body if isinstance(n, ast.FunctionDef)}


def _is_used(owner: ClassInfo, name: str, updates: list[Event], hooks: set[str]) -> bool:
    """Whether a method that gives a result reads it, other than to update it; one that zeroes it sets it back."""
    updating = {id(n) for u in updates for n in below(u.node)}
    if any(u.method in ("zero_", "fill_") for u in updates):
        return False
    return any(_own(n) == name and id(n) not in updating for m in owner.methods.values()
               if m.info.name not in hooks and any(isinstance(r, ast.Return) and r.value for r in below(m.info.node))
               for n in below(m.info.node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load))


def _is_saved_apart(project: Project, owner: ClassInfo, name: str) -> bool:
    """Whether the program knows it by a key, or sets it from outside."""
    for file in project.files:
        code = syntax(file)
        if any(n.value == name for n in code.of(ast.Constant)) or any(
                n.attr == name and isinstance(n.ctx, ast.Store) and _own(n) is None for n in code.of(ast.Attribute)):
            return True
    return False
