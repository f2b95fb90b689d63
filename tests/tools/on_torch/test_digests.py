"""Digests of two runs of one program: equal where they compute the same, and apart at the place that differs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from traindx_tools.experiments.isolating.parting.compare import Parting, first
from traindx_tools.experiments.isolating.parting.recording import Recording, read_recordings
from traindx_tools.on_torch.monitor import Monitor
from traindx_tools.on_torch.probes.digests import of_tensor


def training(module: nn.Module | None = None, seed: int = 0, noise: Callable[[int], Any] = lambda step: 0,
             update: Callable[[int, nn.Module], Any] = lambda step, model: None) -> None:
    """Six steps of a small model, from a DataLoader."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), module or nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    data = torch.utils.data.TensorDataset(torch.randn(24, 4), torch.randint(0, 3, (24,)))
    for step, (x, y) in enumerate(torch.utils.data.DataLoader(data, 4, shuffle=True)):
        loss = nn.functional.cross_entropy(model(x + noise(step)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update(step, model)


def recorded(folder: Path, program: Callable[[], None]) -> Recording:
    with Monitor(out=folder, probes=("digests",)):
        program()
    (found,) = read_recordings(folder).values()
    return found


def parted(folder: Path, other: Callable[[], None]) -> Parting | None:
    return first(recorded(folder / "one", training), recorded(folder / "other", other))


def test_two_equal_runs_are_equal_in_all_that_is_recorded(tmp_path: Path) -> None:
    one, other = recorded(tmp_path / "one", training), recorded(tmp_path / "other", training)
    assert one.events == other.events
    assert one.steps == 6
    kinds = {e.kind for e in one.events}
    assert kinds == {"random", "initial", "batch", "input", "module", "loss", "gradient", "after the step"}
    assert len(next(e for e in one.events if e.kind == "batch").more) == 4


def test_another_seed_parts_at_the_first_batch_or_parameter(tmp_path: Path) -> None:
    found = parted(tmp_path, lambda: training(seed=1))
    assert found is not None
    assert found.step == 0
    assert found.random == ("torch from the start on",)


def test_noise_on_one_row_between_loader_and_model(tmp_path: Path) -> None:
    def noise(step: int) -> Any:
        return torch.zeros(4, 1).index_fill(0, torch.tensor([2]), 1e-3) if step == 3 else 0

    found = parted(tmp_path, lambda: training(noise=noise))
    assert found is not None
    assert (found.step, found.kind, found.rows, found.origin) == (3, "input", (2,), "values")


def test_one_bit_in_the_output_of_a_module(tmp_path: Path) -> None:
    class OneBit(nn.Module):
        def forward(self, x: Any) -> Any:
            y = torch.relu(x)
            return torch.nextafter(y, y + 1) if self.calls() == 4 else y

        def calls(self) -> int:
            self.count = getattr(self, "count", -1) + 1
            return self.count

    class Relu(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.relu(x)

    OneBit.__name__ = "Relu"
    found = first(recorded(tmp_path / "one", lambda: training(Relu())), recorded(tmp_path / "other",
                                                                                 lambda: training(OneBit())))
    assert found is not None
    assert (found.step, found.kind, found.name, found.origin) == (4, "module", "2 (Relu)", "kernel")


def test_a_parameter_that_is_changed_behind_the_step(tmp_path: Path) -> None:
    def update(step: int, model: nn.Module) -> None:
        if step == 1:
            with torch.no_grad():
                model[4].bias += 1e-6  # type: ignore[index]

    found = parted(tmp_path, lambda: training(update=update))
    assert found is not None
    assert (found.step, found.kind, found.name) == (2, "module", "4 (Linear)")


@pytest.mark.parametrize("tensor", [
    torch.zeros(3), torch.zeros(3, 1), torch.zeros(3, dtype=torch.bfloat16), torch.zeros((), dtype=torch.bool),
    torch.zeros(2, dtype=torch.complex64), torch.zeros(0, 2), torch.zeros(2, 3).t(), torch.zeros(2, 2).to_sparse(),
    torch.zeros(2, device="meta"),
])  # fmt: skip
def test_of_any_tensor(tensor: Any) -> None:
    assert of_tensor(tensor) == of_tensor(tensor.clone())
    assert of_tensor(tensor) != of_tensor(torch.ones(7))


def test_zero_and_minus_zero_differ_and_nan_is_itself() -> None:
    assert of_tensor(torch.tensor([0.0])) != of_tensor(torch.tensor([-0.0]))
    assert of_tensor(torch.tensor([float("nan")])) == of_tensor(torch.tensor([float("nan")]))
