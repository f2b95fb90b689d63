"""Labels of one batch that are off; harder groups, own relations and groups of one class beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from table_making import table

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.rules import d152_labels_of_group

Seen = Callable[[ModuleType, Path], list[Finding]]
Ints = np.ndarray[Any, np.dtype[np.int64]]
NAMES = np.array(["cat", "dog", "fox", "owl"])
ODD = 6


def alarms(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity is not Severity.INFO]


def written(
    folder: Path,
    form: str,
    seed: int,
    labels: Callable[[Ints, np.random.Generator], Ints] = lambda y, rng: y,
    inputs: Callable[[Any, Ints, np.random.Generator], Any] = lambda x, y, rng: x,
) -> None:
    """Clouds of four classes in ten batches, in no order; `labels` and `inputs` change those of one batch."""
    rng = np.random.default_rng(seed)
    batch, y = rng.integers(0, 10, 2000), rng.integers(0, 4, 2000)
    x = np.random.default_rng(3).normal(size=(4, 6))[y] * 1.6 + rng.normal(size=(2000, 6))
    own = batch == ODD
    x[own] = inputs(x[own], y[own], rng)
    y[own] = labels(y[own], rng)
    if form in ("npz", "hdf5"):
        table(folder / "data", form, {"x": x.astype(np.float32), "batch": batch, "label": y})
    else:
        columns = {f"f{k}": x[:, k] for k in range(6)}
        table(folder / "data", form, columns | {"batch": [f"b{k:02d}" for k in batch], "label": NAMES[y].tolist()})


def permuted(y: Ints, rng: np.random.Generator) -> Ints:
    return np.array([2, 0, 3, 1])[y]


def two_exchanged(y: Ints, rng: np.random.Generator) -> Ints:
    return np.array([1, 0, 2, 3])[y]


def at_random(y: Ints, rng: np.random.Generator) -> Ints:
    return rng.permutation(y)


def constant(y: Ints, rng: np.random.Generator) -> Ints:
    return np.ones_like(y)


def late(y: Ints, rng: np.random.Generator) -> Ints:
    return np.roll(y, 1)


@pytest.mark.parametrize("form", ["csv", "parquet", "npz", "hdf5"])
@pytest.mark.parametrize(("labels", "kind"), [
    (permuted, "group-mapped"), (two_exchanged, "group-mapped"), (at_random, "group-lost"),
    (constant, "group-constant"), (late, "group-shifted"),
])
def test_one_batch(
    form: str, labels: Callable[[Ints, np.random.Generator], Ints], kind: str, tmp_path: Path, seen_by: Seen
) -> None:
    written(tmp_path, form, 0, labels)
    (finding,) = alarms(seen_by(d152_labels_of_group, tmp_path))
    assert finding.measured["kind"] == kind
    assert "6" in str(finding.measured["part"])


def harder(x: Any, y: Ints, rng: np.random.Generator) -> Any:
    return x + 2.5 * rng.normal(size=x.shape)


def another_relation(x: Any, y: Ints, rng: np.random.Generator) -> Any:
    return np.roll(x, 3, axis=1)


def unsure(x: Any, y: Ints, rng: np.random.Generator) -> Any:
    return 0.2 * x


@pytest.mark.parametrize("inputs", [lambda x, y, rng: x, harder, another_relation, unsure])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_what_is_by_nature(
    inputs: Callable[[Any, Ints, np.random.Generator], Any], seed: int, tmp_path: Path, seen_by: Seen
) -> None:
    written(tmp_path, "csv", seed, inputs=inputs)
    assert not alarms(seen_by(d152_labels_of_group, tmp_path))


def test_a_group_of_one_class_with_inputs_of_that_class(tmp_path: Path, seen_by: Seen) -> None:
    centres = np.random.default_rng(3).normal(size=(4, 6)) * 1.6
    written(tmp_path, "csv", 3, constant, lambda x, y, rng: centres[1] + rng.normal(size=x.shape))
    assert not alarms(seen_by(d152_labels_of_group, tmp_path))


def test_inputs_that_tell_nothing(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(4)
    table(tmp_path / "noise", "csv", {
        "f": rng.normal(size=900), "g": rng.normal(size=900), "batch": [f"b{k}" for k in rng.integers(0, 6, 900)],
        "label": NAMES[rng.integers(0, 4, 900)].tolist(),
    })
    assert not seen_by(d152_labels_of_group, tmp_path)


def test_a_batch_of_which_a_part_is_empty_cells(tmp_path: Path) -> None:
    written(tmp_path, "csv", 5, permuted)
    lines = (tmp_path / "data.csv").read_text().splitlines()
    broken = [line if k % 7 else "," * line.count(",") for k, line in enumerate(lines)]
    (tmp_path / "data.csv").write_text("\n".join([lines[0], *broken[1:]]))
    assert not examine([tmp_path]).notes
