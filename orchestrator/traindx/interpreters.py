"""A package that the command's Python lacks, and which Python of this machine has it.

Nothing is run for it: folders of packages are looked at. Who types `python` in a shell where the project's environment
is not active gets another Python than the training has, and that is told with the command that works.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

INSTALLED_AS = {"cv2": "opencv-python", "PIL": "pillow", "sklearn": "scikit-learn", "yaml": "pyyaml",
                "skimage": "scikit-image", "bs4": "beautifulsoup4", "git": "gitpython", "dateutil": "python-dateutil",
                "google.protobuf": "protobuf", "pytorch_lightning": "pytorch-lightning", "attr": "attrs"}
"""Packages whose name in the package index is another than the one that is imported."""

ENVIRONMENTS = (".venv", "venv", "env", ".env")
"""Folders of a project that hold its environment by custom."""

ABSENT = re.compile(r"No module named ['\"]?([\w.]+)")
"""What Python says of a module that it does not find."""

_PYTHON = re.compile(r"python[\d.]*(?:\.exe)?$")
_ASSIGNED = re.compile(r"\w+=")


@dataclass(frozen=True)
class Lacking:
    """A top-level package that is not installed where a command runs.

    `used`: the Python that the command starts, "" where that is not seen from it; `command`: the same command with a
    Python that has the package, "" where none was found.
    """

    module: str
    used: str
    command: str

    def __str__(self) -> str:
        package = INSTALLED_AS.get(self.module) or INSTALLED_AS.get(top := self.module.split(".")[0]) or top
        where = f"in {self.used}, which the command starts" if self.used else "where the command runs"
        told = f"the package {self.module.split('.')[0]} is not installed {where}"
        other = f", another Python has it: give {self.command}"
        return f"{told}{other if self.command else f': pip install {package}'}"


def lacking(module: str, command: str, workspace: Path) -> Lacking:
    """What is to say of a module that a command could not import. `module`: dotted, as the error names it."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    at = _python_in(words)
    if at is None:
        return Lacking(module, "", "")
    used = shutil.which(str(workspace / words[at]) if os.sep in words[at] else words[at]) or words[at]
    found = next((p for p in _pythons(workspace) if _has(p, module) and not _same(p, used)), None)
    other = shlex.join([*words[:at], str(found), *words[at + 1:]]) if found is not None else ""
    return Lacking(module, used, other)


def lacking_in(said: str, command: str, workspace: Path) -> Lacking | None:
    """The package whose absence an error tells of; None where it is another error, or the module is the project's."""
    absent = ABSENT.search(said)
    return None if absent is None or in_project(absent[1], workspace) else lacking(absent[1], command, workspace)


def in_project(module: str, workspace: Path) -> bool:
    """Whether a module of this name lies in the project."""
    top = module.split(".")[0]
    return any(any((folder / top).glob("*.py")) or (folder / f"{top}.py").is_file()
               for folder in (workspace, workspace / "src"))


def _python_in(words: list[str]) -> int | None:
    """Where a command says which Python it starts: its first word, after `env` and assignments."""
    for i, word in enumerate(words):
        if _PYTHON.search(os.path.basename(word)):
            return i
        if os.path.basename(word) not in ("env", "nice", "time") and not _ASSIGNED.match(word):
            return None
    return None


def _pythons(workspace: Path) -> Iterator[Path]:
    """Those of the project, of the shell, and the one that runs this."""
    folders = [workspace / name for name in ENVIRONMENTS]
    folders += [Path(os.environ[name]) for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if os.environ.get(name)]
    for folder in folders:
        yield from (p for p in (folder / "bin" / "python", folder / "Scripts" / "python.exe") if p.is_file())
    yield Path(sys.executable)


def _has(python: Path, module: str) -> bool:
    """Whether the package lies in a folder of packages beside this Python."""
    top = module.split(".")[0]
    prefix = python.parent.parent
    if python == Path(sys.executable):
        places = [Path(p) for p in sys.path if p]
    else:
        places = [*prefix.glob("lib/python3*/site-packages"), prefix / "Lib" / "site-packages"]
    return any((p / top).is_dir() or (p / f"{top}.py").is_file() or any(p.glob(f"{top}.*.so")) for p in places)


def _same(python: Path, used: str) -> bool:
    return os.path.abspath(python) == os.path.abspath(used)
