"""Features of GeoJSON as records: their properties, the middle and extent of their points, and how many there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

DEEPEST = 6
MOST_POINTS = 10_000
"""Of one feature."""


def is_collection(data: Any) -> bool:
    """Whether it is a FeatureCollection."""
    return isinstance(data, Mapping) and data.get("type") == "FeatureCollection" and isinstance(
        data.get("features"), list)


def records_of(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A record a feature. The axes are called first and second: which is the longitude is the file's own word."""
    return [_record(f) for f in data["features"] if isinstance(f, Mapping)]


def _record(feature: Mapping[str, Any]) -> dict[str, Any]:
    properties = feature.get("properties")
    out: dict[str, Any] = dict(properties) if isinstance(properties, Mapping) else {}
    if "id" in feature:
        out.setdefault("id", feature["id"])
    geometry = feature.get("geometry")
    points: list[tuple[float, float]] = []
    if isinstance(geometry, Mapping):
        out["geometry.type"] = geometry.get("type")
        _take(geometry.get("coordinates"), points, DEEPEST)
    at = np.array(points, np.float64).reshape(-1, 2)
    middle = at.mean(axis=0) if len(at) else np.full(2, np.nan)
    extent = np.ptp(at, axis=0) if len(at) else np.full(2, np.nan)
    return out | {"geometry.first": float(middle[0]), "geometry.second": float(middle[1]),
                  "geometry.first_extent": float(extent[0]), "geometry.second_extent": float(extent[1]),
                  "geometry.points": len(at)}


def _take(value: Any, points: list[tuple[float, float]], depth: int) -> None:
    """The points of nested lists."""
    if not isinstance(value, list) or len(points) >= MOST_POINTS:
        return
    if len(value) >= 2 and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in value[:2]):
        points.append((float(value[0]), float(value[1])))
    elif depth:
        for one in value:
            _take(one, points, depth - 1)
