"""What a fingerprint holds: files, fields of data by shard, tensors of weights, settings, versions; how it is taken.

It holds statistics and checksums and no row, no text and no value of the data; settings whose names sound like secrets
are left out.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from traindx_tools.errors import MissingExtra, UnreadableInput
from traindx_tools.on_data.shard import Shard

VERSION = 1
WHOLE = 2**26
"""Bytes up to which a file's checksum is over all of it; of a larger one over its size and `PARTS` parts."""
PARTS = 64
PART_BYTES = 2**16
CLASSES = 256
"""Distinct integers that are counted one by one."""
PACKAGES = ("torch", "jax", "jaxlib", "flax", "optax", "equinox", "numpy", "transformers", "datasets", "accelerate",
            "lightning", "peft", "tokenizers", "safetensors", "deepspeed", "triton")  # fmt: skip
_SECRET = re.compile(r"secret|token$|_token|password|passwd|api_?key|credential", re.IGNORECASE)
_WEIGHTS = frozenset({".safetensors", ".pt", ".pth", ".ckpt", ".bin", ".msgpack"})
_CONFIGS = frozenset({".yaml", ".yml", ".toml", ".json", ".ini", ".cfg"})
MOST_CONFIG = 2**20


@dataclass(frozen=True)
class Fingerprint:
    """What was taken, by path relative to the folder that holds it all.

    `data`: rows and fields of each shard; `weights`: dtype, shape and root mean square of each tensor.
    """

    files: Mapping[str, Mapping[str, Any]]
    data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    weights: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; what is not finite is text."""
        told = {"traindx": "fingerprint", "version": VERSION, **asdict(self)}
        made: dict[str, Any] = json.loads(json.dumps(_plain(told)))
        return made


def load(path: Path) -> Fingerprint:
    """A fingerprint that was written. Raises UnreadableInput for anything else."""
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "no regular file"
        raise UnreadableInput(f"{path} is {what}, expected a fingerprint: take one of the good run with `traindx "
                              "fingerprint PATH --out FILE` and give FILE")
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["traindx"] != "fingerprint":
            raise KeyError("traindx")
        if told["version"] != VERSION:
            raise UnreadableInput(f"{path}: a fingerprint of version {told['version']}, and this traindx reads "
                                  f"{VERSION}: take it anew")
        return Fingerprint(**{k: told[k] for k in ("files", "data", "weights", "settings", "versions")})
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableInput(f"{path} is no fingerprint: expected what `traindx fingerprint PATH --out FILE` "
                              "writes") from error


def take(paths: Sequence[str | Path], *, seconds: float = 600.0) -> Fingerprint:
    """The fingerprint of files and folders. Nothing is executed, nothing is written.

    `seconds`: what reading data may take; files that it did not suffice for are in the notes. Raises UnreadableInput
    where a path names nothing.
    """
    from traindx_tools.on_data import examine

    named = [Path(p) for p in paths]
    if missing := [str(p) for p in named if not p.exists()]:
        raise UnreadableInput(f"no such file or folder: {', '.join(missing)}")
    root = _root(named)
    files = dict(sorted((_name(f, root), f) for f in _files(named)))
    seen = examine([str(p) for p in named], seconds=seconds)
    data = {_below(s.name, root): _shard(s) for d in seen.sets for s in d.shards if s.summaries or s.total}
    weights, notes = _weights(files)
    settings = {n: told for n, f in files.items() if (told := _settings(f, n)) and n not in data}
    unread = (a for a in seen.artifacts if a.note and _below(a.path, root) not in {*weights, *settings})
    return Fingerprint({n: _file(f) for n, f in files.items()}, data, weights, settings, dict(_versions()),
                       (*seen.notes, *(f"{a.path}: {a.note}" for a in unread), *notes))


def _root(paths: Sequence[Path]) -> Path:
    parents = [os.path.abspath(p if p.is_dir() else p.parent) for p in paths]
    return Path(os.path.commonpath(parents)) if parents else Path()


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_file():
            yield path
        for folder, names, files in os.walk(path):
            names[:] = [n for n in names if n not in {"__pycache__", ".git", "node_modules", ".venv", "scratch"}]
            yield from (Path(folder) / f for f in files if (Path(folder) / f).is_file())


def _name(path: Path, root: Path) -> str:
    return os.path.relpath(os.path.abspath(path), root)


def _below(name: str, root: Path) -> str:
    """A shard's name, which begins with its file's path as the user gave it."""
    return os.path.relpath(os.path.abspath(name), root) if os.sep in name or os.path.exists(name) else name


def _file(path: Path) -> dict[str, Any]:
    size = path.stat().st_size
    told = hashlib.sha256()
    with path.open("rb") as stream:
        if size <= WHOLE:
            while block := stream.read(2**20):
                told.update(block)
            return {"bytes": size, "sha256": told.hexdigest()}
        for part in range(PARTS):
            stream.seek((size - PART_BYTES) * part // (PARTS - 1))
            told.update(stream.read(PART_BYTES))
    return {"bytes": size, "sha256_of_parts": told.hexdigest()}


def _shard(shard: Shard) -> dict[str, Any]:
    out: dict[str, Any] = {"rows": shard.total, "fields": {}}
    for name, summary in shard.summaries.items():
        told: dict[str, Any] = {
            "dtype": summary.dtype, "shape": list(summary.shape), "low": summary.low, "high": summary.high,
            "mean": summary.mean, "std": summary.std, "nan": summary.nan, "inf": summary.inf}
        if summary.histogram is not None and len(summary.histogram[0]) <= CLASSES:
            told["counts"] = {str(int(v)): int(c) for v, c in zip(*summary.histogram, strict=True)}
        out["fields"][name] = told
    return out


def _weights(files: Mapping[str, Path]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    from traindx_tools.on_weights import is_weights
    from traindx_tools.on_weights.formats.reading import read_checkpoint
    from traindx_tools.on_weights.measuring import measure_all

    out: dict[str, dict[str, Any]] = {}
    notes = []
    for name, path in files.items():
        if not (path.suffix in _WEIGHTS or (path.suffix == ".npz" and is_weights(str(path)))):
            continue
        try:
            checkpoint = read_checkpoint(path)
            stats, _ = measure_all(list(checkpoint.tensors), math.inf)
        except (UnreadableInput, MissingExtra) as error:
            notes.append(f"{name}: its tensors were not read ({error})")
            continue
        out[name] = {t.key or t.name: {"dtype": t.dtype, "shape": list(t.shape),
                                       **({"rms": stats[id(t)].rms} if id(t) in stats else {})}
                     for t in checkpoint.tensors}
    return out, notes


def _settings(path: Path, name: str) -> dict[str, Any]:
    from traindx_tools.on_logs.configs.files import read_config

    if path.suffix not in _CONFIGS or path.stat().st_size > MOST_CONFIG:
        return {}
    try:
        told = read_config(name, path.read_text(encoding="utf-8"))
    except (UnreadableInput, MissingExtra, UnicodeDecodeError, ValueError):
        return {}
    return {k: v for k, v in told.items() if not _SECRET.search(k)}


def _versions() -> Iterator[tuple[str, str]]:
    yield "python", ".".join(map(str, sys.version_info[:3]))
    for package in PACKAGES:
        try:
            yield package, metadata.version(package)
        except metadata.PackageNotFoundError:
            continue


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
