"""Writes a scenario: the passes, the update before them, and the state of the modules, as it is at this moment."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.live.step_file import MOST_BYTES, write_step
from traindx_tools.on_torch.replaying.kept import Passes, Scenario, Update
from traindx_tools.on_torch.snapshot.rerun import givens
from traindx_tools.on_torch.snapshot.state import Surroundings
from traindx_tools.on_torch.snapshot.tape import Call, Given, Op
from traindx_tools.on_torch.stored.host_state import Outside, attributes_of
from traindx_tools.on_torch.stored.modules import Met, Parameters
from traindx_tools.on_torch.stored.values import Writer


def keep(scenario: Scenario, met: Met, path: Path, *, most: int = MOST_BYTES) -> int:
    """Writes the step and returns the bytes of the file. Raises NotReplayable, TooLarge and OSError."""
    told, writer = told_of(scenario, met)
    return write_step(path, told, writer.sizes, writer.bytes_of, most)


def told_of(scenario: Scenario, met: Met) -> tuple[dict[str, Any], Writer]:
    """What the file says, and the tensors that it holds. Raises NotReplayable."""
    return _Keeping(scenario, met).told()


class _Keeping:
    def __init__(self, scenario: Scenario, met: Met) -> None:
        self._scenario, self._met = scenario, met
        update = scenario.update
        passes = [p for p in (scenario.passes, update.passes if update is not None else None) if p is not None]
        self._modules = list({id(m): m for p in passes for m in p.models()}.values())
        self._numbers = {id(m): i for i, m in enumerate(self._modules)}
        self._parameters = Parameters(self._modules, update.kept.groups if update is not None else ())
        self._writer = Writer(self._parameters, self._modules)
        self._given: frozenset[int] = frozenset()
        """Parameters whose value at the passes is kept by itself."""

    def told(self) -> tuple[dict[str, Any], Writer]:
        scenario, value = self._scenario, self._writer.value
        update, no_update = self._update()
        if scenario.symptom.kind == "parameters" and scenario.update is not None:
            self._given = frozenset(scenario.update.values)
        told = {
            "framework": "torch", "torch": torch.__version__,
            "symptom": {k: value(v) for k, v in asdict(scenario.symptom).items()},
            "modules": [self._module(m) for m in self._modules],
            "outside": value(Outside(self._modules).now()),
            "passes": self._passes(scenario.passes), "update": update, "no_update": no_update,
            "clipped": scenario.clipped, "surroundings": _of_the_process()}
        told["tensors"] = self._writer.table
        return told, self._writer

    def _module(self, module: torch.nn.Module) -> dict[str, Any]:
        value = self._writer.value
        return {**self._met.reference(module), "attributes": value(attributes_of(module)),
                "parameters": [[n, self._writer.tensor(p), p.requires_grad] for n, p in module.named_parameters()],
                "buffers": [[n, self._writer.tensor(b)] for n, b in module.named_buffers()]}

    # ---- passes

    def _passes(self, passes: Passes) -> dict[str, Any]:
        needed = passes.needed
        seen = {id(g.tensor): g for g in givens(needed)}
        for given in seen.values():
            if not given.unchanged and id(given.tensor) not in self._given:
                raise NotReplayable("what the step was given was changed in place since")
        constant = [g.tensor for i, g in seen.items() if i in passes.constant]
        numbers = {s: i for i, s in enumerate(dict.fromkeys(passes.noted.memory_of))}
        return {"entries": [self._entry(e) for e in needed], "slots": passes.noted.slots,
                "memory": [numbers[s] for s in passes.noted.memory_of],
                "roots": [[r.slot, self._writer.value(r.factor)] for r in passes.roots],
                "value": self._writer.value(passes.value), "dtype": self._writer.value(passes.dtype),
                "leftover": self._leftover(passes), "accumulates": passes.accumulates, "drawn": list(passes.drawn),
                "constant": [self._writer.value(Given(t, t._version)) for t in constant]}

    def _leftover(self, passes: Passes) -> list[Any]:
        owners = {id(p): p for p in self._parameters.all()}
        return [[self._writer.parameter(owners[i]), self._writer.tensor(g)] for i, g in passes.leftover.items()
                if i in owners]

    def _entry(self, entry: Op | Call) -> dict[str, Any]:
        value, drawn = self._writer.value, isinstance(entry, Op) and entry.drawn is not None
        told = {"args": value(entry.args, lenient=drawn), "kwargs": value(entry.kwargs, lenient=drawn),
                "results": list(entry.results), "gradients": entry.gradients,
                "place": None if entry.place is None else asdict(entry.place)}
        if isinstance(entry, Op):
            return {**told, "op": entry.func.name(), "drawn": value(entry.drawn)}
        parts = {id(m): n for n, m in entry.module.named_modules()}
        return {**told, "module": self._numbers[id(entry.module)], "around": self._around(entry.surroundings),
                "buffers": [[n, self._writer.tensor(b)] for n, b in entry.buffers.items()],
                "numbers": [[parts[id(m)], value(dict(n))] for m, n in entry.numbers if id(m) in parts]}

    def _around(self, around: Surroundings) -> dict[str, Any]:
        value, state = self._writer.value, around.random
        return {"cpu": value(state.cpu), "cuda": value(state.cuda), "numpy": value(state.numpy),
                "python": value(state.python), "autocast": value(around.autocast), "cached": around.cached}

    # ---- the update

    def _update(self) -> tuple[dict[str, Any] | None, str]:
        update = self._scenario.update
        if update is None:
            return None, self._scenario.no_update
        try:
            return self._of(update), self._scenario.no_update
        except NotReplayable as why:
            if self._scenario.symptom.kind == "parameters":
                raise
            return None, str(why)

    def _of(self, update: Update) -> dict[str, Any]:
        kept, writer = update.kept, self._writer
        names = [writer.parameter(p) for p in kept.parameters]
        at = {id(p): i for i, p in enumerate(kept.parameters)}
        groups = [{"params": [at[id(p)] for p in g["params"]],
                   "rest": [[k, writer.value(v)] for k, v in g.items() if k != "params"]} for g in kept.groups]
        passes, why = update.passes, ""
        try:
            self._given = frozenset(update.values)
            told = None if passes is None else self._passes(passes)
        except NotReplayable as error:
            told, why = None, str(error)
        finally:
            self._given = frozenset()
        return {"optimizer": f"{type(kept.optimizer).__module__}.{type(kept.optimizer).__qualname__}",
                "parameters": names, "now": [writer.tensor(p) for p in kept.parameters],
                "values": [writer.tensor(v) for v in kept.values], "groups": groups,
                "state": [[[k, writer.value(v)] for k, v in s.items()] for s in kept.state],
                "gradients": [None if g is None else writer.tensor(g) for g in update.gradients],
                "passes": told, "no_passes": why, "clipped": update.clipped}


def _of_the_process() -> dict[str, Any]:
    """What results depend on and no tensor holds."""
    return {"threads": torch.get_num_threads(), "matmul": torch.get_float32_matmul_precision(),
            "default": str(torch.get_default_dtype()).removeprefix("torch."),
            "deterministic": torch.are_deterministic_algorithms_enabled()}
