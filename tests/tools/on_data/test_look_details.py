"""Changed copies among pictures that all look alike, by what they have beyond what is common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.on_data import look_details, looks_alike
from traindx_tools.on_data.column import Contents
from traindx_tools.on_data.examination import examine

Image = pytest.importorskip("PIL.Image")
Array = np.ndarray[Any, Any]


def smooth(rng: np.random.Generator, count: int, side: int, cells: int) -> Array:
    rough = rng.normal(size=(count, cells, cells))
    return np.kron(rough, np.ones((1, side // cells, side // cells)))


def leaves(rng: np.random.Generator, count: int, side: int = 32) -> Array:
    """Pictures of one subject: a common form, a few ways in which it differs, and each one's own texture."""
    form = smooth(np.random.default_rng(99), 5, side, 8)
    common = 2.0 * form[0] + np.einsum("ik,kab->iab", rng.normal(size=(count, 4)), form[1:])
    return np.asarray(common + 0.8 * smooth(rng, count, side, 16) + 0.3 * rng.normal(size=(count, side, side)))


def copies(rng: np.random.Generator, pictures: Array) -> Array:
    """Mirrored, brighter and noisy."""
    return np.asarray(1.1 * pictures[:, :, ::-1] + 0.2 + 0.6 * rng.normal(size=pictures.shape))


def blurred(pictures: Array) -> Array:
    return np.asarray(sum(np.roll(pictures, (a, b), (1, 2)) for a in (-1, 0, 1) for b in (-1, 0, 1)) / 9.0)


def shown(train: Array, held: Array) -> list[Array]:
    return looks_alike.standard([Contents(np.arange(len(p)), p.astype(np.float32)) for p in (train, held)])


@pytest.mark.parametrize("kind", ["copies", "fresh", "blurred"])
def test_what_copies_have_in_common_beyond_the_common(kind: str) -> None:
    rng = np.random.default_rng(3)
    train, held = leaves(rng, 500), leaves(rng, 160)
    if kind == "copies":
        held[::3] = copies(rng, train[: len(held[::3])])
    if kind == "blurred":
        held = blurred(held)
    train, held = shown(train, held)
    seen = look_details.details(held, train, looks_alike.PICTURE)
    assert seen is not None
    at, found, least = seen
    hits = found.alike > least
    if kind == "copies":
        assert hits[::3].mean() > 0.9
        assert hits.sum() <= hits[::3].sum() + 2
        assert (found.other[hits][:20] == at[hits][:20] // 3).all()
        assert (found.turn[hits] == 1).mean() > 0.95
    else:
        assert hits.mean() < 0.025


def test_few_pictures_are_not_compared() -> None:
    train, held = shown(leaves(np.random.default_rng(0), 20), leaves(np.random.default_rng(1), 20))
    assert look_details.details(held, train, looks_alike.PICTURE) is None


@pytest.mark.parametrize("leak", [True, False])
def test_copies_in_folders_of_pictures(leak: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    train, held = leaves(rng, 260), leaves(rng, 90)
    if leak:
        held[::2] = copies(rng, train[: len(held[::2])])
    for split, pictures in (("train", train), ("val", held)):
        for i, picture in enumerate(pictures):
            path = tmp_path / split / f"class_{i % 2}" / f"{i:04d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.clip(128 + 14 * picture, 0, 255).astype(np.uint8)).save(path)
    (tmp_path / "train" / "class_0" / "broken.png").write_bytes(b"\x89PNG no picture")
    found = [f for f in examine([tmp_path]).findings if f.rule == "D114"]
    assert [f.measured["turn"] for f in found] == ["mirrored"] * leak
