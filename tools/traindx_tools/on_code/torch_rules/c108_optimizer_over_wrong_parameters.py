"""The optimizer does not hold the parameters that are trained.

An optimizer keeps the parameter objects that existed, and were chosen, when it was built. Three ways to miss: the
model was rebuilt afterwards (another instance is trained than the one it holds); layers were replaced, the embedding
resized or adapters added afterwards; or everything was frozen at that moment, so that a filter by `requires_grad`
chose nothing (`PeftModel.from_pretrained` loads adapters frozen unless `is_trainable=True`). Gradients and their norm
look normal in all three. `.to(device)` keeps the parameter objects in torch 2 and is left alone, as are wrappers such
as DDP.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.held import held, modules_of
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.project import Project, TrainingLoop, location
from traindx_tools.on_code.repairs import optimizers
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Block, Event, Place, walk
from traindx_tools.on_code.training import is_false, is_optimizer, sent_backward, stepped
from traindx_tools.on_code.values import Bag, Instance, Tensor, Thing, Value, unwrap
from traindx_tools.rules import Rule

RULE = Rule(
    id="C108",
    name="optimizer-over-wrong-parameters",
    title="The optimizer does not hold what is trained",
    severity=Severity.CRITICAL,
    sees="Which modules an optimizer was built over, in what state, and which modules the loss is computed by.",
    matters="Gradients flow and nothing, or not the new part, is ever updated.",
    alike=("a learning rate of 0", "a detached loss"),
    confirm=(
        "sum(p.numel() for g in optimizer.param_groups for p in g['params'])",
        "compare a parameter of the trained model before and after optimizer.step()",
    ),
)
_GROWING = {
    "resize_token_embeddings": "resize_token_embeddings() makes new embedding parameters",
    "get_peft_model": "get_peft_model() adds adapter parameters",
    "add_adapter": "add_adapter() adds parameters",
    "reset_classifier": "reset_classifier() makes a new head",
}


def check(project: Project) -> Iterator[Finding]:
    """Look at what each optimizer was built over."""
    built = {e.method for e in project.events if _builds(e)}
    for root in project.roots_with(built):
        places = [p for p in project.places(root) if p.event.kind in ("call", "store")]
        thawed = max((p.order for p in places if _thaws(p.event)), default=-1)
        for place in places:
            made = place.event.result
            if isinstance(made, (Thing, Instance)) and _builds(place.event):
                if thawed <= place.order or any(p.only_trainable for p in held(made) or []):
                    yield from _over_nothing(project, place.event, made)
                yield from _too_early(root, places, place, made)
    for loop in project.training_loops:
        yield from _other_model(loop)


def _builds(event: Event) -> bool:
    """Whether an optimizer is made here."""
    made = event.result
    if event.kind not in ("call", "store") or not isinstance(made, (Thing, Instance)):
        return False
    is_made = event.method == "__new__" or (isinstance(made, Thing) and event.name == made.type)
    return is_made and is_optimizer(made)


def _thaws(event: Event) -> bool:
    """Whether requires_grad is set to True, layer by layer: an optimizer built before holds more by then."""
    sets = (event.kind == "store" and event.name == "attribute.requires_grad") or event.method == "requires_grad_"
    return sets and not any(is_false(a) for a in event.args)


def _over_nothing(project: Project, event: Event, optimizer: Thing | Instance) -> Iterator[Finding]:
    reason = optimizer.state.get("frozen_when_built")
    if not reason:
        return
    filtered = any(p.only_trainable for p in held(optimizer) or [])
    yield RULE.finding(
        f"The optimizer at {event.file.path}:{event.line} is built over nothing that trains: {reason}"
        + (", and the filter by requires_grad leaves an empty list" if filtered else ""),
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "frozen", "filtered": filtered, "reason": reason},
        patch=_trainable(project) if "is_trainable" in reason or "loaded" in reason else (),
    )


def _too_early(root: Block, places: list[Place], place: Place, optimizer: Thing | Instance) -> Iterator[Finding]:
    owned = set(optimizer.state.get("held_parts", ()))
    if not owned:
        return
    later = places[bisect_right(places, place.order, key=lambda p: p.order) :]
    told: set[int] = set()
    for other in later:
        event = other.event
        if event.kind == "store" and id(event.function) in told:
            continue  # one method that makes several parts anew is one fault
        if (
            isinstance(event.result, (Thing, Instance))
            and is_optimizer(event.result)
            and event.result is not optimizer
            and (event.kind == "call" and _builds(event))
        ):
            return  # a second optimizer may hold what is new
        reason = _grows(event, owned)
        if reason is not None and _trains_after(later, place, other, optimizer) and not _given(later, other, optimizer):
            told.add(id(event.function))
            yield RULE.finding(
                f"{reason} at {event.file.path}:{event.line}, after the optimizer was built at line "
                f"{place.event.line}: {_keeps(event)}the new "
                "parameters are in no optimizer and are never updated",
                location(event),
                event.file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "too early", "optimizer_line": place.event.line},
                patch=(_behind(place, other) if place.loops == other.loops else ()) or _one_group_more(place, other),
            )


def _keeps(event: Event) -> str:
    return "it holds those of the old one, and " if event.kind == "store" and len(event.args) > 1 else ""


def _given(later: list[Place], change: Place, optimizer: Value) -> bool:
    """Whether the optimizer gets a further group behind the change."""
    return any(p.event.method == "add_param_group" and p.order > change.order and p.event.receiver is optimizer
               for p in later)  # fmt: skip


def _trains_after(later: list[Place], built: Place, change: Place, optimizer: Value) -> bool:
    """Whether it steps after the change, or in the next turn of a loop that both stand in and it was built before."""
    again = [b for b in change.loops if b not in built.loops] if not _leaves(change.event) else []
    return any((stepped(p.event) is optimizer or _handed_to_trainer(p.event, optimizer)) and
               (p.order > change.order or any(b in p.loops for b in again)) for p in later)  # fmt: skip


def _handed_to_trainer(event: Event, optimizer: Value) -> bool:
    """`Trainer(..., optimizers=(optimizer, schedule))`, which steps it."""
    pair = event.kwargs.get("optimizers")
    return event.name.endswith("Trainer") and isinstance(pair, Bag) and any(o is optimizer for o in pair.items)


def _leaves(event: Event) -> bool:
    """Whether the loop is left behind the statement."""
    code = syntax(event.file)
    said = code.statement(event.node)
    blocks = [b for f in ("body", "orelse") if said and isinstance(b := getattr(code.parent(said), f, None), list)]
    return any(said in b and isinstance(b[-1], (ast.Break, ast.Return, ast.Raise)) for b in blocks)


def _grows(event: Event, owned: set[int]) -> str | None:
    if event.kind == "store" and event.name.startswith("attribute.") and id(event.receiver) in owned:
        new = unwrap(event.args[0])
        is_module = (isinstance(new, Thing) and new.type.startswith("torch.nn.")) or (
            isinstance(new, Instance) and new.klass.info.is_module
        )
        if is_module and id(new) not in owned and _has_parameters(new) and not new.state.get("frozen"):  # type: ignore[union-attr]
            return f"{event.name.partition('.')[2]} is replaced by a new {_short(new)}"
    if event.kind == "call" and event.method in _GROWING:
        target = event.receiver if event.receiver is not None else (event.args[0] if event.args else None)
        if target is not None and id(unwrap(target)) in owned:
            return _GROWING[event.method]
    return None


def _short(value: Value) -> str:
    return (
        value.short if isinstance(value, Thing) else value.klass.info.name if isinstance(value, Instance) else "module"
    )


def _has_parameters(value: Value) -> bool:
    if isinstance(value, Thing):
        return value.short.startswith(
            (
                "Linear",
                "Conv",
                "Embedding",
                "BatchNorm",
                "LayerNorm",
                "LSTM",
                "GRU",
                "Transformer",
                "Multihead",
                "Sequential",
                "Bilinear",
                "Parameter",
                "ModuleList",
            )
        )
    return isinstance(value, Instance)


def _other_model(loop: TrainingLoop) -> Iterator[Finding]:
    steps = [(p, stepped(p.event)) for p in loop.of("step")]
    moved = [o for _, o in steps if o is not None]
    if not moved or len({id(o) for o in moved}) != 1:
        return
    place = next(p for p, o in steps if o is not None)
    models = modules_of(moved[0])
    losses = [v for v in (sent_backward(p.event) for p in loop.backwards) if isinstance(v, Tensor)]
    if not models or not losses or not all(isinstance(m, (Thing, Instance)) for m in models):
        return
    used = frozenset().union(*(loss.models for loss in losses))
    owned = {id(part) for m in models for part in submodules(m) or [m]}
    if not used or owned & used or not all(_known(m) for m in models):
        return
    if any(p.event.receiver is not None and id(unwrap(p.event.receiver)) in owned for p in loop.of("__call__")):
        return  # what it holds takes part, by a way that was not followed
    made: dict[int, Event] = {}
    for p in walk(loop.root):
        if isinstance(p.event.result, (Thing, Instance)):
            made.setdefault(id(p.event.result), p.event)  # what `.to(device)` returns was made before
    whole = {u: e.result for u, e in made.items() if u in used and e.result is not None}
    inner = {id(part) for value in whole.values() for part in submodules(value) if part is not value}
    trained = [made[u] for u in whole if u not in inner and made[u].method in ("__new__", "deepcopy")]
    trained.sort(key=lambda e: (e.file.path, e.line))
    if not trained:
        return
    event = place.event
    yield RULE.finding(
        f"The optimizer stepped at {event.file.path}:{event.line} holds the model made at {_site(models[0])}, "
        "but the loss is "
        f"computed by another one, made at {trained[0].file.path}:{trained[0].line}: what is trained is never updated",
        location(trained[0]),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "other model", "held": str(_site(models[0])), "trained_line": trained[0].line},
        patch=_over_the_new(moved[0], trained[0]),
    )


def _known(module: Value) -> bool:
    return isinstance(module, Instance) or (isinstance(module, Thing) and module.type.startswith("torch.nn."))


def _site(module: Value) -> object:
    return module.site if isinstance(module, (Thing, Instance)) else "?"


def _trainable(project: Project) -> tuple[Patch, ...]:
    loads = [(e.file, e.node) for e in project.calls("from_pretrained") if e.name.startswith("peft.")]
    return optimizers.loaded_trainable(loads)


def _behind(made: Place, change: Place) -> tuple[Patch, ...]:
    """The optimizer behind the change, where both stand in one block."""
    same_file = made.event.file is change.event.file
    return optimizers.built_later(made.event.file, made.event.node, change.event.node) if same_file else ()


def _one_group_more(made: Place, change: Place) -> tuple[Patch, ...]:
    """The new module handed to the optimizer, where both are reached from one object: `self.opt`, `self.net`."""
    built, stored = syntax(made.event.file).statement(made.event.node), change.event
    new = stored.args[0] if stored.kind == "store" and stored.name.startswith("attribute.") else None
    calls = [b for b in change.path if b.kind == "call"]
    if new is None or not calls or not isinstance(built, ast.Assign) or any(
            "lr_scheduler" in f.text or "Scheduler" in f.text for f in (made.event.file, stored.file)):  # fmt: skip
        return ()
    return optimizers.handed_over(made.event.file, built, calls[-1].file, calls[-1].node, stored)


def _over_the_new(optimizer: Value, trained: Event) -> tuple[Patch, ...]:
    if not isinstance(optimizer, (Thing, Instance)) or optimizer.site.path != trained.file.path:
        return ()
    beside = optimizers.over_another(trained.file, optimizer.node, trained.node)
    method = trained.function.node if trained.function else None
    return beside or (optimizers.rebuilt_in_method(trained.file, optimizer.node, method) if method is not None else ())
