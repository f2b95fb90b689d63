"""The base install is enough for what needs no framework: what extras bring is as if absent here."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

EXTRAS = """
import re
from importlib import metadata

def needed(name, seen):
    if name in seen:
        return seen
    seen.add(name)
    for line in metadata.distribution(name).requires or []:
        requirement, _, marker = line.partition(";")
        if not marker:
            needed(re.match(r"[\\w.-]+", requirement)[0].lower().replace("_", "-"), seen)
    return seen

base = needed("traindx", set())
print({module for module, owners in metadata.packages_distributions().items()
       if not base & {o.lower().replace("_", "-") for o in owners}})
"""
ONLY_THE_BASE = """
import importlib.machinery, sys

class Base(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in extra else super().find_spec(name, path, target)

sys.meta_path[:] = [Base if f is importlib.machinery.PathFinder else f for f in sys.meta_path]
"""


@cache
def extras() -> str:
    """The modules that the base install does not bring, as a set: it takes longer to find than most programs here."""
    told = subprocess.run([sys.executable, "-c", EXTRAS], capture_output=True, text=True, timeout=100, check=True)
    return told.stdout.strip()


def under_base(program: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    only = f"extra = {extras()}\n{ONLY_THE_BASE}{program}"
    return subprocess.run([sys.executable, "-c", only, *arguments], capture_output=True, text=True, cwd=cwd,
                          timeout=100, check=False)


def test_extras_are_refused(tmp_path: Path) -> None:
    made = under_base("import torch", cwd=tmp_path)
    assert made.returncode == 1
    assert "No module named 'torch'" in made.stderr


def test_all_rules_and_modes_load_without_a_framework(tmp_path: Path) -> None:
    made = under_base("from traindx_tools.rules import all_rules\n"
                      "from traindx_tools.catalog.catalog import load_catalog\n"
                      "print(len(all_rules()) > 100, len(load_catalog()) > 100)\n", cwd=tmp_path)
    assert (made.returncode, made.stdout.split()) == (0, ["True", "True"]), made.stderr


@pytest.mark.parametrize("words", [["--version"], ["doctor"], ["diagnose", "train.log"], ["run", "--help"],
                                   ["experiment", "--list"]])
def test_commands_work_without_a_framework(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("".join(f"step {n} loss {2.0 / (n + 1):.4f}\n" for n in range(60)))
    made = under_base("from traindx.cli import main\nmain()\n", *words, cwd=tmp_path)
    assert made.returncode == 0, made.stdout + made.stderr
    assert "defect of traindx" not in made.stdout + made.stderr
