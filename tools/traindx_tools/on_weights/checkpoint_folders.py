"""Folders that are one checkpoint: of orbax, of torch.distributed.checkpoint, of files of the ranks of a run, and of
arrays in files of their own that are called as parameters."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

_RANK = re.compile(r"(?i)(?<![a-z])(?:dp|tp|pp|mp|zero|fsdp|ep)?_?rank[_\-=]?\d+")
"""How the number of a rank stands in the name of its file."""
FEWEST = 2
_STATE = r"(?:master|param|fp32|exp_avg|exp_avg_sq|max_exp_avg_sq|momentum\w*|mu|nu|m|v|step)"
_PARAMETER = re.compile(
    r"(?:^|[./]|__)\w+(?:[./]|__)(weights?|bias|kernel|scale|embedding|gamma|beta|running_\w+|num_batches_tracked)"
    rf"((?:[./]|__){_STATE})?$|[./](exp_avg(?:_sq)?)$|^(exp_avg(?:_sq)?|opt_state|optimizer)[./]")
"""How an array that belongs to a model or to its optimizer is called: a module and a parameter, or a moment of one."""
_ARRAYS, _SHARE = 6, 0.8


def without_rank(name: str) -> str:
    """A file's name with `*` for the rank, the name itself where it has none."""
    return _RANK.sub(lambda m: re.sub(r"\d+", "*", m[0]), name)


def array_folders(paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The folders of npy files of which most are called as the parameters of a model, each with its npy files."""
    by_folder: dict[str, list[str]] = {}
    for path in paths:
        if path.endswith(".npy") and "://" not in path:
            by_folder.setdefault(os.path.dirname(path) or ".", []).append(path)
    return {f: tuple(files) for f, files in by_folder.items() if _of_model([os.path.basename(n) for n in files])}


def _of_model(names: Sequence[str]) -> bool:
    """Whether so many files are called as parameters, and as more than one kind of them: `mouse.1.weight` is data."""
    found = [m for n in names if (m := _PARAMETER.search(n.removesuffix(".npy"))) is not None]
    kinds = {m.groups() for m in found}
    return len(names) >= _ARRAYS and len(found) >= _SHARE * len(names) and len(kinds) > 1


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
    return array_folders(f for files in by_folder.values() for f in files) | found
