"""The attachment sees what a training does and changes nothing of it: losses are bitwise the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindx_tools.live import notice
from traindx_tools.live.reading import read_folder
from traindx_tools.live.session import close_session, open_session
from traindx_tools.live.settings import Settings
from traindx_tools.on_torch.attachment import Attachment, attach, attached, detach
from traindx_tools.on_torch.monitor import Monitor
from traindx_tools.on_torch.probe import TorchProbe


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    notice._said.clear()
    yield
    close_session()
    detach()


class Spy(TorchProbe):
    """Writes down every moment."""

    name = ""

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self.moments: list[str] = []


def _spy_on(moment: str) -> Callable[..., None]:
    def seen(self: Spy, *args: Any) -> None:
        self.moments.append(moment)

    return seen


for _moment in ("model_found", "optimizer_found", "batch_given", "before_forward", "after_forward", "before_backward",
                "after_backward", "before_step", "after_step"):
    setattr(Spy, _moment, _spy_on(_moment))


def with_spy(folder: Path) -> Spy:
    made = attach(open_session(Settings(str(folder), ())))
    assert isinstance(made, Attachment)
    spy = Spy(made.scene)
    made.moments.probes.append(spy)
    made.moments._sort()
    return spy


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2))


def loader() -> DataLoader[Any]:
    return DataLoader(TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,))), batch_size=8, shuffle=True)


def plain() -> list[float]:
    model, losses = net(), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for x, y in loader():
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def accumulated() -> list[float]:
    model, losses = net(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for number, (x, y) in enumerate(loader()):
        loss = nn.functional.cross_entropy(model(x), y) / 2
        loss.backward()
        losses.append(loss.item())
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
    return losses


def mixed_precision() -> list[float]:
    model, losses = net(), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
    for x, y in loader():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x).float(), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


def compiled() -> list[float]:
    model, losses = net(), []
    fast = torch.compile(model, backend="aot_eager", fullgraph=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for x, y in loader():
        loss = nn.functional.cross_entropy(fast(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def with_closure() -> list[float]:
    model = nn.Linear(4, 1)
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    losses = []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(3):
        losses.append(optimizer.step(closure).item())
    return losses


def adversaries() -> list[float]:
    generator, critic, losses = nn.Linear(3, 4), nn.Linear(4, 1), []
    both = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
    for _ in range(4):
        fake = generator(torch.randn(8, 3))
        judged = critic(torch.randn(8, 4)).mean() - critic(fake.detach()).mean()
        both[1].zero_grad()
        judged.backward()
        both[1].step()
        fooled = -critic(fake).mean()
        both[0].zero_grad()
        fooled.backward()
        both[0].step()
        losses += [judged.item(), fooled.item()]
    return losses


PROGRAMS = (plain, accumulated, mixed_precision, compiled, with_closure, adversaries)


@cache
def bare_losses(program: Callable[[], list[float]]) -> list[str]:
    """The losses without instruments."""
    torch.manual_seed(3)
    try:
        return [x.hex() for x in program()]
    finally:
        torch._dynamo.reset()


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("probes", [("always",), ("all",), ("snapshot",), ("digests",)], ids=lambda p: p[0])
def test_losses_are_bitwise_the_same(program: Callable[[], list[float]], probes: tuple[str, ...],
                                     tmp_path: Path) -> None:
    bare = bare_losses(program)
    torch.manual_seed(3)
    with Monitor(out=tmp_path, probes=probes):
        watched = program()
    assert [x.hex() for x in watched] == bare


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_healthy_programs_give_no_finding_of_the_sentinel(program: Callable[[], list[float]], tmp_path: Path) -> None:
    torch.manual_seed(3)
    assert repr(Monitor(out=tmp_path)) == f"<Monitor: not started (use it in a with statement), {tmp_path}>"
    with Monitor(out=tmp_path, probes=("nonfinite",)) as monitor:
        assert repr(monitor).startswith("<Monitor: watching, 0 findings")
        program()
    assert monitor.findings == ()


def test_the_moments_come_in_order(tmp_path: Path) -> None:
    spy = with_spy(tmp_path)
    plain()
    step = ["batch_given", "before_forward", "after_forward", "before_backward", "after_backward", "before_step",
            "after_step"]
    assert spy.moments[:9] == ["batch_given", "model_found", "before_forward", "after_forward", "before_backward",
                               "after_backward", "optimizer_found", "before_step", "after_step"]
    assert spy.moments[9:16] == step
    assert (spy.scene.step, len(spy.scene.models), len(spy.scene.optimizers)) == (4, 1, 1)
    assert set(spy.scene.parameter_paths.values()) >= {"0.weight", "4.bias"}


class OwnList(nn.Module):
    """A model that has methods of its own under the names of Module's."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 3)

    def parameters(self) -> Any:  # type: ignore[override]
        return list(self.head.parameters())

    def named_parameters(self, group: str) -> Any:  # type: ignore[override]
        raise RuntimeError(f"no group {group}")

    def named_modules(self) -> Any:  # type: ignore[override]
        raise RuntimeError("not yet")

    def buffers(self) -> Any:  # type: ignore[override]
        return []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x)


@pytest.mark.parametrize("probes", [("always",), ("snapshot",)], ids=lambda p: p[0])
def test_a_model_with_methods_of_its_own_trains_on(tmp_path: Path, probes: tuple[str, ...]) -> None:
    session = open_session(Settings(str(tmp_path), probes))
    attach(session)
    torch.manual_seed(0)
    model = OwnList()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        loss = nn.functional.cross_entropy(model(torch.randn(8, 6)), torch.randint(0, 3, (8,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    close_session()
    assert math.isfinite(loss.item())


def test_only_outermost_calls_and_training_models_count(tmp_path: Path) -> None:
    spy = with_spy(tmp_path)
    model, criterion = torch.compile(net(), backend="eager"), nn.CrossEntropyLoss()
    criterion(model(torch.randn(4, 4)), torch.zeros(4, dtype=torch.long)).backward()
    assert spy.moments.count("before_forward") == 2
    assert [type(m) for m in spy.scene.models] == [nn.Sequential]


def test_the_loss_is_the_one_before_it_was_scaled(tmp_path: Path) -> None:
    spy = with_spy(tmp_path)
    weight = nn.Parameter(torch.ones(()))
    loss = weight * 3
    torch.amp.GradScaler("cpu", init_scale=1024.0).scale(loss).backward()
    assert spy.scene.loss is not None
    assert float(spy.scene.loss) == 3.0
    assert not spy.scene.loss.requires_grad


class Broken(TorchProbe):
    name = ""

    def after_step(self, optimizer: Any) -> None:
        raise RuntimeError("a defect")


def test_a_probe_that_raises_is_switched_off_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = attach(open_session(Settings(str(tmp_path), ())))
    assert made is not None
    made.moments.probes.append(Broken(made.scene))
    made.moments._sort()
    assert len(plain()) == 4
    said = capsys.readouterr().err
    assert said.count("a defect") == 1
    assert "training goes on" in said
    assert made.moments.probes == []


def test_everything_is_taken_out_again(tmp_path: Path) -> None:
    before = (nn.Module.__call__, torch.autograd.backward, torch.amp.GradScaler.scale)
    with Monitor(out=tmp_path):
        assert nn.Module.__call__ is not before[0]
    assert (nn.Module.__call__, torch.autograd.backward, torch.amp.GradScaler.scale) == before
    assert attached() is None


@pytest.mark.slow
def test_compilation_is_the_same_with_and_without(tmp_path: Path) -> None:
    from torch._dynamo.testing import CompileCounter

    def graphs() -> tuple[int, int]:
        torch._dynamo.reset()
        counter = CompileCounter()
        model = net()
        fast = torch.compile(model, backend=counter, fullgraph=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            fast(torch.randn(8, 4)).sum().backward()
            optimizer.step()
        return counter.frame_count, counter.op_count

    bare = graphs()
    with Monitor(out=tmp_path, probes=("all",)):
        assert graphs() == bare


def test_the_loss_of_each_step_is_recorded(tmp_path: Path) -> None:
    from traindx_tools.on_logs import read_run

    torch.manual_seed(3)
    with Monitor(out=tmp_path, probes=("nonfinite",)):
        losses = plain()
    run = read_run([tmp_path])
    assert run.loss is not None
    assert run.loss.values.tolist() == pytest.approx(losses)
    assert run.loss.step.tolist() == [1, 2, 3, 4]


def test_a_loss_that_is_nan_is_seen_where_it_happens(tmp_path: Path) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Monitor(model, optimizer, out=tmp_path, probes=("nonfinite",)) as monitor:
        for step in range(5):
            optimizer.zero_grad()
            (model(torch.randn(2, 4)).sum() * (float("nan") if step == 3 else 1.0)).backward()
            optimizer.step()
    (found,) = read_folder(tmp_path).findings
    assert (found.rule, found.where.step, found.measured["backward"]) == ("T102", 4, 3)
    assert [f.rule for f in monitor.findings] == ["T102"]


def test_an_overflow_that_the_scaler_skips_is_no_fault(tmp_path: Path) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    with Monitor(out=tmp_path, probes=("nonfinite",)) as monitor:
        for _ in range(6):
            optimizer.zero_grad()
            scaler.scale(model(torch.full((2, 4), 100.0)).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
    assert monitor.findings == ()


def test_a_last_step_that_the_scaler_skipped_is_no_fault(tmp_path: Path) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    with Monitor(out=tmp_path, probes=("nonfinite",)) as monitor:
        scaler.scale(model(torch.full((2, 4), 100.0)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert monitor.findings == ()


def test_a_gradient_that_is_nan_in_the_last_step_is_seen(tmp_path: Path) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Monitor(out=tmp_path, probes=("nonfinite",)) as monitor:
        for step in range(4):
            optimizer.zero_grad()
            distance = model(torch.randn(2, 4)) * (0.0 if step == 3 else 1.0)
            distance.pow(2).sum().sqrt().backward()
            optimizer.step()
    assert [f.measured["what"] for f in monitor.findings] == ["gradient"]
