"""Ctrl-C at any moment, readers that went away, and streams that were closed before the start: never a traceback."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

AT_IMPORT = """\
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it

module, sys.argv[1:] = sys.argv[1], sys.argv[2:]

class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Pressed())
from traindx.cli import main
main()
"""

IN_A_DESTRUCTOR = """\
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)

class Pressed:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

from traindx import cli
real = cli._outcome

def outcome(arguments):
    one = Pressed()
    del one
    return real(arguments)

cli._outcome = outcome
cli.main()
"""

AFTER_THE_END = """\
import atexit, os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from traindx.cli import main
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
main()
"""


DURING_A_RUN = """\
import asyncio, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from traindx import experiment_place, rerun
from traindx.cli import main

async def pressed(*given, **named):
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.Event().wait()  # a training that does not end by itself

rerun.supervised = experiment_place.supervised = pressed
main()
"""


def started(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=100,
                          check=False)


@pytest.mark.parametrize(("module", "arguments"), [
    ("click", ["--help"]), ("click.core", ["--help"]), ("traindx.group", ["--help"]), ("traindx_tools", ["--help"]),
    ("traindx_tools.errors", ["explain", "--list"]), ("traindx.commands.explain", ["explain", "--list"]),
    ("numpy", ["log", "nowhere"]), ("traindx.safe_text", ["show", "nowhere"]),
])
def test_pressed_while_modules_are_imported(module: str, arguments: Sequence[str]) -> None:
    done = started(AT_IMPORT, module, *arguments)
    assert (done.returncode, done.stderr.lstrip(), done.stdout) == (130, "traindx: interrupted\n", "")


def test_pressed_where_python_swallows_exceptions() -> None:
    """In a destructor or a callback Python prints the exception and goes on: it is raised again just after."""
    done = started(IN_A_DESTRUCTOR, "explain", "--list")
    assert (done.returncode, done.stderr.lstrip(), done.stdout) == (130, "traindx: interrupted\n", "")


def test_pressed_after_all_is_said() -> None:
    done = started(AFTER_THE_END, "--version")
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
    assert done.stdout.startswith("traindx")


def unread(*words: str, **streams: Any) -> subprocess.CompletedProcess[bytes]:
    """A program whose standard output (or the stream that is named) nobody reads any more."""
    read, write = os.pipe()
    os.close(read)
    try:
        return subprocess.run([sys.executable, *words], cwd=ROOT, timeout=100, check=False,
                              **{k: write if v is None else v for k, v in (streams or {"stdout": None}).items()})
    finally:
        os.close(write)


@pytest.mark.parametrize("script", ["tests/evals/eval_cases.py", "tests/evals/skills/eval_skills.py",
                                    "benchmarks/torch_overhead.py"])
def test_a_script_whose_reader_went_away_says_nothing(script: str) -> None:
    done = unread(script, "--help", stdout=None, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


@pytest.mark.parametrize("arguments", [("nonsense",), ("audit", "nowhere.py"), ("show", "nowhere")])
def test_a_refusal_that_nobody_reads_is_still_a_refusal(arguments: Sequence[str]) -> None:
    done = unread("-m", "traindx", *arguments, stdout=subprocess.PIPE, stderr=None)
    assert (done.returncode, done.stdout) == (2, b"")


CLOSED = "import os, sys\nos.close(int(sys.argv[1]))\nos.execv(sys.executable, [sys.executable, '-m', *sys.argv[2:]])"


@pytest.mark.slow
@pytest.mark.parametrize(("stream", "arguments", "code"), [
    ("0", ("diagnose", "-"), 2), ("0", ("audit", "-"), 0), ("0", ("log", "-"), 2), ("1", ("explain", "L204"), 0),
    ("1", ("audit", "nowhere.py"), 2), ("2", ("audit", "nowhere.py"), 2),
])
def test_a_stream_that_was_closed_before_the_start(stream: str, arguments: Sequence[str], code: int) -> None:
    done = started(CLOSED, stream, "traindx", *arguments)
    assert done.returncode == code, done.stderr
    assert "defect" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("command", "told"), [
    ("diagnose . --run", "nothing was changed, what ran in the copy is gone; the same command starts it again"),
    ("experiment . --change learning-rate:times=0.1 --run", "the same command with --resume goes on"),
])
def test_pressed_while_a_training_runs_in_its_copy(command: str, told: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "numpy-lr", tmp_path / "run")
    done = subprocess.run([sys.executable, "-c", DURING_A_RUN, *command.split(), "python train.py"], timeout=100,
                          capture_output=True, text=True, check=False, cwd=tmp_path / "run")
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.splitlines()[-1].startswith("traindx: interrupted; ")
    assert told in done.stderr
    if command.startswith("diagnose"):
        assert re.search(r"interrupted; after \d+ s, while running ", done.stderr), done.stderr
