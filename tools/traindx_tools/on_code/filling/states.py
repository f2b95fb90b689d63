"""States that are taken of modules and loaded into them: kept by reference, or skipped where they do not fit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.on_code.filling.spots import spot_at, spot_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Event, Place, walk
from traindx_tools.on_code.training import same
from traindx_tools.on_code.values import Const, Symbol, Thing, Value, parts
from traindx_tools.program.parts import StateBack, StateSkipped

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
                yield StateBack(spot_of(taken.event), taken.event.file.segment(taken.event.node), spot_of(load.event))


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
        yield StateSkipped(spot_of(event), event.file.segment(event.node),
                           spot_at(wrapper.site, project) if wrapper is not None else None, saves)


def _is_wrapper(value: Value | None) -> bool:
    return isinstance(value, Thing) and value.short in _WRAPPERS


def _is_bare_here(project: Project, event: Event, wrapper: Thing) -> bool:
    """Whether the module that a state goes into is, or may be, without the wrapper that it was saved in."""
    file = project.file(wrapper.site.path)
    some = file is not None and any(isinstance(up, (ast.If, ast.IfExp)) for up in syntax(file).above(wrapper.node))
    return some if _is_wrapper(event.receiver) else True
