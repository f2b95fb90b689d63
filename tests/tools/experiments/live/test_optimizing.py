"""Rate, schedule, decay, clipping, clearing, accumulation, scaling, another algorithm: exact, or not and why."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader


def sgd(rate: float, **more: Any) -> Any:
    return lambda parameters: torch.optim.SGD(parameters, lr=rate, **more)


def trained(programs: Any, **how: Any) -> list[torch.Tensor]:
    torch.manual_seed(3)
    return programs.weights(programs.train(**how)[1])


@pytest.mark.parametrize("times", [0.1, 10.0])
def test_the_rate_is_scaled_after_each_step_of_a_schedule_without_compounding(changed: Any, programs: Any,
                                                                            times: float) -> None:
    def schedule(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    expected = trained(programs, optimizer=sgd(0.1 * times), schedule=schedule)
    with changed(f"learning-rate:times={times}") as told:
        found = trained(programs, optimizer=sgd(0.1), schedule=schedule)
    assert all(torch.allclose(a, b, rtol=1e-5) for a, b in zip(expected, found, strict=True))
    assert told.applied.times == 8


def test_between_steps_the_groups_hold_the_programs_rate(changed: Any, programs: Any) -> None:
    held = []

    def keep(model: nn.Module) -> None:
        held.append(optimizer.param_groups[0]["lr"])

    model = programs.net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with changed("learning-rate:times=0.5"):
        programs.train(model, optimizer=lambda _: optimizer, before_step=keep)
    assert held == [0.1] * 8
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_a_step_that_raises_leaves_no_scaled_rate_behind(changed: Any) -> None:
    weight = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def closure() -> float:
        raise RuntimeError("out of memory")

    with changed("learning-rate:times=0.5"):
        for _ in range(3):
            with pytest.raises(RuntimeError):
                optimizer.step(closure)
        weight.grad = torch.ones(1)
        optimizer.step()
    assert weight.item() == pytest.approx(1 - 0.05)


def test_without_an_optimizer_the_rate_cannot_be_scaled(changed: Any, programs: Any) -> None:
    model = programs.net()
    with changed("learning-rate:times=0.5") as told:
        for x, y in programs.by_hand():
            functional.cross_entropy(model(x), y).backward()
            for p in model.parameters():
                p.data -= 0.1 * p.grad
    assert told.applied.times == 0
    assert "no optimizer" in told.applied.problem


def test_a_fixed_schedule_is_the_base_rate_at_each_step(changed: Any, programs: Any) -> None:
    def warmup(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: step / 8)

    expected = trained(programs, optimizer=sgd(0.1))
    with changed("schedule-fixed") as told:
        found = trained(programs, optimizer=sgd(0.1), schedule=warmup)
    assert programs.equal(expected, found)
    assert told.applied.times == 8
    with changed("schedule-fixed") as told:
        trained(programs, optimizer=sgd(0.1))
    assert told.applied.times == 0
    assert told.applied.problem


def one_cycle(optimizer: Any) -> Any:
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=20, cycle_momentum=False)


def noam(optimizer: Any) -> Any:
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 0.002 * min((k + 1) / 4, (4 / (k + 1)) ** 0.5))


class ByHand:
    """A schedule that the loop keeps itself: from 0 to `peak` in four steps, then down."""

    def __init__(self, optimizer: Any, peak: float) -> None:
        self.optimizer, self.peak, self.count = optimizer, peak, 0
        self.set()

    def set(self) -> None:
        share = self.count / 4 if self.count <= 4 else 4 / self.count
        for group in self.optimizer.param_groups:
            group["lr"] = self.peak * share

    def step(self) -> None:
        self.count += 1
        self.set()


@pytest.mark.parametrize(("made", "schedule", "rate", "what"), [
    (0.1, one_cycle, 0.1, "the peak of the schedule (max_lr)"),
    (50.0, noam, 0.1, "the peak of the schedule"),
    (0.1, lambda o: torch.optim.lr_scheduler.LinearLR(o, 1e-3, 1.0, 40), 0.1, "the base from which the schedule"),
    (0.1, lambda o: ByHand(o, 0.05), 0.1, "the rate that the optimizer was made with"),
])
def test_a_warmup_that_begins_low_is_fixed_at_what_it_leads_to(changed: Any, programs: Any, made: float, schedule: Any,
                                                              rate: float, what: str) -> None:
    expected = trained(programs, optimizer=sgd(rate))
    with changed("schedule-fixed") as told:
        found = trained(programs, optimizer=sgd(made), schedule=schedule)
    assert programs.equal(expected, found)
    assert f"at a rate of {rate:g}: {what}" in told.applied.where


def test_a_warmup_by_hand_from_zero_without_a_base_is_held_at_its_highest_rate(changed: Any, programs: Any) -> None:
    seen: list[float] = []

    class Watched(ByHand):
        def step(self) -> None:
            super().step()

    def made(parameters: Any) -> Any:
        optimizer = torch.optim.SGD(parameters, lr=0.0)
        optimizer.register_step_pre_hook(lambda o, *_: seen.append(o.param_groups[0]["lr"]))
        return optimizer

    with changed("schedule-fixed") as told:
        trained(programs, optimizer=made, schedule=lambda o: Watched(o, 0.05))
    assert seen == pytest.approx([0.0, 0.0125, 0.025, 0.0375, 0.05, 0.05, 0.05, 0.05])
    assert "highest rate so far" in told.applied.where


def test_no_decay_is_a_decay_of_zero(changed: Any, programs: Any) -> None:
    def adamw(decay: float) -> Any:
        return lambda parameters: torch.optim.AdamW(parameters, lr=0.1, weight_decay=decay)

    expected = trained(programs, optimizer=adamw(0.0))
    with changed("no-decay") as told:
        found = trained(programs, optimizer=adamw(0.5))
    assert programs.equal(expected, found)
    assert told.applied.times == 8
    with changed("no-decay") as told:
        trained(programs, optimizer=adamw(0.0))
    assert (told.applied.times, bool(told.applied.problem)) == (0, True)


def test_without_clipping_gradients_stay_and_the_norm_is_returned(changed: Any, programs: Any) -> None:
    norms: list[float] = []

    def clip(model: nn.Module) -> None:
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)))
        torch.nn.utils.clip_grad_value_(model.parameters(), 1e-3)

    expected = trained(programs)
    with changed("no-clipping") as told:
        found = trained(programs, before_step=clip)
    assert programs.equal(expected, found)
    assert min(norms) > 1e-3
    assert told.applied.times == 16
    with changed("no-clipping") as told:
        trained(programs)
    assert told.applied.times == 0
    assert "clip_grad_norm_" in told.applied.problem


@pytest.mark.parametrize("kind", [1.0, 2.0, float("inf")])
def test_the_norm_without_clipping_is_that_of_torch(changed: Any, programs: Any, kind: float) -> None:
    model = programs.net()
    functional.cross_entropy(model(torch.ones(2, 4)), torch.tensor([0, 1])).backward()
    with changed("no-clipping"):
        found = torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9, norm_type=kind)
    assert found == torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9, norm_type=kind)


def test_an_error_for_gradients_that_are_not_finite_is_still_raised(changed: Any) -> None:
    weight = nn.Parameter(torch.ones(1))
    weight.grad = torch.full((1,), float("nan"))
    with changed("no-clipping"), pytest.raises(RuntimeError, match="non-finite"):
        torch.nn.utils.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True)


def test_gradients_are_cleared_where_the_program_forgets(changed: Any, programs: Any) -> None:
    expected = trained(programs)
    with changed("clear-gradients") as told:
        found = trained(programs, clear=False)
    assert programs.equal(expected, found)
    assert told.applied.times == 7


def test_a_program_that_clears_runs_as_before_and_accumulation_goes_on(changed: Any, programs: Any) -> None:
    expected = trained(programs, every=2)
    with changed("clear-gradients") as told:
        found = trained(programs, every=2)
    assert programs.equal(expected, found)
    assert told.applied.times == 0
    assert "itself" in told.applied.problem


def test_without_accumulation_each_backward_pass_is_a_step(changed: Any, programs: Any) -> None:
    expected = trained(programs)
    with changed("no-accumulation") as told:
        found = trained(programs, every=4)
    assert programs.equal(expected, found)
    assert told.applied.times == 6
    with changed("no-accumulation") as told:
        trained(programs)
    assert told.applied.times == 0
    assert "nothing is accumulated" in told.applied.problem


def test_with_two_optimizers_accumulation_cannot_be_undone(changed: Any, programs: Any) -> None:
    with changed("no-accumulation") as told:
        torch.optim.SGD(programs.net().parameters(), lr=0.1)
        found = trained(programs, every=2)
    assert "2 optimizers" in told.applied.problem
    assert programs.equal(found, trained(programs, every=2))


def test_a_scaler_is_made_that_does_nothing(changed: Any, programs: Any) -> None:
    with changed("no-loss-scaling") as told:
        scaler = torch.amp.GradScaler("cpu")
        assert not scaler.is_enabled()
        trained(programs)
    assert told.applied.times == 1
    with changed("no-loss-scaling") as told:
        trained(programs)
    assert "GradScaler" in told.applied.problem


def test_another_optimizer_makes_the_steps_at_the_programs_rates(changed: Any, programs: Any) -> None:
    def schedule(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    expected = trained(programs, optimizer=sgd(0.05), schedule=schedule)
    with changed("optimizer:name=sgd,times=0.5") as told:
        found = trained(programs, optimizer=lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.0), schedule=schedule)
    assert programs.equal(expected, found)
    assert told.applied.times == 8
    assert "AdamW" in told.applied.where


def test_an_optimizer_that_is_of_that_kind_says_so(changed: Any, programs: Any) -> None:
    with changed("optimizer:name=sgd") as told:
        trained(programs)
    assert told.applied.times == 0
    assert "already" in told.applied.problem


def test_a_loader_with_workers_is_trained_on_with_every_change_at_once(changed: Any, programs: Any) -> None:
    loader = DataLoader(programs.data(), batch_size=8, num_workers=1)
    with changed("learning-rate:times=0.5") as told:
        programs.train(loader=loader)
    assert told.applied.times == 8


def resumed_optimizer() -> tuple[torch.optim.Optimizer, dict[str, Any]]:
    """One that has taken a step, and its state with another rate."""
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([weight], lr=0.1)
    weight.sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    state["param_groups"][0]["lr"] = 0.25
    return torch.optim.Adam([weight], lr=0.1), state


def test_the_state_of_an_optimizer_is_left_out_and_its_rates_are_taken(changed: Any, programs: Any) -> None:
    optimizer, state = resumed_optimizer()
    with changed("state-not-loaded:of=optimizer") as told:
        optimizer.load_state_dict(state)
        programs.train()
    assert not optimizer.state
    assert optimizer.param_groups[0]["lr"] == 0.25
    assert told.applied.times == 1
    assert state["state"]
    optimizer.load_state_dict(state)
    assert optimizer.state


@pytest.mark.parametrize("make", [
    lambda o: torch.optim.lr_scheduler.StepLR(o, 3), lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda n: 0.5**n),
    torch.optim.lr_scheduler.ReduceLROnPlateau])
def test_the_state_of_a_schedule_is_left_out(changed: Any, programs: Any, make: Any) -> None:
    optimizer, _ = resumed_optimizer()
    one, other = make(optimizer), make(optimizer)
    one.last_epoch = 7
    with changed("state-not-loaded:of=schedule") as told:
        other.load_state_dict(one.state_dict())
        programs.train()
    assert other.last_epoch == 0
    assert told.applied.times >= 1
    other.load_state_dict(one.state_dict())
    assert other.last_epoch == 7


def test_where_no_state_is_loaded_it_is_said(changed: Any, programs: Any) -> None:
    for of in ("optimizer", "schedule"):
        with changed(f"state-not-loaded:of={of}") as told:
            programs.train()
        assert told.applied.times == 0
        assert "was loaded" in told.applied.problem
