"""Remembers for each storage that holds non-finite values where they came from."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from traindx_tools.on_torch.nonfinite.events import Event
from traindx_tools.on_torch.nonfinite.statistics import all_finite, span


def storage_key(tensor: torch.Tensor) -> int:
    """Identifies the memory that a tensor looks at; views share it."""
    return int(tensor.untyped_storage()._cdata)


def covers_storage(tensor: torch.Tensor) -> bool:
    """Whether the tensor is all that its memory holds."""
    return tensor.numel() * tensor.element_size() >= tensor.untyped_storage().nbytes()


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    """All that the tensor's memory holds, in one dimension."""
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())


class Sources:
    """Events by storage, and what is known of the tensors that were there before tracing began.

    Keys are addresses: memory that is freed and given out again is written by the operation that gets it, and with that
    its old event goes or is replaced.
    """

    def __init__(self) -> None:
        self._events: dict[int, Event] = {}
        self._names: dict[int, tuple[str, str]] = {}

    def of(self, tensor: torch.Tensor) -> Event | None:
        """Where the non-finite values of this memory came from; None where nobody saw them come."""
        return self._events.get(storage_key(tensor))

    def put(self, tensor: torch.Tensor, event: Event) -> None:
        """The tensor's memory holds non-finite values from here."""
        self._events[storage_key(tensor)] = event

    def clear(self, tensor: torch.Tensor) -> None:
        """The tensor has been written and is finite: nothing is left where all of its memory is.

        Memory that is written in parts is looked at as a whole: a bucket of gradients comes from `empty`, is filled a
        parameter at a time, and what arrives in it later is no garbage.
        """
        key = storage_key(tensor)
        if key in self._events and (covers_storage(tensor) or all_finite(span(_whole(tensor)))):
            del self._events[key]

    def name(self, tensors: Iterable[tuple[str, torch.Tensor]], kind: str) -> None:
        """These tensors are the program's parameters or buffers."""
        for path, tensor in tensors:
            self._names.setdefault(storage_key(tensor), (kind, path))

    def named(self, tensor: torch.Tensor) -> tuple[str, str] | None:
        """Kind and path of a parameter or buffer, None for other memory."""
        return self._names.get(storage_key(tensor))
