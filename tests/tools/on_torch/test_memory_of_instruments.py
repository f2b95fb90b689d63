"""What the instruments keep while they are armed: at most a hundredth of the parameters' size."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from traindx_tools.on_torch.monitor import Monitor

SHARE = 0.01


def held() -> int:
    """Bytes of all tensors that are alive, each storage once."""
    gc.collect()
    alive = [o for o in gc.get_objects() if type(o) in (torch.Tensor, nn.Parameter) and o.layout == torch.strided]
    return sum({t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in alive}.values())


@pytest.mark.slow
@pytest.mark.parametrize("steps", [3, 14, 62])
def test_tensors_that_are_kept_between_steps(steps: int, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Embedding(256, 512), nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512))
    optimizer = torch.optim.AdamW(model.parameters())
    size = sum(p.numel() * p.element_size() for p in model.parameters())

    def train(count: int) -> None:
        for _ in range(count):
            loss = model(torch.randint(0, 256, (4,))).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    train(1)
    before = held()
    with Monitor(out=tmp_path):
        train(steps)
        assert held() - before <= SHARE * size
