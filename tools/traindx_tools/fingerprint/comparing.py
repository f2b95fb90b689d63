"""Two fingerprints laid beside each other: what a good run had, and what this one has."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from traindx_tools.fingerprint.taking import Fingerprint

SHIFT = 0.1
"""Of the larger standard deviation: a mean that moved less is a small effect (Cohen 1988 calls 0.2 small)."""
SPREAD = 1.1
"""Ratio of standard deviations, or of root mean squares of tensors, from which they are told apart."""
CLASSES = 0.05
"""Total variation between two distributions of classes from which they are told apart."""


@dataclass(frozen=True)
class Difference:
    """One thing that is otherwise. `kind`: "file", "data", "weights", "setting" or "version"; `size` orders them."""

    kind: str
    place: str
    said: str
    size: float

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def compare(good: Fingerprint, here: Fingerprint) -> tuple[Difference, ...]:
    """What differs, the most telling first: fields and tensors by how far they moved, then settings, files, versions.

    A file whose checksum alone differs is named as that; one whose content is described otherwise is named by what is
    otherwise in it.
    """
    found = [*_data(good, here), *_weights(good, here), *_settings(good, here), *_versions(good, here)]
    described = {d.place.split(":")[0] for d in found}
    found += [d for d in _files(good, here) if d.place not in described]
    return tuple(sorted(found, key=lambda d: (-d.size, d.kind, d.place)))


def _files(good: Fingerprint, here: Fingerprint) -> Iterator[Difference]:
    for name in sorted({*good.files, *here.files}):
        old, new = good.files.get(name), here.files.get(name)
        if old is None or new is None:
            yield Difference("file", name, "is new" if old is None else "is not there any more", 0.5)
        elif old != new:
            size = f"{old['bytes']:,} -> {new['bytes']:,} bytes" if old["bytes"] != new["bytes"] else "of the same size"
            alike = ", with statistics that agree" if name in good.data or name in good.weights else ""
            yield Difference("file", name, f"holds other bytes ({size}){alike}", 0.2)


def _data(good: Fingerprint, here: Fingerprint) -> Iterator[Difference]:
    for name in sorted(good.data.keys() & here.data.keys()):
        old, new = good.data[name], here.data[name]
        if old["rows"] != new["rows"]:
            yield Difference("data", name, f"rows: {old['rows']:,} -> {new['rows']:,}",
                             abs(math.log((new["rows"] + 1) / (old["rows"] + 1))) + 0.5)
        for field in sorted({*old["fields"], *new["fields"]}):
            place = f"{name}:{field}"
            one, two = old["fields"].get(field), new["fields"].get(field)
            if one is None or two is None:
                yield Difference("data", place, "is new" if one is None else "is not there any more", 2.0)
            else:
                yield from _field(place, one, two)


def _field(place: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    for key in ("dtype", "shape"):
        if old[key] != new[key]:
            yield Difference("data", place, f"{key}: {old[key]} -> {new[key]}", 2.0)
    for key in ("nan", "inf"):
        if (old[key] > 0) != (new[key] > 0):
            yield Difference("data", place, f"{key} values: {old[key]:,} -> {new[key]:,}", 3.0)
    if "counts" in old and "counts" in new:
        yield from _classes(place, old["counts"], new["counts"])
        return
    mean, std, now, spread = (_number(x) for x in (old["mean"], old["std"], new["mean"], new["std"]))
    widest = max(std, spread)
    if widest > 0.0 and abs(now - mean) / widest >= SHIFT:
        yield Difference("data", place, f"mean: {mean:.4g} -> {now:.4g} ({(now - mean) / widest:+.2g} of its spread)",
                         min(abs(now - mean) / widest, 10.0))
    if std > 0.0 and spread > 0.0 and max(std / spread, spread / std) >= SPREAD:
        yield Difference("data", place, f"standard deviation: {std:.4g} -> {spread:.4g} (times {spread / std:.3g})",
                         min(abs(math.log(spread / std)) + 0.5, 10.0))
    elif (std > 0.0) != (spread > 0.0):
        yield Difference("data", place, f"standard deviation: {std:.4g} -> {spread:.4g}", 3.0)


def _classes(place: str, old: Mapping[str, int], new: Mapping[str, int]) -> Iterator[Difference]:
    totals = max(1, sum(old.values())), max(1, sum(new.values()))
    moved = {k: new.get(k, 0) / totals[1] - old.get(k, 0) / totals[0] for k in {*old, *new}}
    apart = sum(map(abs, moved.values())) / 2.0
    if strange := sorted(new.keys() - old.keys(), key=lambda k: (len(k), k)):
        yield Difference("data", place, f"values that were not there: {', '.join(strange[:8])}", 2.0)
    if apart >= CLASSES:
        most = sorted(moved, key=lambda k: (-abs(moved[k]), k))[:3]
        told = ", ".join(f"{k} {old.get(k, 0) / totals[0]:.1%} -> {new.get(k, 0) / totals[1]:.1%}" for k in most)
        yield Difference("data", place, f"{apart:.0%} of the values moved to other classes ({told})", 1.0 + apart)


def _weights(good: Fingerprint, here: Fingerprint) -> Iterator[Difference]:
    for name in sorted(good.weights.keys() & here.weights.keys()):
        old, new = good.weights[name], here.weights[name]
        for tensor in sorted({*old, *new}):
            place = f"{name}:{tensor}"
            one, two = old.get(tensor), new.get(tensor)
            if one is None or two is None:
                yield Difference("weights", place, "is new" if one is None else "is not there any more", 2.0)
            elif (one["dtype"], one["shape"]) != (two["dtype"], two["shape"]):
                said = f"{one['dtype']} {one['shape']} -> {two['dtype']} {two['shape']}"
                yield Difference("weights", place, said, 2.0)
            else:
                yield from _tensor(place, _number(one.get("rms", 0.0)), _number(two.get("rms", 0.0)))


def _tensor(place: str, old: float, new: float) -> Iterator[Difference]:
    if not (math.isfinite(old) and math.isfinite(new)) or (old > 0.0) != (new > 0.0):
        if not (math.isnan(old) and math.isnan(new)) and old != new:
            yield Difference("weights", place, f"root mean square: {old:.4g} -> {new:.4g}", 3.0)
    elif old > 0.0 and max(old / new, new / old) >= SPREAD:
        yield Difference("weights", place, f"root mean square: {old:.4g} -> {new:.4g} (times {new / old:.3g})",
                         min(abs(math.log(new / old)) + 0.5, 10.0))


def _settings(good: Fingerprint, here: Fingerprint) -> Iterator[Difference]:
    for name in sorted(good.settings.keys() & here.settings.keys()):
        old, new = good.settings[name], here.settings[name]
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key) or (key in old) != (key in new):
                was = repr(old[key]) if key in old else "not set"
                now = repr(new[key]) if key in new else "not set"
                yield Difference("setting", f"{name}:{key}", f"{was[:80]} -> {now[:80]}", 1.0)


def _versions(good: Fingerprint, here: Fingerprint) -> Iterator[Difference]:
    for name in sorted({*good.versions, *here.versions}):
        old, new = good.versions.get(name, "not installed"), here.versions.get(name, "not installed")
        if old != new:
            yield Difference("version", name, f"{old} -> {new}", 0.3)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
