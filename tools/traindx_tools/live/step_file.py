"""A captured step in a file of numbers: what was measured as JSON, tensors as plain bytes. Nothing in it is code.

`steps/rankNNNNN-stepNNNNNNNN-KIND.step.npz` in a run's folder: a zip file of "step.json" and of "t0.npy", "t1.npy" and
so on, each an array of bytes whose dtype, shape and strides stand in the JSON, since numpy knows neither bfloat16 nor
float8. It is written whole or not at all, for its owner only, and read without unpickling and in bounds.
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.errors import TraindxError, UnreadableInput
from traindx_tools.unlinked import made, opened

FOLDER, ENDING, TOLD = "steps", ".step.npz", "step.json"
KIND, VERSION = "captured-step", 1
RESULT = "replayed.json"
"""What a replay of a stored step came to, in the folder of its run; it is there once the replay is over."""
MOST_BYTES = 2 * 2**30
"""Of one file by default: parameters twice, gradients, two moments and two batches of a hundred million parameters."""
MOST_TOLD = 64 * 2**20
"""Bytes of the JSON that are read."""
MOST_READ = 64 * 2**30
"""Bytes that are read of a file, whoever wrote it."""
MOST_STEPS = 4
"""Files of one process."""
FREE = 1.25
"""Times its size that must be free on the disk: a training needs room for its checkpoints too."""

Bytes = NDArray[np.uint8]


class TooLarge(TraindxError):
    """A step was not written; the text says how large it is, and what may be."""


@dataclass(frozen=True)
class Stored:
    """What a file holds. `arrays`: gives the bytes of the tensor with a number."""

    told: Mapping[str, Any]
    arrays: Callable[[int], Bytes]
    path: Path


def path_for(folder: Path, rank: int, step: int, kind: str) -> Path:
    """Where a step is kept in a run's folder."""
    return folder / FOLDER / f"rank{rank:05d}-step{step:08d}-{kind}{ENDING}"


def write_step(path: Path, told: Mapping[str, Any], sizes: Sequence[int], bytes_of: Callable[[int], Bytes],
               most: int = MOST_BYTES) -> int:
    """Writes the file and returns its size in bytes. `sizes`: of the tensors. Raises TooLarge and OSError."""
    text = json.dumps({"traindx": KIND, "version": VERSION, "sizes": list(sizes), **told}).encode()
    whole = sum(sizes) + len(text)
    if whole > most:
        raise TooLarge(f"the step holds {_mib(whole)} and at most {_mib(most)} are kept (parameters twice, optimizer "
                       "state, gradients, two batches); `traindx run --snapshot --keep-mib N` allows more")
    made(path.parent)
    free = shutil.disk_usage(path.parent).free
    if whole * FREE > free:
        raise TooLarge(f"the step holds {_mib(whole)} and {_mib(free)} are free on the disk of {path.parent}")
    half = path.with_name(path.name + ".part")
    try:
        with opened(half, "wb", private=True) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for number in range(len(sizes)):
                with archive.open(f"t{number}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, bytes_of(number), allow_pickle=False)
            archive.writestr(TOLD, text)
        os.replace(half, path)
    finally:
        half.unlink(missing_ok=True)
    return whole


def read_step(path: Path) -> Stored:
    """What the file holds. Raises UnreadableInput for anything that is no such file."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {i.filename: i for i in archive.infolist()}
            if any(i.compress_type != zipfile.ZIP_STORED for i in members.values()):
                raise ValueError("its parts are compressed")
            if sum(i.file_size for i in members.values()) > MOST_READ or members[TOLD].file_size > MOST_TOLD:
                raise UnreadableInput(f"{path} is larger than what is read ({_mib(MOST_READ)})")
            told = json.loads(archive.read(TOLD))
        if told["traindx"] != KIND or told["version"] != VERSION:
            raise ValueError(f"it is a {told['traindx']} of version {told['version']}; {KIND} {VERSION} is read here")
        sizes = [int(n) for n in told["sizes"]]
        if any(f"t{i}.npy" not in members or members[f"t{i}.npy"].file_size < n for i, n in enumerate(sizes)):
            raise ValueError("tensors are missing: it was cut off")
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError, RecursionError) as error:
        raise UnreadableInput(f"{path} is no step that traindx captured ({error}). Such a file is "
                              f"traindx-run/TIME/{FOLDER}/rank00000-step00000012-loss{ENDING}, written by `traindx run "
                              "--snapshot` when a step goes wrong.") from error
    return Stored(told, lambda number: _read(path, number, sizes[number]), path)


def _read(path: Path, number: int, size: int) -> Bytes:
    try:
        with zipfile.ZipFile(path) as archive, archive.open(f"t{number}.npy") as member:
            found = np.lib.format.read_array(member, allow_pickle=False)
        if found.dtype != np.uint8 or found.shape != (size,):
            raise ValueError(f"tensor {number} is {found.dtype} {list(found.shape)}, and {size} bytes were expected")
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError, MemoryError) as error:
        raise UnreadableInput(f"{path} cannot be read: {error}") from error
    return found


def steps_in(path: Path) -> list[Path]:
    """The steps in a run's folder, or the path itself where it is one."""
    if path.is_dir():
        return sorted({*path.glob(f"*{ENDING}"), *path.glob(f"{FOLDER}/*{ENDING}")})
    return [path] if path.name.endswith(ENDING) else []


def _mib(size: float) -> str:
    for unit, bytes_ in (("GiB", 2**30), ("MiB", 2**20)):
        if size >= bytes_:
            return f"{size / bytes_:.1f} {unit}"
    return f"{size / 2**10:.0f} KiB"
