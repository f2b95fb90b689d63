"""One batch for ever, labels permuted, inputs zeroed: exactly that, in the training alone, or not and why."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader


class WithLoss(nn.Module):
    """Returns the loss itself, as models of transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": functional.cross_entropy(self.inner(x), labels)}


def test_every_batch_is_the_first_one(changed: Any, programs: Any) -> None:
    with changed("one-batch") as told:
        seen, _ = programs.train(loader=DataLoader(programs.data(), batch_size=8, shuffle=True))
    assert len(seen) == 8
    assert all(programs.equal(batch, seen[0]) for batch in seen)
    assert told.applied.times == 7
    assert not told.applied.problem


def test_a_batch_changed_in_place_does_not_change_the_next_one(changed: Any, programs: Any) -> None:
    with changed("one-batch"):
        sums = []
        for x, y in DataLoader(programs.data(), batch_size=8):
            sums.append(float(x.sum()))
            x.zero_()
            functional.cross_entropy(programs.net()(x), y).backward()
    assert sums[1] == sums[0] != 0


def test_the_loader_draws_the_same_random_numbers(changed: Any, programs: Any) -> None:
    def drawn() -> float:
        programs.train(loader=DataLoader(programs.data(), batch_size=8, shuffle=True))
        return float(torch.rand(()))

    torch.manual_seed(0)
    expected = drawn()
    with changed("one-batch"):
        assert drawn() == expected


def test_evaluations_keep_their_own_batches(changed: Any, programs: Any) -> None:
    model, sums = programs.net(), []
    evaluated = DataLoader(programs.data(), batch_size=8)
    with changed("one-batch"):
        programs.train(model)
        with torch.no_grad():
            sums.append([float(x.sum()) for x, _ in evaluated])
        model.eval()
        sums.append([float(x.sum()) for x, _ in DataLoader(programs.data(), batch_size=8)])
    assert len(set(sums[0])) == len(set(sums[1])) == 4


def test_without_a_loader_the_arguments_of_a_model_that_returns_its_loss_are_kept(changed: Any, programs: Any) -> None:
    def losses() -> list[float]:
        torch.manual_seed(1)
        model, seen = WithLoss(), []
        for x, y in programs.by_hand():
            loss = model(x, labels=y)["loss"]
            loss.backward()
            seen.append(loss.item())
        return seen

    natural = losses()
    with changed("one-batch") as told:
        kept = losses()
    assert len(set(natural)) == 4
    assert len(set(kept)) == 1
    assert kept[0] == natural[0]
    assert told.applied.times == 3


def test_without_a_loader_and_with_the_loss_outside_it_says_that_it_cannot(changed: Any, programs: Any) -> None:
    model, natural = programs.net(), list(programs.by_hand())
    with changed("one-batch") as told:
        programs.train(model, loader=natural)
    assert told.applied.times == 0
    assert "other labels" in told.applied.problem


def test_labels_change_places_and_nothing_else_does(changed: Any, programs: Any) -> None:
    natural, _ = programs.train(epochs=1)
    with changed("labels-permuted") as told:
        seen, _ = programs.train(epochs=1)
    assert all(torch.equal(a[0], b[0]) for a, b in zip(natural, seen, strict=True))
    assert any(not torch.equal(a[1], b[1]) for a, b in zip(natural, seen, strict=True))
    assert all(torch.equal(a[1].sort()[0], b[1].sort()[0]) for a, b in zip(natural, seen, strict=True))
    assert told.applied.times == 4


def test_labels_of_a_mapping_are_found_by_their_key(changed: Any) -> None:
    rows = [{"input_ids": torch.tensor([i]), "labels": torch.tensor(i), "weight": torch.tensor(i)} for i in range(16)]
    with changed("labels-permuted") as told:
        batch = next(iter(DataLoader(rows, batch_size=16)))  # type: ignore[arg-type]
    assert not torch.equal(batch["labels"], batch["weight"])
    assert torch.equal(batch["input_ids"][:, 0], batch["weight"])
    assert told.applied.problem  # no step was made: nothing was recorded


def test_a_batch_without_labels_says_what_it_holds(changed: Any, programs: Any) -> None:
    model = nn.Linear(4, 4)
    with changed("labels-permuted") as told:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in DataLoader([torch.ones(4)] * 8, batch_size=4):  # type: ignore[arg-type]
            model(x).sum().backward()
            optimizer.step()
    assert told.applied.times == 0
    assert "element" in told.applied.problem


def test_an_element_that_is_not_there_is_named_with_those_that_are(changed: Any, programs: Any) -> None:
    with changed("inputs-zeroed:element=5") as told:
        seen, _ = programs.train()
    assert "'5'" in told.applied.problem
    assert "Tensor(8, 4)" in told.applied.problem
    assert programs.equal(seen[0], programs.train()[0][0])


def test_inputs_are_zeros_and_labels_are_kept(changed: Any, programs: Any) -> None:
    natural, _ = programs.train(epochs=1)
    with changed("inputs-zeroed") as told:
        seen, _ = programs.train(epochs=1)
    assert all(not batch[0].any() and torch.equal(batch[1], other[1])
               for batch, other in zip(seen, natural, strict=True))
    assert told.applied.times == 4


def test_without_a_loader_the_models_input_is_zeroed_in_training_alone(changed: Any, programs: Any) -> None:
    inputs: list[torch.Tensor] = []

    class Seeing(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            inputs.append(x)
            return super().forward(x)

    model = Seeing(4, 2)
    with changed("inputs-zeroed") as told:
        programs.train(model, loader=list(programs.by_hand()), epochs=1)
        with torch.no_grad():
            model(torch.ones(1, 4))
    assert [bool(x.any()) for x in inputs] == [False] * 4 + [True]
    assert told.applied.times == 4
