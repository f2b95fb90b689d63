"""D159 beyond reversals: axes that were moved, exchanged, read in blocks or sorted as text in one part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.axis_operations import operations, reversals
from traindx_tools.on_data.rules import d159_reversed_axis as d159

Array = np.ndarray[Any, Any]
Seen = Callable[[ModuleType, Path], list[Finding]]
LINES = ((30, 4, 0.3), (75, 6, 1.0), (120, 3, 0.6))


def spectra(rng: np.random.Generator, rows: int) -> Array:
    at = np.arange(144)
    amounts = rng.uniform(0.5, 1.5, (rows, 3))
    made = sum(amounts[:, [k]] * h * np.exp(-((at - c) / w) ** 2) for k, (c, w, h) in enumerate(LINES))
    return np.asarray(made + 0.002 * at + rng.normal(0, 0.01, (rows, 144)))


def files(folder: Path, change: Callable[[Array], Array], odd: int = 2) -> None:
    rng = np.random.default_rng(1)
    for k in range(5):
        x = spectra(rng, 80)
        np.savez(folder / f"lamp_{k}.npz", light=change(x) if k == odd else x, amount=rng.integers(0, 2, 80))


CHANGES: dict[str, Callable[[Array], Array]] = {
    "moved": lambda x: np.roll(x, 5, axis=1),
    "blocks": lambda x: x.reshape(-1, 12, 12).transpose(0, 2, 1).reshape(len(x), 144),
    "text": lambda x: x[:, sorted(range(144), key=str)],
    "inverted": lambda x: 1.5 - x,
}


@pytest.mark.parametrize("kind", list(CHANGES))
def test_an_axis_of_one_file_stands_otherwise(kind: str, tmp_path: Path, seen_by: Seen) -> None:
    files(tmp_path, CHANGES[kind])
    (found,) = seen_by(d159, tmp_path)
    assert (found.severity, found.measured["kind"], found.measured["shard"]) == (Severity.HIGH, kind, "lamp_2.npz")
    assert found.measured["places"] == (5 if kind == "moved" else 12 if kind == "blocks" else 0)


@pytest.mark.parametrize("change", [
    lambda x: x, lambda x: 3 * x + 0.2,  # a brighter lamp
    lambda x: x + 0.3 * np.exp(-((np.arange(144) - 100) / 5) ** 2),  # a line of its own
    lambda x: np.random.default_rng(0).permuted(x, axis=1),  # no order makes it like the others
], ids=["alike", "brighter", "own-line", "shuffled"])
def test_lamps_that_differ_by_nature(change: Callable[[Array], Array], tmp_path: Path, seen_by: Seen) -> None:
    files(tmp_path, change)
    assert seen_by(d159, tmp_path) == []


def joints(folder: Path, change: Callable[[Array], Array]) -> None:
    rng = np.random.default_rng(2)
    usual = rng.normal(size=(15, 3))
    for name, rows in (("train", 400), ("test", 120)):
        x = usual + rng.normal(0, 0.2, (rows, 15, 3))
        np.savez(folder / f"{name}.npz", joints=change(x) if name == "test" else x, action=rng.integers(0, 3, rows))


def test_coordinates_of_the_held_out_file_are_exchanged(tmp_path: Path, seen_by: Seen) -> None:
    joints(tmp_path, lambda x: x[:, :, [0, 2, 1]])
    (found,) = seen_by(d159, tmp_path)
    assert found.measured["kind"] == "exchanged"
    assert "places 1 and 2 of axis 2 are exchanged" in found.statement


def test_a_coordinate_with_the_other_sign(tmp_path: Path, seen_by: Seen) -> None:
    joints(tmp_path, lambda x: x * np.array([1, -1, 1]))
    found = seen_by(d159, tmp_path)
    assert [f.measured["kind"] for f in found] in ([], ["sign"])  # never anything else


def test_copies_that_were_moved_on_purpose_are_left_alone(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(1)
    kept = [spectra(rng, 80) for _ in range(4)]
    for k, x in enumerate([*kept, np.roll(kept[0], 5, axis=1)]):
        np.savez(tmp_path / f"lamp_{k}.npz", light=x, amount=np.arange(80) % 2)
    assert seen_by(d159, tmp_path) == []


def test_a_broken_file_says_nothing(tmp_path: Path, seen_by: Seen) -> None:
    for k in range(4):
        np.savez(tmp_path / f"lamp_{k}.npz", light=np.full((60, 144), np.nan), amount=np.arange(60) % 2)
    assert seen_by(d159, tmp_path) == []


@pytest.mark.parametrize("shape", [(24,), (12, 3), (8, 8)])
def test_each_operation_is_undone(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=(3, int(np.prod(shape))))
    made = [*reversals(shape), *operations(shape, range(len(shape)), True)]
    assert {"moved", "blocks", "text", "exchanged", "sign", "transposed", "inverted"} >= {
        o.kind for o in made} - {"reversed"}
    assert all(np.array_equal(o.undone(o.done(x)), x) for o in made)
