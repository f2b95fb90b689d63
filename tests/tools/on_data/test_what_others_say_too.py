"""What is odd by itself and not beside the other files: a stretch that recurs in them, a label that its inputs say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.rules import d103_constant, d109_pairing, d142_odd_part

Seen = Callable[[ModuleType, Path], list[Finding]]


def alarms(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity is not Severity.INFO]


@pytest.mark.parametrize(("changed", "told"), [((1,), True), ((0, 1, 2, 3), False), ((1, 2, 3), False)])
def test_a_stretch_that_most_files_have_is_their_order(
    changed: tuple[int, ...], told: bool, tmp_path: Path, seen_by: Seen
) -> None:
    rng = np.random.default_rng(0)
    for k in range(4):
        x = rng.normal(size=400)
        x[320:] += 6.0 * (k in changed)
        np.savez(tmp_path / f"part_{k}.npz", x=x)
    found = [f for f in alarms(seen_by(d142_odd_part, tmp_path)) if f.measured["kind"] == "stretch"]
    assert bool(found) is told


def test_a_change_elsewhere_in_the_other_files_excuses_nothing(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(1)
    for k in range(4):
        x = rng.normal(size=400)
        x[320:] += 6.0 * (k == 1)
        x[:80] -= 0.3 * (k != 1)
        np.savez(tmp_path / f"part_{k}.npz", x=x)
    assert any("part_1.npz" in f.statement for f in alarms(seen_by(d142_odd_part, tmp_path)))


def labelled(folder: Path, of: Callable[[int, Any], Any]) -> None:
    """Five files of inputs of three classes; `of`: the classes of a file, and what its labels say of them."""
    rng, centres = np.random.default_rng(2), 3.0 * np.random.default_rng(3).normal(size=(3, 8))
    for k in range(5):
        y = rng.integers(0, 3, 200)
        y, label = of(k, y)
        np.savez(folder / f"part_{k}.npz", x=centres[y] + rng.normal(size=(200, 8)), y=label)


@pytest.mark.parametrize(("inputs", "severity"), [("one class", Severity.INFO), ("all classes", Severity.MEDIUM)])
def test_the_only_label_of_a_file(inputs: str, severity: Severity, tmp_path: Path, seen_by: Seen) -> None:
    def of(k: int, y: Any) -> tuple[Any, Any]:
        one = np.full_like(y, 1)
        return (one if k == 2 and inputs == "one class" else y), (one if k == 2 else y)

    labelled(tmp_path, of)
    (finding,) = seen_by(d103_constant, tmp_path)
    assert finding.severity is severity
    assert ("its inputs say so too" in finding.statement) == (inputs == "one class")


@pytest.mark.parametrize("longest", [4, 9])
def test_the_end_of_padded_rows_in_a_bucket_of_short_ones(longest: int, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(0)
    for k in range(4):
        lengths = rng.integers(2, (longest if k == 0 else 10) + 1, 200)
        ids = np.where(np.arange(12) < lengths[:, None], rng.integers(0, 10, (200, 12)), -1)
        np.savez(tmp_path / f"bucket_{k}.npz", labels=ids, values=rng.normal(size=(200, 3)))
    assert [f for f in seen_by(d103_constant, tmp_path) if f.severity is not Severity.INFO] == []


def test_a_place_of_whole_numbers_that_was_not_filled(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(0)
    for k in range(4):
        ids = rng.integers(-1, 10, (200, 6))
        ids[:, 2] = -1 if k == 1 else ids[:, 2]
        np.savez(tmp_path / f"part_{k}.npz", answers=ids)
    (finding,) = [f for f in seen_by(d103_constant, tmp_path) if f.severity is not Severity.INFO]
    assert finding.measured["features"] == (2,)


@pytest.mark.parametrize(("share", "told"), [(1.0, False), (0.97, False), (0.0, True)])
def test_a_file_of_one_label_says_nothing_of_its_pairing(
    share: float, told: bool, tmp_path: Path, seen_by: Seen
) -> None:
    rng = np.random.default_rng(4)

    def of(k: int, y: Any) -> tuple[Any, Any]:
        mixed = np.where(rng.random(len(y)) < share, 1, rng.permutation(y))
        return y, (mixed if k == 2 else y)

    labelled(tmp_path, of)
    assert bool(alarms(seen_by(d109_pairing, tmp_path))) is told


def test_files_without_a_label_or_a_number_are_read(tmp_path: Path) -> None:
    for k in range(4):
        np.savez(tmp_path / f"part_{k}.npz", x=np.full((40, 2), np.nan if k == 1 else k), y=np.zeros(40, np.int64))
    assert not examine([tmp_path]).notes
