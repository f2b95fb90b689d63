"""The program of a text: the same entities and timeline that a live process fills."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from traindx_tools.knowledge.calls import effects, is_called_a_reference
from traindx_tools.on_code.answers import kept
from traindx_tools.on_code.filling.averages import averages
from traindx_tools.on_code.filling.axis_uses import axes_moved, axis_uses
from traindx_tools.on_code.filling.compiled_anew import by_value, compiled_anew
from traindx_tools.on_code.filling.constants import constants
from traindx_tools.on_code.filling.distances import code_lookups, distances, to_itself, whole_cuts
from traindx_tools.on_code.filling.dropout_calls import dropped
from traindx_tools.on_code.filling.engines import engine_loops, fields_dropped, own_losses
from traindx_tools.on_code.filling.entities import Entities, is_module
from traindx_tools.on_code.filling.graph_cuts import Cuts
from traindx_tools.on_code.filling.indexing import ignored, indexings
from traindx_tools.on_code.filling.keeping import kept_arrays, traces
from traindx_tools.on_code.filling.key_draws import shared_keys
from traindx_tools.on_code.filling.left_behind import left_behind
from traindx_tools.on_code.filling.loaders import loaders
from traindx_tools.on_code.filling.loop_exits import ways_out
from traindx_tools.on_code.filling.loss_calls import loss_calls, mismatches
from traindx_tools.on_code.filling.mask_uses import mask_uses
from traindx_tools.on_code.filling.metric_watchers import watches
from traindx_tools.on_code.filling.objectives import objectives
from traindx_tools.on_code.filling.paired_transforms import moved_alone, pairs_apart
from traindx_tools.on_code.filling.part_calls import output_layers, part_calls, timed_calls
from traindx_tools.on_code.filling.part_fits import alphabets, blank_uses, part_fits
from traindx_tools.on_code.filling.poles import half_updates, poles, rounded_numbers, scaled_gradients
from traindx_tools.on_code.filling.policy_values import bootstraps, own_ratios
from traindx_tools.on_code.filling.prepared_before import prepared_before
from traindx_tools.on_code.filling.rank_uses import collectives, left_by_one, rank_uses
from traindx_tools.on_code.filling.rate_products import rate_products
from traindx_tools.on_code.filling.restored import restored_lost
from traindx_tools.on_code.filling.resumes import resumes
from traindx_tools.on_code.filling.schedule_uses import (
    by_metric,
    formulas,
    hooked_schedules,
    in_epochs,
    schedule_uses,
    schedules_left,
    schedules_reset,
    windows,
)
from traindx_tools.on_code.filling.sections import Sections
from traindx_tools.on_code.filling.settings import text_switches, unread_settings
from traindx_tools.on_code.filling.sizes import sized_models
from traindx_tools.on_code.filling.spent_iterators import spent
from traindx_tools.on_code.filling.state_keys import state_keys
from traindx_tools.on_code.filling.states import running_states, states_back, states_skipped
from traindx_tools.on_code.filling.traced_code import traced_functions
from traindx_tools.on_code.filling.uncalled_methods import uncalled
from traindx_tools.on_code.filling.unregistered import collected, unregistered
from traindx_tools.on_code.filling.unused_results import unused_results
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project, TrainingLoop
from traindx_tools.on_code.trace import Block, Event
from traindx_tools.on_code.training import is_optimizer, is_scaler, is_scheduler, stepped
from traindx_tools.on_code.values import (
    UNKNOWN,
    Const,
    Instance,
    Operation,
    Parameters,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    parts,
    unwrap,
)
from traindx_tools.program.moments import Act, Section
from traindx_tools.program.parts import Alias
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

_ENTRY = frozenset({"chain", "backward", "manual_backward", "step", "zero_grad", "eval", "train", "__call__",
                    "load_state_dict"})


@kept
def program_of(project: Project) -> Program:
    """The program of a project that was followed; made once."""
    made = Program(_framework(project))
    entities = Entities(made)
    sections = Sections(made, entities)
    for loop in project.training_loops:
        _guess(loop, entities, sections)
    optimizers = [e for e in project.events if e.kind == "call" and isinstance(e.result, Thing)
                  and e.name == e.result.type and is_optimizer(e.result)]
    entities.ownership.expect(project, optimizers)
    _note_states(project, entities)
    sections.keeping.expect(project)
    sections.cuts = Cuts(project)
    made.cut_parts += sections.cuts.cut_parts()
    made.opaque, made.losses_handed = sections.cuts.opaque(), sections.cuts.handed()
    for root in project.roots:
        if _ENTRY & root.methods or root.framework:
            section = sections.of(root)
            if root.framework == "training_step":
                _by_hand(project, root, section)
            if section.items or root.framework:
                made.runs.append(section)
    for run in (r for r in made.runs if r.framework == "lightning"):
        _automatic(run, made, entities)
    in_runs = {id(o) for run in made.runs for a, _ in run.acts(Moment.MADE) for o in a.optimizers}
    acts = [a for event in optimizers for a in sections.made(event)]
    made.before += [a for a in acts if not any(id(o) in in_runs for o in a.optimizers)]
    made.aside += _aside(project, made, sections)
    filling = _Filling(project, made, entities, optimizers)
    asks = [(name, partial(ask, project)) for name, those in _OF_PROJECT.items() for ask in those]
    more = (*_WITH_MORE, *(_OF_JAX if _speaks_of_jax(project) else ()))
    for name, ask in (*asks, *((name, partial(ask, filling)) for name, ask in more)):
        try:
            getattr(made, name).extend(ask())
        except Exception as error:  # noqa: BLE001 - what one question cannot read must not silence the others
            made.failed.append(f"{name}: {type(error).__name__}: {error}")
    made.unknown += [f"{file.path} is followed in part only: {why}" for file, why in project.failures]
    made.unknown += [f"{o.kind}: which parameters it holds is not known" for o in made.optimizers if o.holds is None]
    made.unknown = list(dict.fromkeys(made.unknown))
    return made


_CHANGING = ("copy_", "lerp_", "add_", "sub_", "mul_", "data")
_SWITCHING = ("requires_grad", "requires_grad_")


def _note_states(project: Project, entities: Entities) -> None:
    """Which modules take weights from a file, and which those of another one, or are changed by hand."""
    for event in project.calls("load_state_dict"):
        inside = {id(p) for p in submodules(unwrap(event.receiver))} if event.receiver is not None else set()
        given = [p.name.partition("@")[0] for a in event.args[:1] for p in parts(a) if isinstance(p, Symbol)]
        read = any(n.endswith((".load", "load_file", "load_state_dict_from_url")) for n in given)
        entities.loaded |= inside
        (entities.from_files if read and "state_dict" not in given else entities.changed).update(inside)
    for event in project.events:
        of = event.receiver.state.get("of") if isinstance(event.receiver, Thing) else None
        if isinstance(of, Parameters) and event.method in (*_CHANGING, *_SWITCHING):
            inside = {id(p) for m in of.modules for p in submodules(unwrap(m))}
            entities.set_apart |= inside
            entities.changed |= inside if event.method in _CHANGING else set()


@dataclass(frozen=True, eq=False)
class _Filling:
    """What questions to a text ask."""

    project: Project
    made: Program
    entities: Entities
    optimizers: list[Event]

    @cached_property
    def look(self) -> Lookup:
        """Names by their places."""
        return lookup(self.project)


_OF_PROJECT: dict[str, tuple[Callable[[Project], Iterable[Any]], ...]] = {
    "drops": (dropped,), "collections": (collected, unregistered), "loaders": (loaders,), "averages": (averages,),
    "engine_loops": (engine_loops,), "own_losses": (own_losses,), "fields_dropped": (fields_dropped,),
    "collectives": (collectives,), "pairs_apart": (pairs_apart, moved_alone),
    "axes_moved": (axes_moved,), "mask_uses": (mask_uses,), "objectives": (objectives,), "bootstraps": (bootstraps,),
    "watches": (watches,), "rate_products": (rate_products,), "whole_cuts": (whole_cuts,), "distances": (distances,),
    "schedule_uses": (schedule_uses, schedules_reset, schedules_left, formulas, in_epochs, by_metric),
    "alphabets": (alphabets,),
    "blank_uses": (blank_uses,), "part_fits": (part_fits,), "text_switches": (text_switches,),
    "ways_out": (ways_out, left_by_one), "prepared_before": (prepared_before,), "rank_uses": (rank_uses,),
    "timed_calls": (timed_calls,), "kept_arrays": (kept_arrays,), "unused_results": (uncalled,),
    "own_ratios": (own_ratios,), "distances_to_itself": (to_itself,), "code_lookups": (code_lookups,),
    "sized_models": (sized_models,), "states_back": (states_back,), "lacks": (resumes,),
    "states_skipped": (states_skipped,), "unread_settings": (unread_settings,), "mismatches": (mismatches,),
    "running_states": (running_states,), "constants": (constants,), "hooked_schedules": (hooked_schedules,),
    "indexings": (indexings, ignored), "poles": (poles,), "half_updates": (half_updates,),
    "rounded": (rounded_numbers,), "scaled_gradients": (scaled_gradients,)}
"""Facts of the program that need nothing but the project, by their field."""
_Ask = Callable[[_Filling], Iterable[Any]]
_WITH_MORE: tuple[tuple[str, _Ask], ...] = (
    ("loss_calls", lambda f: loss_calls(f.project, f.entities)),
    ("axis_uses", lambda f: axis_uses(f.project, f.made.loss_calls)),
    ("output_layers", lambda f: output_layers(f.project, f.optimizers)),
    ("unused_results", lambda f: [*left_behind(f.project, f.look), *spent(f.look)]),
    ("aliases", lambda f: _aliases(f.project, f.entities)),
    ("part_calls", lambda f: part_calls(f.project, f.entities)),
    ("restored_lost", lambda f: restored_lost(f.project, f.look)))
"""Those that need more, in the order in which they are asked for: later ones may read earlier ones."""
_OF_JAX: tuple[tuple[str, _Ask], ...] = (
    ("traced", lambda f: traced_functions(f.project, f.look)),
    ("compiled_anew", lambda f: [*compiled_anew(f.look), *by_value(f.project)]),
    ("windows", lambda f: windows(f.project)),
    ("unused_results", lambda f: unused_results(f.project, f.look)),
    ("shared_keys", lambda f: [*shared_keys(f.project), *state_keys(f.look)]))


def _aliases(project: Project, entities: Entities) -> Iterator[Alias]:
    for event in project.events:
        if event.kind == "alias" and isinstance(event.node, ast.Assign) and (
                is_module(event.args[0]) or entities.is_met(event.args[0])):
            name, of = event.file.segment(event.node.targets[0]), event.file.segment(event.node.value)
            yield Alias(name, of, event.spot, entities.model(event.args[0]),
                        is_called_a_reference(name) and not is_called_a_reference(of),
                        any(f"{name}{use}(" in event.file.text for use in ("", ".eval", ".load_state_dict")))


def _speaks_of_jax(project: Project) -> bool:
    return any("jax" in f.text or "equinox" in f.text or "optax" in f.text for f in project.files)


def _aside(project: Project, program: Program, sections: Sections) -> list[Act]:
    """Where something is emptied, or a hook removed, in parts of the text that no run is known to come to."""
    if not any({Moment.KEPT, Moment.HOOKED} & r.has for r in program.runs):
        return []
    in_runs = {str(a.at) for r in program.runs for a, _ in r.acts(Moment.EMPTIED, Moment.UNHOOKED)}
    found: list[Act] = []
    by_call = {method: {e.moment for e in those} & {Moment.EMPTIED, Moment.UNHOOKED}
               for method, those in effects().items()}
    for event in project.events:
        moments = by_call.get(event.method) if event.kind == "call" else {Moment.EMPTIED}
        if not moments or str(event.site) in in_runs:
            continue
        if Moment.EMPTIED in moments and (kept := sections.keeping.emptied(event)) is not None:
            found.append(sections.keeps(event, Moment.EMPTIED, kept))
        elif Moment.UNHOOKED in moments and not event.args and not event.kwargs:
            found.append(sections.keeps(event, Moment.UNHOOKED, None))
    return found


def _framework(project: Project) -> str:
    """What trains: "torch", "jax", or "" for neither."""
    texts = {root.file.path: root.file.text for root in project.roots}.values()
    return next((name for name in ("torch", "jax") if any(name in text for text in texts)), "")


def _by_hand(project: Project, root: Block, section: Section) -> None:
    """Whether Lightning leaves the update to the module: `automatic_optimization = False`."""
    owner = root.function.owner if root.function is not None else None
    if owner is None or not owner.derives("LightningModule"):
        return
    section.framework = "lightning"
    said = [i.attrs.get("automatic_optimization") for i in project.instances if i.klass.info is owner]
    found = next((v for v in said if v is not None), None) or owner.attribute("automatic_optimization")
    if not isinstance(found, Const) or found.value is not False:
        return
    section.framework = "lightning manual"
    stores = [e for e in project.events if e.kind == "store" and e.name == "attribute.automatic_optimization"
              and isinstance(e.receiver, Instance) and e.receiver.klass.info is owner]
    section.because = stores[0].spot if stores else section.at


def _automatic(run: Section, program: Program, entities: Entities) -> None:
    """What Lightning does with what `training_step` returned: it sends that backward and steps the optimizers."""
    loop = next((i for i in run.items if isinstance(i, Section)), None)
    if loop is None:  # the function is known, its loop is not
        return
    loss = next((b.result for b in loop.origin.body if isinstance(b, Block)), None)
    loss = loss.items.get("loss") if isinstance(loss, Table) else loss
    if not isinstance(loss, (Tensor, Symbol, Operation)):
        return
    home = run.name.rpartition(".")[0] + ".configure_optimizers"
    given = [o for r in program.runs if r.name == home for a, _ in r.acts(Moment.MADE) for o in a.optimizers]
    sent = Act(Moment.BACKWARD, loop.at, "training_step", models=entities.reached(loss), traces=traces(loss),
               reached=loss.models if isinstance(loss, Tensor) else frozenset())
    loop.items += [sent, Act(Moment.STEP, loop.at, "training_step", optimizers=tuple(given))]
    loop.has, run.has = (s.has | {Moment.BACKWARD, Moment.STEP} for s in (loop, run))


def _guess(loop: TrainingLoop, entities: Entities, sections: Sections) -> None:
    """Unknown things that must be optimizers: something steps after backward, and nothing known does."""
    engines = {e.receiver for e in (p.event for p in loop.backwards)
               if isinstance(e.receiver, Symbol) and e.receiver != UNKNOWN}  # fmt: skip
    for place in loop.of("step"):
        event = place.event
        given: Value | None = event.args[0] if event.args else None
        if is_scaler(event.receiver) and isinstance(given, Symbol) and given != UNKNOWN:
            sections.guessed.setdefault(given, entities.optimizer(given, guessed=True))
        owner = event.receiver
        if isinstance(owner, Symbol) and owner in engines:
            _engine(owner, entities, sections)
        if isinstance(owner, Thing) and owner.state.get("engine"):
            _engine(owner, entities, sections)
    if any(stepped(p.event) for p in loop.of("step")) or not loop.backwards:
        return
    first = loop.backwards[0].order
    asked = {p.event.receiver for p in loop.of("get_lr", "get_last_lr") if isinstance(p.event.receiver, Symbol)}
    counted = {p.event.receiver for p in loop.of("step") if p.event.args and isinstance(p.event.receiver, Symbol)}
    schedules = asked | counted  # an optimizer takes a closure at most, and tells no learning rate by a call
    after = [p.event.receiver for p in loop.of("step") if p.order > first and not p.event.args
             and isinstance(p.event.receiver, Symbol) and p.event.receiver != UNKNOWN
             and p.event.receiver not in schedules and not is_scheduler(p.event.receiver)]  # fmt: skip
    if after and after[0] not in sections.guessed and isinstance(after[0], Symbol):
        sections.guessed[after[0]] = entities.optimizer(after[0], guessed=True)


def _engine(value: Symbol | Thing, entities: Entities, sections: Sections) -> None:
    """What has both backward and step clears the gradients itself."""
    made = entities.optimizer(value, guessed=True)
    made.clears_itself = True
    if isinstance(value, Symbol):
        sections.guessed[value] = made

