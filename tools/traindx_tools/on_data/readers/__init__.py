"""One file a format.

Which reader a file belongs to is told by its first bytes, and by its name where those do not say.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.stated import stated_of
from traindx_tools.on_data.shard import Shard

Reader = Callable[[Path, str, Bounds], tuple[Shard, ...]]

_LOADED = {
    "npy": ("numpy_files", "read_npy"),
    "npz": ("numpy_files", "read_npz"),
    "pt": ("torch_zip", "read_torch"),
    "tar": ("tars", "read_tar"),
    "parquet": ("columnar", "read_parquet"),
    "arrow": ("columnar", "read_arrow"),
    "hdf5": ("hdf5", "read_hdf5"),
    "json lines": ("json_lines", "read_json_lines"),
    "json": ("json_lines", "read_json"),
    "csv": ("plain_delimited", "read_table"),
    "tokens": ("tokens", "read_tokens"),
    "tfrecord": ("tfrecord", "read_tfrecord"),
    "mds": ("mds", "read_mds"),
    "fasta": ("fasta", "read_fasta"),
}
_SUFFIXES = {
    ".jsonl": "json lines",
    ".ndjson": "json lines",
    ".json": "json",
    ".geojson": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".bin": "tokens",
    ".tar": "tar",
    ".npy": "npy",
    ".npz": "npz",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".mds": "mds",
    ".tfrecord": "tfrecord",
    ".tfrecords": "tfrecord",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".fa": "fasta",
    ".fasta": "fasta",
    ".fna": "fasta",
    ".faa": "fasta",
    ".fq": "fasta",
    ".fastq": "fasta",
}
_TFRECORD = re.compile(r"\.tfrecords?(?:-\d+-of-\d+)?(?:\.gz)?$", re.IGNORECASE)
"""Names of TFRecord files, those of a numbered series as well; their first bytes say nothing."""

FORMATS = (
    "npz, npy, pt (plain tensors), parquet, arrow, JSON lines, GeoJSON, CSV, FASTA and FASTQ, tar (WebDataset), "
    "TFRecord, MDS, HDF5, .bin of tokens, folders of pictures or wave files"
)


def format_of(path: Path) -> str | None:
    """The name of the reader that a file belongs to, None for a file of no format that holds data. Raises OSError."""
    with path.open("rb") as stream:
        head = stream.read(600)
    suffixes = [s.lower() for s in path.suffixes]
    last = suffixes[-1] if suffixes else ""
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if head.startswith(b"PK\x03\x04"):
        return "pt" if last in (".pt", ".pth") else "npz" if last == ".npz" or b".npy" in head[:200] else None
    if _TFRECORD.search(path.name):
        return "tfrecord"
    if head.startswith(b"\x89HDF\r\n"):
        return "hdf5"
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1") or last == ".arrow":
        return "arrow"
    if head[257:262] == b"ustar":
        return "tar"
    if head.startswith(b"\x1f\x8b"):
        inner = suffixes[-2] if len(suffixes) > 1 else ""
        return (
            "tar"
            if inner == ".tar" or last == ".tgz"
            else _SUFFIXES.get(inner)
            if inner in (".jsonl", ".csv") or _SUFFIXES.get(inner) == "fasta"
            else None
        )
    if head.startswith((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")) and last == ".bin":
        return None
    return _SUFFIXES.get(last)


def read_file(path: Path, name: str, form: str, bounds: Bounds) -> tuple[Shard, ...]:
    """The shards of a file. Raises UnreadableInput (with "refused" where it would be unsafe), MissingExtra."""
    import importlib

    module, function = _LOADED[form]
    reader: Reader = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    try:
        found = reader(path, name, bounds)
        stated = stated_of(path, form)
        return tuple(replace(s, stated=stated) for s in found) if stated else found
    except OSError as error:
        raise UnreadableInput(f"cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise UnreadableInput("refused: it would need more memory than there is") from None
