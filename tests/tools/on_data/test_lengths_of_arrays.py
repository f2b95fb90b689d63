"""Arrays of one file that have other lengths: a field that is short, another axis, another table."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from traindx_tools.on_data import examine


def bucket(width: int, rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(width)
    return {f"x_{width}": rng.normal(size=(rows, width, 4)).astype(np.float32),
            f"len_{width}": rng.integers(1, width, rows), f"y_{width}": rng.integers(0, 5, rows)}


def test_a_field_that_is_one_row_short_is_told(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(400, 5))
    np.savez(tmp_path / "a.npz", x=x, y=np.arange(399) % 3, z=np.arange(400) % 7)
    assert [f.rule for f in examine([tmp_path]).findings if f.severity.value == "high"] == ["D107"]


def test_buckets_of_nearly_equal_size_are_tables_of_their_own_and_named_as_not_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **bucket(32, 442), **bucket(48, 434), **bucket(64, 300))
    report = examine([tmp_path])
    assert not [f for f in report.findings if f.rule == "D107"]
    assert any("not looked at, of other lengths: x_48, len_48, y_48, x_64, len_64, y_64" in str(n) for n in
               (*report.notes, *report.artifacts))


def test_an_array_along_another_axis_is_no_field_that_is_short(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "a.npz", positions=rng.normal(size=(12, 50, 13, 3)), energy=rng.normal(size=(12, 50)),
             temperature=rng.normal(size=12), species=np.arange(13) % 2)
    assert not [f for f in examine([tmp_path]).findings if f.rule == "D107"]
