"""Masks of one part that are turned against their pictures, and masks that only look so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from data_making import png
from table_making import table

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.rules import d158_points_not_turned, d168_masks_turned

Seen = Callable[[ModuleType, Path], list[Finding]]
ROWS, SIDE = 160, 32
Turn = Callable[[Any], Any]
TURNS: dict[str, Turn] = {
    "mirrored": lambda m: m[:, ::-1], "turned upside down": lambda m: m[::-1],
    "turned by 180 degrees": lambda m: m[::-1, ::-1], "turned with height and width exchanged": lambda m: m.T,
    "turned by 90 degrees": lambda m: np.rot90(m), "turned by 270 degrees": lambda m: np.rot90(m, 3),
    "turned with both axes exchanged and reversed": lambda m: m.T[::-1, ::-1],
}


def scene(rng: np.random.Generator, contrast: float = 40.0) -> tuple[Any, Any]:
    """A picture of two bright cells of two kinds, and which pixels each has."""
    y, x = np.mgrid[:SIDE, :SIDE]
    picture, mask = rng.normal(90, 12, (SIDE, SIDE)), np.zeros((SIDE, SIDE), np.uint8)
    for kind in (1, 2):
        cy, cx = rng.uniform(5, SIDE - 5, 2)
        inside = (y - cy) ** 2 + (x - cx) ** 2 < rng.uniform(3, 6) ** 2
        picture[inside] += contrast * kind
        mask[inside] = kind
    return np.clip(picture, 0, 255).astype(np.uint8), mask


def scenes(turn: Turn, odd: int = 2, parts: int = 4, seed: int = 0, contrast: float = 40.0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    part = np.arange(ROWS) % parts
    made = [scene(rng, contrast) for _ in range(ROWS)]
    masks = [turn(m) if p == odd else m for (_, m), p in zip(made, part, strict=True)]
    return np.stack([p for p, _ in made]), np.stack(masks), part


@pytest.mark.parametrize("told", TURNS)
def test_one_scanner_in_npz(told: str, seen_by: Seen, tmp_path: Path) -> None:
    image, mask, part = scenes(TURNS[told])
    np.savez(tmp_path / "cells.npz", image=image, mask=mask, scanner=part)
    (found,) = seen_by(d168_masks_turned, tmp_path)
    assert (found.measured["change"], found.measured["by"], found.measured["part"]) == (told, "scanner", "2")
    assert f"mask of the rows with scanner 2 are {told} against image" in found.statement


@pytest.mark.parametrize("contrast", [40.0, 8.0])
def test_one_of_two_sites_in_hdf5(contrast: float, seen_by: Seen, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    image, mask, part = scenes(TURNS["turned upside down"], odd=1, parts=2, contrast=contrast)
    with h5py.File(tmp_path / "scans.h5", "w") as file:
        file["scan"] = np.stack([image] * 3, axis=-1).astype(np.float32) / 255
        file["lesion"] = mask
        file["site"] = [f"site {p}" for p in part]
    (found,) = seen_by(d168_masks_turned, tmp_path)
    assert (found.measured["part"], found.measured["fields"]) == ("'site 1'", ("scan", "lesion"))


@pytest.mark.parametrize("layout", ["name", "folder", "table"])
def test_one_camera_in_folders(layout: str, tmp_path: Path) -> None:
    image_of = pytest.importorskip("PIL.Image")
    image, mask, part = scenes(TURNS["mirrored"])
    for i in range(ROWS):
        names = {"name": (f"images/cam{part[i]}_{i:03d}.jpg", f"masks/cam{part[i]}_{i:03d}.png"),
                 "folder": (f"cam{part[i]}/images/{i:03d}.png", f"cam{part[i]}/masks/{i:03d}.png"),
                 "table": (f"rgb/{i:03d}.png", f"labels/{i:03d}_seg.png")}[layout]
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        image_of.fromarray(np.stack([image[i]] * 3, axis=-1)).save(tmp_path / names[0])
        (tmp_path / names[1]).write_bytes(png(np.ascontiguousarray(mask[i])))
    if layout == "table":
        table(tmp_path / "files", "csv", {"file": [f"rgb/{i:03d}.png" for i in range(ROWS)],
                                          "camera": [f"cam{p}" for p in part]})
    (found,) = [f for f in examine([tmp_path]).findings if f.severity is not Severity.INFO]
    assert (found.rule, found.measured["change"]) == ("D168", "mirrored")
    assert "2" in str(found.measured["part"])


def test_rows_behind_each_other_and_files(seen_by: Seen, tmp_path: Path) -> None:
    image, mask, part = scenes(TURNS["mirrored"])
    order = np.argsort(part == 2, kind="stable")
    np.savez(tmp_path / "all.npz", image=image[order], mask=mask[order])
    (found,) = seen_by(d168_masks_turned, tmp_path)
    rows = found.measured["rows"]
    assert isinstance(rows, tuple)
    assert rows[0] in range(118, 123)
    (tmp_path / "all.npz").unlink()
    for k in range(4):
        np.savez(tmp_path / f"site_{k}.npz", image=image[part == k], mask=mask[part == k])
    (found,) = seen_by(d168_masks_turned, tmp_path)
    assert found.measured["shard"] == "site_2.npz"


def both_turned(folder: Path) -> None:
    image, mask, part = scenes(lambda m: m)
    turned = np.array([p == 2 for p in part])
    np.savez(folder / "a.npz", image=np.where(turned[:, None, None], image[:, :, ::-1], image),
             mask=np.where(turned[:, None, None], mask[:, :, ::-1], mask), scanner=part)


def masks_in_the_middle(folder: Path) -> None:
    """Masks that lie alike on all sides."""
    image, mask, part = scenes(TURNS["mirrored"])
    y, x = np.mgrid[:SIDE, :SIDE]
    for i in range(ROWS):
        mask[i] = (y - 15.5) ** 2 + (x - 15.5) ** 2 < (4 + i % 7) ** 2
        image[i] = np.where(mask[i], 160, image[i] // 2)
    np.savez(folder / "a.npz", image=image, mask=mask, scanner=part)


def masks_of_something_else(folder: Path) -> None:
    _, mask, part = scenes(TURNS["mirrored"])
    noise = np.random.default_rng(3).integers(0, 256, mask.shape).astype(np.uint8)
    np.savez(folder / "a.npz", image=noise, mask=mask, scanner=part)


def turned_at_random(folder: Path) -> None:
    """Half of the masks of every scanner are turned: no part is the odd one."""
    image, mask, part = scenes(lambda m: m)
    some = np.random.default_rng(4).random(ROWS) < 0.5
    mask[some] = mask[some][:, :, ::-1]
    np.savez(folder / "a.npz", image=image, mask=mask, scanner=part)


def a_harder_scanner(folder: Path) -> None:
    """On the pictures of one scanner nothing is to be seen."""
    image, mask, part = scenes(lambda m: m)
    image[part == 2] = np.random.default_rng(5).integers(60, 120, image[part == 2].shape)
    np.savez(folder / "a.npz", image=image, mask=mask, scanner=part)


def inverted_pictures(folder: Path) -> None:
    """What is bright on those of all other scanners is dark on those of one."""
    image, mask, part = scenes(lambda m: m)
    image[part == 2] = 255 - image[part == 2]
    np.savez(folder / "a.npz", image=image, mask=mask, scanner=part)


def no_masks(folder: Path) -> None:
    np.savez(folder / "a.npz", image=np.zeros((70, 32, 32), np.uint8), mask=np.zeros((70, 32, 32), np.uint8))
    np.savez(folder / "b.npz", image=np.full((70, 32, 32), np.nan), mask=np.ones((70, 32, 32)))
    (folder / "c.npz").write_bytes(b"PK\3\4 no archive")


@pytest.mark.parametrize("make", [both_turned, masks_in_the_middle, masks_of_something_else, turned_at_random,
                                  a_harder_scanner, inverted_pictures, no_masks])
def test_masks_that_only_look_so(make: Any, seen_by: Seen, tmp_path: Path) -> None:
    make(tmp_path)
    assert seen_by(d168_masks_turned, tmp_path) == []


@pytest.mark.parametrize(("told", "turns"), [("turned by 90 degrees", 1), ("turned by 270 degrees", 3)])
def test_boxes_on_pictures_that_were_turned_by_right_angles(
    told: str, turns: int, seen_by: Seen, tmp_path: Path
) -> None:
    rng = np.random.default_rng(6)
    pictures, boxes, camera = [], [], []
    for i in range(240):
        picture = rng.normal(80, 12, (40, 40))
        w, h = rng.integers(6, 14, 2)
        x, y = rng.integers(0, 40 - w), rng.integers(0, 40 - h)
        picture[y : y + h, x : x + w] += 70
        pictures.append(np.rot90(picture, turns) if i % 4 == 1 else picture)
        boxes.append([x, y, x + w, y + h])
        camera.append(i % 4)
    np.savez(tmp_path / "a.npz", image=np.stack(pictures).clip(0, 255).astype(np.uint8), box=boxes, camera=camera)
    (found,) = seen_by(d158_points_not_turned, tmp_path)
    assert (found.measured["change"], found.measured["part"]) == (told, "1")
