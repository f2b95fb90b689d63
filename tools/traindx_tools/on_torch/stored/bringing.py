"""Puts a stored step into a process of the same program: its modules get the values, and the passes their entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import torch

from traindx_tools.errors import UnreadableInput
from traindx_tools.experiments.replaying.symptom import Symptom
from traindx_tools.live.step_file import Stored
from traindx_tools.on_torch.nonfinite.places import Place
from traindx_tools.on_torch.replaying.kept import Passes, Root, Scenario, Update
from traindx_tools.on_torch.snapshot.replay import KeptStep
from traindx_tools.on_torch.snapshot.state import RandomState, Surroundings
from traindx_tools.on_torch.snapshot.tape import Call, Noted, Op, versions_of
from traindx_tools.on_torch.stored.host_state import Outside, set_attributes
from traindx_tools.on_torch.stored.modules import Met, NotFound, Parameters
from traindx_tools.on_torch.stored.values import Reader


@dataclass(frozen=True)
class Brought:
    """A step in this process. `changed`: plain attributes, globals and closures that had other values here."""

    scenario: Scenario
    changed: tuple[str, ...]
    remarks: tuple[str, ...] = field(default=())


def modules_of(stored: Stored, met: Met) -> list[torch.nn.Module]:
    """The modules of the step in this process. Raises NotFound as long as one was not called."""
    return [met.find(m) for m in stored.told["modules"]]


def bring(stored: Stored, met: Met, optimizer: torch.optim.Optimizer) -> Brought:
    """Sets modules, parameters and plain state to those of the step, and gives the scenario to be run.

    The modules of this process are changed for good: it has to be one that runs for this alone. Raises NotFound where
    the program has other modules or parameters, UnreadableInput where the file says what cannot be.
    """
    try:
        return _Bringing(stored, met, optimizer).brought()
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, RuntimeError) as error:
        raise UnreadableInput(f"{stored.path} does not fit this program or this version of torch "
                              f"({type(error).__name__}: {error})") from error


class _Bringing:
    def __init__(self, stored: Stored, met: Met, optimizer: torch.optim.Optimizer) -> None:
        self._told, self._optimizer = stored.told, optimizer
        self._modules = modules_of(stored, met)
        self._reader = Reader(stored, Parameters(self._modules, optimizer.param_groups), self._modules)

    def brought(self) -> Brought:
        told, remarks = self._told, []
        _surround(told["surroundings"])
        if told["torch"] != torch.__version__:
            remarks.append(f"it was captured with torch {told['torch']} and is replayed with {torch.__version__}")
        away = {t["device"] for t in told["tensors"]} - {str(self._reader.tensor(i).device)
                                                         for i in range(len(told["tensors"]))}
        if away:
            remarks.append(f"it was captured on {', '.join(sorted(away))}, which is not here: it runs on the CPU")
        changed: list[str] = []
        for module, about in zip(self._modules, told["modules"], strict=True):
            changed += self._fill(module, about)
        changed += Outside(self._modules).set_back(self._reader.value(told["outside"]))
        values = {k: self._reader.value(v) for k, v in told["symptom"].items()}
        symptom = Symptom(**{f.name: values[f.name] for f in fields(Symptom) if f.name in values})
        update = None if told["update"] is None else self._update(told["update"])
        passes = update.passes if symptom.kind == "parameters" and update is not None and update.passes is not None \
            else self._passes(told["passes"])
        return Brought(Scenario(symptom, passes, update, str(told["no_update"]), bool(told["clipped"])),
                       tuple(dict.fromkeys(changed)), tuple(remarks))

    def _fill(self, module: torch.nn.Module, about: Mapping[str, Any]) -> list[str]:
        parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
        with torch.no_grad():
            for name, number, gradient in about["parameters"]:
                _set(parameters.get(name), self._reader.tensor(number), name)
                parameters[name].requires_grad_(bool(gradient))
            for name, number in about["buffers"]:
                _set(buffers.get(name), self._reader.tensor(number), name)
        return set_attributes(module, self._reader.value(about["attributes"]))

    # ---- passes

    def _passes(self, told: Mapping[str, Any]) -> Passes:
        value = self._reader.value
        entries = [self._entry(e) for e in told["entries"]]
        slots, memory = int(told["slots"]), [int(n) for n in told["memory"]]
        if len(memory) != slots or any(not 0 <= s < slots for e in entries for s in e.results):
            raise ValueError("its numbers of tensors do not fit")
        constant = frozenset(id(value(t).tensor) for t in told["constant"])
        leftover = {id(self._reader.parameter(n)): self._reader.tensor(t) for n, t in told["leftover"]}
        return Passes(Noted(entries, slots, memory), tuple(Root(int(s), float(value(f))) for s, f in told["roots"]),
                      float(value(told["value"])), value(told["dtype"]), leftover, bool(told["accumulates"]),
                      tuple(int(i) for i in told["drawn"]), constant)

    def _entry(self, told: Mapping[str, Any]) -> Op | Call:
        value = self._reader.value
        args, kwargs = value(told["args"]), value(told["kwargs"])
        results, gradients = tuple(int(i) for i in told["results"]), bool(told["gradients"])
        place = None if told["place"] is None else Place(**told["place"])
        if "op" in told:
            drawn = value(told["drawn"])
            return Op(_operation(str(told["op"])), args, kwargs, results, gradients, place, drawn)
        module = self._modules[int(told["module"])]
        parts = dict(module.named_modules())
        numbers = tuple((parts[n], value(v)) for n, v in told["numbers"])
        buffers = {str(n): self._reader.tensor(t) for n, t in told["buffers"]}
        return Call(module, args, kwargs, results, gradients, place, self._around(told["around"]), buffers,
                    versions_of(module), numbers)

    def _around(self, told: Mapping[str, Any]) -> Surroundings:
        value = self._reader.value
        cuda = value(told["cuda"]) if torch.cuda.is_available() else None
        state = RandomState(value(told["cpu"]).cpu(), None if cuda is None else cuda.cpu(), value(told["numpy"]),
                            value(told["python"]))
        return Surroundings(state, value(told["autocast"]), bool(told["cached"]))

    # ---- the update

    def _update(self, told: Mapping[str, Any]) -> Update:
        value, tensor = self._reader.value, self._reader.tensor
        kind = f"{type(self._optimizer).__module__}.{type(self._optimizer).__qualname__}"
        if told["optimizer"] != kind:
            raise NotFound(f"the program's optimizer is a {kind} and was a {told['optimizer']}")
        parameters = [self._reader.parameter(n) for n in told["parameters"]]
        with torch.no_grad():
            for parameter, now in zip(parameters, told["now"], strict=True):
                _set(parameter, tensor(now), "a parameter of the optimizer")
        groups = [{**{k: value(v) for k, v in g["rest"]}, "params": [parameters[i] for i in g["params"]]}
                  for g in told["groups"]]
        state = [{k: value(v) for k, v in s} for s in told["state"]]
        kept = KeptStep(self._optimizer, groups, parameters, [tensor(v) for v in told["values"]], state)
        passes = None if told["passes"] is None else self._passes(told["passes"])
        return Update(kept, [None if g is None else tensor(g) for g in told["gradients"]], passes,
                      bool(told["clipped"]))


def _set(here: torch.Tensor | None, value: torch.Tensor, name: str) -> None:
    if here is None or here.shape != value.shape:
        found = "none" if here is None else str(list(here.shape))
        raise NotFound(f"`{name}` is {list(value.shape)} in the step and {found} in the program")
    if here.dtype != value.dtype:
        here.data = value.detach().to(here.device).clone()
    else:
        here.data.copy_(value)


def _operation(name: str) -> Any:
    """`aten::mul.Tensor`, or `aten::relu` for the default overload. Raises NotFound."""
    space, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    try:
        return getattr(getattr(getattr(torch.ops, space), base), overload or "default")
    except (AttributeError, RuntimeError) as error:
        raise NotFound(f"this torch has no operation {name}") from error


def _surround(told: Mapping[str, Any]) -> None:
    """The settings of the process that results depend on."""
    torch.set_num_threads(max(1, int(told["threads"])))
    torch.set_float32_matmul_precision(str(told["matmul"]))
    default = getattr(torch, str(told["default"]))
    if isinstance(default, torch.dtype):
        torch.set_default_dtype(default)
    torch.use_deterministic_algorithms(bool(told["deterministic"]), warn_only=True)

