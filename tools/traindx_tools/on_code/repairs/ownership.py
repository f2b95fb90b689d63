"""Edits that let an optimizer, or a wrapper of replicas, hold what is trained."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.invariants.breach import Remedy
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.held import modules_of
from traindx_tools.on_code.repairs import forms, optimizers, ranks
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Block, Event
from traindx_tools.on_code.values import Thing
from traindx_tools.program.moments import Act


def _event(act: Act | None) -> Event | None:
    return act.origin if act is not None and isinstance(act.origin, Event) else None


def held_too(remedy: Remedy) -> tuple[Patch, ...]:
    """The parameters of all that is left out in the optimizer, where everything stands in one function."""
    made = remedy.act.origin
    names = remedy.text.split()
    if not isinstance(made, Event) or not all(n.replace(".", "_").isidentifier() for n in names):
        return ()
    return optimizers.holding_too(made.file, made.node, names)


def later(remedy: Remedy) -> tuple[Patch, ...]:
    """The optimizer behind the change where both stand in one block, or a further group for what is new."""
    made, change = _event(remedy.act), _event(remedy.target)
    if made is None or change is None:
        return ()
    beside = made.file is change.file and not remedy.text
    moved = optimizers.built_later(made.file, made.node, change.node) if beside else ()
    block = remedy.through.origin if remedy.through is not None else None
    return moved or (_one_group_more(made, change, block) if isinstance(block, Block) else ())


def _one_group_more(made: Event, stored: Event, call: Block) -> tuple[Patch, ...]:
    """The new module handed to the optimizer, where both are reached from one object: `self.opt`, `self.net`."""
    built = syntax(made.file).statement(made.node)
    is_store = stored.kind == "store" and stored.name.startswith("attribute.")
    if not is_store or not isinstance(built, ast.Assign) or any(
            "lr_scheduler" in f.text or "Scheduler" in f.text for f in (made.file, stored.file)):
        return ()
    return optimizers.handed_over(made.file, built, call.file, call.node, stored)


def over_the_new(remedy: Remedy) -> tuple[Patch, ...]:
    """The optimizer over the model that is trained, or built anew by the method that makes that one."""
    made, trained = _event(remedy.act), _event(remedy.target)
    if made is None or trained is None or made.file is not trained.file:
        return ()
    method = trained.function.node if trained.function else None
    return optimizers.over_another(trained.file, made.node, trained.node) or (
        optimizers.rebuilt_in_method(trained.file, made.node, method) if method is not None else ())


def over_all(remedy: Remedy) -> tuple[Patch, ...]:
    """The optimizer over all parameters."""
    made = _event(remedy.act)
    return optimizers.over_all(made.file, made.node) if made is not None else ()


def wrapped_again(remedy: Remedy) -> tuple[Patch, ...]:
    """The wrapper made again behind what unfreezes."""
    change, wrapped = remedy.act.origin, _event(remedy.target)
    if not isinstance(change, (Event, Block)) or wrapped is None or wrapped.file is not change.file:
        return ()
    return ranks.wrapped_again(syntax(change.file), change.node, wrapped.node)


def copied(remedy: Remedy) -> tuple[Patch, ...]:
    """`assign=False`, unless the parameters hold nothing that could be copied into."""
    load = _event(remedy.act)
    node = load.node if load is not None else None
    given = next((k.value for k in node.keywords if k.arg == "assign"), None) if isinstance(node, ast.Call) else None
    if load is None or given is None or "meta" in load.file.text or "mmap" in load.file.segment(load.node):
        return ()
    return Change(load.file, "copy into the parameters that the optimizer holds").replace(given, "False").patches()


def trainable(remedy: Remedy) -> tuple[Patch, ...]:
    """Adapters loaded to be trained, where they are loaded in the file of the optimizer."""
    made = _event(remedy.act)
    loaded = [m for m in modules_of(made.result) or [] if isinstance(m, Thing)] if made is not None else []
    own = [m for m in loaded if made is not None and m.site.path == made.file.path and m.state.get("frozen_by")]
    return optimizers.loaded_trainable([(made.file, m.node) for m in own]) if made is not None else ()


def registered(remedy: Remedy) -> tuple[Patch, ...]:
    """`nn.ModuleList` around the list."""
    store = _event(remedy.act)
    statement = syntax(store.file).statement(store.node) if store is not None else None
    if store is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ()
    return forms.registered(store.file, statement.value)


def thawed(remedy: Remedy) -> tuple[Patch, ...]:
    """The layer made trainable behind what freezes it."""
    head, home, file = remedy.act.origin
    if file is None or home is None:
        return ()
    return optimizers.thawed(file, remedy.act.at.line, head.node, home)
