"""Which samples, in which order, by which workers, with which chance."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    SequentialSampler,
    WeightedRandomSampler,
)


def read(loader: Any, programs: Any, epochs: int = 1) -> list[int]:
    """The indices that a training gets, in order."""
    return [int(v) for batch in programs.train(loader=loader, epochs=epochs)[0] for v in batch[0][:, 0]]


def test_a_range_is_left_out_or_alone(changed: Any, programs: Any) -> None:
    with changed("indices-left-out:from=3,to=8") as told:
        assert read(DataLoader(programs.Numbered(), batch_size=2), programs) == [0, 1, 2, 9, 10, 11]
    assert told.applied.times == 1
    with changed("indices-alone:from=3,to=99") as told:
        loader = DataLoader(programs.Numbered(), batch_size=3, shuffle=True)
        assert sorted(read(loader, programs)) == list(range(3, 12))
        assert len(loader) == 3


def test_evaluations_see_all_samples(changed: Any, programs: Any) -> None:
    with changed("indices-alone:from=0,to=1"):
        programs.train(loader=DataLoader(programs.Numbered(), batch_size=2))
        with torch.no_grad():
            assert len([*DataLoader(programs.Numbered(), batch_size=1)]) == 12


def test_ranks_have_as_many_samples_and_no_other_ones(changed: Any, programs: Any) -> None:
    found = []
    for rank in range(2):
        with changed("indices-left-out:from=0,to=2") as told:
            data = programs.Numbered()
            sampler = DistributedSampler(data, num_replicas=2, rank=rank, shuffle=True)
            loader = DataLoader(data, batch_size=1, sampler=sampler)
            found.append(read(loader, programs, epochs=1))
            assert len(loader) == 5
        assert told.applied.times == 1
    assert len(found[0]) == len(found[1]) == 5
    assert set(found[0]) | set(found[1]) == set(range(3, 12))


@pytest.mark.parametrize(("change", "said"), [("indices-left-out:from=0,to=99", "none would be left"),
                                              ("indices-left-out:from=12,to=20", "beyond")])
def test_a_range_that_does_not_fit_says_how_many_samples_there_are(changed: Any, programs: Any, change: str,
                                                                  said: str) -> None:
    with changed(change) as told:
        assert read(DataLoader(programs.Numbered(), batch_size=2), programs) == list(range(12))
    assert told.applied.times == 0
    assert said in told.applied.problem


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter([(torch.full((4,), float(i)), i % 2) for i in range(6)])


@pytest.mark.parametrize("change", ["indices-alone:from=0,to=1", "no-shuffle", "shuffle", "one-source:number=0"])
def test_an_iterable_data_set_has_no_indices(changed: Any, programs: Any, change: str) -> None:
    with changed(change) as told:
        assert read(DataLoader(Stream(), batch_size=2), programs) == list(range(6))
    assert "iterable" in told.applied.problem


def test_batches_chosen_by_the_programs_own_hand_are_left_alone(changed: Any, programs: Any) -> None:
    own = [[0, 1], [2, 3]]
    with changed("indices-alone:from=0,to=1") as told:
        assert read(DataLoader(programs.Numbered(), batch_sampler=own), programs) == [0, 1, 2, 3]
    assert "its own way" in told.applied.problem


def test_one_of_several_sources(changed: Any, programs: Any) -> None:
    whole = ConcatDataset([programs.Numbered(3), programs.Numbered(5)])
    with changed("one-source:number=1") as told:
        assert read(DataLoader(whole, batch_size=5), programs) == [0, 1, 2, 3, 4]
    assert told.applied.times == 1
    with changed("one-source:number=2") as told:
        assert len(read(DataLoader(whole, batch_size=4), programs)) == 8
    assert "2 sources" in told.applied.problem
    with changed("one-source:number=0") as told:
        programs.train()
    assert "ConcatDataset" in told.applied.problem


def test_the_order_of_the_data_set_and_a_random_one(changed: Any, programs: Any) -> None:
    with changed("no-shuffle") as told:
        assert read(DataLoader(programs.Numbered(), batch_size=4, shuffle=True), programs, 2) == [*range(12)] * 2
    assert told.applied.times == 1
    with changed("no-shuffle") as told:
        programs.train()
    assert "does not shuffle" in told.applied.problem
    with changed("shuffle") as told:
        found = read(DataLoader(programs.Numbered(), batch_size=4), programs, 2)
    assert sorted(found[:12]) == sorted(found[12:]) == list(range(12))
    assert found[:12] != found[12:]
    assert found[:12] != list(range(12))
    with changed("shuffle") as told:
        programs.train(loader=DataLoader(programs.data(), batch_size=8, shuffle=True))
    assert "already" in told.applied.problem


def test_rows_that_weights_chose_are_drawn_with_equal_chances(changed: Any, programs: Any) -> None:
    def weighted(replacement: bool) -> Any:
        weights = [1.0] + [1e-9] * 11 if replacement else [1.0] * 12
        sampler = WeightedRandomSampler(weights, 12, replacement)
        return DataLoader(programs.Numbered(), batch_size=4, sampler=sampler)

    assert read(weighted(True), programs) == [0] * 12
    with changed("no-sampler-weights") as told:
        assert len(set(read(weighted(True), programs, 3))) > 8
    assert told.applied.times == 1
    with changed("no-sampler-weights") as told:
        assert sorted(read(weighted(False), programs)) == list(range(12))
    with changed("no-sampler-weights") as told:
        read(DataLoader(programs.Numbered(), batch_size=4, shuffle=True), programs)
    assert told.applied.problem == "the DataLoader over Numbered draws by RandomSampler, which has no weights"


def test_what_was_seen_is_said_in_place_of_what_was_not(changed: Any, programs: Any) -> None:
    """Seen: "no DataLoader was made; the loaders have no workers anyway"."""
    with changed("no-workers") as told:
        programs.train()
    assert "no DataLoader" not in told.applied.problem
    assert "num_workers=0" in told.applied.problem
    with changed("no-workers") as told:
        programs.train(loader=programs.by_hand())
    assert told.applied.problem == "no DataLoader was made"
    with changed("batch-size:times=1.01") as told:
        programs.train()
    assert "rounded to the same" in told.applied.problem


def test_shuffling_below_a_batch_sampler_and_on_ranks(changed: Any, programs: Any) -> None:
    data = programs.Numbered()
    with changed("shuffle"):
        batches = BatchSampler(SequentialSampler(data), 4, False)
        assert sorted(read(DataLoader(data, batch_sampler=batches), programs)) == list(range(12))
    with changed("no-shuffle"):
        sampler = DistributedSampler(data, num_replicas=2, rank=1, shuffle=True)
        assert read(DataLoader(data, batch_size=2, sampler=sampler), programs) == [1, 3, 5, 7, 9, 11]


def test_no_workers_one_worker_and_another_batch_size(changed: Any, programs: Any) -> None:
    with changed("no-workers") as told:
        loader = DataLoader(programs.data(), 8, num_workers=2, persistent_workers=True, prefetch_factor=4, timeout=30)
        assert loader.num_workers == 0
        programs.train(loader=loader)
    assert told.applied.times == 1
    with changed("no-workers") as told:
        programs.train()
    assert "num_workers=0: there are no workers" in told.applied.problem
    with changed("one-worker") as told:
        programs.train(loader=DataLoader(programs.data(), batch_size=8, num_workers=2), epochs=1)
    assert told.applied.times == 1
    with changed("one-worker") as told:
        programs.train(loader=DataLoader(programs.data(), batch_size=8, num_workers=1), epochs=1)
    assert "one worker already" in told.applied.problem
    with changed("batch-size:times=0.5") as told:
        assert len(programs.train(loader=DataLoader(programs.data(), batch_size=8), epochs=1)[0]) == 8
    assert told.applied.times == 1
    with changed("batch-size:times=2") as told:
        programs.train(loader=DataLoader(programs.Numbered(), batch_sampler=[[0, 1]]))
    assert told.applied.times == 0


class Compose:
    """As torchvision's: a list of transforms under `transforms`."""

    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms

    def __call__(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x


class Jitter:
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand(4) + random.random() + float(np.random.rand())


class Flip:
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return -x if random.random() < 0.5 else x


class Crop:
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        start = random.randint(0, 2)
        return x[start:start + 2] + torch.tensor([start, 0.0])


def double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


def test_random_transforms_are_left_out_and_the_others_stay(changed: Any, programs: Any) -> None:
    data = programs.Numbered(transform=Compose([Jitter(), double, Flip()]))
    random.seed(0)
    before = random.getstate()
    with changed("no-augmentation") as told:
        found = read(DataLoader(torch.utils.data.Subset(data, range(12)), batch_size=4), programs, epochs=2)
    assert found == [2 * i for i in range(12)] * 2
    assert "Jitter, Flip" in told.applied.where
    assert random.getstate() != before or told.applied.times == 1


@pytest.mark.parametrize(("transform", "said"), [(Crop(), "another shape"), (double, "the same each time")])
def test_a_transform_that_cannot_or_need_not_be_left_out(changed: Any, programs: Any, transform: Any,
                                                         said: str) -> None:
    data = programs.Numbered(transform=transform)
    model = programs.net() if said != "another shape" else torch.nn.Linear(2, 2)
    with changed("no-augmentation") as told:
        programs.train(model, loader=DataLoader(data, batch_size=4))
    assert told.applied.times == 0
    assert said in told.applied.problem


class Inside(torch.utils.data.Dataset[Any]):
    """Augments in `__getitem__` itself."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        return torch.full((4,), float(index)) + random.random() + torch.rand(4), index % 2


@pytest.mark.parametrize("workers", [0, 1])
def test_chance_of_the_data_set_itself_is_fixed_for_each_index(changed: Any, programs: Any, workers: int) -> None:
    with changed("no-augmentation") as told:
        programs.train(loader=DataLoader(Inside(), batch_size=3))
    assert "augmentation-fixed" in told.applied.problem
    with changed("augmentation-fixed") as told:
        seen, _ = programs.train(loader=DataLoader(Inside(), batch_size=3, num_workers=workers), epochs=3)
    assert programs.equal(seen[0], seen[2])
    assert programs.equal(seen[1], seen[5])
    assert told.applied.times == 6
    with changed("augmentation-fixed") as told:
        programs.train(loader=DataLoader(Stream(), batch_size=2))
    assert told.applied.times == 0


def test_the_trainings_own_random_numbers_go_on_as_if_none_had_been_drawn(changed: Any, programs: Any) -> None:
    with changed("augmentation-fixed"):
        torch.manual_seed(4)
        loader = iter(DataLoader(Inside(), batch_size=3))
        state = torch.get_rng_state()
        next(loader)
        assert torch.equal(torch.get_rng_state(), state)
