"""Where what is sent backward lost its graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from traindx_tools.knowledge.calls import harmless
from traindx_tools.knowledge.tables import words
from traindx_tools.on_code.filling.keeping import traces
from traindx_tools.on_code.filling.ownership import made_at
from traindx_tools.on_code.filling.unregistered import flat
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.library_calls import drawn_from
from traindx_tools.on_code.optimizer_parameters import held, parts_held
from traindx_tools.on_code.project import BACKWARD, Project
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.training import is_optimizer, sent_backward, sites_of, stepped
from traindx_tools.on_code.values import (
    NONE,
    Bag,
    Instance,
    Operation,
    Site,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    parts,
    unwrap,
)
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act, Cut
from traindx_tools.program.parts import CutPart

DRAWS = ("sample", "normal")
REPARAMETRISED = words("followed.toml", "reparametrised")
_CRITERIA = words("names.toml", "criteria")
_CUTS = frozenset({"data", "detach", "numpy", "item", "argmax"})
_FRESH = ("tensor", "as_tensor", "from_numpy", "Variable", "FloatTensor")


class Cuts:
    """What a project says of graphs that end."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._fresh = [e for e in project.calls(*_FRESH) if e.name.startswith("torch.")]
        leaves = [e.receiver for e in project.calls("requires_grad_") if isinstance(e.receiver, Tensor)]
        stores = [e.receiver for e in project.events if e.kind == "store" and e.name == "attribute.requires_grad"]
        made = [e.args[0] for e in project.calls("Parameter") if e.args and not _in_a_module(e)]
        self._of_inputs = any(not _of_model(v) for v in leaves + stores + made)
        self._losses: dict[object, list[Event]] = {}
        self._unknown = {e.result: e for e in project.calls("__call__") if isinstance(e.result, Symbol) and isinstance(
            e.receiver, Symbol) and any(word in e.receiver.name.lower() for word in _CRITERIA)}
        for event in project.events:
            if event.kind == "call" and isinstance(event.result, Tensor) and "loss" in event.result.tags:
                self._losses.setdefault(event.result.site, []).append(event)

    def note(self, act: Act, event: Event, loss: Value | None) -> None:
        """Whether what is sent backward has a graph."""
        act.graph = loss.grad if isinstance(loss, Tensor) else None
        if isinstance(loss, Tensor):
            act.copies = tuple((self._project.spot(at), str(of), models) for at, of, models in sorted(
                loss.copies, key=lambda c: (c[0].path, c[0].line)))
        cut, known = self._why(event, loss), Known.DERIVED
        if cut is None:
            cut, known = self._of_unknown(event, loss), Known.GUESSED
        act.cut = Cut(cut[0], cut[1].spot, known) if cut is not None else None

    def _why(self, event: Event, loss: Value | None) -> tuple[str, Event] | None:
        """Why the value that an event sends backward has no graph to a model, and where that became so."""
        if isinstance(loss, Operation) and loss.op == "item":
            return "it is a Python number (.item(), float()), which has no graph", event
        if not isinstance(loss, Tensor):
            return None
        made = next((e for e in self._fresh if _becomes(e.result, loss)), None)
        if made is not None and _of_numbers(made.args[0] if made.args else None):
            return f"a new tensor is made from the loss at line {made.line}", made
        cut = loss.grad is False or (loss.grad is None and self._of_cut_outputs(loss))
        if not cut or not loss.models or event.grad is False or self._of_inputs:
            return None  # the gradient of an input may be wanted
        return "it was detached, or computed without gradients or from an argmax", event

    def _of_unknown(self, event: Event, loss: Value | None) -> tuple[str, Event] | None:
        """The same of what was computed by a model that the text does not hold: no argument of the loss has a graph,
        and one lost it."""
        fresh = {id(e.result): e for e in self._fresh if e.args}
        if isinstance(loss, Symbol) and loss.name.startswith("item@"):
            return "it is a Python number (.item()), which has no graph", event
        if (made := fresh.get(id(loss))) is not None:
            return (f"a new tensor is made from the loss at line {made.line}", made) if _lost(made.args[0]) else None
        call = self._unknown.get(loss) if isinstance(loss, Symbol) else next(
            iter(self._losses.get(loss.site, ())), None) if isinstance(loss, Tensor) and not loss.models else None
        if call is None or call.grad is False:
            return ("the loss is computed where autograd records nothing", call) if call is not None else None
        lost = [_lost(fresh[id(a)].args[0] if id(a) in fresh else a) for a in call.args]
        return ("what the model gave was detached, or numbers and classes were made of it, before the loss", call) if (
            True in lost and False not in lost) else None

    def opaque(self) -> frozenset[Hashable]:
        """Values with a graph that go into an object (a distribution, a list): what comes out is not followed."""
        events = self._project.events
        handed = {id(a) for e in events for a in (*e.args, *e.kwargs.values())}
        followed = {id(e.receiver) for e in self._project.calls("log_prob", "rsample", "entropy")}
        into = [e for e in events if (e.kind == "store" and isinstance(e.receiver, Symbol)) or (
            e.kind == "call" and not isinstance(e.result, Tensor) and id(e.result) not in followed - handed)]
        return frozenset(t for e in into for v in (*e.args, *e.kwargs.values()) if isinstance(v, Tensor) and v.grad
                         for t in traces(v))

    def _updates(self) -> Iterator[tuple[list[Event], list[Value], list[Value]]]:
        """Events, losses and optimizers of each loop that trains, and of each step that Lightning drives."""
        for loop in self._project.training_loops:
            yield ([p.event for p in loop.places], [v for p in loop.backwards if (v := sent_backward(p.event))],
                   [o for p in loop.of("step") if (o := stepped(p.event))])
        made = [e for e in self._project.events if e.kind == "call" and e.function is not None
                and e.function.name == "configure_optimizers" and is_optimizer(e.result)]
        for root in self._project.roots if made else ():
            owner = root.function.owner if root.function is not None else None
            if root.framework == "training_step" and owner is not None and not BACKWARD & root.methods:
                given = root.result.items.get("loss") if isinstance(root.result, Table) else root.result
                yield ([p.event for p in root.places], [given] if given else [],
                       [e.result for e in made if e.result and e.function and e.function.owner in owner.lineage()])

    def cut_parts(self) -> Iterator[CutPart]:
        """Modules that an optimizer was given by themselves, and that what steps it only calls where autograd records
        nothing, or of whose outputs nothing with a graph comes to a loss."""
        for events, given, stepping in self._updates():
            calls = [e for e in events if e.method == "__call__" and isinstance(e.receiver, (Thing, Instance))]
            losses = [v for v in given if isinstance(v, Tensor)]
            known = len(losses) == len(given) and all(len(v.parents) < 55 for v in losses)
            sent = frozenset(s for v in losses for s in sites_of(v)) if known else None
            through = frozenset(m for v in losses for m in v.models)
            reached = {id(unwrap(e.receiver)) for e in calls if e.grad is not False and e.receiver is not None and not (
                sent is not None and e.result is not None and id(unwrap(e.receiver)) in through
                and all(isinstance(v, Tensor) and v.site not in sent for v in flat(e.result)))}
            draws = [e for e in events if e.method in DRAWS and e.grad is not False and _is_drawn(e)] if sent else []
            for optimizer in {id(o): o for o in stepping if isinstance(o, Thing)}.values():
                for draw in draws:
                    yield from self._drawn(draw, calls, sent or frozenset(), optimizer)
                for part in [m for p in held(optimizer) or () if not p.partial for m in p.modules]:
                    module = unwrap(part)
                    mine = [e for e in calls if e.receiver is not None and unwrap(e.receiver) is module]
                    inside = {id(m): m for m in submodules(module) or [module]}
                    if mine and all(_in_a_module(e) for e in mine) and _only_forward(module) and not (
                            reached & set(inside)) and not any(
                            m.state.get("frozen", False) is not False for m in inside.values()
                            if isinstance(m, (Thing, Instance))):
                        yield CutPart(str(optimizer.site), made_at(module), mine[0].spot)

    def _drawn(self, draw: Event, calls: list[Event], sent: frozenset[Site], optimizer: Thing) -> Iterator[CutPart]:
        """A draw without a gradient from what a model gave, which goes on into a module that the same optimizer holds
        and so to the loss; nobody asks how likely the draw was."""
        mine = set(parts_held(optimizer))
        of = drawn_from(draw.receiver) if draw.receiver else [t for t in draw.args if isinstance(t, Tensor)]
        told = any((draw.receiver is not None and e.receiver is draw.receiver) or draw.result in e.args
                   for e in self._project.calls("log_prob"))
        into = [e for e in calls if any(a == draw.result for v in e.args for a in flat(v)) and e.receiver is not None
                and isinstance(e.result, Tensor) and e.result.grad and e.result.site in sent
                and id(unwrap(e.receiver)) in mine]
        if into and not told and any(t.grad and t.models & mine for t in of):
            yield CutPart(str(optimizer.site), str(into[0].site), draw.spot, drawn=True)

    def handed(self) -> bool:
        """Whether a value with a graph is given to code that is not known."""
        prefixes, methods = harmless()
        return any(isinstance(v, Tensor) and v.grad and v.models for e in self._project.events
                   if e.kind == "call" and isinstance(e.receiver, (Symbol, type(None))) and e.method not in methods
                   and (e.receiver is not None or not e.name.startswith(prefixes))
                   for v in (*e.args, *e.kwargs.values()))

    def _of_cut_outputs(self, loss: Tensor) -> bool:
        """Whether it is a loss of torch between outputs that are cut and what a loader gave, which has no graph."""
        made = [e for e in self._losses.get(loss.site, ()) if e.result == loss]
        given = [(*e.args[:2], *e.kwargs.values()) for e in made if e.method != "requires_grad_"]
        return bool(given) and all(any(map(_of_model, values)) and all(map(_graphless, values)) for values in given)


def _lost(value: Value) -> bool | None:
    """Whether an output of an unknown call lost its graph; None of what has none for another reason."""
    if isinstance(value, Tensor):
        return True if value.grad is False and "integer" in value.tags else None if value.grad is False else False
    cut = False
    of: Value = value
    while isinstance(of, Symbol) and not (of.role == "call" and "@" not in of.name):
        cut = cut or of.name.partition("@")[0] in _CUTS
        of = of.parent if of.parent is not None else NONE
    return None if not isinstance(of, Symbol) else cut


def _is_drawn(event: Event) -> bool:
    """Whether a draw has no gradient though one could have had it: of what has `rsample`, or `torch.normal`."""
    if event.receiver is None:
        return event.name == "torch.normal"
    inner: Value | None = event.receiver
    while isinstance(inner, Thing) and inner.short in ("Independent", "TransformedDistribution"):
        inner = inner.argument(0, "base_distribution")
    return isinstance(inner, Thing) and inner.type.startswith("torch.distributions.") and inner.short in REPARAMETRISED


def _only_forward(module: Value) -> bool:
    """Whether a module has no other way in than its forward pass."""
    return isinstance(module, Thing) or (isinstance(module, Instance) and module.klass.info.methods.keys() <= {
        "__init__", "forward"})


def _in_a_module(event: Event) -> bool:
    """Whether a module does it for itself; a parameter that is made elsewhere is an input that is optimized, an image.
    """
    owner = event.function.owner if event.function is not None else None
    return owner is not None and owner.is_module


def _of_model(value: Value | None) -> bool:
    return isinstance(value, Tensor) and bool(value.models)


def _graphless(value: Value) -> bool:
    """Whether it has no graph: cut, or read from a loader."""
    if isinstance(value, Tensor):
        return value.grad is False or (value.grad is None and not value.models and "batch" in value.tags)
    return any(isinstance(p, Symbol) and p.role == "iteration" and p.name == "batch" for p in parts(value))


def _becomes(result: Value | None, loss: Tensor) -> bool:
    """Whether a new tensor is the loss, or what the loss is the mean or sum of."""
    return result is loss or (isinstance(result, Tensor) and result.site is not None and not loss.models
                              and (result.site == loss.site or result.site in loss.parents))


def _of_numbers(value: Value | None) -> bool:
    """Whether numbers were taken out of tensors: `.item()`, `.data`, `.detach()`, a loss itself."""
    if isinstance(value, Tensor):
        return "reduced" in value.tags or bool(value.models)
    if isinstance(value, Bag):
        return bool(value.items) and all(getattr(i, "op", "") == "item" for i in value.items)
    return getattr(value, "op", "") == "item"
