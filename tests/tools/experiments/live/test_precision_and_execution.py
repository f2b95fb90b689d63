"""Types of numbers, compilation, checkpointing, anomalies: exact, or not and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint_sequential
from torch.utils.data import DataLoader, TensorDataset


def types_of(model: nn.Module) -> set[torch.dtype]:
    return {p.dtype for p in model.parameters()}


def test_a_half_model_its_batches_and_autocast_are_float32(changed: Any) -> None:
    outputs = []
    with changed("float32") as told:
        model = nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 2)).to(torch.bfloat16)
        model[0].half()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                outputs.append(model(torch.ones(3, 4).to(dtype=torch.bfloat16)))
            functional.mse_loss(outputs[-1], torch.zeros(3, 2, dtype=torch.float16)).backward()
            optimizer.step()
    assert types_of(model) == {o.dtype for o in outputs} == {torch.float32}
    assert told.applied.times > 3
    assert not told.applied.problem


def test_the_result_is_that_of_the_program_without_small_types(changed: Any, programs: Any) -> None:
    def run(kind: torch.dtype) -> list[torch.Tensor]:
        torch.manual_seed(2)
        model = programs.net().to(kind)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in DataLoader(programs.data(), batch_size=8):
            optimizer.zero_grad()
            functional.cross_entropy(model(x.to(kind)), y).backward()
            optimizer.step()
        return programs.weights(model)

    expected = run(torch.float32)
    with changed("float32"):
        found = run(torch.bfloat16)
    assert programs.equal(expected, found)


def test_tensors_that_were_small_before_are_widened_at_the_model(changed: Any) -> None:
    model, x = nn.Linear(4, 2).to(torch.bfloat16), torch.ones(3, 4, dtype=torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with changed("float32") as told:
        for _ in range(2):
            output = model(x)
            output.sum().backward()
            optimizer.step()
    assert output.dtype == torch.float32
    assert told.applied.times >= 1


def test_a_program_in_float32_has_nothing_to_widen_and_bits_are_read_as_they_are(changed: Any, programs: Any) -> None:
    with changed("float32") as told:
        programs.train()
        assert torch.ones(2, dtype=torch.int16).view(torch.bfloat16).dtype == torch.bfloat16
    assert told.applied.times == 0
    assert "nothing of a type below" in told.applied.problem


def test_everything_is_float64(changed: Any) -> None:
    x, y = np.random.rand(16, 4).astype("float32"), np.random.rand(16, 1).astype("float32")
    with changed("float64") as told:
        data = TensorDataset(torch.from_numpy(x), torch.tensor(y))
        model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 1)).float()
        optimizer = torch.optim.AdamW(model.parameters())
        for a, b in DataLoader(data, batch_size=8):
            loss = functional.mse_loss(model(a.to(torch.float32)), b)
            loss.backward()
            optimizer.step()
    assert types_of(model) == {torch.float64}
    assert loss.dtype == torch.float64
    assert not told.applied.problem
    assert torch.get_default_dtype() == torch.float32
    assert nn.Linear(1, 1).weight.dtype == torch.float32


def test_autocast_alone_is_off(changed: Any, programs: Any) -> None:
    model = programs.net()

    def passes() -> torch.dtype:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = model(torch.ones(2, 4))
        output.float().sum().backward()
        optimizer.step()
        return output.dtype

    assert passes() == torch.bfloat16
    with changed("no-autocast") as told:
        assert passes() == torch.float32
    assert told.applied.times == 1
    with changed("no-autocast") as told:
        programs.train()
    assert "autocast" in told.applied.problem


def test_an_output_that_is_small_all_the_same_is_told(changed: Any) -> None:
    small = torch.ones(2, 2, dtype=torch.bfloat16)

    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(2))

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x * self.w, small * 2

    model = Own()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with changed("float32") as told:
        model(torch.ones(2, 2))[0].sum().backward()
        optimizer.step()
    assert "bfloat16 all the same" in told.applied.problem


def test_nothing_is_compiled(changed: Any, programs: Any) -> None:
    model = programs.net()
    with changed("no-compile") as told:
        assert torch.compile(model) is model
        assert torch.compile(mode="max-autotune")(model) is model
        model.compile()
        programs.train(model)
    assert told.applied.times == 3
    with changed("no-compile") as told:
        programs.train()
    assert "nothing was compiled" in told.applied.problem


def test_activations_are_kept_and_gradients_are_the_same(changed: Any, programs: Any) -> None:
    calls = []

    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = programs.net()

        def part(self, x: torch.Tensor, *, times: float) -> torch.Tensor:
            calls.append(1)
            return self.inner[0](x) * times

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            hidden = torch.utils.checkpoint.checkpoint(self.part, x, use_reentrant=False, times=2.0)
            return checkpoint_sequential(self.inner[1:], 2, hidden, use_reentrant=False)

    def run() -> list[torch.Tensor]:
        torch.manual_seed(1)
        model = Checkpointed()
        calls.clear()
        programs.train(model, epochs=1)
        return programs.weights(model)

    expected, twice = run(), len(calls)
    with changed("no-checkpointing") as told:
        found = run()
    assert programs.equal(expected, found)
    assert (twice, len(calls)) == (8, 4)
    assert told.applied.times >= 4
    with changed("no-checkpointing") as told:
        programs.train()
    assert "was not called" in told.applied.problem


def test_the_first_nan_of_a_backward_pass_is_an_error(changed: Any, programs: Any) -> None:
    weight = nn.Parameter(torch.zeros(1))
    with changed("stop-at-nan"), pytest.raises(RuntimeError, match="nan"):
        (torch.sqrt(weight) * 0).sum().backward()
    assert not torch.is_anomaly_enabled()
    with changed("stop-at-nan") as told:
        programs.train()
    assert told.applied.times == 8


def test_products_are_full_where_they_were_not(changed: Any, programs: Any) -> None:
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        with changed("full-products") as told:
            programs.train()
            assert torch.get_float32_matmul_precision() == "highest"
        assert told.applied.times == 1
        with changed("full-products") as told:
            programs.train()
        assert "already" in told.applied.problem
    finally:
        torch.set_float32_matmul_precision(before)
