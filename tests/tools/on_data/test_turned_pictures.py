"""Pictures of one part that are upside down or of exchanged colours, and sets of pictures that only look so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data import examine
from traindx_tools.on_data.rules import d114_near_copies, d143_turned_pictures

Seen = Callable[[ModuleType, Path], list[Finding]]
CHANGES: dict[str, Callable[[Any], Any]] = {
    "colours reversed": lambda x: x[..., ::-1],
    "inverted": lambda x: 255 - x,
    "upside down": lambda x: x[:, ::-1],
    "height and width": lambda x: x.transpose(0, 2, 1, 3),
}


def views(rows: int, rng: np.random.Generator) -> Any:
    """Blue above, green below, blobs: uint8 shape (rows, 32, 32, 3)."""
    y, x = np.mgrid[0:32, 0:32]
    out = rng.normal(size=(rows, 1, 1, 3)) * 12 + 110 + rng.normal(size=(rows, 32, 32, 3)) * 5
    out[..., 2] += np.maximum(0, 14 - y) * 5
    out[..., 1] += np.maximum(0, y - 14) * 3
    for picture in out:
        for _ in range(4):
            cx, cy, size = *rng.integers(0, 32, 2).tolist(), int(rng.integers(4, 30))
            picture += rng.normal(size=3) * 40 * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / size)[..., None]
    return out.clip(0, 255).astype(np.uint8)


def shards(folder: Path, edit: Callable[[int, Any], Any]) -> None:
    rng = np.random.default_rng(0)
    for i in range(4):
        np.savez(folder / f"s_{i}.npz", image=edit(i, views(80, rng)))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("rows", [slice(0, 80), slice(20, 55)])
def test_a_part_that_is_turned(change: str, rows: slice, tmp_path: Path, seen_by: Seen) -> None:
    def edit(i: int, x: Any) -> Any:
        if i == 2:
            x[rows] = CHANGES[change](x[rows])
        return x

    shards(tmp_path, edit)
    (finding,) = seen_by(d143_turned_pictures, tmp_path)
    assert change in finding.statement
    assert "s_2.npz" in finding.statement
    assert abs(finding.measured["rows"][0] - rows.start) <= 3


@pytest.mark.parametrize("edit", [
    lambda i, x: x,
    lambda i, x: x[:, ::-1] if i % 2 else x,  # half of them: nobody knows which is odd
    lambda i, x: np.where(np.random.default_rng(i).random((80, 1, 1, 1)) < 0.2, x[:, :, ::-1], x),  # augmentation
    lambda i, x: (x // 6) if i == 2 else x,  # dark, and no other picture by turning
    lambda i, x: np.random.default_rng(i).integers(0, 255, x.shape).astype(np.uint8),  # without a side
])
def test_what_is_not_turned(edit: Callable[[int, Any], Any], tmp_path: Path, seen_by: Seen) -> None:
    shards(tmp_path, edit)
    assert not seen_by(d143_turned_pictures, tmp_path)


def test_classes_one_behind_the_other(tmp_path: Path, seen_by: Seen) -> None:
    looks = np.random.default_rng(9).normal(size=(8, 8, 8, 3)).repeat(4, 1).repeat(4, 2) * 50 + 120
    pictures = looks.repeat(30, 0) + np.random.default_rng(1).normal(size=(240, 32, 32, 3)) * 9
    np.savez(tmp_path / "sorted.npz", image=pictures.clip(0, 255).astype(np.uint8))
    assert not seen_by(d143_turned_pictures, tmp_path)


def cut(picture: Any, rng: np.random.Generator) -> Any:
    from PIL import Image

    side = int(rng.integers(50, 58))
    y, x = rng.integers(0, 64 - side, 2)
    part = np.asarray(Image.fromarray(picture[y : y + side, x : x + side]).resize((64, 64)))
    return np.clip(part[:, ::-1] * 1.15 + 8, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("copied", [20, 0])
def test_copies_that_were_cut_mirrored_and_brightened(copied: int, tmp_path: Path, seen_by: Seen) -> None:
    pytest.importorskip("PIL")
    rng = np.random.default_rng(4)
    train, held = (views(n, rng).repeat(2, 1).repeat(2, 2) for n in (150, 60))
    for i in range(copied):
        held[3 * i] = cut(train[5 * i], rng)
    np.savez(tmp_path / "train.npz", image=train)
    np.savez(tmp_path / "val.npz", image=held)
    found = seen_by(d114_near_copies, tmp_path)
    assert bool(found) == bool(copied)
    if copied:
        assert "cut" in found[0].statement


def test_pictures_that_cannot_be_decoded_end_nothing(tmp_path: Path) -> None:
    for i in range(12):
        (tmp_path / f"p{i}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(30) + b"IEND" + bytes(8))
    assert not examine([tmp_path]).notes


def splits(folder: Path, held: Callable[[Any], Any]) -> None:
    rng = np.random.default_rng(3)
    for name, rows in (("train", 300), ("val", 90)):
        x = views(rows, rng)
        np.savez(folder / f"{name}.npz", image=held(x) if name == "val" else x)


@pytest.mark.parametrize("change", CHANGES)
def test_a_whole_split_that_is_turned(change: str, tmp_path: Path, seen_by: Seen) -> None:
    splits(tmp_path, CHANGES[change])
    (finding,) = seen_by(d143_turned_pictures, tmp_path)
    assert change in finding.statement
    assert "val.npz" in finding.statement


@pytest.mark.parametrize("held", [
    lambda x: x,
    lambda x: x // 5,  # taken at night
    lambda x: np.roll(x // 2 + 60, 1, axis=3),  # another camera: no order of colours makes it one of these
    lambda x: x[:, :, ::-1],  # mirrored, of scenes without a left side
    lambda x: np.where(np.arange(90)[:, None, None, None] % 2, x[..., ::-1], x),  # augmentation, half of them
])
def test_a_split_of_another_look_is_quiet(held: Callable[[Any], Any], tmp_path: Path, seen_by: Seen) -> None:
    splits(tmp_path, held)
    assert not seen_by(d143_turned_pictures, tmp_path)
