"""Two checkpoints: one difference a tensor. Read and written without executing anything of them.

A run reads the bad file in which the bytes of the other tensors are those of the good one, so that everything besides
(epoch, structure, hyperparameters) is as in the bad file. What has another shape or type cannot be exchanged.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.experiments.isolating.outcomes import Items
from traindx_tools.experiments.isolating.spaces.space import hashed
from traindx_tools.experiments.isolating.spaces.target import Target, target_of
from traindx_tools.experiments.place import Prepared
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.formats.reading import form_of, read_checkpoint
from traindx_tools.on_weights.tensor import InFile, Tensor

MOST_BYTES = 4 * 2**30
"""Of one file: it is written anew for each run."""
FORMS = ("torch", "safetensors", "npz")
ALIGNED = 64
"""Bytes to which torch.save aligns storages, so that they can be mapped."""


@dataclass(frozen=True)
class Exchange:
    """Tensors that share one place in the bad file, and the bytes of both sides."""

    names: tuple[str, ...]
    offset: int
    good: bytes
    bad: bytes


@dataclass(frozen=True)
class Tensors:
    """See `spaces.space.Space`."""

    path: Path
    form: str
    exchanges: tuple[Exchange, ...]
    target: Target
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, good: Path, bad: Path, command: str, workspace: Path, at: str | None = None) -> Tensors:
        """Reads both files. Raises UnreadableInput or BadUsage."""
        form = form_of(str(bad)) if bad.exists() else ""
        if bad.is_dir() or (bad.exists() and form not in FORMS):
            raise UnreadableInput(f"{bad}: expected one file of torch.save, safetensors or npz, whose tensors can be "
                                  "exchanged")
        sides = _by_key(read_checkpoint(good)), _by_key(read_checkpoint(bad))
        if bad.stat().st_size > MOST_BYTES:
            raise UnreadableInput(f"{bad}: larger than {MOST_BYTES // 2**30} GiB; it would be written for each run")
        exchanges, notes = _exchanges(*sides, bad)
        return cls(bad, form, exchanges, target_of(command, workspace, (good, bad), "weights", at), notes)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The tensor's name, with those that share its values."""
        return tuple(" = ".join(e.names) for e in self.exchanges)

    @cached_property
    def identity(self) -> str:
        """Of the bad file and every value of the good one that differs."""
        return hashed(["tensors", self.path.read_bytes(), *(e.good for e in self.exchanges)])

    def prepared(self, part: Items) -> Prepared:
        """The file with these tensors as in the bad one."""
        data = bytearray(self.path.read_bytes())
        for number, exchange in enumerate(self.exchanges):
            if number not in part:
                data[exchange.offset: exchange.offset + len(exchange.good)] = exchange.good
        return Prepared(self.target.command, files={self.target.path: self._whole(data)})

    def _whole(self, data: bytearray) -> bytes:
        """The file with checksums that are right again."""
        return bytes(data) if self.form == "safetensors" else packed_again(self.path, bytes(data))


def packed_again(path: Path, data: bytes) -> bytes:
    """The archive whose members lie at the places of `path` in `data`, stored with their sums, aligned as by torch."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as new:
        for info in old.infolist():
            content = _member(old, info, data)
            made = zipfile.ZipInfo(info.filename, info.date_time)
            start = out.tell() + 30 + len(info.filename.encode()) + 4
            padding = -start % ALIGNED
            made.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
            new.writestr(made, content)
    return out.getvalue()


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, data: bytes) -> bytes:
    if info.compress_type != zipfile.ZIP_STORED:
        return archive.read(info)
    head = info.header_offset
    start = head + 30 + int.from_bytes(data[head + 26: head + 28], "little") + int.from_bytes(
        data[head + 28: head + 30], "little")
    return data[start: start + info.file_size]


def _by_key(checkpoint: Checkpoint) -> dict[str, Tensor]:
    found = {t.key or t.name: t for t in checkpoint.tensors}
    for optimizer in checkpoint.optimizers:
        found.update(_nested(optimizer.state, f"{optimizer.key}.state".removeprefix(".")))
    return found


def _nested(node: Any, key: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(node, Tensor):
        yield key, node
    elif isinstance(node, Mapping):
        for name, value in node.items():
            yield from _nested(value, f"{key}.{name}")


def _exchanges(good: Mapping[str, Tensor], bad: Mapping[str, Tensor],
               path: Path) -> tuple[tuple[Exchange, ...], tuple[str, ...]]:
    places: dict[int, Exchange] = {}
    others: list[str] = []
    for key, theirs in bad.items():
        ours = good.get(key)
        if ours is None:
            others.append(f"{key} (not in the good one)")
        elif (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
            others.append(f"{key} ({ours.dtype}{list(ours.shape)} -> {theirs.dtype}{list(theirs.shape)})")
        elif (values := _bytes(ours)) != (old := _bytes(theirs)):
            if not isinstance(theirs.source, InFile):
                others.append(f"{key} (packed, or stored out of order)")
                continue
            held = places.get(theirs.source.offset)
            names = (*(held.names if held else ()), key)
            if held is not None and len(held.good) >= len(values):
                values, old = held.good, held.bad
            places[theirs.source.offset] = Exchange(names, theirs.source.offset, values, old)
    others += [f"{key} (not in the bad one)" for key in good if key not in bad]
    told = ", ".join(others[:6]) + (f" and {len(others) - 6} more" if len(others) > 6 else "")
    notes = (f"{len(others)} tensors differ and cannot be exchanged: {told}",) if others else ()
    if not places and others and path.suffix == ".npz":
        notes = (*notes, "np.savez_compressed packs arrays: save them with np.savez")
    return tuple(places.values()), notes


def _bytes(tensor: Tensor) -> bytes:
    return b"".join(np.ascontiguousarray(p).tobytes() for p in tensor.raw())
