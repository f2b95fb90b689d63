"""Counts of a codebook of which few codes are used are no torn values; a value that no spread explains is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_weights import of_run

Array = np.ndarray[Any, Any]
CODES, WIDTH = 256, 12


def told(folder: Path, tensors: dict[str, Array]) -> list[Finding]:
    np.savez(folder / "model.npz", **{n: t.astype(np.float32) for n, t in tensors.items()})  # type: ignore[arg-type]
    return [f for f in of_run([str(folder / "model.npz")]).findings if f.rule in ("W114", "W165")]


def layers(rng: np.random.Generator) -> dict[str, Array]:
    return {f"{side}.{i}.weight": 0.2 * rng.standard_t(8, size=(24, 24)) for side in ("enc", "dec") for i in (0, 2)}


def decayed(rng: np.random.Generator, alive: int) -> Array:
    """Counts as a moving average leaves them: some codes taken now, the others some hundred batches ago."""
    counts = np.exp(-0.01 * rng.integers(700, 4000, CODES)) * rng.integers(1, 30, CODES)
    counts[rng.choice(CODES, alive, replace=False)] = 1024 * rng.dirichlet(np.ones(alive))
    return np.asarray(counts)


def codebook(rng: np.random.Generator, counts: Array, *, turned: bool = False) -> dict[str, Array]:
    codes = rng.normal(size=(1, CODES, WIDTH))
    sums = codes * counts[None, :, None]
    if turned:
        return {**layers(rng), "q.e": codes[0].T, "q.n": counts, "q.m": sums[0].T}
    return {**layers(rng), "vq._codebook.embed": codes, "vq._codebook.cluster_size": counts[None],
            "vq._codebook.embed_avg": sums}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("alive", [1, 2, 7])
def test_a_codebook_that_collapsed(alive: int, turned: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(alive)
    (found,) = told(tmp_path, codebook(rng, decayed(rng, alive), turned=turned))
    assert found.rule == "W165"
    assert found.measured["used"] == alive
    assert found.where.module == ("q.n" if turned else "vq._codebook.cluster_size")


@pytest.mark.parametrize("alive", [60, 200])
def test_codes_of_which_many_are_used(alive: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(alive)
    assert told(tmp_path, codebook(rng, decayed(rng, alive))) == []


@pytest.mark.parametrize("start", [0.0, 1.0])
def test_counts_as_they_begin(start: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    assert told(tmp_path, codebook(rng, np.full(CODES, start))) == []


@pytest.mark.parametrize("alive", [1, 2, 7])
def test_counts_without_the_sums(alive: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(alive)
    assert told(tmp_path, {**layers(rng), "codes": rng.normal(size=(CODES, WIDTH)), "usage": decayed(rng, alive)}) == []


def test_one_count_that_is_torn(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    usage = 1024 * rng.dirichlet(np.ones(CODES)) + 0.01
    usage[9] = 4e12
    (found,) = told(tmp_path, {**layers(rng), "codes": rng.normal(size=(CODES, WIDTH)), "usage": usage})
    assert found.rule == "W114"
    assert found.where.module == "usage"
    assert "[9]" in found.statement


def raw_columns(rng: np.random.Generator) -> dict[str, Array]:
    middle, spread = rng.normal(size=80), rng.uniform(0.5, 2, 80)
    return {**layers(rng), "scaler.middle": middle, "scaler.width": spread}


def test_a_column_in_another_unit(tmp_path: Path) -> None:
    made = raw_columns(np.random.default_rng(6))
    made["scaler.middle"][31], made["scaler.width"][31] = 6.1e6, 2.4e6
    assert told(tmp_path, made) == []


def test_a_spread_that_is_torn_beside_its_mean(tmp_path: Path) -> None:
    made = raw_columns(np.random.default_rng(6))
    made["scaler.width"][31] = 2.4e6
    (found,) = told(tmp_path, made)
    assert found.rule == "W114"
    assert found.where.module == "scaler.width"


def test_broken(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    made = codebook(rng, decayed(rng, 2))
    made["vq._codebook.embed_avg"][0, 3] = np.nan
    made["empty"] = np.zeros((0, 4))
    assert all(f.rule != "W165" for f in told(tmp_path, made))
