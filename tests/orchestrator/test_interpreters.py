"""A command whose Python lacks a package: which Python it was, and which one has it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from traindx.interpreters import lacking, lacking_in

SAID = "ModuleNotFoundError: No module named 'fancynet.layers'"


def environment(folder: Path, package: str) -> Path:
    """What an environment looks like from outside; nothing of it can be run."""
    packages = folder / "lib" / "python3.12" / "site-packages" / package
    packages.mkdir(parents=True)
    python = folder / "bin" / "python"
    python.parent.mkdir()
    python.write_text("")
    return python


@pytest.mark.parametrize("typed", ["python train.py --lr 1", "python3 train.py --lr 1",
                                   "env A=1 python train.py --lr 1", "A=1 python train.py --lr 1",
                                   "nice python train.py --lr 1"])
def test_the_projects_own_environment_has_it(tmp_path: Path, typed: str) -> None:
    python = environment(tmp_path / ".venv", "fancynet")
    told = lacking_in(SAID, typed, tmp_path)
    assert told is not None
    assert told.command == typed.replace("python3", "python").replace("python", str(python))
    assert told.used
    assert str(told).endswith(f"another Python has it: give {told.command}")


def test_that_of_the_shell_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = environment(tmp_path / "elsewhere", "fancynet")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "elsewhere"))
    assert lacking("fancynet", "python train.py", tmp_path).command == f"{python} train.py"


def test_the_python_that_runs_this_is_looked_at(tmp_path: Path) -> None:
    assert lacking("numpy", "python train.py", tmp_path).command == f"{sys.executable} train.py"
    assert lacking("numpy", f"{sys.executable} train.py", tmp_path).command == ""


@pytest.mark.parametrize("typed", ["torchrun train.py", "make train", "", "python 'unclosed", "bash -c 'python x.py'"])
def test_a_command_that_does_not_say_which_python(tmp_path: Path, typed: str) -> None:
    environment(tmp_path / ".venv", "fancynet")
    told = lacking("fancynet.layers", typed, tmp_path)
    assert (told.used, told.command) == ("", "")
    assert str(told) == "the package fancynet is not installed where the command runs: pip install fancynet"


def test_an_environment_without_it_is_not_offered(tmp_path: Path) -> None:
    environment(tmp_path / ".venv", "othernet")
    assert lacking("fancynet", "python train.py", tmp_path).command == ""
    assert str(lacking("sklearn", "torchrun x.py", tmp_path)).endswith("pip install scikit-learn")


def test_a_module_of_the_project_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "fancynet.py").write_text("")
    assert lacking_in(SAID, "python train.py", tmp_path) is None
    assert lacking_in("ValueError: no module here", "python train.py", tmp_path) is None
