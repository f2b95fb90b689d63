"""Masks that lag behind their pictures and columns that were sorted otherwise; pairs that tell nothing."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from data_making import member

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d141_fields_apart

Seen = Callable[[ModuleType, Path], list[Finding]]


def scenes(rows: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Pictures with a bright disc, and masks of it: uint8 shapes (rows, 32, 32, 3) and (rows, 32, 32)."""
    y, x = np.mgrid[0:32, 0:32]
    pictures = rng.normal(size=(rows, 32, 32, 3)) * 6 + rng.uniform(60, 120, (rows, 1, 1, 3))
    masks = np.zeros((rows, 32, 32), np.uint8)
    for i in range(rows):
        cx, cy = rng.integers(6, 26, 2)
        there = (x - cx) ** 2 + (y - cy) ** 2 < rng.integers(12, 60)
        masks[i][there] = 255
        pictures[i][there] += 50
    return pictures.clip(0, 255).astype(np.uint8), masks


def late(values: Any, start: int, by: int) -> Any:
    out = values.copy()
    out[start:] = values[start - by : len(values) - by]
    return out


def as_tar(path: Path, pictures: Any, masks: Any) -> None:
    from PIL import Image

    with tarfile.open(path, "w") as archive:
        for i, (picture, mask) in enumerate(zip(pictures, masks, strict=True)):
            for name, values in (("png", picture), ("mask.png", mask)):
                held = io.BytesIO()
                Image.fromarray(values).save(held, "PNG")
                member(archive, f"{i:05d}.{name}", held.getvalue())


@pytest.mark.parametrize("form", ["tar", "npz"])
def test_masks_that_lag_in_a_part_of_a_file(form: str, tmp_path: Path, seen_by: Seen) -> None:
    pytest.importorskip("PIL")
    rng = np.random.default_rng(0)
    for i in range(3):
        pictures, masks = scenes(80, rng)
        masks = late(masks, 35, 2) if i == 1 else masks
        if form == "tar":
            as_tar(tmp_path / f"s_{i}.tar", pictures, masks)
        else:
            np.savez(tmp_path / f"s_{i}.npz", image=pictures, mask=masks)
    (finding,) = seen_by(d141_fields_apart, tmp_path)
    assert "s_1" in finding.statement
    assert abs(finding.measured["lag"]) == 2
    assert abs(finding.measured["rows"][0] - 35) <= 3


def joined(folder: Path, how: Callable[[int, Any, Any], Any]) -> None:
    rng = np.random.default_rng(1)
    for i in range(4):
        hidden, key = rng.normal(size=(300, 3)), rng.permutation(300)
        a, b = (hidden @ np.random.default_rng(k).normal(size=(3, 6)) + 0.3 * rng.normal(size=(300, 6)) for k in (2, 3))
        np.savez(folder / f"j_{i}.npz", key=key, a=a.astype(np.float32), b=how(i, b, key).astype(np.float32))


@pytest.mark.parametrize("which", [{2}, {0, 1, 2, 3}])
def test_a_field_that_was_sorted_by_a_column(which: set[int], tmp_path: Path, seen_by: Seen) -> None:
    joined(tmp_path, lambda i, b, key: b[np.argsort(key)] if i in which else b)
    (finding,) = seen_by(d141_fields_apart, tmp_path)
    assert "in the order of key): b was put in that order and a was not" in finding.statement
    assert finding.measured["files"] == len(which)


def test_pairs_that_belong_together_and_fields_that_tell_nothing(tmp_path: Path, seen_by: Seen) -> None:
    joined(tmp_path, lambda i, b, key: b)
    assert not seen_by(d141_fields_apart, tmp_path)
    for file in tmp_path.iterdir():
        file.unlink()
    joined(tmp_path, lambda i, b, key: np.random.default_rng(i).normal(size=b.shape))
    assert not seen_by(d141_fields_apart, tmp_path)


def test_frames_of_a_video_and_gaps_name_nothing(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(5)
    walk = np.cumsum(rng.normal(size=(400, 8)), axis=0)
    a = walk + 0.1 * rng.normal(size=walk.shape)
    a[50] = np.nan
    np.savez(tmp_path / "v.npz", a=a, b=np.repeat(walk[::4], 4, axis=0))
    assert not seen_by(d141_fields_apart, tmp_path)


def test_windows_that_overlap_follow_their_neighbours(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(5)
    for k in range(4):
        hours = np.arange(1_124)
        slow = np.convolve(rng.normal(size=1_180), np.ones(12) / 12, "same")[:1_124]
        temp = 8 * np.sin(hours / 24 * 2 * np.pi) + 4 * slow
        load = 20 - 0.4 * np.roll(temp, 1) + 0.3 * np.convolve(rng.normal(size=1_124), np.ones(6) / 6, "same")
        at = np.arange(1_100)[:, None] + np.arange(24)
        np.savez(tmp_path / f"feeder_{k}.npz", p_mw=load[at].astype(np.float32), temp_c=temp[at].astype(np.float32))
    assert not seen_by(d141_fields_apart, tmp_path)
