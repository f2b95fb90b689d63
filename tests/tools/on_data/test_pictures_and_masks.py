"""Folders of pictures beside their label images are two sets; folders of classes are one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import headers
import numpy as np
import pytest
from data_making import png

from traindx_tools.on_data import examination, examine
from traindx_tools.on_data.rules import d129_target_alone, d131_other_header


def mask(i: int) -> Any:
    made = np.zeros((16, 16), np.uint8)
    y, x = np.random.default_rng(i).integers(0, 8, 2)
    made[y : y + 7, x : x + 6] = 1 + i % 2
    return made


@pytest.mark.parametrize("layout", [
    "images/{:03d}.png masks/{:03d}.png", "train/img_{:03d}.png train/img_{:03d}_mask.png",
    "a/rgb/{:03d}.png a/seg/{:03d}.png"])
def test_channels_tell_no_label_of_pictures_and_masks(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "rules_in", lambda _: [d129_target_alone, d131_other_header])  # others take time
    for i in range(220):
        first, second = (tmp_path / name.format(i) for name in layout.split())
        for path, data in ((first, headers.png(None, seed=i)), (second, png(mask(i)))):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    report = examination.examine([tmp_path])
    assert sorted(s.rows for d in report.sets for s in d.shards) == [220, 220]
    assert not report.findings


def test_folders_of_classes_are_one_set(tmp_path: Path) -> None:
    for i in range(40):
        for name in ("cat", "dog"):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / f"{i:03d}.png").write_bytes(headers.png(None, seed=2 * i + (name == "dog")))
    (data,) = examine([tmp_path]).sets
    assert "label" in data.fields
    assert sum(s.rows for s in data.shards) == 80


def test_pictures_without_all_their_masks_and_broken_ones(tmp_path: Path) -> None:
    for i in range(30):
        (tmp_path / f"{i:03d}.png").write_bytes(headers.png(None, seed=i))
        if i < 5:
            (tmp_path / f"{i:03d}_mask.png").write_bytes(png(mask(i)))
    (tmp_path / "x.png").write_bytes(b"")
    (tmp_path / "y.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    report = examine([tmp_path])
    assert sum(s.rows for d in report.sets for s in d.shards) == 37
    assert not report.notes


def grey(i: int) -> Any:
    return np.random.default_rng(i).integers(0, 256, (16, 16)).astype(np.uint8)


@pytest.mark.parametrize(("one", "other", "sets"), [
    (grey, lambda i: 255 * (mask(i) > 0).astype(np.uint8), [40, 40]),
    (lambda i: 255 * (mask(i) > 0).astype(np.uint8), grey, [40, 40]),
    (grey, lambda i: grey(i + 1000), [80]),
    (mask, lambda i: mask(i + 1000), [80]),
], ids=["pictures and masks", "masks first", "two classes of grey pictures", "two classes of drawings"])
def test_grey_pictures_and_masks_in_two_folders(one: Any, other: Any, sets: list[int], tmp_path: Path) -> None:
    for i in range(40):
        for name, made in (("a", one), ("b", other)):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / f"{i:03d}.png").write_bytes(png(made(i)))
    report = examine([tmp_path])
    assert [s.rows for d in report.sets for s in d.shards] == sets
    assert not [f for f in report.findings if f.rule == "D143"]


def test_grey_folders_of_which_pictures_cannot_be_read_are_one_set(tmp_path: Path) -> None:
    for i in range(40):
        for name, made in (("a", grey), ("b", mask)):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / f"{i:03d}.png").write_bytes(png(made(i))[:40])
    assert sum(s.rows for d in examine([tmp_path]).sets for s in d.shards) == 80
