"""Means and standard deviations that lie beside the data: in JSON, YAML and npz files, of scalers and of fields.

Those that a checkpoint keeps, of a layer that normalises its inputs, are `of_weights`: they have no names of columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.hints import read_settings
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.numpy_files import read_npy, read_npz
from traindx_tools.on_data.view import Statistics

MOST_NPZ, MOST_NPY = 2**20, 2**14
MOST_CHANNELS = 256
DEPTH = 5
_MEAN = re.compile(r"^(?P<field>.*?)[._]?(means?|mu|avg|average|mean_)_?$", re.IGNORECASE)
_STD = re.compile(r"^(?P<field>.*?)[._]?(stds?|stdevs?|sigma|scale|standard_deviations?|sd)_?$", re.IGNORECASE)
_VARIANCE = re.compile(r"^(?P<field>.*?)[._]?(vars?|variances?)_?$", re.IGNORECASE)
_NAMES = re.compile(r"^(channels?|channel_names?|features?|feature_names?(_in)?|columns?|variables?|names?|leads?)_?$",
                    re.IGNORECASE)


def statistics_of(paths: Iterable[Path]) -> tuple[Statistics, ...]:
    """What the files say; one that does not parse says nothing."""
    files = list(paths)
    found = [s for where, said in read_settings(files) for s in _in(where, said, "", DEPTH)]
    for path in files:
        try:
            if path.suffix.lower() == ".npz" and path.stat().st_size <= MOST_NPZ:
                found += _in(path.name, _arrays(path), "", 1)
            elif path.suffix.lower() == ".npy" and path.stat().st_size <= MOST_NPY:
                found += _of_rows(path)
        except (OSError, UnreadableInput, ValueError):
            continue
    return tuple(found)


def _of_rows(path: Path) -> Iterator[Statistics]:
    """A small array of two rows, or two columns, of which the second holds no negative number: means and spreads."""
    shards = read_npy(path, path.name, Bounds(values=2**12, unpacked=2**16))
    columns = [c for s in shards for c in s.columns.values()]
    if len(columns) != 1 or not columns[0].is_float or len(columns[0].row_shape) != 1:
        return
    values = np.asarray(columns[0].values, np.float64)
    rows = values if len(values) == 2 else values.T if values.shape[1] == 2 else None
    if rows is not None and 2 <= rows.shape[1] <= MOST_CHANNELS and np.isfinite(rows).all() and (rows[1] > 0).all():
        yield Statistics(path.name, "", (), rows[0], rows[1])


def _arrays(path: Path) -> dict[str, Any]:
    """Short arrays of an npz file as lists, where no array in it is long: a file of data says nothing of this kind."""
    shards = read_npz(path, path.name, Bounds(values=2**16, unpacked=2**20))
    columns = {n: c for s in shards for n, c in s.columns.items()}
    if any(c.rows > MOST_CHANNELS or c.row_shape for c in columns.values()):
        return {}
    return {n: list(c.texts) if c.kind == "text" else c.values.tolist() for n, c in columns.items()}


def _in(where: str, said: Any, field: str, depth: int) -> Iterator[Statistics]:
    if not isinstance(said, Mapping) or not depth:
        return
    entries = {str(k): v for k, v in list(said.items())[:5000]}
    listed = next((v for k, v in entries.items() if _NAMES.match(k) and _is_texts(v)), None)
    for key, value in entries.items():
        match = _MEAN.match(key)
        spread = _spread(entries, match["field"]) if match is not None else None
        if match is not None and spread is not None:
            made = _made(where, match["field"] or field, value, spread, listed)
            if made is not None:
                yield made
    yield from _by_channel(where, entries, field)
    for key, value in entries.items():
        yield from _in(where, value, key, depth - 1)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and len(value) >= 2 and all(isinstance(v, str) for v in value)


def _spread(entries: Mapping[str, Any], field: str) -> Any:
    """The standard deviations of a field whose means are there."""
    for pattern, root in ((_STD, False), (_VARIANCE, True)):
        for key, value in entries.items():
            match = pattern.match(key)
            if match is not None and match["field"] == field:
                return _rooted(value) if root else value
    return None


def _rooted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _rooted(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_rooted(v) for v in value]
    return float(value) ** 0.5 if isinstance(value, (int, float)) and value >= 0 else value


def _made(where: str, field: str, mean: Any, spread: Any, listed: list[str] | None) -> Statistics | None:
    names: tuple[str, ...] = ()
    if isinstance(mean, Mapping) and isinstance(spread, Mapping) and list(mean) and set(mean) == set(spread):
        names = tuple(map(str, mean))
        mean, spread = [mean[k] for k in mean], [spread[k] for k in mean]
    means, spreads = _numbers(mean), _numbers(spread)
    if means is None or spreads is None or len(means) != len(spreads):
        return None
    if not names and listed is not None and len(listed) == len(means):
        names = tuple(listed)
    return Statistics(where, field, names, means, spreads)


def _by_channel(where: str, entries: Mapping[str, Any], field: str) -> Iterator[Statistics]:
    """{"temperature": {"mean": 1, "std": 2}, ...}."""
    found: list[tuple[str, float, float]] = []
    for key, value in entries.items():
        if not isinstance(value, Mapping):
            continue
        inner = {str(k): v for k, v in value.items()}
        mean = next((v for k, v in inner.items() if (m := _MEAN.match(k)) is not None and not m["field"]), None)
        spread = _spread(inner, "")
        if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (mean, spread)):
            found.append((key, float(mean or 0.0), float(spread)))
    if len(found) >= 2:
        names, means, spreads = zip(*found, strict=True)
        yield Statistics(where, field, names, np.array(means), np.array(spreads))


def _numbers(value: Any) -> Array | None:
    try:
        array = np.asarray(value, np.float64).reshape(-1)
    except (TypeError, ValueError):
        return None
    return array if 2 <= len(array) <= MOST_CHANNELS and np.isfinite(array).all() else None


MOST_WEIGHTS, MOST_FILES = 2 * 2**30, 8
_LAYER_MEAN = re.compile(r"(?i)^(?P<layer>.*?)(?:^|[._/])(?:running_|moving_|input_|feature_|x_|data_|obs_)?"
                         r"(?:means?|mu|loc|shift|center)_?$")
_LAYER_SPREAD = re.compile(r"(?i)(?:^|[._/])(?:running_|moving_|input_|feature_|x_|data_|obs_)?"
                           r"(?:(?P<var>vars?|variances?)|stds?|sigma|scale|stddev)_?$")


def of_weights(paths: Iterable[Path]) -> tuple[Statistics, ...]:
    """Means and spreads of layers in checkpoints, several a file; one that cannot be read says nothing."""
    from traindx_tools.on_weights.formats.reading import SUFFIXES, read_checkpoint

    found: list[Statistics] = []
    some = [p for p in paths if p.suffix in SUFFIXES - {".npy", ".npz", ".tar", ".bin"}]
    for path in some[:MOST_FILES]:
        try:
            if path.stat().st_size <= MOST_WEIGHTS:
                for part in read_checkpoint(path).parts:
                    found += _of_layers(path, part.key, part.tensors) if not part.auxiliary else ()
        except Exception:  # noqa: BLE001 - a file that is no checkpoint must not cost a person the others
            continue
    return tuple(found)


def _of_layers(path: Path, key: str, tensors: Mapping[str, Any]) -> Iterator[Statistics]:
    short = {n: t for n, t in tensors.items() if t.floating and 2 <= t.size <= MOST_CHANNELS
             and sum(n > 1 for n in t.shape) == 1}
    for name, mean in short.items():
        match = _LAYER_MEAN.match(name)
        if match is None:
            continue
        for other, spread in short.items():
            other_match = _LAYER_SPREAD.search(other)
            if other_match is None or other[:other_match.start()] != match["layer"] or spread.size != mean.size:
                continue
            means, values = (np.asarray(t.load().reshape(-1), np.float64) for t in (mean, spread))
            spreads = np.sqrt(np.maximum(values, 0.0)) if other_match["var"] else values
            if np.isfinite(means).all() and np.isfinite(spreads).all() and (spreads > 0).all():
                yield Statistics(str(path), ".".join(filter(None, (key, match["layer"] or name))), (), means, spreads)
                break
