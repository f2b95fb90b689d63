"""The runner that lets code run while the kernel keeps the project as it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).resolve().parents[3] / "tools" / "hooks" / "protected.py"
UNPROTECTED = 75


def run(work: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(RUNNER), *arguments], cwd=work, capture_output=True, text=True,
                          timeout=60,
                          check=False, env={"PATH": os.environ["PATH"], "HOME": str(work.parent)})


@pytest.fixture
def kept(work: Path) -> Path:
    if run(work, "--", "true").returncode == UNPROTECTED:
        pytest.skip("this kernel has no Landlock: nothing is run, which another test checks")
    return work


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file() and "probes" not in p.parts}


ATTACKS = ["echo x > train.py", "echo x >> train.py", "rm train.py", "mv train.py scratch/debug/probes/",
           "touch new.py",
           "ln train.py scratch/debug/probes/hard && echo x > scratch/debug/probes/hard", "mkdir new", "rm -rf .",
           "ln -s ../../../train.py scratch/debug/probes/soft && echo x > scratch/debug/probes/soft",
           "python3 -c \"open('train.py', 'w').write('x')\"", "python3 -c \"import os; os.truncate('train.py', 0)\"",
           "git init -q . || true", "echo x > ../outside.txt", "sed -i s/EPS/X/ train.py", "echo x > scratch/debug/x",
           "(sleep 0.1; echo x > train.py) & wait", "cp train.py ~/copy.py", "mkfifo pipe", "truncate -s 0 train.py"]


@pytest.mark.parametrize("attack", ATTACKS)
def test_whatever_is_run_the_project_stays(kept: Path, attack: str) -> None:
    (kept.parent / "outside.txt").write_text("not yours")
    before = contents(kept.parent)
    run(kept, "--", "sh", "-c", attack)
    assert contents(kept.parent) == before


def test_diagnostics_may_be_written_and_temporary_files_work(kept: Path) -> None:
    done = run(kept, "--", "sh", "-c", "echo 1 > scratch/debug/probes/out.txt; echo x > /dev/null; python3 -c "
               "'import tempfile; print(tempfile.mkdtemp())'")
    assert done.returncode == 0, done.stderr
    assert (kept / "scratch" / "debug" / "probes" / "out.txt").read_text() == "1\n"
    assert str(kept / "scratch" / "debug" / "probes") in done.stdout
    assert (kept / "scratch" / "debug" / ".gitignore").read_text() == "*\n"


def test_the_exit_code_and_the_arguments_are_the_commands_own(kept: Path) -> None:
    done = run(kept, sys.executable, "-c", "import sys; print(sys.argv[1:]); sys.exit(7)", "--copy", "a b")
    assert done.returncode == 7
    assert done.stdout.strip() == "['--copy', 'a b']"
    assert run(kept, "--", "no-such-program").returncode == 127


def test_a_copy_may_be_changed_and_large_files_are_linked_not_copied(kept: Path) -> None:
    with (kept / "data.bin").open("wb") as file:
        file.truncate(33 * 2**20)
    done = run(kept, "--copy", "--", "sh", "-c", "echo x > train.py; cat train.py; echo y > data.bin; pwd")
    assert "x\n" in done.stdout
    assert "copy-1" in done.stdout
    assert "EPS" in (kept / "train.py").read_text()
    assert (kept / "data.bin").stat().st_size == 33 * 2**20
    assert "copy-2" in run(kept, "--copy", "--", "pwd").stdout


def test_caches_of_libraries_may_be_filled_but_not_where_they_hold_the_project(kept: Path) -> None:
    cache = kept.parent / ".cache"
    cache.mkdir()
    assert run(kept, "--", "sh", "-c", "echo x > ~/.cache/lock").returncode == 0
    assert (cache / "lock").exists()
    inner = cache / "project"
    shutil.copytree(kept, inner, ignore=shutil.ignore_patterns("scratch"))
    code = ["sh", "-c", f"echo x > {inner}/train.py"]
    env = {"PATH": os.environ["PATH"], "HOME": str(kept.parent), "HF_HOME": str(inner)}
    done = subprocess.run([sys.executable, str(RUNNER), "--", *code], cwd=inner, env=env, check=False, timeout=60,
                          capture_output=True)
    assert done.returncode != 0
    assert "EPS" in (inner / "train.py").read_text()


def test_a_link_in_place_of_the_folder_is_refused(kept: Path) -> None:
    shutil.rmtree(kept / "scratch")
    (kept / "scratch").symlink_to(kept.parent)
    done = run(kept, "--", "true")
    assert done.returncode == UNPROTECTED
    assert "leads to" in done.stderr
    assert not (kept.parent / "debug").exists()


def test_without_landlock_nothing_is_run(work: Path) -> None:
    code = ("import runpy, sys; sys.platform = 'darwin'; sys.argv = sys.argv[1:]; "
            "runpy.run_path(sys.argv[0], run_name='__main__')")
    done = subprocess.run([sys.executable, "-c", code, str(RUNNER), "--", "sh", "-c", "echo x > train.py"], cwd=work,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == UNPROTECTED
    assert '"allow runs"' in done.stderr
    assert "EPS" in (work / "train.py").read_text()


@pytest.mark.parametrize("arguments", [[], ["--"], ["--copy"], ["--unknown", "ls"]])
def test_bad_usage_is_said(work: Path, arguments: list[str]) -> None:
    done = run(work, *arguments)
    assert done.returncode == 2
    assert "protected.py [--copy]" in done.stderr
