"""Values of the follower as entities of the program: one entity for each object."""

from __future__ import annotations

from typing import Any

from traindx_tools.knowledge.fetching import keeps_statistics
from traindx_tools.on_code import names
from traindx_tools.on_code.filling.keeping import born_in
from traindx_tools.on_code.filling.ownership import Ownership, given, is_grouped
from traindx_tools.on_code.layers import MODE_DEPENDENT, with_parameters
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.optimizer_parameters import held, modules_of
from traindx_tools.on_code.training import is_optimizer, is_scaler, is_scheduler
from traindx_tools.on_code.values import (
    UNKNOWN,
    Bag,
    Instance,
    Method,
    Parameters,
    Symbol,
    Table,
    Tensor,
    Thing,
    Value,
    number,
    truth,
    unwrap,
)
from traindx_tools.program.entities import Model, Optimizer, Scaler, Schedule
from traindx_tools.program.known import Known
from traindx_tools.program.program import Program

ENGINES = ("Accelerator", "Fabric")


class Entities:
    """The entities of a program, made when they are first met."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._optimizers: dict[object, Optimizer] = {}
        self._models: dict[object, Model] = {}
        self._scalers: dict[object, Scaler] = {}
        self._schedules: dict[object, Schedule] = {}
        self.ownership = Ownership()
        self.loaded: set[int] = set()
        """Identities of the modules, with all their parts, that take weights from a file."""
        self.from_files: set[int] = set()
        """Of those the ones whose weights are read from a file."""
        self.changed: set[int] = set()
        """Identities of the modules whose parameters are changed in place, or that take the state of another one."""
        self.set_apart: set[int] = set()
        """Identities of the modules whose parameters are frozen one by one, or changed by hand."""
        self._kept: list[Value] = []
        """Values whose identities are keys."""

    # ---- optimizers

    def optimizers(self, value: Value | None) -> tuple[Optimizer, ...]:
        """The optimizers that a value certainly is: one, or each of a list."""
        if value is None:
            return ()
        if isinstance(value, (Bag, Table)):
            items = value.items if isinstance(value, Bag) else list(value.items.values())
            found = [self.optimizers(i) for i in items]
            return tuple(o for f in found for o in f) if items and all(found) else ()
        return (self.optimizer(value),) if is_optimizer(value) else ()

    def optimizer(self, value: Value, guessed: bool = False) -> Optimizer:
        """The optimizer of a value that is one, or is taken for one."""
        inner = delegate(unwrap(value))
        key = self._key(inner)
        if key not in self._optimizers:
            self._optimizers[key] = made = self._optimizer(inner, guessed)
            self.program.optimizers.append(made)
        return self._optimizers[key]

    def known_optimizer(self, value: Value | None) -> Optimizer | None:
        """The entity of a value that was taken for an optimizer before."""
        if value is None or value == UNKNOWN:
            return None
        return self._optimizers.get(self._key(delegate(unwrap(value))))

    def _optimizer(self, value: Value, guessed: bool) -> Optimizer:
        known = Known.GUESSED if guessed else Known.DERIVED
        if isinstance(value, Thing):
            modules = modules_of(value)
            models = None if modules is None else tuple(self.model(m) for m in modules)
            stateful = value.short != "SGD" or (number(value.argument(2, "momentum")) or 0.0) > 0
            annotated = bool(value.state.get("annotation"))
            return Optimizer(value.short, made=None if annotated else str(value.site),
                             holds=None if annotated else models, stateful=stateful, made_in_a_loop=bool(value.born_in),
                             remade=_is_remade(value, modules), known=known, **_of_parameters(value))
        if isinstance(value, Instance):
            return Optimizer(value.klass.info.name, made=str(value.site), known=known)
        return Optimizer("optimizer", known=known)

    # ---- modules

    def model(self, value: Value) -> Model:
        """The module of a value."""
        inner = unwrap(value)
        key = self._key(inner)
        if key not in self._models:
            parts = submodules(inner) or [inner]
            self._kept += parts
            name = (inner.short if isinstance(inner, Thing) else inner.klass.info.name if isinstance(inner, Instance)
                    else getattr(inner, "name", "module"))
            site = getattr(inner, "site", None)
            made = Model(str(name), made=str(site) if site is not None else None, born_in=born_in(inner),
                         learning=frozenset(id(p) for p in parts if learns(p)), set_aside=self._set_aside(parts),
                         inside=frozenset(_identity(p) for p in parts), by_mode=layers_by_mode(parts),
                         layers_known=_are_known(parts), frozen=_is_frozen(inner), known=Known.DERIVED,
                         keeps_statistics=any(isinstance(p, Thing) and keeps_statistics(p.type) for p in parts))
            made.only_read = made.frozen and bool(made.inside & self.from_files) and not made.inside & self.changed
            event = self.ownership.born.get(key) if isinstance(key, int) else None
            if event is not None:
                made.born = event.spot
                if event.method == "deepcopy" and event.args and any(id(p) in self.changed for p in parts):
                    made.average_of = frozenset(map(_identity, submodules(unwrap(event.args[0]))))
            self._models[key] = made
            self.program.models.append(made)
        return self._models[key]

    def _set_aside(self, parts: list[Value]) -> str:
        known = [p for p in parts if isinstance(p, (Thing, Instance))]
        if any(p.state.get("frozen", False) is not False for p in known):
            return "frozen"
        if any(p.state.get("pretrained") for p in known):
            return "pretrained"
        if any(id(p) in self.changed for p in parts):
            return "changed by hand"
        return "loaded" if any(id(p) in self.loaded for p in parts) else ""

    def models(self, value: Value | None) -> tuple[Model, ...] | None:
        """The modules that a value is, or whose parameters it is; None where that is not known."""
        if isinstance(value, Parameters):
            return tuple(self.model(m) for m in value.modules)
        if isinstance(value, (Bag, Table)):
            items = value.items if isinstance(value, Bag) else list(value.items.values())
            found = [self.models(i) for i in items]
            return tuple(m for f in found if f for m in f) if found and None not in found else None
        return (self.model(value),) if value is not None and is_module(value) else None

    def is_met(self, value: Value) -> bool:
        """Whether it is a module by what was done with it."""
        return isinstance(value, (Thing, Instance)) and id(unwrap(value)) in self._models

    def is_called_module(self, value: Value) -> bool:
        """Whether what is called is a module: a known one, or something unknown whose parameters an optimizer holds."""
        if isinstance(value, Symbol):
            return value in self._models
        return isinstance(value, (Thing, Instance)) and is_module(value)

    def reached(self, loss: Value | None) -> tuple[Model, ...] | None:
        """The modules by which a loss was computed; None where that is not known."""
        if not isinstance(loss, Tensor) or not loss.models:
            return None
        found = [m for m in self._models.values() if m.inside & loss.models]
        return tuple(found) or None

    # ---- scalers, schedules

    def scaler(self, value: Value | None) -> Scaler | None:
        """The gradient scaler that a value is."""
        if value is None or not is_scaler(value):
            return None
        key = self._key(value)
        if key not in self._scalers:
            given = value.kwargs.get("enabled") if isinstance(value, Thing) else None
            made = Scaler(str(value.site) if isinstance(value, Thing) else None,
                          True if given is None else truth(given), Known.DERIVED)
            self._scalers[key] = made
            self.program.scalers.append(made)
        return self._scalers[key]

    def schedule(self, value: Value | None) -> Schedule | None:
        """The learning-rate schedule that a value is."""
        if value is None or not is_scheduler(value):
            return None
        key = self._key(value)
        if key not in self._schedules:
            kind = value.short if isinstance(value, Thing) else "schedule"
            made = Schedule(kind, made=str(value.site) if isinstance(value, (Thing, Instance)) else None,
                            known=Known.DERIVED)
            self._schedules[key] = made
            self.program.schedules.append(made)
        return self._schedules[key]

    def _key(self, value: Value) -> object:
        if isinstance(value, Symbol):
            return value
        self._kept.append(value)
        return id(value)


def delegate(value: Value) -> Value:
    """The optimizer that steps for one of the project's own class and shares its parameters (SAM, Lookahead, a warmup
    around another): clearing the one clears the other. The value itself where it holds none or several."""
    if not isinstance(value, Instance) or not is_optimizer(value):
        return value
    inner = [unwrap(v) for v in value.attrs.values() if is_optimizer(v)]
    return inner[0] if len(inner) == 1 and inner[0] is not value else value


def _of_parameters(optimizer: Thing) -> dict[str, Any]:
    """What an optimizer was given, and in what state that was then."""
    state = optimizer.state
    return {"given": tuple(given(optimizer)), "grouped": is_grouped(optimizer),
            "parts": frozenset(state.get("held_parts") or ()), "frozen": frozenset(state.get("frozen_parts") or ()),
            "by_gradient": any(p.only_trainable for p in held(optimizer) or ()),
            "nothing_trains": state.get("frozen_when_built") or "", "used_up": str(state.get("used_up") or "")}


def _is_remade(optimizer: Thing, modules: list[Value] | None) -> bool:
    """Whether it is made in a loop over modules that are older than its innermost turn."""
    if not modules or not optimizer.born_in:
        return False
    inner = optimizer.born_in[-1]
    return all(inner not in m.born_in if isinstance(m, (Thing, Instance)) else
               isinstance(m, Symbol) and m.role != "iteration" for m in modules)


def layers_by_mode(parts: list[Value]) -> dict[int, str]:
    """Of the parts of a module those that act otherwise in eval mode."""
    return {id(p): f"{p.short} (made at {p.site})" for p in parts if isinstance(p, Thing) and _acts_by_mode(p)}


def _acts_by_mode(layer: Thing) -> bool:
    if "InstanceNorm" in layer.short:
        return truth(layer.argument(4, "track_running_stats")) is True
    if layer.short.startswith(MODE_DEPENDENT):
        return not ("Dropout" in layer.short and number(layer.argument(0, "p")) == 0)
    drops = layer.short in ("LSTM", "GRU", "RNN") and number(layer.kwargs.get("dropout")) not in (None, 0.0)
    return drops or ("Transformer" in layer.short and "Encoder" in layer.short)


def _are_known(parts: list[Value]) -> bool:
    """Whether nothing inside a module is unknown: no foreign base, no part that came from outside."""
    for part in parts:
        if isinstance(part, Thing):
            if not part.type.startswith("torch.nn.") or part.short == "Module":
                return False
        elif isinstance(part, Instance):
            foreign = [b for b in part.klass.info.foreign_bases if not b.startswith("torch.nn.")]
            if foreign or any(isinstance(v, Symbol) and v.role in ("call", "parameter", "output")
                              for v in part.attrs.values()):
                return False
        else:
            return False
    return True


def _is_frozen(value: Value) -> bool:
    return isinstance(value, (Thing, Instance)) and bool(value.state.get("frozen"))


def learns(part: Value) -> bool:
    """Whether a part is a layer of torch with weights."""
    return isinstance(part, Thing) and part.type.startswith("torch.nn.") and with_parameters(part.short)


def is_module(value: Value) -> bool:
    """Whether a value certainly is a module (a wrapper around one is), or something unknown with an identity."""
    inner = unwrap(value)
    if isinstance(inner, Instance):
        return inner.klass.info.is_module
    if isinstance(inner, Thing):
        return bool(submodules(inner)) or names_a_module(inner.type) or bool(inner.state.get("pretrained"))
    return isinstance(inner, Symbol) and inner != UNKNOWN and not isinstance(inner, Method)


def names_a_module(type_name: str) -> bool:
    """Whether a class of an installed package is a module, by its home."""
    homes = ("torch.nn.", "timm.", "torchvision.models.", "peft.")
    return type_name.startswith(homes) and not names.is_optimizer(type_name)


def is_engine(value: Value | None) -> bool:
    """Whether a value owns backward and clipping for others."""
    if isinstance(value, Instance):
        return value.klass.info.derives("LightningModule")
    return isinstance(value, Thing) and (value.short in ENGINES or value.type.startswith("deepspeed."))


def _identity(value: Value) -> int:
    return hash(value) if isinstance(value, Symbol) else id(value)
