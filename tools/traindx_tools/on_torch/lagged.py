"""Numbers that are computed on the device now and read on the host later, without ever waiting for the device.

On a device with streams each submission is copied to pinned host memory behind an event; `ready` yields those whose
event has passed. On a CPU the value is there at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

MOST_PENDING = 64
"""Submissions that may wait; while so many do, further ones are left out: the host is far ahead of the device."""


@dataclass
class _Pending:
    tag: Any
    host: torch.Tensor | None
    numbers: list[float]
    event: Any


class Lagged:
    """A queue of small vectors on their way to the host, in order."""

    def __init__(self, most: int = MOST_PENDING) -> None:
        self._queue: deque[_Pending] = deque()
        self._spare: list[torch.Tensor] = []
        self._most = most

    def __bool__(self) -> bool:
        """Whether anything is under way."""
        return bool(self._queue)

    def submit(self, tag: Any, values: Sequence[torch.Tensor]) -> None:
        """Sends scalars (0-d tensors of one device) on their way. Never waits."""
        if not values:
            return
        device = values[0].device
        if _at_once(device):
            self._queue.append(_Pending(tag, None, [float(v) for v in values], None))
            return
        if len(self._queue) >= self._most or capturing(device):
            return
        with torch.no_grad():
            stacked = torch.stack([v.detach().to(torch.float32).reshape(()) for v in values])
            host = self._buffer(len(values), device)
            host.copy_(stacked, non_blocking=True)
        self._queue.append(_Pending(tag, host, [], _recorded(device)))

    def ready(self, *, wait: bool = False) -> Iterator[tuple[Any, list[float]]]:
        """What has arrived, in order. `wait`: everything, at the end of the program."""
        while self._queue:
            first = self._queue[0]
            if first.host is not None:
                if wait:
                    first.event.synchronize()
                elif not first.event.query():
                    return
                first.numbers = first.host.tolist()
                self._spare.append(first.host)
            self._queue.popleft()
            yield first.tag, first.numbers

    def _buffer(self, size: int, device: torch.device) -> torch.Tensor:
        """A pinned host vector: one that has been read, or a new one (allocated while the queue is short)."""
        for index, spare in enumerate(self._spare):
            if len(spare) == size:
                return self._spare.pop(index)
        return torch.empty(size, dtype=torch.float32, pin_memory=device.type == "cuda")


def _at_once(device: torch.device) -> bool:
    """Whether a value of this device can be read without waiting."""
    return device.type == "cpu"


def _recorded(device: torch.device) -> Any:
    """An event behind what was submitted to the device's current stream so far."""
    module = getattr(torch, device.type)  # torch.cuda, torch.xpu, torch.mps
    stream = getattr(module, "current_stream", None)
    if stream is None:
        event = module.Event()
        event.record()
        return event
    return stream(device).record_event()


def capturing(device: torch.device) -> bool:
    """Whether a CUDA graph is being captured: nothing may be recorded or copied to the host then."""
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()
