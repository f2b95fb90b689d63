"""What the configuration beside a checkpoint plans: steps of the whole training, and small batches of one step.

Read as text, line by line, so that JSON, YAML and TOML are one: a key, a mark and a whole number.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from traindx_tools.on_weights.checkpoint import Checkpoint

_STEPS = re.compile(r"(?i)^(?:max|total|optimizer|(?:max_|num_|total_)?train(?:ing)?)_?"
                    r"(?:optim\w*_)?(?:steps?|iters|iterations|updates)$|^num_iterations$|^num_updates$")
"""`steps` and `n_steps` alone are as often those of a sampler or of a rollout."""
_WARMUP = re.compile(r"(?i)^(?:num_|lr_)?warm_?up(?:_?(?:steps?|iters|iterations|updates))?$")
_ACCUMULATED = re.compile(r"(?i)^(?:grad\w*_)?accum\w*$")
_SETTING = re.compile(r"""["']?([A-Za-z_][\w\-]*)["']?\s*[:=]\s*["']?(\d[\d_]*)(?![\d.eE])""")
_SUFFIXES = frozenset({".json", ".yaml", ".yml", ".toml"})
_MOST_FILES, _MOST_BYTES = 20, 2**18


@dataclass(frozen=True)
class Planned:
    """`steps`: the fewest that are planned; `file`: which file says so. `accumulated`: batches of a step; `warmups`:
    steps of a warm-up."""

    steps: int
    file: str
    accumulated: frozenset[int]
    warmups: frozenset[int] = frozenset()


def planned_steps(checkpoint: Checkpoint) -> Planned | None:
    """Of the files beside the checkpoint and in the folder above, and of what it holds itself; None without any."""
    told = [(k.rpartition(".")[2], v, os.path.basename(checkpoint.path)) for k, v in checkpoint.values.items()
            if isinstance(v, int) and not isinstance(v, bool)]
    told += list(_settings(Path(checkpoint.path)))
    steps = [(v, file) for key, v, file in told if v > 0 and _STEPS.match(key.replace("-", "_"))]
    if not steps:
        return None
    fewest = min(steps)
    accumulated, warmups = (frozenset(v for key, v, _ in told if pattern.match(key.replace("-", "_")))
                            for pattern in (_ACCUMULATED, _WARMUP))
    return Planned(*fewest, accumulated, warmups)


def _settings(path: Path) -> Iterator[tuple[str, int, str]]:
    home = path.parent
    for folder in (path, home, home.parent) if path.is_dir() else (home, home.parent):
        for file in _configurations(folder):
            try:
                text = file.read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            for key, number in _SETTING.findall(text):
                yield key, int(number.replace("_", "")[:15] or 0), file.name


def _configurations(folder: Path) -> list[Path]:
    try:
        files = sorted(f for f in folder.iterdir() if f.suffix in _SUFFIXES and f.is_file()
                       and f.stat().st_size <= _MOST_BYTES and not f.name.endswith(".index.json"))
    except OSError:
        return []
    return files[:_MOST_FILES]
