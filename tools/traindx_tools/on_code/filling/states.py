"""States of modules: taken by reference and loaded back, skipped where they do not fit, kept in plain attributes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.on_code.definitions import ClassInfo
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Event, Place, walk
from traindx_tools.on_code.training import same
from traindx_tools.on_code.values import Const, Symbol, Tensor, Thing, Value, parts
from traindx_tools.program.parts import RunningState, StateBack, StateSkipped

READS = ("torch.load@", "safetensors.torch.load_file@", "torch.hub.load_state_dict_from_url@",
          "torch.utils.model_zoo.load_url@")
_WRAPPERS = ("DataParallel", "DistributedDataParallel")
_STRIPPED = re.compile(r"""["']module\.|\.module\b|consume_prefix_in_state_dict|unwrap_model|removeprefix\(|"""
                       r"""getattr\([^\n]*["']module["']""")
"""Somebody takes the prefix off, or saves what is inside the wrapper."""
_SAVED = re.compile(r"torch\.save\(|save_file\(|save_pretrained\(")


def states_back(project: Project) -> Iterator[StateBack]:
    """Every state whose tensors are a module's own, and that is loaded into it after more steps."""
    for root in project.roots:
        if not {"state_dict", "load_state_dict"} <= root.methods:
            continue
        places = [p for p in walk(root, frozenset({"state_dict", "load_state_dict"})) if p.event.kind == "call"]
        for load in (p for p in places if p.event.method == "load_state_dict" and p.event.args):
            taken = next((p for p in places if p.event.method == "state_dict" and _comes_back(p, load)), None)
            if taken is not None:
                yield StateBack(taken.event.spot, taken.event.text, load.event.spot)


def _comes_back(taken: Place, load: Place) -> bool:
    state = load.event.args[0]
    inner = taken.loops[-1] if taken.loops else None
    return (inner is not None and taken.order < load.order and isinstance(state, Symbol) and taken.event.result == state
            and same(taken.event.receiver, load.event.receiver) and inner not in load.path and "step" in inner.methods)


def states_skipped(project: Project) -> Iterator[StateSkipped]:
    """Every load with strict=False of a file as it is, whose answer nobody takes."""
    events = [e for e in project.calls("load_state_dict") if e.argument(1, "strict") == Const(False)
              and isinstance(syntax(e.file).parent(e.node), ast.Expr)]
    if not events:
        return
    saves = any(f.mentions(_SAVED) for f in project.files)
    stripped = any(f.mentions(_STRIPPED) for f in project.files)
    wrapped = [] if stripped else [e.receiver for e in project.calls("state_dict") if _is_wrapper(e.receiver)]
    changed = [e.receiver for e in project.events if e.kind == "delete" or e.method == "pop"]
    for event in events:
        state = event.args[0] if event.args else None
        if state is None or any(state == c for c in changed) or not any(
                isinstance(p, Symbol) and p.name.startswith(READS) for p in parts(state)):
            continue
        wrapper = next((w for w in wrapped if isinstance(w, Thing) and _is_bare_here(project, event, w)), None)
        yield StateSkipped(event.spot, event.text, project.spot(wrapper.site) if wrapper is not None else None, saves)


def _is_wrapper(value: Value | None) -> bool:
    return isinstance(value, Thing) and value.short in _WRAPPERS


def _is_bare_here(project: Project, event: Event, wrapper: Thing) -> bool:
    """Whether the module that a state goes into is, or may be, without the wrapper that it was saved in."""
    file = project.file(wrapper.site.path)
    some = file is not None and any(isinstance(up, (ast.If, ast.IfExp)) for up in syntax(file).above(wrapper.node))
    return some if _is_wrapper(event.receiver) else True


_OWN_WAYS = frozenset({"get_extra_state", "set_extra_state", "_save_to_state_dict", "_load_from_state_dict",
                       "state_dict", "on_save_checkpoint", "add_state", "__getstate__"})
_KEEPERS = ("state_dict", "save_pretrained", "save_state", "ModelCheckpoint", "save_checkpoint", "from_pretrained")


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
    saved = any(True for _ in project.calls(*_KEEPERS))
    hooks = {r.function.name for r in project.roots if r.framework and r.function is not None}
    found: dict[int, tuple[ClassInfo, list[str], Event, Event]] = {}
    for key, event in made.items():
        owner = event.function.owner if event.function is not None else None
        updates = changed.get(key, [])
        lines = {u.line for u in updates} | {event.line}
        if owner is None or not updates or key in named or any(k == key and e.line not in lines for k, e in stored):
            continue
        if _is_used(owner, key[1], updates, hooks) and not _is_saved_apart(project, owner, key[1]):
            found.setdefault(id(owner), (owner, [], event, updates[0]))[1].append(key[1])
    for owner, names, event, changed_by in found.values():
        yield RunningState(owner.name, ", ".join(names), event.spot, changed_by.spot,
                           saved or any("Lightning" in b for b in owner.foreign_bases), len(names) > 1)


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
