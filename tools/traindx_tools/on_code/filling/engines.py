"""Training loops that an engine (accelerate's Accelerator, Lightning's Fabric) drives, and what goes past it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.knowledge.tables import words
from traindx_tools.on_code.definitions import FunctionInfo
from traindx_tools.on_code.project import Project, TrainingLoop
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.trace import Event, Place
from traindx_tools.on_code.training import is_optimizer, is_scheduler, stepped
from traindx_tools.on_code.values import (
    Const,
    Function,
    Instance,
    Operation,
    Parameters,
    Symbol,
    Tensor,
    Thing,
    Value,
    library_of,
    number,
    parts,
    unwrap,
)
from traindx_tools.program.driving import EngineLoop, FieldDropped, Left, OwnLoss
from traindx_tools.program.moments import Spot

_ENGINES = ("Accelerator", "Fabric")
_WRAPS = ("prepare", "setup", "prepare_optimizer", "prepare_model", "prepare_data_loader", "setup_module",
          "setup_dataloaders")
_SCALED = frozenset({"fp16", "16-mixed", "16"})
_CLIPS = ("clip_grad_norm_", "clip_grad_value_")
_MIXED = _SCALED | {"bf16", "bf16-mixed"}
_HF = "transformers."
_TRAINERS = frozenset({"transformers.Trainer", "transformers.Seq2SeqTrainer"})
_SAYS_SO = re.compile(r"loss_is_scaled_for_ga|model_accepts_loss_kwargs|accepts_loss_kwargs|compute_loss_func")
_SHARES = ("num_processes", "process_index", "split_between", "DistributedSampler", "world_size", "local_rank")


def engine_loops(project: Project) -> Iterator[EngineLoop]:
    """Each loop that trains what an engine wrapped."""
    made = [e.result for e in project.events if isinstance(e.result, Thing) and e.result.short in _ENGINES
            and e.name == e.result.type]
    wrapped = [v for e in project.calls(*_WRAPS) if isinstance(e.receiver, Thing) and e.receiver.short in _ENGINES
               for v in (*e.args, *e.kwargs.values())]
    for loop in project.training_loops if made and wrapped else ():
        engine = next((p.event.receiver for p in loop.backwards if any(p.event.receiver is m for m in made)), made[0])
        if isinstance(engine, Thing):
            yield _read(project, loop, engine, wrapped)
    trainers = [e.result for e in project.calls("Trainer") if isinstance(e.result, Thing)]
    trainers = [t for t in trainers if _precision(t) in _SCALED]
    for event in project.calls(*_CLIPS) if trainers else ():
        if event.function is not None and event.function.name == "on_after_backward" and _bounds(event):
            yield EngineLoop(event.spot, "Trainer", str(trainers[0].site), precision=_precision(trainers[0]),
                             scales=True, clip=event.spot)


def own_losses(project: Project) -> Iterator[OwnLoss]:
    """Losses that a Trainer of transformers takes from the project's own `compute_loss` as divided by the items of the
    whole batch: it does so where the model takes such arguments, which its own models do."""
    if any(file.mentions(_SAYS_SO) for file in project.files):
        return
    for event in project.events:
        made, arguments = event.result, event.kwargs.get("args")
        if event.kind != "call" or not isinstance(made, Instance) or not isinstance(arguments, Thing):
            continue
        window = number(arguments.kwargs.get("gradient_accumulation_steps"))
        own = _own_loss(made)
        if window is None or window < 2 or own is None or not library_of(event.kwargs.get("model")).startswith(_HF):
            continue
        said = {n.id if isinstance(n, ast.Name) else getattr(n, "attr", "") for n in below(own.node)}
        if not said & {"num_items_in_batch", "super", "gradient_accumulation_steps"}:
            yield OwnLoss(Spot(own.file.path, own.node.lineno, None, own.file.line(own.node.lineno).strip()[:200],
                               own.qualified), int(window), str(arguments.site))


def fields_dropped(project: Project) -> Iterator[FieldDropped]:
    """Fields of the rows that a Trainer of transformers leaves out, for the model's forward has no such argument, and
    that the project's own `compute_loss` asks for with a default."""
    for event in project.events:
        made, arguments, model = event.result, event.kwargs.get("args"), event.kwargs.get("model")
        if event.kind != "call" or not isinstance(made, Instance) or not isinstance(arguments, Thing):
            continue
        own, takes = _own_loss(made), _taken_by(model)
        left = arguments.kwargs.get("remove_unused_columns", Const(True)) == Const(True)
        if own is None or takes is None or not left or "label_names" in arguments.kwargs:
            continue
        gathered = _gathered(event.kwargs.get("data_collator"))
        for call, field in _asked_for(own):
            if field not in takes and (gathered is None or field in gathered):
                yield FieldDropped(field, own.file.segment(call), syntax(own.file).spot(call), str(event.site))


def _taken_by(model: Value | None) -> frozenset[str] | None:
    """What a model's forward takes; None where that is not known, or all."""
    if library_of(model).startswith(_HF):
        return words("followed.toml", "model_arguments")
    forward = model.klass.info.method("forward") if isinstance(model, Instance) else None
    if forward is None or forward.info.node.args.kwarg is not None:
        return None
    return frozenset({"label", "label_ids", "labels", *forward.info.parameters})


def _gathered(collator: Value | None) -> frozenset[str] | None:
    """What a function of the project that makes batches reads of the rows; None where there is none."""
    node = collator.info.node if isinstance(collator, Function) else \
        collator.klass.info.node if isinstance(collator, Instance) else None
    if node is None:
        return None
    read = [n.slice for n in below(node) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load)]
    read += [n.left for n in below(node) if isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.In)]
    return frozenset(str(n.value) for n in read if isinstance(n, ast.Constant))


def _asked_for(own: FunctionInfo) -> Iterator[tuple[ast.Call, str]]:
    """The fields that a method takes out of its inputs and can do without."""
    inputs = own.parameters[2] if len(own.parameters) > 2 else ""
    for call in (n for n in below(own.node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)):
        name, given = call.func, call.args
        asks = isinstance(name, ast.Attribute) and (name.attr == "get" or (name.attr == "pop" and len(given) > 1))
        owner = name.value if isinstance(name, ast.Attribute) else None
        if asks and isinstance(owner, ast.Name) and owner.id == inputs and given and isinstance(given[0], ast.Constant):
            yield call, str(given[0].value)


def _own_loss(made: Instance) -> FunctionInfo | None:
    """The `compute_loss` of the project that a Trainer of transformers has."""
    methods = [c.methods["compute_loss"].info for c in made.klass.info.lineage() if "compute_loss" in c.methods]
    owner = methods[0].owner if methods else None
    return methods[0] if owner is not None and owner.foreign_bases & _TRAINERS else None


def _precision(engine: Thing) -> str:
    said = engine.kwargs.get("mixed_precision") or engine.kwargs.get("precision")
    return str(said.value) if isinstance(said, Const) and str(said.value) in _MIXED else ""


def _bounds(event: Event) -> bool:
    """Whether a clip of torch does more than measure."""
    return event.name.startswith("torch.nn.utils") and number(event.argument(1, "max_norm")) != float("inf")


def _read(project: Project, loop: TrainingLoop, engine: Thing, wrapped: list[Value]) -> EngineLoop:
    found = EngineLoop(loop.block.spot, engine.short, str(engine.site))
    found.precision = _precision(engine)
    found.scales = found.precision in _SCALED
    found.window, found.window_known = _window(engine)
    for place in loop.backwards:
        found.accumulates = found.accumulates or _inside_accumulate(place)
        sent = place.event.receiver
        if isinstance(sent, Tensor) and not place.branches and "scaled" not in sent.tags:
            found.plain = place.event.spot
        elif sent is engine:
            found.own = place.event.spot
    for place in loop.of("step"):
        what = place.event.receiver if is_scheduler(place.event.receiver) else stepped(place.event)
        if isinstance(what, Thing) and (is_optimizer(what) or is_scheduler(what)):
            kind = "scheduler" if is_scheduler(what) else "optimizer"
            left = Left(kind, place.event.text, place.event.spot, _in(what, wrapped),
                        _guarded(loop, place), _inside_accumulate(place), _in_updates(what))
            found.steps.append(left)
            held = what.args[0] if what.args else None
            model = unwrap(held.modules[0]) if isinstance(held, Parameters) and len(held.modules) == 1 else None
            if kind == "optimizer" and isinstance(model, (Thing, Instance)) and (
                    _in(what, wrapped) and not _in(model, wrapped)):
                found.model = str(model.site)
    divides = any(p.event.receiver is engine for p in loop.of("unscale_gradients", "clip_gradients", *_CLIPS))
    if found.own is not None and found.scales and not divides:
        found.clip = next((p.event.spot for p in loop.of(*_CLIPS) if _bounds(p.event)), None)
    shared = any(word in f.text for f in project.files for word in _SHARES)
    for block in {id(b): b for p in loop.backwards for b in p.loops}.values():
        loader = block.subject
        plain = isinstance(loader, Thing) and loader.short == "DataLoader" and not shared
        if plain and isinstance(loader, Thing) and not _in(loader, wrapped) and not (
                {"sampler", "batch_sampler"} & set(loader.kwargs)):
            found.loader = str(loader.site)
    found.trains_wrapped = any(s.wrapped for s in found.steps)
    return found


def _guarded(loop: TrainingLoop, place: Place) -> bool:
    """Whether a condition in the loop that sends losses backward, or another loop, decides about a step."""
    inner = {id(p.loops[-1]) for p in loop.backwards if p.loops}
    if not place.loops or id(place.loops[-1]) not in inner:
        return True
    return any(b.kind == "branch" for b in place.path[place.path.index(place.loops[-1]):])


def _in(value: Value, wrapped: list[Value]) -> bool:
    prepared = isinstance(value, Thing) and bool(value.state.get("prepared"))
    return prepared or any(unwrap(w) is unwrap(value) for w in wrapped)


def _window(engine: Thing) -> tuple[float | None, bool]:
    """Micro-batches in one update (None: more than one may be), and whether that is fixed."""
    said = engine.kwargs.get("gradient_accumulation_steps") or engine.kwargs.get("gradient_accumulation_plugin")
    if isinstance(said, Thing):
        said = said.argument(0, "num_steps")
    return (1.0, True) if said is None else (number(said), isinstance(said, Const) and said.fixed)


def _inside_accumulate(place: Place) -> bool:
    return any(b.kind == "with" and isinstance(b.subject, Symbol) and b.subject.name.startswith("accumulate@")
               for b in place.path)


def _in_updates(schedule: Thing) -> bool:
    """Whether a number that it was given was divided."""
    given = [*schedule.args[1:], *schedule.kwargs.values()]
    return any(isinstance(p, Operation) and p.op in ("//", "/") for v in given for p in parts(v))
