"""What an agent has in each arm of the hard kind: a shell without traindx, and in the arm "with" the skills besides.

Both arms have the same interpreter: everything of this one (torch, jax, numpy), but neither `traindx` nor
`traindx_tools`, and no `traindx` on PATH. The skills lie where `npx skills add` leaves them in a project, with their
scripts, their pages and the archive of the instruments: nothing else of the pack.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from skill_cases import ROOT

RUNNER = ROOT / "tools" / "hooks" / "protected.py"
LANDS = Path(".claude") / "skills"
"""Where a host finds the skills of a project."""
SECONDS, SHOWN = 120.0, 6_000
_OURS = re.compile(r"(__editable__.*)?traindx", re.IGNORECASE)
"""A package of ours, or what pip knows of it. Files that put further folders on the path are left out as well."""
_TAKEN_AWAY = re.compile(r"PYTHON|VIRTUAL_ENV|TRAINDX_")


def interpreter(folder: Path) -> Path:
    """Makes a virtual environment with all packages of this Python but ours; returns the folder of its programs."""
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(folder)], check=True, capture_output=True,
                   timeout=SECONDS)
    packages = next(folder.glob("lib/python*/site-packages"))
    for there in (Path(p) for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages")):
        for entry in sorted(there.iterdir()):
            place = packages / entry.name
            if not _OURS.match(entry.name) and entry.suffix != ".pth" and not os.path.lexists(place):
                place.symlink_to(entry)
    return folder / "bin"


def land_skills(project: Path) -> Path:
    """Copies the skills into a project as an installer does; returns their folder."""
    return Path(shutil.copytree(ROOT / "skills", project / LANDS, ignore=shutil.ignore_patterns("__pycache__")))


def loaded(name: str, text: str, folder: Path) -> str:
    """The skill as a host loads it: where it lies, and its text."""
    return f"<skill name=\"{name}\">\nBase directory for this skill: {folder / name}\n\n{text}\n</skill>"


def environment(programs: Path, runs: Path, given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of a command: no folder of PATH holds a `traindx`, and nothing leads Python to our sources."""
    path = [str(programs), *_without_traindx(given.get("PATH", os.defpath).split(os.pathsep))]
    kept = {k: v for k, v in given.items() if not _TAKEN_AWAY.match(k)}
    return {**kept, "PATH": os.pathsep.join(path), "TRAINDX_RUNS": str(runs), "PYTHONDONTWRITEBYTECODE": "1"}


def _without_traindx(folders: list[str]) -> Iterator[str]:
    for folder in folders:
        if folder and not any(os.path.exists(os.path.join(folder, name)) for name in ("traindx", "traindx.exe")):
            yield folder


def shell(work: Path, programs: Path) -> Callable[[str], str]:
    """Runs a command in a copy of this project, by the protected runner."""
    variables = environment(programs, work.parent / "runs")

    def run(command: str) -> str:
        words = [sys.executable, str(RUNNER), "--copy", "--workspace", str(work), "--shell", command]
        try:
            done = subprocess.run(words, cwd=work, env=variables, capture_output=True, text=True, errors="replace",
                                  timeout=SECONDS, check=False, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return f"ended after {SECONDS:g} s"
        return f"{done.stdout}{done.stderr}"[:SHOWN] or f"exit code {done.returncode}"

    return run
