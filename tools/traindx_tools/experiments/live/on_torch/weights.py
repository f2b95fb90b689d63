"""Changes to parameters by the path of their module: frozen, thawed, reinitialised; and to averages of weights."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from typing import Any

import torch

from traindx_tools.experiments.live.on_torch.gradients import parameters_of
from traindx_tools.experiments.live.on_torch.stage import OnTorch
from traindx_tools.on_torch.structure import modules_of

OWN_SEED = 977_000
"""Added to the seed of fresh values: a program that is seeded with 0 would draw the very values that it had."""


class _OfModules(OnTorch):
    """Something about the modules whose path the pattern `module` matches."""

    def attach(self) -> None:
        self.chosen: dict[str, torch.nn.Parameter] = {}
        self.listen("model_found", self._find)
        self.ledger.unseen = "no model of torch was called"

    def _find(self, model: torch.nn.Module) -> None:
        pattern = str(self.option("module"))
        modules = [(path, m) for path, m in modules_of(model) if path and fnmatch.fnmatchcase(path, pattern)]
        parameters = chosen_parameters(model, pattern)
        if not parameters:
            names = [path for path, _ in modules_of(model) if path][:12]
            self.ledger.not_here(f"{pattern!r} matches no module with parameters of {type(model).__name__}; it "
                                 f"has {', '.join(names) or 'none'}")
            return
        self.chosen.update(parameters)
        self.found(model, modules, parameters)

    def found(self, model: torch.nn.Module, modules: list[tuple[str, torch.nn.Module]],
              parameters: dict[str, torch.nn.Parameter]) -> None:
        """Modules of one model that match, before its first call."""


class Frozen(_OfModules):
    """Parameters keep their values: their gradients are gone before anything uses them.

    `requires_grad` stays as it is: data-parallel wrappers count on it.
    """

    def attach(self) -> None:
        super().attach()
        self.listen("after_backward", self._drop)
        self.listen("before_step", self._drop)

    def found(self, model: Any, modules: Any, parameters: dict[str, torch.nn.Parameter]) -> None:
        if not any(p.requires_grad for p in parameters.values()):
            self.ledger.not_here(f"the {len(parameters)} parameters that match {self.option('module')!r} have "
                                 "requires_grad=False: they are frozen already")

    def _drop(self, _: Any) -> None:
        dropped = 0
        for parameter in self.chosen.values():
            if parameter.grad is not None:
                parameter.grad = None
                dropped += 1
        if dropped:
            self.ledger.held(f"{len(self.chosen)} parameters: {', '.join(list(self.chosen)[:4])}")


class Thawed(_OfModules):
    """Parameters that were frozen are trained: they get gradients, and a place in the optimizer's first group."""

    def attach(self) -> None:
        super().attach()
        self._added: dict[str, torch.nn.Parameter] = {}
        self._passes = 0
        self.listen("optimizer_made", lambda _: None)
        self.listen("after_backward", self._look)

    def found(self, model: Any, modules: Any, parameters: dict[str, torch.nn.Parameter]) -> None:
        frozen = {n: p for n, p in parameters.items() if not p.requires_grad and p.is_floating_point()}
        if not frozen:
            self.ledger.not_here(f"the {len(parameters)} parameters that match {self.option('module')!r} have "
                                 "requires_grad=True: they are trained already")
            return
        if any(type(m).__name__ in ("DistributedDataParallel", "FullyShardedDataParallel")
               for m in self.stage.wrappers_of(model)):
            self.ledger.cannot("the model is wrapped for data parallelism, which fixed what has gradients before")
            return
        held = {id(p) for p in parameters_of(self.stage.optimizers)}
        missing = [p for p in frozen.values() if id(p) not in held]
        if missing and len(self.stage.optimizers) != 1:
            self.ledger.cannot(f"no optimizer holds them, and which of {len(self.stage.optimizers)} should is not "
                               "known")
            return
        for parameter in frozen.values():
            parameter.requires_grad_(True)
        if missing:
            self.stage.optimizers[0].param_groups[0]["params"].extend(missing)
        self._added = frozen

    def _look(self, _: Any) -> None:
        if not self._added:
            return
        self._passes += 1
        if any(p.grad is not None for p in self._added.values()):
            self.ledger.held(f"{len(self._added)} parameters: {', '.join(list(self._added)[:4])}")
        elif self._passes == 4 and not self.ledger.times:
            self.ledger.cannot("no gradient reaches them: the program computes them without gradients, or detaches "
                               "what they give")


class Reinitialised(_OfModules):
    """Modules start from fresh values, the same on each rank; the draws of the training stay what they were."""

    def found(self, model: Any, modules: list[tuple[str, torch.nn.Module]],
              parameters: dict[str, torch.nn.Parameter]) -> None:
        made = _makers(model, modules)
        reached = {id(p) for m, _ in made for p in m._parameters.values() if p is not None}
        missing = [n for n, p in parameters.items() if id(p) not in reached]
        if missing:
            self.ledger.cannot(f"how {', '.join(missing[:6])} begin is not known: their modules have no "
                               "reset_parameters(), and the model has no _init_weights()")
            return
        devices = sorted({p.device.index or 0 for p in parameters.values() if p.is_cuda})
        with torch.random.fork_rng(devices=devices), torch.no_grad():
            generators = [torch.default_generator, *(torch.cuda.default_generators[d] for d in devices)]
            for generator in generators:  # torch.manual_seed would seed devices that are none of ours
                generator.manual_seed(OWN_SEED + int(self.option("seed", 0)))
            for _, make in made:
                make()
        self.ledger.held(f"{len(parameters)} parameters: {', '.join(list(parameters)[:4])}")


def _makers(model: Any, modules: list[tuple[str, torch.nn.Module]]) -> list[tuple[Any, Callable[[], Any]]]:
    """Each module with parameters of its own that can begin anew, and how."""
    found: dict[int, tuple[Any, Callable[[], Any]]] = {}
    for _, top in modules:
        for _, module in modules_of(top):
            if not any(p is not None for p in module._parameters.values()):
                continue
            reset = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
            if callable(reset):
                found[id(module)] = (module, reset)
            elif callable(getattr(model, "_init_weights", None)):
                found[id(module)] = (module, lambda m=module: model._init_weights(m))  # type: ignore[misc]
    return list(found.values())


class NoAverage(OnTorch):
    """Averages of weights are the weights as they are."""

    def attach(self) -> None:
        from torch.optim import swa_utils

        self.patches.replace(swa_utils.AveragedModel, "update_parameters", self._update)
        self.ledger.unseen = ("no AveragedModel of torch was updated: an average that the program keeps by hand is not "
                              "reached")

    def _update(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def update_parameters(averaged: Any, model: torch.nn.Module) -> None:
            if averaged.n_averaged == 0:  # the first update copies anyway
                self.ledger.held()
                original(averaged, model)
                return
            pairs = list(zip(averaged.module.parameters(), model.parameters(), strict=False))
            with torch.no_grad():
                for average, now in pairs:
                    average.copy_(now.to(average.device))
                for kept, buffer in zip(averaged.module.buffers(), model.buffers(), strict=False):
                    kept.copy_(buffer.to(kept.device))
            averaged.n_averaged += 1
            self.ledger.held()

        return update_parameters


def chosen_parameters(model: torch.nn.Module, pattern: str) -> dict[str, torch.nn.Parameter]:
    """By path: the parameters below modules that match, and those whose own path does."""
    found: dict[str, torch.nn.Parameter] = {}
    inside: list[str] = []
    for path, module in modules_of(model):
        if path and fnmatch.fnmatchcase(path, pattern):
            inside.append(path)
        below = any(path == p or path.startswith(p + ".") for p in inside)
        for name, parameter in module._parameters.items():
            whole = f"{path}.{name}" if path else name
            if parameter is not None and (below or fnmatch.fnmatchcase(whole, pattern)):
                found[whole] = parameter
    return found
