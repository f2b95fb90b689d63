"""The memory probe: what grows by the step and which variable holds it; what memory was made of when it ran out."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from typing import Any

import torch

from traindx_tools.errors import UnreadableInput
from traindx_tools.finding import Finding
from traindx_tools.on_torch.cuda_memory.snapshot import DeviceMemory, from_plain
from traindx_tools.on_torch.memory.breakdown import MIB, memory_breakdown
from traindx_tools.on_torch.memory.census import Census, take_census
from traindx_tools.on_torch.memory.growth import growing, settled
from traindx_tools.on_torch.memory.saved import SavedActivations, saved_activations, table
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import (
    t801_graph_kept,
    t802_tensors_kept,
    t803_hooks_accumulate,
    t804_out_of_memory,
    t805_fragmentation,
    t806_memory_by_line,
)

SOURCE = "memory probe"
FIRST_LOOK = 4
MOST_SHARE = 0.01
"""Share of the run's time that looking may take, beyond `FREE_SECONDS`."""
FREE_SECONDS = 1.0
"""CPU seconds that looking may take whatever the run's length: about four looks at a large program."""
METRIC_INTERVAL = 50
_REQUEST = re.compile(r"[Tt]ried to allocate (\d+(?:\.\d+)?) (bytes|KiB|MiB|GiB)")
_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_OOM = ("out of memory", "can't allocate memory", "cannot allocate memory")


class MemoryProbe(TorchProbe):
    """Looks at the program's variables at steps 4, 8, 16, ...; records memory in MiB every 50 steps."""

    name = "memory"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._next = FIRST_LOOK
        self._looks: list[tuple[int, Census]] = []
        self._hooks: list[tuple[int, dict[str, int]]] = []
        self._told: set[tuple[str, str]] = set()
        """Rule and variable of what was reported."""
        self._history: dict[int, float] = {}
        self._started = time.perf_counter()
        self._spent = 0.0
        self._saved: SavedActivations | None = None
        self._saving: Any = None
        self._saved_once = not scene.options.get("memory_by_module", False)

    def next_look(self) -> int:
        """The step before the next recorded one."""
        if not self._saved_once:
            return self.scene.step
        recorded = (self.scene.step // METRIC_INTERVAL + 1) * METRIC_INTERVAL
        return min(recorded, self._next) - 1

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._saved_once or self.scene.step < 1 or self._saving is not None or not model.training:
            return
        self._saving = saved_activations(model)
        self._saved = self._saving.__enter__()

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        self.let_go()

    def let_go(self) -> None:
        """Takes the hooks on saved tensors away."""
        if self._saving is not None:
            saving, self._saving, self._saved_once = self._saving, None, True
            saving.__exit__(None, None, None)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        step = self.scene.step
        if step % METRIC_INTERVAL == 0 or step == self._next:
            self._history[step] = memory_in_use()
            self.scene.recorder.metrics(step, {"memory": self._history[step]})
        if step >= self._next:
            self._next = max(2 * self._next, step + 1)
            self._look(step)

    def failed(self, error: BaseException) -> Iterable[Finding]:
        message = str(error)
        if not (isinstance(error, (MemoryError, torch.OutOfMemoryError))
                or any(words in message.lower() for words in _OOM)):
            return
        breakdown = memory_breakdown(self.scene.models, self.scene.optimizers)
        saved = table(dict(self._saved.largest(3))) if self._saved else ""
        step, rank = self.scene.step, self.scene.recorder.rank
        yield from t804_out_of_memory.check(message, breakdown, step, self._history, saved, SOURCE, rank)
        devices = devices_now()
        largest = max((d.largest_free for d in devices), default=None)
        yield from t805_fragmentation.check(breakdown, step, SOURCE, rank, requested(message), largest)
        for device in devices:
            if device.known:
                yield from t806_memory_by_line.check([device], SOURCE)

    def _look(self, step: int) -> None:
        if self._spent > FREE_SECONDS + MOST_SHARE * (time.perf_counter() - self._started):
            return
        before = time.thread_time()
        self._looks = [*self._looks[-2:], (step, take_census())]
        self._hooks = [*self._hooks[1 - t803_hooks_accumulate.LOOKS:], (step, self._registered())]
        self._spent += time.thread_time() - before
        self._withdraw(settled(self._looks))
        growths, rank = growing(self._looks), self.scene.recorder.rank
        for finding in (*t801_graph_kept.check(growths, SOURCE, rank), *t802_tensors_kept.check(growths, SOURCE, rank),
                        *t803_hooks_accumulate.check(self._hooks, SOURCE, rank)):
            self.scene.recorder.finding(finding)
            if variable := finding.measured.get("variable"):
                self._told.add((finding.rule, str(variable)))

    def _withdraw(self, variables: frozenset[str]) -> None:
        """Takes back what was said of variables that hold no more than before: they were only being filled."""
        for rule, variable in sorted(t for t in self._told if t[1] in variables):
            self._told.discard((rule, variable))
            self.scene.recorder.withdraw(rule, "variable", variable)

    def _registered(self) -> dict[str, int]:
        """Hooks by module path and parameter groups by optimizer."""
        found = {}
        for model in self.scene.models:
            for path, module in model.named_modules():
                hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks)
                if count := sum(len(h) for h in hooks):
                    found[f"{path or type(module).__name__}: hooks"] = count
        for optimizer in self.scene.optimizers:
            found[f"{type(optimizer).__name__}: parameter groups"] = len(optimizer.param_groups)
        return found


def devices_now() -> tuple[DeviceMemory, ...]:
    """What the CUDA caching allocator holds now, with lines where the program records them; none on a CPU.

    Only for the end of a program: it waits for the device.
    """
    cuda: Any = torch.cuda
    if not cuda.is_initialized():
        return ()
    try:
        return from_plain(cuda.memory._snapshot()).devices
    except (RuntimeError, AttributeError, UnreadableInput):  # after a device error, or another allocator's
        return ()


def requested(message: str) -> int:
    """Bytes of the request that an out-of-memory message names, 0 where it names none."""
    found = _REQUEST.search(message)
    return int(float(found[1]) * _UNITS[found[2]]) if found else 0


def memory_in_use() -> float:
    """MiB: allocated by CUDA tensors where there are any, else the process's resident memory. No synchronisation."""
    cuda: Any = torch.cuda
    if cuda.is_initialized():
        return float(cuda.memory_allocated() / MIB)
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB
    except (OSError, ValueError):  # no /proc: the peak is better than nothing
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
