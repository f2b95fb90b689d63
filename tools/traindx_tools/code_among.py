"""Which code files belong to what was given, and what a finding names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from traindx_tools.artifact import Artifact
from traindx_tools.finding import Finding
from traindx_tools.scope.find import calls_training
from traindx_tools.scope.tree import read_text


def code_files(paths: Sequence[str | Path], artifacts: Iterable[Artifact]) -> tuple[Path, ...]:
    """The Python files among the artifacts, and those that lie beside a log that was given by itself.

    Notebooks count where they were given by name, or where no script calls what trains.
    """
    local = [a for a in artifacts if "://" not in a.path]
    named = [Path(a.path) for a in local if a.format == "python"]
    given = {str(p) for p in paths}
    some = not any(calls_training(read_text(p)) for p in named)  # a script may make the data of the notebook beside it
    named += [Path(a.path) for a in local if a.format == "notebook" and (a.path in given or some)]
    logs = [Path(p) for p in paths if str(p) != "-" and "://" not in str(p) and os.path.isfile(p)]
    beside = [p for log in logs if log.suffix != ".py" for p in sorted(log.parent.glob("*.py")) if stays(p)]
    return tuple(dict.fromkeys([*named, *beside]))


def named_code(findings: Sequence[Finding], root: Path) -> tuple[Path, ...]:
    """The Python files below the root that findings of a live process point at: their lines are quoted and audited."""
    files = [root / f.where.file for f in findings if f.where.file is not None and f.where.file.endswith(".py")]
    inside = [f for f in files if f.is_file() and f.resolve().is_relative_to(root)]
    return tuple(dict.fromkeys(inside))


def each_once(files: Sequence[Path]) -> tuple[Path, ...]:
    """Each file under the name that came first: a record names by its whole path what was given as `train.py`."""
    found: dict[str, Path] = {}
    for file in files:
        found.setdefault(os.path.realpath(file), file)
    return tuple(found.values())


def stays(path: Path) -> bool:
    """Whether a file that was not named is one of its folder: a link that leads out is not followed."""
    return path.is_file() and path.resolve().is_relative_to(path.parent.resolve())
