"""The autocast probe: were parameters changed inside a region that keeps their casts?"""

from __future__ import annotations

from typing import Any

import torch

from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t953_stale_autocast

SOURCE = "autocast probe"
EVERY_STEP_UNTIL = 16
INTERVAL = 64

_regions = 0
_clear = torch.clear_autocast_cache


def _counted() -> None:
    global _regions
    _regions += 1
    _clear()


class AutocastProbe(TorchProbe):
    """Compares version and storage of float32 parameters between forwards of one autocast region.

    Looks in the first 16 steps and each 64th after; a forward outside autocast costs one flag. Autocast drops its
    casts by calling `torch.clear_autocast_cache` when the outermost region ends: that call is counted.
    """

    name = "autocast"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        if torch.clear_autocast_cache is _clear:
            torch.clear_autocast_cache = _counted
        self._seen: dict[int, tuple[int, list[tuple[int, int]]]] = {}

    def next_look(self) -> int:
        """The next multiple of the interval."""
        return -(-self.scene.step // INTERVAL) * INTERVAL

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        step = self.scene.step
        if step > EVERY_STEP_UNTIL and step % INTERVAL:
            return
        if not (autocasting() and torch.is_autocast_cache_enabled()):
            return
        named = [(n, p) for n, p in model.named_parameters() if p.dtype == torch.float32 and p.requires_grad]
        now = [(p._version, p.data_ptr()) for _, p in named]
        before = self._seen.get(id(model))
        self._seen[id(model)] = (_regions, now)
        if before is None or before[0] != _regions or len(before[1]) != len(now):
            return
        changed = [name for (name, _), was, is_ in zip(named, before[1], now, strict=True) if was != is_]
        for finding in t953_stale_autocast.check(changed, step, SOURCE, self.scene.recorder.rank):
            self.scene.recorder.finding(finding)


def autocasting() -> bool:
    """Whether operations are cast now, on a GPU or on the CPU."""
    try:
        return bool(torch.is_autocast_enabled("cuda") or torch.is_autocast_enabled("cpu"))
    except TypeError:  # before torch 2.4 the device had functions of its own
        return bool(torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled())
