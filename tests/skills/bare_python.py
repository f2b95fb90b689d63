"""Runs a script with the standard library and numpy, and nothing else of this environment."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy


def bare_folder(folder: Path, *, with_numpy: bool = True) -> Path:
    """A folder of packages that holds links to numpy alone (and to the TOML reader that Python 3.10 lacks)."""
    folder.mkdir(parents=True, exist_ok=True)
    site = Path(numpy.__file__).resolve().parent.parent
    names = ["numpy", "numpy.libs"] if with_numpy else []
    names += ["tomli"] if with_numpy and sys.version_info < (3, 11) else []
    for name in names:
        if (site / name).exists():
            (folder / name).symlink_to(site / name)
    return folder


def run_bare(packages: Path, script: Path, *arguments: str, cwd: Path,
             stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs the script isolated (-I -S): no site-packages, no environment variables of Python, no traindx on PATH."""
    code = ("import runpy, sys; sys.path.append(sys.argv[1]); sys.argv = sys.argv[2:]; "
            "runpy.run_path(sys.argv[0], run_name='__main__')")
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(packages), str(script), *arguments],
        cwd=cwd, input=stdin, capture_output=True, text=True, timeout=100, check=False,
        env={"PATH": "/nonexistent", "HOME": str(cwd), "OMP_NUM_THREADS": "1", "LANG": "C.UTF-8"},
    )


def copy_dereferenced(skill: Path, to: Path) -> Path:
    """What `npx skills add --copy` leaves: links become real files."""
    shutil.copytree(skill, to, symlinks=False, ignore=shutil.ignore_patterns("__pycache__"))
    return to
