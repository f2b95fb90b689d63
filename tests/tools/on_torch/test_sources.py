"""Where non-finite values came from, by the memory that holds them."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from traindx_tools.on_torch.nonfinite.events import UNINITIALISED, Event
from traindx_tools.on_torch.nonfinite.sources import Sources
from traindx_tools.on_torch.nonfinite.tracer import Tracer


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_memory_that_is_written_in_parts_is_no_garbage_once_all_of_it_is_finite(dtype: torch.dtype) -> None:
    bucket, event = torch.full((6,), float("nan"), dtype=dtype), Event(1, UNINITIALISED, "empty")
    with Tracer(lambda: None, lambda: "backward") as tracer:
        tracer.sources.put(bucket, event)
        bucket[:2].fill_(1.0)
        assert tracer.sources.of(bucket) is event
        bucket[2:].copy_(torch.ones(4, dtype=dtype))
        assert tracer.sources.of(bucket) is None


def test_what_is_left_unwritten_stays_garbage() -> None:
    bucket, event, sources = torch.full((6,), float("inf")), Event(1, UNINITIALISED, "empty"), Sources()
    sources.put(bucket, event)
    bucket[:5] = 0.0
    sources.clear(bucket[:5])
    assert sources.of(bucket) is event
    bucket[5] = 0.0
    sources.clear(bucket[5])
    assert sources.of(bucket) is None
