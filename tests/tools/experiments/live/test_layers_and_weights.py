"""Dropout, BatchNorm, modes; frozen, thawed, reinitialised modules; averages."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional


def test_nothing_is_dropped_in_layers_attention_and_rnns(changed: Any) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 5, 8)
    layers = [nn.Dropout(0.5), nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True),
              nn.LSTM(8, 8, 2, dropout=0.5, batch_first=True), nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5,
                                                                                          batch_first=True)]

    def outputs() -> list[torch.Tensor]:
        found = []
        for layer in layers:
            made = layer(x, x, x) if isinstance(layer, nn.MultiheadAttention) else layer(x)
            found.append(made[0] if isinstance(made, tuple) else made)
        return found

    with changed("no-dropout"):
        one, other = outputs(), outputs()
    natural = outputs()
    for layer in layers:
        layer.eval()
    expected = outputs()
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(one, expected, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert not torch.equal(natural[0], expected[0])
    assert layers[2].dropout == 0.5


def test_dropout_in_a_training_is_counted_and_where_there_is_none_it_is_said(changed: Any, programs: Any) -> None:
    with changed("no-dropout") as told:
        programs.train(programs.net(0.5))
    assert told.applied.times == 9  # the layer that was found, and its 8 calls
    with changed("no-dropout") as told:
        programs.train(programs.net(0.0))
    assert told.applied.times == 0
    assert "no dropout" in told.applied.problem


def normed() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))


def test_evaluation_takes_the_statistics_of_its_batch_and_writes_none(changed: Any, programs: Any) -> None:
    model = normed()
    with changed("batch-statistics") as told:
        programs.train(model)
        before = model[1].running_mean.clone()
        model.eval()
        x = torch.randn(16, 4) * 5
        with torch.no_grad():
            hidden = model[1](model[0](x))
        inner = model[0](x)
    scaled = (inner - inner.mean(0)) / (inner.var(0, unbiased=False) + 1e-5).sqrt() * model[1].weight + model[1].bias
    assert torch.allclose(hidden, scaled, atol=1e-5)
    assert torch.equal(model[1].running_mean, before)
    assert told.applied.times == 1


def test_a_batch_of_one_value_keeps_the_running_statistics_and_says_why(changed: Any, programs: Any) -> None:
    model = normed()
    with changed("batch-statistics") as told:
        programs.train(model)
        model.eval()
        with torch.no_grad():
            found = model(torch.ones(1, 4))
    assert torch.equal(found, model(torch.ones(1, 4)))
    assert "one value" in told.applied.problem
    with changed("batch-statistics") as told:
        programs.train()
    assert "BatchNorm" in told.applied.problem


def test_training_takes_the_running_statistics_and_writes_none(changed: Any, programs: Any) -> None:
    model = normed()
    model[1].running_mean.fill_(3.0)
    with changed("running-statistics") as told:
        programs.train(model)
    assert torch.equal(model[1].running_mean, torch.full((8,), 3.0))
    assert told.applied.times == 8
    with changed("running-statistics") as told:
        programs.train()
    assert told.applied.times == 0


def test_training_passes_run_in_eval_mode_and_the_mode_is_back_after_each(changed: Any, programs: Any) -> None:
    modes: list[tuple[bool, bool]] = []

    class Seeing(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            modes.append((self.training, torch.is_grad_enabled()))
            return super().forward(x)

    model = nn.Sequential(Seeing(4, 2), nn.Dropout(0.5))
    model[1].eval()
    with changed("eval-mode") as told:
        programs.train(model)
    assert modes == [(False, True)] * 8
    assert (model.training, model[0].training, model[1].training) == (True, True, False)
    assert told.applied.times == 8
    modes.clear()
    with changed("train-mode") as told:
        programs.train(model)
        model.eval()
        with torch.no_grad():
            model(torch.ones(1, 4))
    assert modes[-1] == (True, False)
    assert not model[0].training
    assert told.applied.times == 1


def test_each_kind_of_pass_runs_in_its_own_mode(changed: Any, programs: Any) -> None:
    """Broken: an evaluation in training mode. Healthy: one in eval mode, where nothing can be changed."""
    modes: list[tuple[bool, bool]] = []

    class Seeing(nn.BatchNorm1d):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            modes.append((self.training, torch.is_grad_enabled()))
            return super().forward(input)

    def evaluated(model: nn.Module) -> None:
        with torch.no_grad():
            model(torch.ones(3, 4))

    model = nn.Sequential(nn.Linear(4, 2), Seeing(2))
    with changed("eval-in-eval-mode") as told:
        programs.train(model)
        before = model[1].running_mean.clone()
        evaluated(model)
    assert modes == [(True, True)] * 8 + [(False, False)]
    assert model.training
    assert model[1].training
    assert torch.equal(model[1].running_mean, before)
    assert told.applied.times == 1
    with changed("eval-in-eval-mode") as told:
        programs.train(model)
        model.eval()
        evaluated(model)
    assert told.applied.times == 0
    assert "in training mode in an evaluation pass" in told.applied.problem


def test_a_training_in_eval_mode_runs_in_training_mode_alone(changed: Any, programs: Any) -> None:
    modes: list[tuple[bool, bool]] = []

    class Seeing(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            modes.append((self.training, torch.is_grad_enabled()))
            return super().forward(x)

    model = nn.Sequential(Seeing(4, 2), nn.Dropout(0.5)).eval()
    with changed("train-in-train-mode") as told:
        programs.train(model)
        with torch.no_grad():
            model(torch.ones(1, 4))
    assert modes[1:] == [(True, True)] * 7 + [(False, False)]  # the first pass is known as training by its backward
    assert told.applied.times == 7
    assert not any(m.training for m in model.modules())
    model.train()
    with changed("train-in-train-mode") as told:
        programs.train(model)
    assert told.applied.times == 0


def test_the_mode_is_back_where_a_pass_raised(changed: Any, programs: Any) -> None:
    model = programs.net()
    with changed("eval-mode"), pytest.raises(RuntimeError):
        model(torch.ones(1, 99))
    assert all(m.training for m in model.modules())


def test_without_an_evaluation_nothing_runs_in_training_mode(changed: Any, programs: Any) -> None:
    with changed("train-mode") as told:
        programs.train()
    assert told.applied.times == 0
    assert "evaluation" in told.applied.problem


def test_frozen_modules_keep_their_values_and_the_others_learn(changed: Any, programs: Any) -> None:
    model = programs.net()
    before = programs.weights(model)
    with changed("frozen:module=0") as told:
        programs.train(model, optimizer=lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.5))
    after = programs.weights(model)
    assert programs.equal(before[:2], after[:2])
    assert not programs.equal(before[2:], after[2:])
    assert all(p.requires_grad for p in model.parameters())
    assert told.applied.times >= 8
    assert "0.weight" in told.applied.where


@pytest.mark.parametrize("change", ["frozen:module=encoder.*", "thawed:module=encoder", "reinitialised:module=encoder"])
def test_a_pattern_that_matches_nothing_names_what_there_is(changed: Any, programs: Any, change: str) -> None:
    expected = programs.weights(programs.train(seeded(programs))[1])
    model = seeded(programs)
    with changed(change) as told:
        programs.train(model)
    assert told.applied.times == 0
    assert "0, 1, 2, 3" in told.applied.problem
    assert programs.equal(programs.weights(model), expected)


def seeded(programs: Any) -> nn.Module:
    torch.manual_seed(5)
    return programs.net()


def test_frozen_modules_are_trained_again(changed: Any, programs: Any) -> None:
    model = programs.net()
    for p in model[0].parameters():
        p.requires_grad_(False)
    before = programs.weights(model)

    def trainable(parameters: Any) -> Any:
        return torch.optim.SGD([p for p in parameters if p.requires_grad], lr=0.1)

    def schedule(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.StepLR(optimizer, 3)

    with changed("thawed:module=0") as told:
        programs.train(model, optimizer=trainable, schedule=schedule)
    assert not torch.equal(programs.weights(model)[0], before[0])
    assert told.applied.times == 8
    with changed("thawed:module=0") as told:
        programs.train()
    assert "already" in told.applied.problem


def test_where_the_forward_pass_cuts_the_graph_thawing_says_so(changed: Any, programs: Any) -> None:
    class Cut(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.head = nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                hidden = self.encoder(x)
            return self.head(hidden)

    with changed("thawed:module=encoder") as told:
        programs.train(Cut())
    assert told.applied.times == 0
    assert "no gradient reaches" in told.applied.problem


def test_modules_begin_anew_and_other_draws_stay(changed: Any, programs: Any) -> None:
    model = programs.net(0.5)
    kept = programs.weights(model)
    torch.manual_seed(9)
    expected = torch.rand(3)
    with changed("reinitialised:module=0"):
        torch.manual_seed(9)
        model(torch.zeros(0, 4))
        found = torch.rand(3)
        one = programs.weights(model)
    assert torch.equal(found, expected)
    assert not torch.equal(one[0], kept[0])
    assert programs.equal(one[2:], kept[2:])
    other = programs.net(0.5)
    with changed("reinitialised:module=0") as told:
        programs.train(other, epochs=1)
    assert told.applied.times == 1


def test_parameters_whose_beginning_is_not_known_are_named_and_stay(changed: Any, programs: Any) -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale, self.inner = nn.Parameter(torch.ones(4)), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x * self.scale)

    model = nn.ModuleDict({"own": Own()})
    wrapped = nn.Sequential(model["own"])
    before = programs.weights(wrapped)
    with changed("reinitialised:module=0") as told:
        optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.0)
        wrapped(torch.ones(1, 4)).sum().backward()
        optimizer.step()
    assert "0.scale" in told.applied.problem
    assert programs.equal(programs.weights(wrapped), before)


def test_an_average_is_the_weights_as_they_are(changed: Any, programs: Any) -> None:
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    model = programs.net()
    with changed("no-ema") as told:
        average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
        programs.train(model, before_step=lambda m: average.update_parameters(m))
        average.update_parameters(model)
    assert programs.equal(programs.weights(average.module), programs.weights(model))
    assert told.applied.times == 9
    with changed("no-ema") as told:
        programs.train()
    assert "AveragedModel" in told.applied.problem


def test_gradients_flow_through_what_is_frozen(changed: Any, programs: Any) -> None:
    model = programs.net()
    with changed("frozen:module=3"):
        functional.cross_entropy(model(torch.ones(2, 4)), torch.tensor([0, 1])).backward()
    assert model[0].weight.grad is not None
    assert model[3].weight.grad is None
