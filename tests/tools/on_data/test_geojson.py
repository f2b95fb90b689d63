"""GeoJSON as records, and a file of it whose axes are exchanged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.readers import format_of, read_file
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.rules import d126_columns_exchanged as d126

Seen = Callable[[ModuleType, Path], list[Finding]]
TOWNS = {"east": (16.3, 46.3),
         "north": (15.4, 47.1), "south": (15.6, 45.8), "west": (14.3, 46.6), "plain": (16.6, 47.2)}


def town(path: Path, at: tuple[float, float], exchanged: bool, rows: int = 120) -> None:
    rng = np.random.default_rng(len(path.name))
    features: list[dict[str, Any]] = []
    for i in range(rows):
        x, y = np.array(at) + rng.normal(0, 0.02, 2)
        ring = [[x, y], [x, y + 0.001], [x + 0.001, y + 0.001], [x + 0.001, y], [x, y]]
        ring = [p[::-1] for p in ring] if exchanged else ring
        features.append({"type": "Feature", "properties": {"area": float(rng.gamma(4, 100))},
                         "geometry": {"type": "Polygon", "coordinates": [ring]}, "id": i})
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))


def test_records(tmp_path: Path) -> None:
    town(tmp_path / "a.geojson", TOWNS["east"], False)
    assert format_of(tmp_path / "a.geojson") == "json"
    (shard,) = read_file(tmp_path / "a.geojson", "a", "json", Bounds())
    assert {"area", "id", "geometry.type", "geometry.first", "geometry.points"} <= set(shard.columns)
    assert abs(float(np.mean(shard.columns["geometry.first"].values)) - 16.3) < 0.1


@pytest.mark.parametrize("odd", ["west", None])
def test_axes_exchanged_in_one_town(odd: str | None, tmp_path: Path, seen_by: Seen) -> None:
    for name, at in TOWNS.items():
        town(tmp_path / f"{name}.geojson", at, name == odd)
    found = [(f.measured["field"], f.measured["other"]) for f in seen_by(d126, tmp_path)]
    assert found == ([("geometry.first", "geometry.second")] if odd else [])


def test_three_files_and_a_town_far_away_are_quiet(tmp_path: Path, seen_by: Seen) -> None:
    for name in ("east", "north", "south"):
        town(tmp_path / f"{name}.geojson", TOWNS[name], name == "north")
    assert not seen_by(d126, tmp_path)  # two siblings tell no range
    town(tmp_path / "north.geojson", TOWNS["north"], False)
    town(tmp_path / "far.geojson", (121.0, 14.6), False)
    assert not seen_by(d126, tmp_path)


@pytest.mark.parametrize("geometry", [None, {}, {"type": "Point", "coordinates": []}, {"type": "Point",
                         "coordinates": ["a", 1]}, {"type": "Point", "coordinates": [1]}, 3])
def test_odd_geometries(geometry: Any, tmp_path: Path) -> None:
    features = [{"type": "Feature", "properties": None, "geometry": geometry, "id": i} for i in range(30)]
    (tmp_path / "a.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [*features, 3]}))
    (shard,) = read_file(tmp_path / "a.geojson", "a", "json", Bounds())
    assert shard.rows == 30
