"""Depth pictures of one origin in another unit, and scenes that are only farther away."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d212_deep_pictures

Seen = Callable[[ModuleType, Path], list[Finding]]
image_of = pytest.importorskip("PIL.Image")
ROOMS = ("hall", "kitchen", "office", "stairs")


def room(rng: np.random.Generator) -> Any:
    """A floor and a wall with a thing before it, in millimetres, some pixels unseen."""
    y, x = np.mgrid[:40, :56]
    z = rng.uniform(1200, 2600) + 9 * y * rng.uniform(0.5, 1.5) + rng.normal(0, 6, y.shape)
    z[(y - rng.uniform(8, 30)) ** 2 + (x - rng.uniform(8, 48)) ** 2 < 70] -= rng.uniform(200, 600)
    z[rng.random(z.shape) < 0.05] = 0
    return z


def write(folder: Path, layout: str, change: Callable[[Any, str], Any]) -> None:
    """Twelve pictures of each room, as folders, as words of the names, or in a manifest."""
    rng = np.random.default_rng(4)
    lines = ["file,room"]
    for name in ROOMS:
        for k in range(12):
            z = change(room(rng), name)
            values = z.astype(np.float32) if z.max() < 60 else np.round(z).clip(0, 65535).astype(np.uint16)
            ending = "tiff" if z.max() < 60 else "png"
            path = {"folder": f"{name}/{k:03d}", "words": f"{name}_{k:03d}",
                    "manifest": f"f{len(lines):04d}"}[layout] + f".{ending}"
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            image_of.fromarray(values).save(folder / path)
            lines.append(f"{path},{name}")
    if layout == "manifest":
        (folder / "index.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("layout", ["folder", "words", "manifest"])
@pytest.mark.parametrize("factor", [10.0, 5.0])
def test_one_room_in_another_unit(layout: str, factor: float, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, layout, lambda z, name: z * factor if name == "office" else z)
    (found,) = seen_by(d212_deep_pictures, tmp_path)
    assert found.severity is Severity.MEDIUM
    assert found.measured["part"] == "office"
    assert found.measured["factor"] == pytest.approx(factor)


def test_values_that_were_multiplied(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "folder", lambda z, name: np.round(z) * 10 if name == "office" else z)
    (found,) = seen_by(d212_deep_pictures, tmp_path)
    assert found.severity is Severity.HIGH
    assert "multiples of 10" in found.statement


def test_metres_among_millimetres(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "words", lambda z, name: z / 1000 if name == "hall" else z)
    (found,) = seen_by(d212_deep_pictures, tmp_path)
    assert found.measured["part"] == "hall"
    assert found.measured["factor"] == pytest.approx(1e-3)


@pytest.mark.parametrize("change", [
    lambda z, name: z,
    lambda z, name: z + 18_000 if name == "office" else z,  # a hall that is long
    lambda z, name: z * 6.9 if name == "office" else z,  # a wider lens, no factor of units
    lambda z, name: z * {"hall": 1, "kitchen": 3, "office": 10, "stairs": 0.5}[name],  # each has its own
])
def test_scenes_that_differ(change: Callable[[Any, str], Any], tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "folder", change)
    assert seen_by(d212_deep_pictures, tmp_path) == []


def test_a_file_that_tells_the_scale(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "folder", lambda z, name: z * 10 if name == "office" else z)
    told = {name: {"depth_scale": 0.0001 if name == "office" else 0.001} for name in ROOMS}
    (tmp_path / "cameras.json").write_text(json.dumps(told))
    (found,) = seen_by(d212_deep_pictures, tmp_path)
    assert found.severity is Severity.INFO


def test_broken_and_blank(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "folder", lambda z, name: z * 0 if name == "hall" else z)
    for path in sorted(tmp_path.glob("*/00*.png"))[::3]:
        path.write_bytes(path.read_bytes()[:200] + b"IEND" + b"0000")
    assert all(f.severity is not Severity.HIGH for f in seen_by(d212_deep_pictures, tmp_path))
