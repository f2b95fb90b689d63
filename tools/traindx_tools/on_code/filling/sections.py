"""The trace of the follower as sections and moments."""

from __future__ import annotations

import ast

from traindx_tools.knowledge.calls import Effect, effects, harmless, is_called_a_reference
from traindx_tools.knowledge.names import LOSSES
from traindx_tools.on_code.filling import blocks
from traindx_tools.on_code.filling.blocks import condition_of, mentions_scale
from traindx_tools.on_code.filling.entities import Entities, is_engine, is_module
from traindx_tools.on_code.filling.graph_cuts import Cuts
from traindx_tools.on_code.filling.keeping import JOINS, SUMS, Keeping, carries, hooked, own, traces
from traindx_tools.on_code.trace import Block, Event
from traindx_tools.on_code.training import is_optimizer, is_scaler, is_scheduler, sent_backward
from traindx_tools.on_code.values import (
    UNKNOWN,
    Bag,
    Const,
    Instance,
    Klass,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    number,
    parts,
    truth,
)
from traindx_tools.program.conditions import Condition
from traindx_tools.program.entities import Loss, Model, Optimizer
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act, Change, Cut, Kept, Section
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

DEEPEST = 60


class Sections:
    """Makes a section of each block, once."""

    def __init__(self, program: Program, entities: Entities) -> None:
        self.program, self.entities = program, entities
        self._made: dict[int, Section] = {}
        self._kept: list[Block] = []
        self._losses: dict[tuple[str, str], Loss] = {}
        self.guessed: dict[Symbol, Optimizer] = {}
        """Unknown things that are taken for optimizers."""
        self._loop: list[Block] = []
        self.ownership = entities.ownership
        self.keeping = Keeping()
        self.cuts: Cuts | None = None
        self._last: tuple[ast.AST | None, Model | None] = None, None
        self._inside = False
        """Within the forward pass of a module: the calls of its parts are no passes of their own."""

    def of(self, block: Block, depth: int = 0) -> Section:
        """The section of a block."""
        known = self._made.get(id(block))
        if known is not None:
            return known
        self._kept.append(block)
        made = self._made[id(block)] = Section(
            _KINDS.get(block.kind, "call"), block.spot, leaves=block.left, origin=block,
            framework=blocks.framework(block), name=block.function.qualified if block.function else "")
        if made.kind == "loop":
            made.count, made.turns = blocks.count(block), blocks.turns(block)
            self._loop.append(block)
        has: set[Moment] = set()
        inside, self._inside = self._inside, self._inside or blocks.is_forward(block)
        if made.kind == "loop" and isinstance(block.subject, Thing) and block.subject.short == "DataLoader":
            made.items.append(Act(Moment.BATCH, made.at, origin=block))
            has.add(Moment.BATCH)
        for item in block.body:
            if isinstance(item, Event):
                for act in self._acts(item):
                    made.items.append(act)
                    has.add(act.moment)
            elif depth < DEEPEST:
                inner = self.of(item, depth + 1)
                if inner.items or inner.leaves:
                    made.items.append(inner)
                    has |= inner.has
        blocks.wrap(made.items)
        self._inside = inside
        if made.kind == "loop":
            self._loop.pop()
        made.has = frozenset(has)
        if made.kind == "arm" and (made.items or made.leaves):
            made.condition = condition_of(block)  # its text is cut out of the source: not for an arm that is dropped
        gate = blocks.gate(block)
        if gate is not None:
            made.items = [self._gated(i, gate) for i in made.items]
        return made

    def _gated(self, item: Act | Section, gate: Condition) -> Act | Section:
        """Under accelerate's `accumulate`, what a prepared optimizer does waits for the end of the window."""
        if isinstance(item, Act) and item.moment in (Moment.STEP, Moment.CLEAR) and item.optimizers:
            return Section("arm", item.at, [item], gate, has=frozenset({item.moment}))
        return item

    # ---- moments

    def _acts(self, event: Event) -> list[Act]:
        change = self.ownership.note(event)
        kept = self._held_on(event) if event.kind != "call" or event.method in JOINS else []
        return [*self._moments(event), *kept, *([self._changed(event, change)] if change is not None else [])]

    def _changed(self, event: Event, change: Change) -> Act:
        act = self._act(event, Moment.PARAMETERS)
        act.change = change
        act.optimizers = self._known(event.receiver) if change.kind == "given" else ()
        return act

    def _moments(self, event: Event) -> list[Act]:
        if event.kind == "store" and event.name == "attribute.grad":
            cleared = bool(event.args) and isinstance(event.args[0], Const)
            return [self._act(event, Moment.CLEAR if cleared else Moment.WRITTEN)]
        if event.kind in ("yield", "read"):
            act = self._act(event, Moment.YIELD if event.kind == "yield" else Moment.READ)
            act.models = self.entities.models(event.receiver) if event.kind == "read" else None
            return [act]
        if event.kind == "store" and event.name == "attribute.training":
            return [self._unknown_mode(event)]
        if event.kind != "call":
            return []
        if event.method in ("train", "eval") and event.receiver == UNKNOWN:
            return [self._unknown_mode(event)]
        found = [self._of_effect(event, e) for e in effects().get(event.method, ()) if self._fits(event, e.on)][:1]
        acts = [a for some in found for a in some]
        if not found:
            acts = [a for told in (self._cleared_by_hand, self.made, self._chained, self._called, self._lossy)
                    for a in told(event)]
        return acts or self._handed(event)

    def _fits(self, event: Event, on: str) -> bool:
        owner = event.receiver
        if on == "tensor":
            return isinstance(owner, Tensor)
        if on == "optimizer":
            return bool(self._stepped(event))
        if on == "scaler":
            first = event.args[0] if event.args else None
            steps = event.method == "step" and isinstance(owner, Symbol) and bool(self._known(first))
            return is_scaler(owner) or steps
        if on == "schedule":
            return is_scheduler(owner)
        if on == "engine":
            return is_engine(owner)
        if on == "gatherer":
            return isinstance(owner, (Bag, Table))
        if on == "handle":
            return not event.args and not event.kwargs and not isinstance(owner, (Bag, Table))
        if on == "function":
            return owner is None
        if on == "input":
            return isinstance(owner, (Tensor, Symbol)) and not self.entities.is_called_module(owner)
        if on == "module":
            return owner is not None and is_module(owner)
        return on == "any"

    def _of_effect(self, event: Event, effect: Effect) -> list[Act]:
        act = _MAKERS[effect.moment](self, event, effect)
        also = [self._act(event, effect.also)] if effect.also is not None else []
        return [*also, *([act] if act is not None else [])]

    def _act(self, event: Event, moment: Moment) -> Act:
        return Act(moment, event.spot, event.method, event.owner, gradients=event.grad, origin=event)

    def _backward(self, event: Event, effect: Effect) -> Act:
        act = self._act(event, Moment.BACKWARD)
        loss = sent_backward(event)
        act.models, act.traces = self.entities.reached(loss), traces(loss)
        if isinstance(loss, Tensor):
            act.reached = loss.models
            act.scaled = "scaled" in loss.tags
        elif isinstance(loss, Symbol):
            act.scaled = True if loss.role == "call" and loss.name.startswith("scale") else None
        act.known = Known.DERIVED if isinstance(loss, Tensor) else Known.GUESSED
        act.retains = "retain_graph" in event.kwargs
        if self.cuts is not None:
            self.cuts.note(act, event, loss)
        return act

    def _step(self, event: Event, effect: Effect) -> Act:
        act = self._act(event, Moment.STEP)
        act.optimizers = self._stepped(event)
        if effect.on == "scaler":
            act.scaler = self.entities.scaler(event.receiver)
            act.optimizers = self._known(event.argument(0, "optimizer"))
            act.known = Known.DERIVED if act.scaler is not None else Known.GUESSED
            act.name = "scaler.step"
        elif any(o.known is Known.GUESSED for o in act.optimizers):
            act.known = Known.GUESSED
        return act

    def _clear(self, event: Event, effect: Effect) -> Act:
        act = self._act(event, Moment.CLEAR)
        act.optimizers = self._stepped(event)
        if not act.optimizers and isinstance(event.receiver, (Thing, Instance)):
            act.models = self.entities.models(event.receiver)
        return act

    def _unscale(self, event: Event, effect: Effect) -> Act:
        act = self._act(event, Moment.UNSCALE)
        act.scaler = self.entities.scaler(event.receiver)
        act.optimizers = self._known(event.argument(0, "optimizer"))
        return act

    def _clip(self, event: Event, effect: Effect) -> Act:
        act = self._act(event, Moment.CLIP)
        parameters = event.argument(*effect.takes) if effect.takes else None
        act.models = self.entities.models(parameters) if not isinstance(parameters, Symbol) else None
        position, keys = effect.bound or (1, ())
        bound = next((event.kwargs[k] for k in keys if k in event.kwargs), event.argument(position, ""))
        act.scaled = mentions_scale(bound)
        if isinstance(event.result, Tensor) and "of nothing" in event.result.tags and event.result.site is not None:
            act.cut = Cut(str(event.result.site), act.at)
        act.is_measure = number(bound) == float("inf") or (isinstance(bound, Const) and str(bound.value) == "inf")
        return act

    def _update(self, event: Event, effect: Effect) -> Act:
        act = self._act(event, Moment.UPDATE)
        act.scaler = self.entities.scaler(event.receiver)
        return act

    def _schedule(self, event: Event, effect: Effect) -> Act:
        act = self._act(event, Moment.SCHEDULE)
        act.schedule = self.entities.schedule(event.receiver)
        return act

    def _mode(self, event: Event, effect: Effect) -> Act:
        act = self._act(event, Moment.MODE)
        act.models = self.entities.models(event.receiver)
        given = event.argument(0, "mode")
        act.training = False if event.method == "eval" else True if given is None else truth(given)
        act.restores = next((p.name for p in parts(given) if isinstance(p, Symbol) and p.role == "read"), "") if (
            isinstance(given, Symbol) and given.name == "training") else ""
        return act

    def _unknown_mode(self, event: Event) -> Act:
        """A mode is set of something, or to something, that is not known."""
        act = self._act(event, Moment.MODE)
        act.models = self.entities.models(event.receiver) if event.kind == "store" else None
        return act

    def _handed_on(self, event: Event, effect: Effect) -> Act:
        """A framework's trainer is given the optimizer that it is to step."""
        act = self._act(event, Moment.HANDED)
        pair = event.argument(*effect.takes) if effect.takes else None
        items = pair.items if isinstance(pair, Bag) else []
        act.optimizers = tuple(o for i in items for o in self.entities.optimizers(i))
        return act

    def _gathered(self, event: Event, effect: Effect) -> Act | None:
        kept = self.keeping.given(event) if effect.moment is Moment.KEPT else self.keeping.emptied(event)
        networks = any(isinstance(a, Symbol) and self.entities.is_called_module(a) for a in event.args)
        return self.keeps(event, effect.moment, kept) if kept is not None and not networks else None

    def _hook(self, event: Event, effect: Effect) -> Act:
        return self.keeps(event, effect.moment, hooked(event))

    def keeps(self, event: Event, moment: Moment, kept: Kept | None) -> Act:
        """An act about a container, or about what a hook is registered on."""
        act = self._act(event, moment)
        act.kept = kept
        return act

    # ---- what no row says

    def _held_on(self, event: Event) -> list[Act]:
        """What a sum is given, what begins anew, what is made one."""
        sums = event.kind in SUMS
        kept = self.keeping.added(event) if sums else (
            self.keeping.joined(event) if event.kind == "call" else self.keeping.emptied(event))
        return [self.keeps(event, Moment.KEPT if sums else Moment.EMPTIED, kept)] if kept is not None else []

    def _cleared_by_hand(self, event: Event) -> list[Act]:
        gradient = (isinstance(event.receiver, Tensor) and "gradient" in event.receiver.tags) or (
            isinstance(event.receiver, Symbol) and event.receiver.role == "attribute" and event.receiver.name == "grad")
        if not gradient or not event.method.endswith("_") or event.method.endswith("__"):
            return []
        cleared = event.method in ("zero_", "fill_")
        return [self._act(event, Moment.CLEAR if cleared else Moment.WRITTEN)]

    def made(self, event: Event) -> list[Act]:
        """Where an optimizer is made."""
        if not isinstance(event.result, Thing) or event.name != event.result.type or not is_optimizer(event.result):
            return []
        act = self._act(event, Moment.MADE)
        act.optimizers = (self.entities.optimizer(event.result),)
        return [act]

    def _chained(self, event: Event) -> list[Act]:
        """A chain of transformations of optax."""
        if event.name != "optax.chain":
            return []
        names = [a.type if isinstance(a, Thing) else a.name.partition("@")[0] if isinstance(a, Symbol) else "?"
                 for a in event.args]
        made = Optimizer("optax.chain", made=str(event.site), transforms=tuple(names), known=Known.DERIVED)
        self.program.optimizers.append(made)
        act = self._act(event, Moment.MADE)
        act.optimizers = (made,)
        return [act]

    def _called(self, event: Event) -> list[Act]:
        """A module is called."""
        owner = event.receiver
        if self._inside or event.method != "__call__" or owner is None or not self.entities.is_called_module(owner):
            return []
        model, (node, outer) = self.entities.model(owner), self._last
        if node is event.node and outer is not None and outer is not model and model.inside <= outer.inside:
            return []  # a part of the module that was called here
        self._last = event.node, model
        act = self._act(event, Moment.FORWARD)
        act.models, act.traces = (model,), own(event.result)
        act.text = event.file.segment(event.node.func) if isinstance(event.node, ast.Call) else "?"
        model.set_aside = model.set_aside or ("called a reference" if is_called_a_reference(act.text) else "")
        if act.gradients and (carries(event.result) is False or blocks.may_suspend(event)):
            act.gradients = None  # no graph is built, or something unknown decides
        act.unused = blocks.is_unused(event)
        act.again = blocks.is_repeated(event, self._loop[-1] if self._loop else None)
        return [act]

    def _lossy(self, event: Event) -> list[Act]:
        """A loss is computed."""
        if not isinstance(event.result, Tensor) or not (event.method in LOSSES or (
                event.method == "__call__" and "loss" in event.result.tags)):
            return []
        given = [a for a in (*event.args, *event.kwargs.values()) if isinstance(a, Tensor)]
        name = event.name.rpartition(".")[2] if event.method != "__call__" else event.name.split(".")[-2]
        key = name, str(event.site)
        if key not in self._losses:
            self._losses[key] = Loss(name, str(event.site), shapes=tuple(str(a.shape or "?") for a in given[:3]),
                                     domains=tuple(_domain(a) for a in given[:3]), known=Known.DERIVED)
            self.program.losses.append(self._losses[key])
        act = self._act(event, Moment.LOSS)
        act.loss = self._losses[key]
        return [act]

    def _handed(self, event: Event) -> list[Act]:
        """Code that is not known is given an optimizer: what it does with it is not known either."""
        prefixes, methods = harmless()
        if (event.method in methods and event.method != "step") or event.name.startswith(prefixes):
            return []
        if isinstance(event.receiver, Klass) and not event.receiver.info.foreign_bases:
            return []  # an object of the project: its methods are followed where they are called
        given = [o for a in (*event.args, *event.kwargs.values()) for o in self.entities.optimizers(a)]
        every = (*event.args, *event.kwargs.values())
        owner = [a for a in every if isinstance(a, Instance) and is_engine(a)]
        scaler = next((s for a in every if (s := self.entities.scaler(a))), None)
        steps = event.method == "step" and isinstance(event.receiver, Symbol) and not event.args
        if not given and not owner and scaler is None and not steps:
            return []
        act = self._act(event, Moment.HANDED)
        act.optimizers, act.scaler = tuple(given), scaler
        if steps:
            act.known = Known.GUESSED
            return [act]
        self.program.unknown.append(f"{event.name} at {event.site} is given an optimizer, and its text is not known")
        return [act]

    # ---- optimizers

    def _stepped(self, event: Event) -> tuple[Optimizer, ...]:
        """The optimizers that a method is called on: one, each of a list that a loop goes through, a guessed one."""
        owner = event.receiver
        found = self._known(owner)
        if found or owner is None:
            return found
        if owner == UNKNOWN and self._loop and isinstance(self._loop[-1].subject, Bag):
            return self.entities.optimizers(self._loop[-1].subject)
        return ()

    def _known(self, value: Value | None) -> tuple[Optimizer, ...]:
        """The optimizers that a value is, or is taken for."""
        if isinstance(value, Symbol) and value in self.guessed:
            return (self.guessed[value],)
        found = self.entities.known_optimizer(value) if isinstance(value, Thing) else None
        return (found,) if found is not None else self.entities.optimizers(value)


_KEEP, _HOOK = Sections._gathered, Sections._hook
_MAKERS = {
    Moment.BACKWARD: Sections._backward, Moment.STEP: Sections._step, Moment.CLEAR: Sections._clear,
    Moment.UNSCALE: Sections._unscale, Moment.CLIP: Sections._clip, Moment.UPDATE: Sections._update,
    Moment.SCHEDULE: Sections._schedule, Moment.MODE: Sections._mode, Moment.HANDED: Sections._handed_on,
    Moment.KEPT: _KEEP, Moment.EMPTIED: _KEEP, Moment.HOOKED: _HOOK, Moment.UNHOOKED: _HOOK, Moment.GRADIENT: _HOOK}
_KINDS = {"root": "root", "loop": "loop", "branch": "arm", "with": "with", "call": "call", "hook": "hook"}


def _domain(value: Tensor) -> str:
    kinds = {"softmax": "probabilities", "log_softmax": "log-probabilities", "sigmoid": "shares", "linear": "logits"}
    if value.kind in kinds:
        return kinds[value.kind]
    return "classes" if value.dtype in ("int", "int64") or "integer" in value.tags else "?"
