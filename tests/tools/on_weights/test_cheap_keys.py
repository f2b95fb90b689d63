"""What one pass keeps of rows, and that a matrix is read again only where that says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_weights.formats.reading import read_checkpoint
from traindx_tools.on_weights.rules.w117_repeated_part import longest_repeat
from traindx_tools.on_weights.statistics import Stats, measure
from traindx_tools.on_weights.tensor import CHUNK, Tensor, as_numbers


def measured(folder: Path, values: Any) -> Stats:
    (tensor,) = read_checkpoint(planted.write("npz", folder, {"w.weight": values})).tensors
    return measure(tensor)


def test_float16_is_widened_exactly() -> None:
    codes = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for some in (codes, codes[np.isfinite(codes)], codes[:0]):
        wide = as_numbers(some, "float16")
        assert wide.dtype == np.float32
        np.testing.assert_array_equal(wide, some.astype(np.float32))


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int8])
@pytest.mark.parametrize("shape", [(600, 40), (64, 3), (40, 8, 3, 3)])
def test_equal_rows_have_equal_keys_and_others_do_not(kind: Any, shape: tuple[int, ...], tmp_path: Path) -> None:
    values = (np.random.default_rng(0).standard_normal(shape) * 30).astype(kind)
    values[17] = values[3]
    keys = measured(tmp_path, values).row_keys
    assert keys[17] == keys[3]
    distinct = len(np.unique(values.reshape(len(values), -1), axis=0))
    assert 0.9 * distinct < len(np.unique(keys)) <= distinct  # a few short rows of small numbers share a key


def test_rows_that_are_longer_than_what_is_read_at_a_time(tmp_path: Path) -> None:
    values = np.random.default_rng(1).standard_normal((5, CHUNK // 4 + 1000)).astype(np.float32)
    values[4] = values[1]
    stats = measured(tmp_path, values)
    assert stats.row_keys[4] == stats.row_keys[1]
    assert len(np.unique(stats.row_keys)) == 4
    assert len(np.unique(stats.row_prints)) == 4


@pytest.mark.parametrize("shape", [(4096, 64), (64, 4096), (512, 64, 3, 3)])
def test_a_matrix_without_copies_is_not_read_again(shape: tuple[int, ...], tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    stats = measured(tmp_path, np.random.default_rng(2).standard_normal(shape).astype(np.float32))

    def load(_: Tensor) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(Tensor, "load", load)
    assert longest_repeat(stats) is None


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(4096, 64), (64, 4096), (512, 64, 3, 3)])
def test_a_copied_part_is_found_among_many(axis: int, shape: tuple[int, ...], tmp_path: Path) -> None:
    lines = np.moveaxis(np.random.default_rng(3).standard_normal(shape).astype(np.float32), axis, 0).copy()
    lines[40:48] = lines[10:18]
    found = longest_repeat(measured(tmp_path, np.moveaxis(lines, 0, axis).copy()))
    assert found is not None
    assert (found.axis, found.at, found.source, found.count) == (axis, 40, 10, 8)


def test_readers_side_by_side_and_left_halfway_keep_their_bytes(tmp_path: Path) -> None:
    """A buffer is used again only by a reader that comes after one that has ended."""
    values = np.arange(CHUNK, dtype=np.int32).reshape(4, -1)
    (tensor,) = read_checkpoint(planted.write("npz", tmp_path, {"w": values})).tensors
    assert [len(p) for p in tensor.raw()]  # leaves its buffer behind
    kept = next(iter(tensor.raw()))
    again = np.concatenate([p.copy() for p in tensor.raw()])
    assert kept[0] == 0
    assert (again == values.reshape(-1)).all()
    assert all((a == b).all() for a, b in zip(tensor.raw(), tensor.raw(), strict=True))
    (tmp_path / "weights.npz").write_bytes((tmp_path / "weights.npz").read_bytes()[:CHUNK])
    with pytest.raises(UnreadableInput):
        list(tensor.raw())
