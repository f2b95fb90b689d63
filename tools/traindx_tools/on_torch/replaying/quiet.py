"""Runs that the program cannot tell of afterwards: what its models share with it is set back, and random numbers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence

import torch

from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.on_torch.captured.call import NotKept
from traindx_tools.on_torch.captured.sandbox import unnoticed
from traindx_tools.on_torch.snapshot.state import RandomState

ROOM = 3.0
"""Copies of the parameters that a device has room for at the least: a model, its gradients, an update."""


@contextlib.contextmanager
def unnoticed_by(models: Sequence[torch.nn.Module]) -> Iterator[Callable[[], None]]:
    """Within it, copies of these models may run. What is yielded sets what they share with the program back.

    Raises NotReplayable for models that hold what cannot be set back, and where there is no room for a copy.
    """
    _room(models)
    before = RandomState.now()
    with contextlib.ExitStack() as stack:
        try:
            shared = [stack.enter_context(unnoticed(m)) for m in models]
        except NotKept as why:
            raise NotReplayable(str(why)) from why

        def set_back() -> None:
            for restore in shared:
                restore()

        try:
            yield set_back
        finally:
            before.restore()


def _room(models: Sequence[torch.nn.Module]) -> None:
    if threading.current_thread() is not threading.main_thread():
        raise NotReplayable("it trains in a thread of its own")
    tensors = {id(t): t for m in models for t in (*m.parameters(), *m.buffers())}.values()
    if any(type(t) not in (torch.Tensor, torch.nn.Parameter) for t in tensors):
        raise NotReplayable("the model is sharded or quantised")
    for device in {t.device for t in tensors if t.device.type == "cuda"}:
        size = sum(t.numel() * t.element_size() for t in tensors if t.device == device)
        if torch.cuda.mem_get_info(device)[0] < ROOM * size + 2**28:
            raise NotReplayable("the device has too little free memory for copies")
