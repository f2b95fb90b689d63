"""Caches of libraries: what is there can be read, what is new goes to a private folder.

The real caches hold programs (virtual environments, hard links into them), so they are not written. Libraries lock and
fill their caches also when they only read; each is sent to a private folder that links to the real entries.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress

ENTRIES_AT_MOST = 2_000
"""Of one folder; a larger cache is read where it is and cannot be filled."""

LINKED: tuple[tuple[str, str, str], ...] = (
    ("XDG_CACHE_HOME", "$HOME_CACHE", "xdg"),
    ("HF_HOME", "$HF_HOME", "huggingface"),
    ("HF_HUB_CACHE", "$HF_HOME/hub", "hf-hub"),
    ("HF_DATASETS_CACHE", "$HF_HOME/datasets", "hf-datasets"),
    ("TORCH_HOME", "$HOME_CACHE/torch", "torch"),
    ("KERAS_HOME", "~/.keras", "keras"),
)
"""Variable, the default, the private folder: entries of the real one are linked."""

FRESH: tuple[tuple[str, str], ...] = (
    ("TRITON_CACHE_DIR", "triton"), ("TORCHINDUCTOR_CACHE_DIR", "inductor"), ("TORCH_EXTENSIONS_DIR", "extensions"),
    ("CUPY_CACHE_DIR", "cupy"), ("NUMBA_CACHE_DIR", "numba"), ("MPLCONFIGDIR", "matplotlib"),
    ("UV_CACHE_DIR", "uv"), ("POETRY_CACHE_DIR", "poetry"), ("PIP_CACHE_DIR", "pip"), ("WANDB_DIR", "wandb"),
    ("WANDB_CACHE_DIR", "wandb-cache"), ("WANDB_CONFIG_DIR", "wandb-config"), ("IPYTHONDIR", "ipython"))
"""Caches that are filled anew: compiled code, packages, settings."""
CUDA = "CUDA_CACHE_PATH"
"""Named where CUDA has a cache alone: who asks for variables with CUDA in their name wants to see the person's."""


def cache_variables(private: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that send each library's cache to its private folder."""
    made = {variable: _folder(private, name) for variable, name in FRESH}
    if os.path.isdir(os.path.expanduser("~/.nv")) or CUDA in environment:
        made[CUDA] = _folder(private, "nv")
    home = environment.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    hf_home = environment.get("HF_HOME") or os.path.join(home, "huggingface")
    for variable, default, name in LINKED:
        usual = default.replace("$HF_HOME", hf_home).replace("$HOME_CACHE", home)
        real = environment.get(variable) or os.path.expanduser(usual)
        folder = _folder(private, name)
        if _link_entries(os.path.realpath(real), folder):
            made[variable] = folder
    return made


def _folder(private: str, name: str) -> str:
    path = os.path.join(private, name)
    os.makedirs(path, exist_ok=True)
    return path


def _link_entries(real: str, folder: str) -> bool:
    """Link every entry of the real cache; False where there are too many."""
    entries = list(_entries(real))
    if len(entries) > ENTRIES_AT_MOST:
        return False
    for name in entries:
        with suppress(FileExistsError):  # of an earlier run, or of one that begins at the same time
            os.symlink(os.path.join(real, name), os.path.join(folder, name))
    return True


def _entries(real: str) -> Iterator[str]:
    try:
        with os.scandir(real) as found:
            yield from (e.name for e in found if not e.name.endswith(".lock") and e.name != ".locks")
    except OSError:
        return
