"""Label images with values between their classes, in arrays and folders of pictures; soft masks and thin classes."""

from __future__ import annotations

import io
import tarfile
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
from traindx_tools.on_data.rules import d148_between_classes

Seen = Callable[[ModuleType, Path], list[Finding]]
CLASSES = np.array([0, 7, 11, 26])


def mask(rng: np.random.Generator, side: int = 48) -> Any:
    """Rectangles of classes on a background, with thin poles of class 5 and a border of 255 in some."""
    out = np.zeros((side, side), np.uint8)
    for value in rng.permutation(CLASSES[1:]):
        y, x = rng.integers(0, side - 20, 2)
        out[y : y + int(rng.integers(10, 20)), x : x + int(rng.integers(10, 20))] = value
    if rng.random() < 0.4:
        out[:, int(rng.integers(2, side - 2))] = 5
    if rng.random() < 0.3:
        out[0] = 255
    return out


def smoothed(image: Any) -> Any:
    """As resized by interpolation: the mean with its right and lower neighbours."""
    x = image.astype(np.float64)
    return np.round((x + np.roll(x, 1, 0) + np.roll(x, 1, 1) + np.roll(np.roll(x, 1, 0), 1, 1)) / 4).astype(np.uint8)


@pytest.mark.parametrize("form", ["npz", "hdf5"])
def test_one_file_was_resized_by_interpolation(form: str, tmp_path: Path, seen_by: Seen) -> None:
    pytest.importorskip("h5py")
    rng = np.random.default_rng(0)
    for k in range(4):
        made = np.stack([mask(rng) for _ in range(20)])
        table(tmp_path / f"part_{k}", form, {"mask": np.stack([smoothed(m) for m in made]) if k == 2 else made})
    (finding,) = seen_by(d148_between_classes, tmp_path)
    assert finding.severity is Severity.HIGH
    assert "part_2" in finding.source
    assert finding.measured["images"] == 20


def test_some_pictures_of_a_folder(tmp_path: Path, seen_by: Seen) -> None:
    pytest.importorskip("PIL")
    rng = np.random.default_rng(1)
    for kind in ("images", "masks"):
        (tmp_path / kind).mkdir()
        for k in range(30):
            made = mask(rng) if kind == "masks" else rng.integers(0, 255, (48, 48)).astype(np.uint8)
            (tmp_path / kind / f"{k:03d}.png").write_bytes(png(smoothed(made) if k in (4, 9, 17) else made))
    (finding,) = seen_by(d148_between_classes, tmp_path)
    assert finding.measured["images"] == 3
    assert "004.png" in finding.statement


@pytest.mark.parametrize("how", [
    lambda m, k: m,  # thin classes and an ignored border
    lambda m, k: smoothed(np.where(m > 0, 255, 0).astype(np.uint8)),  # soft masks in all files
    lambda m, k: smoothed(np.where(m > 0, 255, 0).astype(np.uint8)) / 255,  # stored as probabilities
    lambda m, k: np.random.default_rng(k).integers(0, 256, m.shape).astype(np.uint8),  # pictures
])
def test_what_is_so_on_purpose(how: Callable[[Any, int], Any], tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(2)
    for k in range(4):
        table(tmp_path / f"part_{k}", "npz", {"mask": np.stack([how(mask(rng), k) for _ in range(20)])})
    assert not seen_by(d148_between_classes, tmp_path)


def test_damaged_pictures_are_read(tmp_path: Path) -> None:
    whole = png(mask(np.random.default_rng(3)))
    for k in range(12):
        (tmp_path / f"{k}.png").write_bytes(whole[: 60 + k] + b"IEND" + whole[-4:] if k % 2 else whole)
    np.savez(tmp_path / "a.npz", mask=np.full((10, 9, 9), np.nan), other=np.zeros((10, 0, 9)))
    assert not examine([tmp_path]).notes


def crowded(rng: np.random.Generator, side: int = 48) -> Any:
    """Disks of classes 0 to 5, which leave no number out."""
    y, x = np.mgrid[:side, :side]
    out = np.zeros((side, side), np.uint8)
    for _ in range(6):
        cy, cx = rng.uniform(0, side, 2)
        out[(y - cy) ** 2 + (x - cx) ** 2 < rng.uniform(5, 14) ** 2] = rng.integers(0, 6)
    return out


@pytest.mark.parametrize("layout", ["npz", "files", "png", "palette"])
def test_one_source_of_classes_without_gaps(layout: str, tmp_path: Path, seen_by: Seen) -> None:
    image_of = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(4)
    made = [crowded(rng) for _ in range(160)]
    part = np.arange(160) % 4
    masks = np.stack([smoothed(m) if p == 2 else m for m, p in zip(made, part, strict=True)])
    if layout == "npz":
        np.savez(tmp_path / "a.npz", mask=masks, scanner=part)
    elif layout == "files":
        for k in range(4):
            np.savez(tmp_path / f"site_{k}.npz", mask=masks[part == k])
    else:
        for i, m in enumerate(masks):
            image = image_of.fromarray(m, mode="P" if layout == "palette" else "L")
            if layout == "palette":
                image.putpalette([*range(256), *range(255, -1, -1), *([7] * 256)])
            image.save(tmp_path / f"site{part[i]}_{i:03d}.png")
    (finding,) = seen_by(d148_between_classes, tmp_path)
    assert finding.measured["kind"] == "interpolated"
    assert "2" in str(finding.measured["part"])
    assert "against 0.0 % in all others" in finding.statement or finding.measured["others"] < 0.002  # type: ignore[operator]


def test_the_source_of_such_images_is_named(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(5)
    part = np.arange(120) % 4
    np.savez(tmp_path / "a.npz", scanner=part, mask=np.stack([smoothed(m) if p == 1 else m for p in part
                                                              for m in [mask(rng)]]))
    (finding,) = seen_by(d148_between_classes, tmp_path)
    assert finding.measured["common"] == "all those with scanner 1"


def a_thin_wall(m: Any) -> Any:
    """One annotator draws class 2 as the wall between 0 and 5."""
    x = np.where(m >= 3, 5, 0).astype(np.uint8)
    edge = (x != np.roll(x, 1, 0)) | (x != np.roll(x, 1, 1))
    return np.where(edge, 2, x).astype(np.uint8)


def finer(m: Any) -> Any:
    """Small disks of all classes: many borders, and classes side by side."""
    return m[::2, ::2].repeat(2, 0).repeat(2, 1)


@pytest.mark.parametrize("change", [a_thin_wall, finer, lambda m: m])
def test_another_way_to_draw_is_none(change: Callable[[Any], Any], tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(6)
    part = np.arange(160) % 4
    np.savez(tmp_path / "a.npz", scanner=part, mask=np.stack([change(m) if p == 2 else m for p in part
                                                              for m in [crowded(rng)]]))
    assert seen_by(d148_between_classes, tmp_path) == []


def test_depth_in_steps_is_no_class(tmp_path: Path, seen_by: Seen) -> None:
    """Slopes in all images: what lies between is so everywhere."""
    rng = np.random.default_rng(7)
    y, x = np.mgrid[:48, :48]
    some = np.stack([(y * rng.uniform(0.1, 0.3) + x * rng.uniform(0.1, 0.3)).astype(np.uint8) for _ in range(160)])
    np.savez(tmp_path / "a.npz", scanner=np.arange(160) % 4, mask=some)
    assert seen_by(d148_between_classes, tmp_path) == []


def doubled(m: Any) -> Any:
    """Made half as large by the nearest pixel, and twice as large by interpolation: three steps from class to class."""
    from PIL import Image

    small = Image.fromarray(m).resize((m.shape[1] // 2, m.shape[0] // 2), Image.Resampling.NEAREST)
    return np.asarray(small.resize((m.shape[1], m.shape[0]), Image.Resampling.BILINEAR))


def written(folder: Path, form: str, masks: list[Any], rng: np.random.Generator) -> None:
    """Pictures with three channels beside the masks, in folders or in tables of pictures, 40 to a file."""
    from PIL import Image

    pictures = [rng.integers(0, 255, (*m.shape, 3)).astype(np.uint8) for m in masks]
    if form == "folder":
        for kind, images in (("images", pictures), ("masks", masks)):
            (folder / kind).mkdir(exist_ok=True)
            for k, image in enumerate(images):
                Image.fromarray(image).save(folder / kind / f"{k:03d}.png")
        return
    for first in range(0, len(masks), 40):
        rows = range(first, min(len(masks), first + 40))
        name = f"shard-{first // 40}"
        if form == "parquet":
            pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
            columns = {k: [{"bytes": png_of(i[r]), "path": f"{r}.png"} for r in rows]
                       for k, i in (("image", pictures), ("mask", masks))}
            pq.write_table(pa.table(columns), folder / f"{name}.parquet")
        else:
            with tarfile.open(folder / f"{name}.tar", "w") as archive:
                for r in rows:
                    for kind, images in (("image", pictures), ("mask", masks)):
                        data = png_of(images[r])
                        info = tarfile.TarInfo(f"{r:05d}.{kind}.png")
                        info.size = len(data)
                        archive.addfile(info, io.BytesIO(data))


def png_of(image: Any) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "PNG")
    return stream.getvalue()


@pytest.mark.parametrize("form", ["folder", "parquet", "tar"])
def test_some_pictures_were_made_larger(form: str, tmp_path: Path, seen_by: Seen) -> None:
    pytest.importorskip("PIL")
    rng = np.random.default_rng(8)
    made = [crowded(rng, 64) for _ in range(120)]
    written(tmp_path, form, [doubled(m) if 40 <= k < 75 else m for k, m in enumerate(made)], rng)
    (finding,) = seen_by(d148_between_classes, tmp_path)
    assert finding.measured["kind"] == "interpolated"
    assert 30 <= int(str(finding.measured["images"])) <= 40
    assert form == "folder" or "shard-1" in finding.source


@pytest.mark.parametrize("form", ["folder", "parquet", "tar"])
@pytest.mark.parametrize("change", [lambda m, k: m, lambda m, k: doubled(m), lambda m, k: m[::2, ::2].repeat(2, 0)
                                    .repeat(2, 1) if k % 3 else m])
def test_pictures_that_were_all_made_alike(
    form: str, change: Callable[[Any, int], Any], tmp_path: Path, seen_by: Seen
) -> None:
    pytest.importorskip("PIL")
    rng = np.random.default_rng(9)
    written(tmp_path, form, [change(crowded(rng, 64), k) for k in range(120)], rng)
    assert seen_by(d148_between_classes, tmp_path) == []


def ordinal(rng: np.random.Generator) -> Any:
    """Fruits of classes 1 to 4 on 0: each class between others is a class as well."""
    y, x = np.mgrid[:48, :48]
    out = np.zeros((48, 48), np.uint8)
    for value in (4, 1, 4, 2, 4, 3):
        at, r = rng.integers(6, 42, 2), int(rng.integers(4, 8))
        out[(y - at[0]) ** 2 + (x - at[1]) ** 2 < r * r] = value
    return out


def folders(place: Path, how: dict[str, Callable[[Any], Any]], seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for split, of in how.items():
        for kind in ("photo", "classes"):
            (place / split / kind).mkdir(parents=True, exist_ok=True)
            for k in range(70 if split == "train" else 24):
                made = of(ordinal(rng)) if kind == "classes" else rng.integers(0, 255, (48, 48)).astype(np.uint8)
                (place / split / kind / f"{k:03d}.png").write_bytes(png(made))


def test_all_of_training_was_resized_and_the_held_out_folder_was_not(tmp_path: Path, seen_by: Seen) -> None:
    pytest.importorskip("PIL")
    folders(tmp_path, {"train": smoothed, "test": lambda m: m})
    (finding,) = seen_by(d148_between_classes, tmp_path)
    assert finding.measured["images"] == 70
    assert "train/classes" in finding.statement


def nested(m: Any) -> Any:
    """A rind about every fruit, one class wide: on purpose, in all images of the folder."""
    edge = np.zeros_like(m)
    for axis in (0, 1):
        for by in (-1, 1):
            edge = np.maximum(edge, np.roll(m, by, axis))
    return np.where((m == 0) & (edge == 4), 2, m).astype(np.uint8)


@pytest.mark.parametrize("how", [
    {"train": lambda m: m, "test": lambda m: m},
    {"train": smoothed, "test": smoothed},  # soft in both
    {"train": nested, "test": lambda m: m},
    {"train": lambda m: np.where(m == 3, 0, smoothed(m)).astype(np.uint8), "test": lambda m: (m > 0).astype(np.uint8)},
])
def test_folders_that_are_alike_or_of_other_classes(how: dict[str, Callable[[Any], Any]], tmp_path: Path,
                                                    seen_by: Seen) -> None:
    pytest.importorskip("PIL")
    folders(tmp_path, how)
    (tmp_path / "test" / "classes" / "003.png").write_bytes(b"\x89PNG cut off")
    assert not seen_by(d148_between_classes, tmp_path)
