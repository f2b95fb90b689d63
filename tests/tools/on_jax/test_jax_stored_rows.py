"""J809: data sets of a JAX program that are written to by being read, and those that are not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.numpy as jnp
import numpy as np
from watching import watched

from traindx_tools.finding import Finding
from traindx_tools.live.settings import Settings


class Crops:
    """Its rows are arrays of their own, which a view of the store is not."""

    def __init__(self) -> None:
        self.images = np.random.default_rng(0).normal(size=(24, 12)).astype(np.float32)
        self.rng = np.random.default_rng(1)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> Any:
        return self.cut(self.images[i].copy())

    def cut(self, image: Any) -> Any:
        at = int(self.rng.integers(0, 10))
        image[at:at + 2] = self.rng.normal()  # <- written
        return image


class InPlace(Crops):
    def __getitem__(self, i: int) -> Any:
        return self.cut(self.images[i])


class Cached(Crops):
    """What it makes at the first visit it keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[int, Any] = {}

    def __getitem__(self, i: int) -> Any:
        if i not in self.kept:
            self.kept[i] = self.images[i] * 2
        return self.kept[i]


class Refuses(Crops):
    def __len__(self) -> int:
        raise RuntimeError("no length today")


class Feed:
    """Holds the data set: the program has no variable of it."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def epoch(self) -> Any:
        return jnp.stack([jnp.asarray(self.data[i]) for i in range(24)])


def told(tmp_path: Path, kind: type, *, held: bool = False) -> list[Finding]:
    def program() -> None:
        data = kind()
        feed = Feed(data)
        if held:
            del data
        step = jax.jit(lambda w, x: w - 0.1 * jax.grad(lambda w: ((x @ w) ** 2).mean())(w))
        w = jnp.ones(12)
        for _ in range(6):
            w = step(w, feed.epoch())

    return [f for f in watched(program, Settings(str(tmp_path), ("stored-rows",))) if f.rule == "J809"]


@pytest.mark.parametrize("held", [False, True])
def test_a_cut_that_stays_in_the_store(tmp_path: Path, held: bool) -> None:
    before = InPlace.__getitem__
    (finding,) = told(tmp_path, InPlace, held=held)
    assert finding.measured["attribute"] == "images"
    assert finding.where.line == next(n for n, t in enumerate(Path(__file__).read_text().splitlines(), 1)
                                      if t.endswith("# <- written"))
    assert InPlace.__getitem__ is before, "what stood before it is gone"


@pytest.mark.parametrize("kind", [Crops, Cached, Refuses])
def test_copies_caches_and_sets_without_a_length(tmp_path: Path, kind: type) -> None:
    assert told(tmp_path, kind) == []
