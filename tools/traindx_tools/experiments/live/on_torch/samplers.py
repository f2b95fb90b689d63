"""Changes to the order and the choice of samples, made to the sampler of a DataLoader before it is iterated."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterator, Sized
from typing import Any

import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from traindx_tools.experiments.live.on_torch.stage import OnTorch


class Unsuited(Exception):
    """The loader is of a kind for which the change cannot be made; says which."""


class _OfSamplers(OnTorch):
    """Each DataLoader of a training gets another sampler before its first iteration."""

    def attach(self) -> None:
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()
        self.listen("entered", self._enter)
        self.ledger.unseen = "no DataLoader of a training was iterated"

    def changed(self, loader: Any, sampler: Any) -> Any:
        """The sampler that stands for the loader's; None where it changes nothing. Raises Unsuited."""
        raise NotImplementedError

    def _enter(self, loader: Any) -> None:
        if loader in self._seen or not self.stage.training(loader):
            return
        self._seen.add(loader)
        try:
            holder, sampler = innermost(loader)
            new = self.changed(loader, sampler)
        except Unsuited as error:
            self.ledger.cannot(str(error))
            return
        if new is None:
            return
        if new is not sampler:
            holder.__dict__["sampler"] = new
            if "sampler" in loader.__dict__:  # a DataLoader forbids setting it: its batches are made by another object
                loader.__dict__["sampler"] = new
        self.ledger.held(f"{type(loader).__name__} over {type(loader.dataset).__name__}")


class NoShuffle(_OfSamplers):
    """Samples come in the order of the data set, in each epoch."""

    def changed(self, loader: Any, sampler: Any) -> Any:
        ordered = isinstance(sampler, SequentialSampler) or (
            isinstance(sampler, DistributedSampler) and not sampler.shuffle)
        if ordered:
            self.ledger.not_here(f"{_named(loader)} does not shuffle ({type(sampler).__name__}): its rows come in the "
                                 "order of the data set already")
            return None
        if isinstance(sampler, DistributedSampler):
            sampler.shuffle = False
            return sampler
        if isinstance(sampler, SubsetRandomSampler):
            return list(sampler.indices)
        if isinstance(sampler, RandomSampler) and not sampler.replacement and len(sampler) == len(loader.dataset):
            return SequentialSampler(loader.dataset)
        raise Unsuited(_own_way(loader, sampler))


class Shuffle(_OfSamplers):
    """Samples come in a new random order in each epoch, by a generator of its own."""

    def changed(self, loader: Any, sampler: Any) -> Any:
        if isinstance(sampler, DistributedSampler):
            if sampler.shuffle:
                self.ledger.not_here(_shuffles(loader, sampler))
                return None
            sampler.shuffle = True
            return _Epochs(sampler)
        if isinstance(sampler, RandomSampler):
            self.ledger.not_here(_shuffles(loader, sampler))
            return None
        if isinstance(sampler, SequentialSampler):
            generator = torch.Generator()
            generator.manual_seed(int(self.option("seed", 0)))
            return RandomSampler(loader.dataset, generator=generator)
        raise Unsuited(_own_way(loader, sampler))


class NoSamplerWeights(_OfSamplers):
    """Rows are drawn with equal chances, as many of them and with or without replacement as before."""

    def changed(self, loader: Any, sampler: Any) -> Any:
        if type(sampler) is not WeightedRandomSampler:
            self.ledger.not_here(f"{_named(loader)} draws by {type(sampler).__name__}, which has no weights")
            return None
        count = len(loader.dataset)
        if not sampler.replacement and sampler.num_samples >= count:
            return RandomSampler(loader.dataset, generator=sampler.generator)
        if sampler.replacement:
            return RandomSampler(loader.dataset, True, sampler.num_samples, sampler.generator)
        equal = torch.ones(count, dtype=torch.double)
        return WeightedRandomSampler(equal.tolist(), sampler.num_samples, False, sampler.generator)


def _named(loader: Any) -> str:
    return f"the DataLoader over {type(loader.dataset).__name__}"


def _shuffles(loader: Any, sampler: Any) -> str:
    return f"{_named(loader)} draws by {type(sampler).__name__}: its rows are shuffled already"


def _own_way(loader: Any, sampler: Any) -> str:
    return (f"{_named(loader)} draws by {type(sampler).__name__}, which chooses samples in its own way: another order "
            "would be another choice as well")


class _Epochs:
    """A DistributedSampler whose epoch goes on by itself where the program, which did not shuffle, never sets it."""

    def __init__(self, inner: DistributedSampler[Any]) -> None:
        self._inner, self._last = inner, -1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_inner":
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __iter__(self) -> Iterator[int]:
        if self._inner.epoch == self._last:
            self._inner.epoch += 1
        self._last = self._inner.epoch
        return iter(self._inner)

    def __len__(self) -> int:
        return len(self._inner)


class Indices(_OfSamplers):
    """Samples whose index lies in a range are left out, or are the only ones."""

    def changed(self, loader: Any, sampler: Any) -> Any:
        total = len(loader.dataset)
        kept = self.kept(loader.dataset, total)
        if not kept:
            raise Unsuited(f"of the {total} samples of {type(loader.dataset).__name__} none would be left")
        if len(kept) == total:
            self.ledger.not_here(f"the range touches none of the {total} samples of "
                                       f"{type(loader.dataset).__name__}")
            return None
        if isinstance(sampler, DistributedSampler):
            return _Spread(sampler, kept)
        return Chosen(sampler, frozenset(kept), total)

    def kept(self, dataset: Any, total: int) -> list[int]:
        """The indices that stay. Raises Unsuited."""
        first, last = int(self.option("from")), min(int(self.option("to")), total - 1)
        inside = range(first, last + 1)
        if first >= total:
            raise Unsuited(f"{type(dataset).__name__} has {total} samples (0 to {total - 1}): from={first} is beyond")
        return list(inside) if self.alone else [i for i in range(total) if i not in inside]

    @property
    def alone(self) -> bool:
        """Whether the range is all that stays."""
        return self.change.name == "indices-alone"


class OneSource(Indices):
    """Of data sets that were put together one alone is read."""

    def kept(self, dataset: Any, total: int) -> list[int]:
        if not isinstance(dataset, ConcatDataset):
            raise Unsuited(f"{type(dataset).__name__} is no ConcatDataset: its sources are not known; indices-alone or "
                           "files-alone say which samples or files are one")
        number, ends = int(self.option("number")), list(dataset.cumulative_sizes)
        if number >= len(ends):
            raise Unsuited(f"there are {len(ends)} sources (0 to {len(ends) - 1}): number={number} is beyond")
        return list(range(ends[number - 1] if number else 0, ends[number]))


class Chosen:
    """A sampler without the indices that are left out."""

    def __init__(self, inner: Any, kept: frozenset[int], total: int) -> None:
        self._inner, self._kept, self._total = inner, kept, total

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_inner":
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __iter__(self) -> Iterator[int]:
        return (i for i in self._inner if int(i) in self._kept)

    def __len__(self) -> int:
        """Exact where each index comes once, else what is to be expected."""
        whole = len(self._inner) if isinstance(self._inner, Sized) else self._total
        return max(1, round(whole * len(self._kept) / self._total))


class _Spread:
    """A DistributedSampler over the indices that stay, so that all ranks have as many."""

    def __init__(self, inner: DistributedSampler[Any], kept: list[int]) -> None:
        self._inner, self._kept = inner, kept
        small = copy.copy(inner)
        small.dataset = range(len(kept))  # type: ignore[assignment]
        left = len(kept)
        if inner.drop_last and left % inner.num_replicas:
            small.num_samples = -(-(left - inner.num_replicas) // inner.num_replicas)
        else:
            small.num_samples = -(-left // inner.num_replicas)
        small.total_size = small.num_samples * inner.num_replicas
        self._small = small

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_inner", "_small"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __iter__(self) -> Iterator[int]:
        self._small.epoch = self._inner.epoch
        return (self._kept[i] for i in self._small)

    def __len__(self) -> int:
        return len(self._small)


def innermost(loader: Any) -> tuple[Any, Any]:
    """What holds the sampler of samples, and the sampler: below batch samplers that wrap one another.

    Raises Unsuited where the loader has none: an iterable data set, or batches of the program's own making.
    """
    if isinstance(loader.dataset, torch.utils.data.IterableDataset):
        raise Unsuited(f"{type(loader.dataset).__name__} is an iterable data set, without indices")
    holder = loader
    if loader.batch_sampler is not None:
        holder = loader.batch_sampler
        for _ in range(4):
            if not isinstance(getattr(holder, "batch_sampler", None), BatchSampler):
                break
            holder = holder.batch_sampler
        if not isinstance(holder, BatchSampler):
            raise Unsuited(f"the batches are chosen by {type(holder).__name__}, in its own way")
    if holder.sampler is None:
        raise Unsuited("the loader has no sampler")
    return holder, holder.sampler
