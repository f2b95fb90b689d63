"""Programs that train in threads, or that replace functions of torch: they go on as they would without instruments."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch.nn.functional as F

from traindx_tools.live.session import close_session, open_session
from traindx_tools.live.settings import Settings
from traindx_tools.on_torch import attachment
from traindx_tools.on_torch.loss_terms.replaced import replaced_function


@pytest.fixture
def attached(tmp_path: Path) -> Iterator[Callable[[], Any]]:
    def attach() -> Any:
        return attachment.attach(open_session(Settings(str(tmp_path), ("always",))))

    yield attach
    close_session()
    attachment.detach()


def train(seed: int, steps: int = 30) -> list[str]:
    """The losses, exactly."""
    generator = torch.Generator().manual_seed(seed)
    model = torch.nn.Linear(4, 1)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.rand(p.shape, generator=generator))
    optimizer, told = torch.optim.SGD(model.parameters(), lr=0.1), []
    for _ in range(steps):
        x = torch.rand(8, 4, generator=generator)
        loss = 0.5 * F.mse_loss(model(x), x.sum(1, keepdim=True)) + 0.1 * model.weight.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        told.append(loss.item().hex())
    return told


def in_threads(count: int, steps: int = 30) -> list[list[str]]:
    told: list[list[str]] = [[] for _ in range(count)]
    threads = [threading.Thread(target=lambda i=i: told[i].extend(train(i, steps))) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


@pytest.mark.slow
def test_of_threads_that_train_at_once_one_is_watched(attached: Callable[[], Any]) -> None:
    alone = [train(i) for i in range(4)]
    made = attached()
    assert in_threads(4) == alone
    assert 1 <= len(made.scene.optimizers) <= 4  # a thread may begin after another has ended
    assert made.moments.probes
    assert torch.overrides._len_torch_function_stack() == 0


def test_a_thread_that_trains_while_another_calls_models_ends_the_watch(attached: Callable[[], Any],
                                                                       capsys: pytest.CaptureFixture[str]) -> None:
    alone = train(0)
    made = attached()
    torch.nn.Linear(2, 2)(torch.ones(1, 2))
    assert in_threads(1) == [alone]
    assert made.moments.probes == []
    assert "the instruments are off" in capsys.readouterr().err


@pytest.mark.slow
def test_threads_one_after_the_other_are_all_watched(attached: Callable[[], Any]) -> None:
    made = attached()
    for _ in range(3):
        in_threads(1)
    assert len(made.scene.optimizers) == 3
    assert train(0)  # the thread of the attachment again
    assert len(made.scene.optimizers) == 4


def twice(original: Any) -> Any:
    return lambda *a, **k: 2 * original(*a, **k)


@pytest.mark.slow
@pytest.mark.parametrize("before", [True, False], ids=["patched before", "patched after"])
def test_a_function_that_the_program_replaced_is_called_once(before: bool, attached: Callable[[], Any],
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    assert replaced_function() is None
    if not before:
        attached()
    monkeypatch.setattr(F, "mse_loss", twice(F.mse_loss))
    assert replaced_function() == "torch.nn.functional.mse_loss"
    alone: list[str] = []
    if before:
        alone = train(1)
        attached()
        assert train(1) == alone
    else:
        told = train(1)
        close_session()
        attachment.detach()
        assert train(1) == told


def test_what_no_mode_is_handed_may_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lightning wraps `torch.compile` when it is imported: its programs are watched like others."""
    monkeypatch.setattr(torch, "compile", twice(torch.compile))
    monkeypatch.setattr(torch, "save", twice(torch.save))
    assert replaced_function() is None
    monkeypatch.setattr(torch, "mean", twice(torch.mean))
    assert replaced_function() == "torch.mean"


@pytest.mark.slow
def test_backward_that_the_program_replaced_is_called_once(attached: Callable[[], Any],
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    original = torch.Tensor.backward

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "backward", counted)
    attached()
    train(1)
    assert len(calls) == 30


def test_what_torch_replaces_itself_is_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(F, "mse_loss", F.l1_loss)
    assert replaced_function() is None
    monkeypatch.setattr(torch.Tensor, "backward", torch.Tensor.backward, raising=True)
    assert replaced_function() is None
