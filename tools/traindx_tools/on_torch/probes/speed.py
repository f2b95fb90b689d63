"""The speed probes: host times of steps and recompilations always, one traced step for synchronisations on demand."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils.data import dataloader as torch_dataloader

from traindx_tools.finding import Finding
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import (
    t851_waiting_for_data,
    t852_host_synchronisation,
    t853_recompilations,
    t854_straggling_steps,
)
from traindx_tools.on_torch.speed.clock import StepClock
from traindx_tools.on_torch.speed.compilations import compiles, recompilations
from traindx_tools.on_torch.speed.synchronisations import SynchronisationTrace

SOURCE = "speed probe"
WARM_UP = 10
METRIC_INTERVAL = 50


class SpeedProbe(TorchProbe):
    """Times steps and the DataLoader by the host's clock; asks dynamo for its record when the program ends."""

    name = "speed"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.clock = StepClock()
        _time_loader(self.clock)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        if optimizer is not self.scene.optimizers[0]:
            return
        self.clock.stepped(self.scene.step, time.perf_counter())
        if self.scene.step % METRIC_INTERVAL == 0 and self.clock.seconds:
            self.scene.recorder.metrics(self.scene.step, {"step_time": self.clock.seconds[-1],
                                                          "data_time": self.clock.waits[-1]})

    def finish(self) -> Iterable[Finding]:
        steps, seconds, waits = self.clock.arrays(WARM_UP)
        rank, at = self.scene.recorder.rank, list(steps)
        yield from t851_waiting_for_data.check(at, list(seconds), list(waits), SOURCE, rank, self._on_device())
        yield from t853_recompilations.check(recompilations(), self.scene.step, SOURCE, rank)
        yield from t854_straggling_steps.check(at, list(seconds), SOURCE, rank)

    def _on_device(self) -> bool:
        first = (next(m.parameters(), None) for m in self.scene.models)
        return any(p is not None and p.device.type not in ("cpu", "meta") for p in first)


class SynchronisationProbe(TorchProbe):
    """Traces one step, from the end of step `WARM_UP` to the end of the next; a program that compiles is left alone."""

    name = "synchronisation"

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._trace: Any = None
        self._done = False

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        if self._done or self.scene.step < WARM_UP or optimizer is not self.scene.optimizers[0]:
            return
        if self._trace is None:
            if compiles() or any(hasattr(m, "_orig_mod") for m in self.scene.models):
                self._done = True
                return
            self._trace = SynchronisationTrace()
            self._trace.__enter__()
            return
        self._stop()
        found = t852_host_synchronisation.check(self._trace.lines, self._trace.on_device, self.scene.step, SOURCE,
                                                self.scene.recorder.rank)
        for finding in found:
            self.scene.recorder.finding(finding)

    def finish(self) -> Iterable[Finding]:
        self._stop()
        return ()

    def let_go(self) -> None:
        """Takes the trace off the stack."""
        self._stop()

    def _stop(self) -> None:
        if self._trace is not None and not self._done:
            self._trace.__exit__(None, None, None)
        self._done = True


_TIMED: list[StepClock] = []


def _time_loader(clock: StepClock) -> None:
    """Times `DataLoader` iterators for this clock. Patched once in a process; the newest clock is told."""
    _TIMED[:] = [clock]
    owner: Any = torch_dataloader._BaseDataLoaderIter
    for kind in (owner, *owner.__subclasses__()):
        if "_next_data" in vars(kind) and not hasattr(kind._next_data, "_traindx"):
            kind._next_data = _timed(kind._next_data)


def _timed(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def following(iterator: Any) -> Any:
        started = time.perf_counter()
        try:
            return original(iterator)
        finally:
            if _TIMED:
                _TIMED[0].waited(time.perf_counter() - started)

    following._traindx = True  # type: ignore[attr-defined]
    return following
