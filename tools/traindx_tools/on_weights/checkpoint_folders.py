"""Folders that are one checkpoint: of orbax, of torch.distributed.checkpoint, and of files of the ranks of a run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

_RANK = re.compile(r"(?i)(?<![a-z])(?:dp|tp|pp|mp|zero|fsdp|ep)?_?rank[_\-=]?\d+")
"""How the number of a rank stands in the name of its file."""
FEWEST = 2


def without_rank(name: str) -> str:
    """A file's name with `*` for the rank, the name itself where it has none."""
    return _RANK.sub(lambda m: re.sub(r"\d+", "*", m[0]), name)


def folders_of(paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The folders that are one checkpoint by the files in them, each with its files."""
    by_folder: dict[str, list[str]] = {}
    for path in paths:
        if "://" not in path and path != "-":
            by_folder.setdefault(os.path.dirname(path) or ".", []).append(path)
    found: dict[str, tuple[str, ...]] = {}
    for folder, files in by_folder.items():
        names = [os.path.basename(f) for f in files]
        patterns = [without_rank(n) for n in names if n.endswith((".pt", ".pth", ".bin", ".safetensors", ".ckpt"))]
        of_ranks = any("*" in p and patterns.count(p) >= FEWEST for p in patterns)
        if "_METADATA" in names or any(n.endswith(".distcp") for n in names):
            above = os.path.dirname(folder)  # orbax keeps the arrays of an item in a folder of its own
            home = above if os.path.basename(folder) in ("default", "state", "params") and above else folder
            found[home] = tuple(files)
        elif of_ranks and ".index.json" not in " ".join(names):
            found[folder] = tuple(files)
    return found
