"""Seeds move wherever they are set; the placebo changes nothing; deterministic kernels stay on."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader


def draws() -> dict[str, Any]:
    """One number of each generator that a program may seed."""
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    generator = torch.Generator()
    generator.manual_seed(3)
    return {"random": random.random(), "Random": random.Random(3).random(), "numpy": np.random.rand(),
            "default_rng": np.random.default_rng(3).random(), "RandomState": np.random.RandomState(3).rand(),
            "keyword": np.random.default_rng(seed=3).random(), "SeedSequence": np.random.SeedSequence(3).entropy,
            "PCG64": np.random.Generator(np.random.PCG64(3)).random(), "torch": torch.rand(()).item(),
            "Generator": torch.rand((), generator=generator).item()}


def seeded(number: int) -> dict[str, Any]:
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)
    generator = torch.Generator()
    generator.manual_seed(number)
    return {"random": random.random(), "Random": random.Random(number).random(), "numpy": np.random.rand(),
            "default_rng": np.random.default_rng(number).random(), "RandomState": np.random.RandomState(number).rand(),
            "keyword": np.random.default_rng(seed=number).random(),
            "SeedSequence": np.random.SeedSequence(number).entropy,
            "PCG64": np.random.Generator(np.random.PCG64(number)).random(), "torch": torch.rand(()).item(),
            "Generator": torch.rand((), generator=generator).item()}


def test_each_seed_is_moved_by_as_much_and_comes_back(changed: Any) -> None:
    expected = seeded(8)
    with changed("seed:by=5"):
        found = draws()
    assert found == expected
    assert draws() == seeded(3)


def test_generators_remain_what_programs_ask_whether_they_are(changed: Any) -> None:
    with changed("seed"):
        assert isinstance(np.random.RandomState(3), np.random.RandomState)
        assert isinstance(np.random.mtrand._rand, np.random.RandomState)
        assert isinstance(torch.default_generator, torch.Generator)
        assert issubclass(type(np.random.RandomState(3)), np.random.RandomState)
        torch.utils.data.RandomSampler(range(3), generator=torch.Generator())  # type: ignore[arg-type]


def test_what_asks_for_chance_still_does(changed: Any) -> None:
    with changed("seed"):
        assert np.random.default_rng().random() != np.random.default_rng(None).random()
        random.seed()
        random.seed("a text")
        random.seed(1.5)


def test_a_program_that_seeds_nothing_gets_seeds(changed: Any, programs: Any) -> None:
    with changed("seed:by=2") as told:
        programs.train()
    assert told.applied.times >= 1
    assert "start of the process" in told.applied.where


def test_the_placebo_changes_no_bit(changed: Any, programs: Any) -> None:
    def run() -> Any:
        torch.manual_seed(1)
        loader = DataLoader(programs.data(), batch_size=8, shuffle=True)
        model = programs.train(programs.net(0.3), loader,
                               before_step=lambda m: torch.nn.utils.clip_grad_norm_(m.parameters(), 0.1))[1]
        return [*programs.weights(model), torch.rand(3), torch.tensor(np.random.rand(2)),
                torch.tensor([random.random()])]

    random.seed(0)
    expected = run()
    with changed("placebo") as told:
        random.seed(0)
        found = run()
    assert programs.equal(expected, found)
    assert told.applied.times == 1


def test_every_patch_is_taken_back(changed: Any) -> None:
    from torch.utils.data import dataloader

    places = [(torch.nn.Module, "__call__"), (torch.nn.Module, "train"), (torch.autograd, "backward"),
              (DataLoader, "__iter__"), (dataloader._BaseDataLoaderIter, "__next__"),
              (torch.optim.Optimizer, "__init__"), (torch, "manual_seed"), (random, "seed"),
              (np.random, "RandomState"), (torch, "Generator")]
    before = [vars(owner)[name] for owner, name in places]
    with changed("placebo"):
        pass
    with changed("seed"):
        assert torch.manual_seed is not before[6]
    assert all(vars(owner)[name] is held for (owner, name), held in zip(places, before, strict=True))


def test_kernels_stay_deterministic_where_the_program_asks_for_speed(changed: Any, programs: Any) -> None:
    with changed("deterministic") as told:
        torch.backends.cudnn.benchmark = True
        torch.use_deterministic_algorithms(False)
        programs.train()
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.backends.cudnn.benchmark
    assert told.applied.times == 8
    assert not torch.are_deterministic_algorithms_enabled()
