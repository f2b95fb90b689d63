"""On a CUDA device nothing of what is always on waits for it, and losses stay the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from traindx_tools.live import notice
from traindx_tools.live.session import close_session
from traindx_tools.on_torch.attachment import detach
from traindx_tools.on_torch.monitor import Monitor

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    notice._said.clear()
    yield
    torch.cuda.set_sync_debug_mode("default")
    close_session()
    detach()


def training(steps: int, bad: int = -1, quiet_from: int | None = None) -> list[torch.Tensor]:
    """Losses on the device. From `quiet_from` on a wait for the device raises."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 8)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for step in range(steps):
        x = torch.randn(32, 64, device="cuda")
        loss = torch.log(torch.sigmoid(model(x)) * (0.0 if step == bad else 1.0)).mean().neg()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if step == quiet_from:
            torch.cuda.synchronize()
            torch.cuda.set_sync_debug_mode("error")
    torch.cuda.set_sync_debug_mode("default")
    return losses


def test_what_is_always_on_never_waits_for_the_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Monitor(out=tmp_path):
        training(130, quiet_from=0)
    assert " is off " not in capsys.readouterr().err  # a probe that waited would have raised and been switched off


@pytest.mark.parametrize("snapshot", [False, True])
def test_losses_are_bitwise_the_same(snapshot: bool, tmp_path: Path) -> None:
    bare = torch.stack(training(40)).cpu()
    with Monitor(out=tmp_path, snapshot=snapshot):
        watched = torch.stack(training(40)).cpu()
    assert torch.equal(bare.view(torch.int32), watched.view(torch.int32))


def test_digests_of_two_runs_on_the_device_are_equal_and_change_nothing(tmp_path: Path) -> None:
    from traindx_tools.experiments.isolating.parting.compare import first
    from traindx_tools.experiments.isolating.parting.recording import read_recordings

    bare, recordings = torch.stack(training(20)).cpu(), []
    for name in ("one", "other"):
        with Monitor(out=tmp_path / name, probes=("digests",)):
            watched = torch.stack(training(20)).cpu()
        assert torch.equal(bare.view(torch.int32), watched.view(torch.int32))
        recordings.append(read_recordings(tmp_path / name)[0])
    assert first(*recordings) is None
    assert {e.name for e in recordings[0].events if e.kind == "random"} >= {"torch", "cuda:0"}
    assert recordings[0].steps == 20


def test_a_nan_is_seen_a_step_later_and_named_from_the_snapshot(tmp_path: Path) -> None:
    with Monitor(out=tmp_path, snapshot=True) as monitor:
        training(8, bad=4)
    assert {f.rule: f.where.step for f in monitor.findings if f.rule in ("T101", "T102")} == {"T101": 5, "T102": 5}
