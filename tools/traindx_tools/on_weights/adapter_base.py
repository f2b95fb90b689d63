"""The model that an adapter was trained on, where it lies in the same tree of folders."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from traindx_tools.errors import TraindxError
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.tensor import Tensor

MOST_FOLDERS, DEEPEST, MOST_FILES = 60, 2, 12
_ENDINGS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt")
_WEIGHTS = frozenset({"weight", "kernel", "w"})


@dataclass(frozen=True)
class Base:
    """`modules`: every module with a tensor of its own, with the axes of its weight (None: packed or none).
    `named`: whether the adapter's configuration names it. `whole`: whether all of its tensors were there."""

    path: str
    modules: Mapping[str, tuple[int, ...] | None]
    config: Mapping[str, Any] = field(default_factory=dict)
    named: bool = False
    whole: bool = True


def bases_of(path: str, config: Mapping[str, Any]) -> list[Base]:
    """The checkpoints without adapters in the adapter's folder, the one above it and below that; those that the
    configuration names alone, where it names one of them."""
    home = Path(path) if Path(path).is_dir() else Path(path).parent
    said = config.get("base_model_name_or_path")
    wanted = PurePath(said).name if isinstance(said, str) else ""
    found = [b for f in _candidates(home.resolve()) if (b := _base(f, wanted)) is not None]
    return [b for b in found if b.named] or found


def of_checkpoint(checkpoint: Checkpoint, config: Mapping[str, Any], named: bool) -> Base | None:
    """A checkpoint as a base; None where it holds adapters itself, or nothing."""
    tensors = checkpoint.weights.tensors
    if not tensors or any(".lora_" in n for n in tensors):
        return None
    whole = "index.missing" not in checkpoint.values and not any("is not there" in n for n in checkpoint.notes)
    return Base(checkpoint.path, _modules(tensors), config, named, whole)


def _modules(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...] | None]:
    found: dict[str, tuple[int, ...] | None] = {}
    for name, tensor in tensors.items():
        module, _, last = name.rpartition(".")
        weight = last in _WEIGHTS and tensor.floating and len(tensor.shape) >= 2
        if weight or module not in found:
            found[module] = tensor.shape if weight else None
    return found


def _base(file: Path, wanted: str) -> Base | None:
    from traindx_tools.on_weights.examine import configuration
    from traindx_tools.on_weights.formats.reading import read_checkpoint

    try:
        read = read_checkpoint(file)
    except (TraindxError, OSError):
        return None
    named = bool(wanted) and wanted in (file.name, file.stem, file.parent.name)
    return of_checkpoint(read, configuration(str(file)), named)


def _candidates(home: Path) -> Iterator[Path]:
    """Indexes of shards, and files that are no part of one; each folder's own first."""
    seen: set[Path] = set()
    folders = [home, *(_below(home.parent) if home.parent != home else ())]
    files = (f for folder in folders for f in _weights(folder))
    for file in files:
        if file not in seen:
            seen.add(file)
            yield file
        if len(seen) >= MOST_FILES:
            return


def _below(top: Path) -> Iterator[Path]:
    """A folder and those below it, near ones first; links are not followed."""
    level, count = [top], 0
    for _ in range(DEEPEST + 1):
        below: list[Path] = []
        for folder in level:
            yield folder
            count += 1
            if count >= MOST_FOLDERS:
                return
            try:
                with os.scandir(folder) as entries:
                    below += sorted(Path(e.path) for e in entries if e.is_dir(follow_symlinks=False)
                                    and not e.name.startswith((".", "__")))
            except OSError:
                continue
        level = below


def _weights(folder: Path) -> list[Path]:
    try:
        files = sorted(f for f in folder.iterdir() if f.is_file() and not f.is_symlink()
                       and (f.suffix in _ENDINGS or f.name.endswith(".index.json")))
    except OSError:
        return []
    indexes = [f for f in files if f.name.endswith(".index.json")]
    return indexes[:1] or [f for f in files if not f.name.startswith(("adapter_", "optimizer", "scheduler", "rng_"))]
