"""A step that is kept is run again at once: the operation is named without a second pass, and nothing is changed."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent / "planted"))

import torch
import torch._dynamo.utils
from finding_origins import watched
from origins import PLANTED, Planted
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from traindx_tools.live import notice
from traindx_tools.live.session import close_session
from traindx_tools.live.settings import Settings
from traindx_tools.on_torch.attachment import detach
from traindx_tools.on_torch.monitor import Monitor
from traindx_tools.on_torch.speed import compilations

LEFT = {
    "custom_function_divides_by_zero": "no gradient",
    "gradient_hook_that_scales_by_infinity": "stayed finite",
    "gradient_penalty_at_zero_gradient": "changed in place",
    "own_clipping_divides_by_a_zero_norm": "stayed finite",
    "standardised_by_a_zero_spread": "was there before",
    "a_checkpoint_with_a_nan": "was there before",
    "every_step_is_skipped_by_the_scaler": "changed in place",
    "inside_a_compiled_module": "compiles",
    "backward_of_a_compiled_region": "compiles",
}
"""What is left to the second pass, and the reason that is given."""


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    notice._said.clear()
    compilations._asked.clear()  # another test's compilation is none of this program's
    torch._dynamo.utils.counters.clear()
    yield
    close_session()
    detach()


REPLAYED = [p for p in PLANTED if p.name not in LEFT]
FIRST = {p.family: p for p in reversed(REPLAYED)}.values()


@pytest.mark.parametrize("case", [pytest.param(p, marks=[] if p in FIRST else [pytest.mark.slow]) for p in REPLAYED],
                         ids=lambda p: p.name)
def test_the_operation_is_named_in_the_run_itself(case: Planted, tmp_path: Path) -> None:
    seen = watched(case.run, Settings(str(tmp_path), ("snapshot",), options={"searched": True}))
    (origin,) = [f.measured for f in seen if f.rule == "T101"]
    assert str(origin["op"]).startswith(case.op)
    assert (origin["phase"], origin["line"], origin["reason"]) == (case.phase, case.line, case.reason)
    assert case.module in (None, origin.get("module"))


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if i % 3 == 0 else [pytest.mark.slow])
                                  for i, n in enumerate(LEFT)])
def test_what_cannot_be_run_again_is_left_to_the_second_pass_and_said(name: str, tmp_path: Path,
                                                                      capsys: pytest.CaptureFixture[str]) -> None:
    (case,) = [p for p in PLANTED if p.name == name]
    seen = watched(case.run, Settings(str(tmp_path), ("snapshot",), options={"searched": True}))
    assert not [f for f in seen if f.rule == "T101"]
    assert LEFT[name] in capsys.readouterr().err


class Noisy(nn.Module):
    """Everything that a second run could disturb: dropout, running statistics, a counter, a list, numpy and Python."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 1)
        self.norm, self.drop = nn.BatchNorm1d(8), nn.Dropout(0.3)
        self.calls, self.seen = 0, [0]

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.seen[0] += 1
        print("called")
        scale = random.random() + np.random.rand()
        h: Tensor = self.drop(self.norm(self.first(x)).relu())
        return torch.as_tensor(self.last(h * scale))


def recovering(kind: str) -> list[str]:
    """A run that meets one bad step, skips it (or its update) and goes on; everything that it has at the end."""
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    model, told = Noisy(), []
    heard: list[int] = []
    model.first.register_forward_hook(lambda *_: heard.append(1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    average = torch.zeros(())
    for step in range(9):
        x = torch.randn(8, 4)
        p = torch.sigmoid(model(x)) * (0.0 if step == 4 and kind == "loss" else 1.0)
        loss = -torch.log(p).mean()
        if step == 4 and kind == "gradient":
            loss = loss + (model(x) * 0).pow(2).sum().sqrt()
        optimizer.zero_grad()
        loss.backward()
        average.mul_(0.9).add_(loss.detach())
        if all(bool(q.grad.isfinite().all()) for q in model.parameters() if q.grad is not None):
            optimizer.step()
        schedule.step()
        told.append(loss.item().hex())
    values = [v for s in (model.state_dict(), optimizer.state_dict()["state"][0]) for v in s.values()]
    return [*told, str(model.calls), str(model.seen), str(len(heard)), str(random.random()), str(np.random.rand()),
            str(torch.randn(())), str(average), *(str(v) for v in values)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["loss", "gradient"])
def test_a_program_that_goes_on_after_a_bad_step_has_the_same_results(kind: str, tmp_path: Path,
                                                                     capsys: pytest.CaptureFixture[str]) -> None:
    bare = recovering(kind)
    printed = capsys.readouterr().out
    with Monitor(out=tmp_path, snapshot=True) as monitor:
        watched_one = recovering(kind)
    assert watched_one == bare
    assert capsys.readouterr().out == printed
    reasons = [f.measured["reason"] for f in monitor.findings if f.rule == "T101"]
    assert reasons == {"loss": ["log-of-zero"], "gradient": []}[kind]  # it discards the bad gradients by itself


@pytest.mark.slow
def test_an_optimizer_s_step_is_run_again_beside_two_others(tmp_path: Path) -> None:
    """Of two models and two optimizers the second one's division by a second moment of zero is named."""
    torch.manual_seed(0)
    generator, critic = nn.Linear(3, 4), nn.Linear(4, 1)
    both = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters(), eps=0.0)
    with Monitor(out=tmp_path, snapshot=True) as monitor:
        for _ in range(6):
            fake = generator(torch.randn(8, 3))
            judged = critic(torch.randn(8, 4)).mean() - critic(fake.detach()).mean() + critic.bias.sum() * 0
            both[1].zero_grad()
            (judged * 0.0).backward()
            both[1].step()
            both[0].zero_grad()
            (-critic(fake).mean()).backward()
            both[0].step()
    (origin,) = [f for f in monitor.findings if f.rule == "T101"]
    assert (origin.measured["phase"], origin.measured["reason"]) == ("optimizer", "optimizer-division")


@pytest.mark.slow
def test_what_it_holds_is_recorded_and_let_go(tmp_path: Path) -> None:
    model = nn.Linear(100, 100)
    optimizer = torch.optim.Adam(model.parameters())
    with Monitor(out=tmp_path, snapshot=True):
        for _ in range(4):
            model(torch.randn(2, 100)).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    records = [json.loads(line) for line in (tmp_path / "rank00000.jsonl").read_text().splitlines()]
    (told,) = [r for r in records if r["kind"] == "snapshot"]
    assert told["parameters"] == 4 * 10_100
    assert told["bytes"] == 4 * told["parameters"] + 2 * 4  # gradients, two moments each, and two step counts


def test_modes_of_the_program_stay_on_their_stack(tmp_path: Path) -> None:
    def flops() -> int:
        torch.manual_seed(0)
        model = nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        total = 0
        for step in range(4):
            optimizer.zero_grad()
            with FlopCounterMode(display=False) as counter:
                loss = model(torch.randn(4, 8)).pow(2).mean()
                if step % 2:
                    loss.backward()
            if not step % 2:
                loss.backward()
            optimizer.step()
            total += counter.get_total_flops()
        return total

    bare = flops()
    with Monitor(out=tmp_path, snapshot=True):
        assert flops() == bare
    assert torch._C._len_torch_dispatch_stack() == 0


@pytest.mark.parametrize("probes", [("all",), ("always",)])
def test_it_is_only_there_where_it_was_asked_for(probes: tuple[str, ...]) -> None:
    from traindx_tools.on_torch.registry import chosen

    assert "snapshot" not in {p.name for p in chosen(probes)}
    assert "snapshot" in {p.name for p in chosen((*probes, "snapshot"))}


def test_a_fault_of_its_own_costs_the_snapshot_and_not_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                             capsys: pytest.CaptureFixture[str]) -> None:
    from traindx_tools.on_torch.snapshot.tape import Tape

    def broken(*_: Any) -> Callable[[Any], None]:
        raise RuntimeError("a defect")

    monkeypatch.setattr(Tape, "called", broken)
    bare = recovering("loss")
    with Monitor(out=tmp_path, probes=(), snapshot=True):
        assert recovering("loss") == bare
    assert "probe snapshot is off" in capsys.readouterr().err
    assert torch._C._len_torch_dispatch_stack() == 0
