"""Changes to chance in the data set: random transforms left out, or one draw for each sample for ever."""

from __future__ import annotations

import contextlib
import random
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data._utils import fetch

from traindx_tools.experiments.live.on_torch.stage import OnTorch

NAMES = ("transform", "transforms", "augment", "augmentation", "augmentations", "target_transform", "joint_transform")
"""Attributes under which a data set keeps what it does to each sample."""
TRIES = 6
"""Draws in which a transform is compared with itself: one that acts in half of them is missed once in 2^5."""
DEEPEST = 6


@contextlib.contextmanager
def one_draw(seed: int) -> Iterator[None]:
    """Random numbers of Python, NumPy and torch from a seed; after it they go on as if nothing had been drawn."""
    python, numpy_, own = random.getstate(), np.random.get_state(), torch.get_rng_state()
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy_)
        torch.set_rng_state(own)


class AugmentationFixed(OnTorch):
    """Each sample is made with the same random numbers whenever it is read: seeded by its index."""

    def attach(self) -> None:
        self.patches.replace(fetch._MapDatasetFetcher, "fetch", self._fetch)
        self.listen("batch", self._count)
        self.ledger.unseen = "no DataLoader read samples by index"

    def _fetch(self, original: Callable[..., Any]) -> Callable[..., Any]:
        seed = int(self.option("seed", 0))

        def fetched(fetcher: Any, indices: Any) -> Any:
            if self.ledger.off:
                return original(fetcher, indices)
            if not fetcher.auto_collation:
                with one_draw(_seed_of(indices, seed)):
                    return original(fetcher, indices)
            samples = []
            several = getattr(fetcher.dataset, "__getitems__", None)
            for index in indices:
                with one_draw(_seed_of(index, seed)):
                    samples.append(several([index])[0] if several else fetcher.dataset[index])
            return fetcher.collate_fn(samples)

        return fetched

    def _count(self, loader: Any, batch: Any) -> None:
        if loader is not None and not isinstance(loader.dataset, torch.utils.data.IterableDataset):
            self.ledger.held(f"{type(loader).__name__} over {type(loader.dataset).__name__}")


def _seed_of(index: Any, seed: int) -> int:
    try:
        return (int(index) * 1_000_003 + seed) % 2**32
    except (TypeError, ValueError):
        return seed


class NoAugmentation(OnTorch):
    """Transforms of the data set that give two results for one sample are left out.

    Which do is found out before the loader's first iteration, on a few samples, with the random numbers put back.
    """

    def attach(self) -> None:
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()
        self.listen("entered", self._enter)
        self.ledger.unseen = "no DataLoader was iterated"

    def _enter(self, loader: Any) -> None:
        if loader in self._seen:
            return
        self._seen.add(loader)
        if isinstance(loader.dataset, torch.utils.data.IterableDataset):
            self.ledger.not_here(f"{type(loader.dataset).__name__} is an iterable data set")
            return
        wrapped = [w for holder in data_sets(loader.dataset) for w in _wrap(holder)]
        try:
            self._leave_out(loader.dataset, wrapped)
        finally:
            for one in wrapped:
                one.learning = False
                one.out = one.out and not self.ledger.off

    def _leave_out(self, dataset: Any, wrapped: list[_Transform]) -> None:
        chance, kind = self._chance(dataset), type(dataset).__name__
        stayed = [w.name for w in wrapped if w.random and not w.removable]
        for one in wrapped:
            one.out = one.random
        left = [w.name for w in wrapped if w.out]
        if stayed:
            self.ledger.cannot(f"{', '.join(stayed)} gives another shape or type than it gets and cannot be left out; "
                               "augmentation-fixed draws once for each sample")
        elif left and self._chance(dataset):
            self.ledger.cannot(f"samples differ from one reading to the next even without {', '.join(left)}; "
                               "augmentation-fixed draws once for each sample")
        elif left:
            self.ledger.held(f"{', '.join(left)} of {kind}")
        elif chance:
            self.ledger.cannot(f"samples of {kind} differ from one reading to the next, and no transform of it does "
                               "that; augmentation-fixed draws once for each sample")
        else:
            self.ledger.not_here(f"a sample of {kind} is the same each time it is read")

    def _chance(self, dataset: Any) -> bool:
        """Whether the first samples differ between readings; meanwhile the transforms learn whether they do."""
        differs = False
        for index in range(min(2, len(dataset))):
            readings = []
            for seed in range(TRIES):
                with one_draw(seed):
                    readings.append(dataset[index])
            differs = differs or not all(same(readings[0], r) for r in readings[1:])
        return differs


class _Transform:
    """Stands where a transform stands; learns whether it draws random numbers, and can be left out."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.learning, self.random, self.removable, self.out = True, False, True, False
        self.name = getattr(inner, "__name__", type(inner).__name__)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_inner":
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __call__(self, *given: Any, **named: Any) -> Any:
        if self.out:
            return given[0] if len(given) == 1 else given
        if self.learning and not self.random:
            self._learn(given, named)
        return self._inner(*given, **named)

    def _learn(self, given: Any, named: Any) -> None:
        results = []
        for seed in range(TRIES):
            with one_draw(seed):
                results.append(self._inner(*_own(given), **named))
        self.random = not all(same(results[0], r) for r in results[1:])
        if self.random:
            before = given[0] if len(given) == 1 else given
            self.removable = all(_form(before) == _form(r) for r in results)


def data_sets(dataset: Any) -> Iterator[Any]:
    """A data set and those inside it: of subsets, of several put together."""
    waiting, seen = [(dataset, 0)], set()
    while waiting:
        one, depth = waiting.pop()
        if id(one) in seen or depth > DEEPEST:
            continue
        seen.add(id(one))
        yield one
        inner = [getattr(one, "dataset", None), *(getattr(one, "datasets", None) or ())]
        waiting += [(d, depth + 1) for d in inner if d is not None and hasattr(d, "__getitem__")]


def _wrap(holder: Any, depth: int = 0) -> list[_Transform]:
    """Puts a stand-in for each transform of a data set, and for each one of those that are a list."""
    made: list[_Transform] = []
    fields = getattr(holder, "__dict__", {})
    for name in NAMES:
        if name not in fields or fields[name] is None or isinstance(fields[name], _Transform):
            continue
        value = fields[name]
        parts = getattr(value, "transforms", value)
        if isinstance(parts, (list, tuple)) and all(callable(p) for p in parts):
            wrapped = [p if isinstance(p, _Transform) else _Transform(p) for p in parts]
            made += wrapped
            if parts is value:
                fields[name] = type(value)(wrapped)
            else:
                value.transforms = wrapped
        elif callable(value):
            fields[name] = _Transform(value)
            made.append(fields[name])
    return made


def _own(given: Any) -> Any:
    return tuple(g.clone() if isinstance(g, torch.Tensor) else g.copy() if isinstance(g, np.ndarray) else g
                 for g in given)


def _form(value: Any) -> Any:
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return type(value), tuple(value.shape), str(value.dtype)
    if isinstance(value, (tuple, list)):
        return type(value), [_form(v) for v in value]
    if isinstance(value, dict):
        return {k: _form(v) for k, v in value.items()}
    return type(value), getattr(value, "size", None) if not callable(getattr(value, "size", None)) else None


def same(one: Any, other: Any) -> bool:
    """Whether two samples are equal in every bit. What cannot be compared counts as equal."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.shape == other.shape and one.dtype == other.dtype and (torch.equal(one, other) or _nans(one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(v, other[k]) for k, v in one.items())
    if hasattr(one, "tobytes") and hasattr(other, "tobytes"):
        return bool(one.tobytes() == other.tobytes())
    if isinstance(one, (int, float, str, bytes, bool)) and isinstance(other, type(one)):
        return one == other or (one != one and other != other)
    return True


def _nans(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.is_floating_point() and bool(torch.equal(one.nan_to_num(), other.nan_to_num())
                                            and torch.equal(one.isnan(), other.isnan()))
