"""Seeds of torch, a placebo that goes through every place, and deterministic kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from traindx_tools.experiments.live.on_python.seeds import UNSEEDED, moved_seed
from traindx_tools.experiments.live.on_torch.stage import PLACES, OnTorch


class Seeds(OnTorch):
    """`torch.manual_seed`, those of CUDA, and generators."""

    def attach(self) -> None:
        self.by, self._within, self._detached = int(self.option("by", 1)), False, False
        torch.manual_seed(UNSEEDED + self.by)
        for owner in (torch.random, torch):  # two functions, once dynamo is imported: it wraps the second one
            self.patches.replace(owner, "manual_seed", self._moved)
        for owner in (torch.cuda.random, torch.cuda):
            for name in ("manual_seed", "manual_seed_all"):
                self.patches.replace(owner, name, self._moved)
        self.patches.later(self._end)
        self._generators()

    def _moved(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def manual_seed(seed: Any, *args: Any, **kwargs: Any) -> Any:
            if self._within or self._detached:  # torch's own call for each device: its seed is moved already
                return original(seed, *args, **kwargs)
            self._within = True
            try:
                new = moved_seed(seed, self.by)
                if new is not seed:
                    self.ledger.held()
                return original(new, *args, **kwargs)
            finally:
                self._within = False

        return manual_seed

    def _end(self) -> None:
        self._detached = True

    def _generators(self) -> None:
        seeds, original = self, torch.Generator

        class _Kind(type(original)):  # type: ignore[misc]
            def __instancecheck__(cls, instance: Any) -> bool:
                return isinstance(instance, original)

        class Generator(original, metaclass=_Kind):  # type: ignore[misc, valid-type]
            def manual_seed(self, seed: Any) -> Any:
                seeds.ledger.held()
                return original.manual_seed(self, moved_seed(seed, seeds.by))

        torch.Generator = Generator  # type: ignore[misc]
        self.patches.later(lambda: setattr(torch, "Generator", original))


class Placebo(OnTorch):
    """Listens at every place and changes nothing: what the machinery alone does."""

    def attach(self) -> None:
        for place in PLACES:
            self.listen(place, lambda *_: None)


class Deterministic(OnTorch):
    """Kernels that give the same result twice, where there are any; the others warn."""

    def attach(self) -> None:
        before = torch.are_deterministic_algorithms_enabled()
        self.patches.later(lambda: torch.use_deterministic_algorithms(before))
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = True
        self.patches.replace(torch, "use_deterministic_algorithms", self._kept)
        self.listen("after_step", self._check)

    def _kept(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
            original(True, warn_only=True if not mode else warn_only)

        return use_deterministic_algorithms

    def _check(self, _: Any) -> None:
        if torch.backends.cudnn.benchmark:  # the program's own setting came later
            torch.backends.cudnn.benchmark = False
            torch.backends.cudnn.deterministic = True
        self.ledger.held("kernels of torch")
