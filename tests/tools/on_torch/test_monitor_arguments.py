"""A Monitor refuses what is no model or no optimizer, and a probe that failed for one begins anew for the next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from traindx_tools.errors import BadUsage
from traindx_tools.live import notice
from traindx_tools.live.session import close_session, current_session, open_session
from traindx_tools.live.settings import Settings
from traindx_tools.on_torch.attachment import attach, attached, detach
from traindx_tools.on_torch.monitor import Monitor
from traindx_tools.on_torch.probe import TorchProbe


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    notice._said.clear()
    yield
    close_session()
    detach()


def made() -> tuple[nn.Linear, torch.optim.SGD]:
    net = nn.Linear(3, 1)
    return net, torch.optim.SGD(net.parameters(), lr=0.1)


def train(net: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 3) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.randn(4, 3)).pow(2).mean().backward()
        optimizer.step()


NET, OPTIMIZER = made()


@pytest.mark.parametrize(("given", "said"), [
    ((OPTIMIZER, NET), "model and optimizer are swapped: Monitor(model, optimizer)"),
    ((None, NET), "model and optimizer are swapped"),
    (("m", "o"), "the model is 'm' (str), expected a torch.nn.Module"),
    ((NET, "sgd"), "the optimizer is 'sgd' (str), expected a torch.optim.Optimizer"),
    ((NET, [OPTIMIZER]), "name one, or leave it out"),
    ((NET.parameters(), OPTIMIZER), "the model is <generator"),
], ids=["swapped", "a model alone as optimizer", "texts", "a name", "a list", "parameters"])
def test_what_is_no_model_or_optimizer_is_refused_at_once(given: tuple[Any, Any], said: str) -> None:
    with pytest.raises(BadUsage) as refused:
        Monitor(*given)
    assert said in str(refused.value)
    assert current_session() is None
    assert attached() is None


def test_an_optimizer_of_another_library_is_taken(tmp_path: Path) -> None:
    net, optimizer = made()

    class Wrapped:
        param_groups = optimizer.param_groups

        def step(self) -> None:
            optimizer.step()

    Monitor(net, Wrapped(), out=tmp_path)  # type: ignore[arg-type]
    Monitor(out=tmp_path)


class FailsOnce(TorchProbe):
    """Fails in the first step that it sees, in one process once."""

    name = ""
    failed = False

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self.models: list[Any] = []
        self.steps = 0

    def model_found(self, model: nn.Module) -> None:
        self.models.append(model)

    def after_step(self, optimizer: Any) -> None:
        if not FailsOnce.failed:
            FailsOnce.failed = True
            raise RuntimeError("a defect")
        self.steps += 1


def test_a_probe_that_failed_begins_anew_for_the_next_monitor(tmp_path: Path) -> None:
    FailsOnce.failed = False
    here = attach(open_session(Settings(str(tmp_path), ())))
    assert here is not None
    here.moments.probes.append(FailsOnce(here.scene))
    here.moments._sort()
    net, optimizer = made()
    with Monitor(net, optimizer):
        train(net, optimizer)
        assert here.moments.probes == []
    with Monitor(net, optimizer):
        train(net, optimizer)
        probe, = here.moments.probes
        assert isinstance(probe, FailsOnce)
        assert probe.steps == 3
        assert probe.models == [net], "what was found before it came is told to it"


def test_a_monitor_that_saw_no_training_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Monitor(out=tmp_path / "run"):
        pass
    assert "saw no training, so it wrote no files" in capsys.readouterr().err
    net, optimizer = made()
    with Monitor(net, optimizer, out=tmp_path / "other"):
        train(net, optimizer)
    assert "saw no training" not in capsys.readouterr().err
