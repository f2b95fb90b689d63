"""What surrounds a call and is not its arguments: random numbers and autocast; and copies that are taken each step."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

DEVICES = ("cpu", "cuda")


@dataclass(frozen=True)
class RandomState:
    """The states of the generators of torch (CPU and the current CUDA device), numpy and Python."""

    cpu: torch.Tensor
    cuda: torch.Tensor | None
    numpy: Any
    python: Any

    @classmethod
    def now(cls) -> RandomState:
        """As they are."""
        numpy = sys.modules.get("numpy.random")
        return cls(torch.get_rng_state(), torch.cuda.get_rng_state() if _cuda() else None,
                   numpy.get_state() if numpy is not None else None, random.getstate())

    def restore(self) -> None:
        """Sets them back."""
        torch.set_rng_state(self.cpu)
        if self.cuda is not None:
            torch.cuda.set_rng_state(self.cuda)
        numpy = sys.modules.get("numpy.random")
        if numpy is not None and self.numpy is not None:
            numpy.set_state(self.numpy)
        random.setstate(self.python)


@dataclass(frozen=True)
class Surroundings:
    """Random numbers and autocast at one moment."""

    random: RandomState
    autocast: tuple[tuple[str, bool, torch.dtype], ...]
    cached: bool

    @classmethod
    def now(cls) -> Surroundings:
        """As they are."""
        casts = tuple((d, torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in DEVICES)
        return cls(RandomState.now(), casts, torch.is_autocast_cache_enabled())

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """The same surroundings; afterwards autocast is as it was, random numbers are not."""
        self.random.restore()
        with contextlib.ExitStack() as stack:
            for device, enabled, dtype in self.autocast:
                if enabled or torch.is_autocast_enabled(device):
                    stack.enter_context(torch.autocast(device, dtype, enabled, self.cached))
            yield


@contextlib.contextmanager
def without_autocast() -> Iterator[None]:
    """Operations that were noted have been cast already."""
    with contextlib.ExitStack() as stack:
        for device in DEVICES:
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


class Copies:
    """Copies of tensors, taken again into the same memory each step."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []

    def take(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The tensors as they are now; what was taken before is overwritten."""
        now = [t.detach() for t in tensors]
        fits = [(t.shape, t.dtype, t.device) for t in now] == [(t.shape, t.dtype, t.device) for t in self.tensors]
        with torch.no_grad():
            if fits and now:
                torch._foreach_copy_(self.tensors, now)
            else:
                self.tensors = [t.clone() for t in now]
        return self.tensors

    @property
    def bytes(self) -> int:
        """What they hold."""
        return sum(t.numel() * t.element_size() for t in self.tensors)


def _cuda() -> bool:
    return bool(torch.cuda.is_available() and torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
