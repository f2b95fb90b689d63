"""A process that is killed takes its runs with it, and the next one removes what it left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from traindx.abandoned import MADE_SECONDS, MARK, SUPERVISOR, in_use, remove_abandoned, remove_halves
from traindx.experiment_place import ProtectedPlace
from traindx_tools.experiments.place import Prepared

TRAIN = ("import sys, time\n"
         "print('started', flush=True)\n"
         "for step in range(1200 if len(sys.argv) > 1 else 1):\n"
         "    time.sleep(0.05)\n")
DRIVER = """import sys
from pathlib import Path
from traindx.experiment_place import ProtectedPlace
from traindx_tools.experiments.place import Prepared

place = ProtectedPlace(Path(sys.argv[1]), Path(sys.argv[2]))
place.run(Prepared(f"{sys.executable} train.py {sys.argv[3]}"), lambda trace: False, seconds=60)
"""
SECONDS = 60.0


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def processes(marker: str) -> list[str]:
    """Command lines of living processes with this word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if marker.encode() in b" ".join(words).split():
            found.append(b" ".join(words).decode())
    return found


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """The place of a run whose process was killed in the middle of it, and a word in the run's command."""
    work, marker = tmp_path / "work", f"marker-{os.getpid()}-{time.monotonic_ns()}"
    work.mkdir()
    (work / "train.py").write_text(TRAIN)
    scratch = tmp_path / "copies"
    one = subprocess.Popen([sys.executable, "-c", DRIVER, str(work), str(scratch), marker])
    try:
        until(lambda: any(b"started" in p.read_bytes() for p in scratch.glob("run-*/output.log")), "the run starts")
        assert len(processes(marker)) > 1
        one.send_signal(signal.SIGKILL)
        one.wait()
        yield scratch, marker
    finally:
        one.kill()
        one.wait()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks at /proc")
def test_a_run_ends_with_the_process_that_was_killed_and_its_copy_goes_at_the_next_start(
        killed: tuple[Path, str], tmp_path: Path) -> None:
    scratch, marker = killed
    (left,) = scratch.iterdir()
    assert (left / "copy" / "train.py").exists()
    until(lambda: not processes(marker), "the run ends with its parent, long before its limit")
    trace = ProtectedPlace(tmp_path / "work", scratch).run(Prepared(f"{sys.executable} train.py"), lambda _: False,
                                                           seconds=SECONDS)
    assert trace.exit_code == 0
    assert not left.exists()
    assert [p.name for p in scratch.iterdir()] == [trace.folder.name]
    assert not (trace.folder / "copy").exists()
    assert not (trace.folder / MARK).exists(), "what ended in order stays"


def dead(folder: Path) -> None:
    """A folder as a killed process leaves it."""
    folder.mkdir(parents=True)
    (folder / MARK).write_text("")


def test_only_what_was_marked_and_is_held_by_nobody_goes(tmp_path: Path) -> None:
    dead(tmp_path / "run-dead")
    (tmp_path / "run-ended").mkdir()
    dead(tmp_path / "elsewhere" / "run-x")
    (tmp_path / "run-link").symlink_to(tmp_path / "elsewhere" / "run-x")
    dead(tmp_path / "other")
    (tmp_path / "run-lives").mkdir()
    with in_use(tmp_path / "run-lives"):
        assert remove_abandoned(tmp_path, "run-*") == (tmp_path / "run-dead",)
        assert (tmp_path / "run-lives" / MARK).exists()
    assert not (tmp_path / "run-lives" / MARK).exists()
    assert remove_abandoned(tmp_path, "run-*") == ()
    assert (tmp_path / "elsewhere" / "run-x").exists()
    assert (tmp_path / "other").exists()


def test_a_mark_that_is_a_link_removes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "run-1").mkdir()
    (tmp_path / "run-1" / MARK).symlink_to(tmp_path / "file")
    assert remove_abandoned(tmp_path, "run-*") == ()


@pytest.mark.parametrize("below", [".", "run1", "rerun/run1"])
def test_a_folder_whose_run_goes_on_stays(tmp_path: Path, below: str) -> None:
    import fcntl

    dead(tmp_path / "run-1")
    (tmp_path / "run-1" / below).mkdir(parents=True, exist_ok=True)
    with (tmp_path / "run-1" / below / SUPERVISOR).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert remove_abandoned(tmp_path, "run-*", wait=0.0) == ()
    assert remove_abandoned(tmp_path, "run-*", wait=0.0) == (tmp_path / "run-1",)


def test_a_supervisor_whose_parent_is_another_one_cancels_at_once(tmp_path: Path) -> None:
    from traindx import supervise

    stop = supervise._Stop
    assert not stop.now()
    try:
        stop.parent = os.getppid()
        assert not stop.now()
        stop.parent = os.getpid()
        assert stop.now()
    finally:
        stop.parent = None


def test_what_a_kill_left_unmarked_goes_when_it_is_old_and_empty(tmp_path: Path) -> None:
    old, young, full = tmp_path / "run-old", tmp_path / "run-young", tmp_path / "run-full"
    for folder in (old, young, full):
        folder.mkdir()
    (full / "output.log").write_text("x")
    half, whole = full / ".traindx-abc.part", full / ".traindx-abd.part"
    half.write_text("{")
    whole.write_text("{")
    before = time.time() - 2 * MADE_SECONDS
    for path in (half, old, full):
        os.utime(path, (before, before))
    assert remove_abandoned(tmp_path, "run-*") == (old,)
    remove_halves(full)
    assert sorted(p.name for p in tmp_path.rglob("*")) == [".traindx-abd.part", "output.log", "run-full", "run-young"]
