"""Device values that are read later, so that the training never waits for its own instrument.

A value is copied to pinned host memory without waiting; it counts as arrived when the event behind the copy has
passed. On a CPU it is there at once.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Tag = TypeVar("Tag")

MOST_WAITING = 64
"""Values under way at most; beyond that the oldest is given up rather than waited for."""


@dataclass
class _Waiting(Generic[Tag]):
    tag: Tag
    host: torch.Tensor
    event: Any


class Late(Generic[Tag]):
    """Values on their way from the device, in the order in which they were sent."""

    def __init__(self) -> None:
        self._waiting: deque[_Waiting[Tag]] = deque(maxlen=MOST_WAITING)

    def __bool__(self) -> bool:
        """Whether anything is under way."""
        return bool(self._waiting)

    def send(self, tag: Tag, value: torch.Tensor) -> None:
        """Starts the copy of a tensor (any shape, any real dtype) to the host, as float32 or float64."""
        import torch

        value = value.detach()
        value = value if value.dtype == torch.float64 else value.to(torch.float32)
        if value.device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            return
        if value.device.type != "cuda":
            self._waiting.append(_Waiting(tag, value.cpu(), None))
            return
        host = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
        host.copy_(value, non_blocking=True)
        event = torch.cuda.current_stream(value.device).record_event()
        self._waiting.append(_Waiting(tag, host, event))

    def arrived(self, *, wait: bool = False) -> list[tuple[Tag, NDArray[np.float64]]]:
        """What has arrived since the last call. `wait` is for the end of the program only: it synchronises."""
        out: list[tuple[Tag, NDArray[np.float64]]] = []
        while self._waiting and (wait or self._waiting[0].event is None or self._waiting[0].event.query()):
            item = self._waiting.popleft()
            if wait and item.event is not None:
                item.event.synchronize()
            out.append((item.tag, np.asarray(item.host.numpy(), dtype=np.float64)))
        return out
