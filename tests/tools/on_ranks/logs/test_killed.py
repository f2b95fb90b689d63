"""kill -9 of a program that reads with a pool: its workers end with it; a file that kills one costs itself."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from traindx_tools.on_ranks.logs import mapping

LONG = 20.0
"""Seconds within which a worker has noticed."""
PARENT = """\
import sys, threading, time
from traindx_tools.on_ranks.logs import mapping

def wait(item):
    return item

if __name__ == "__main__":
    if sys.argv[1] == "server":
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    with mapping.pool_of(2) as pool:
        list(pool.map(wait, range(8)))
        print("ready", flush=True)
        time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="how processes start there")
@pytest.mark.parametrize("start", ["fork", pytest.param("server", marks=pytest.mark.slow)])
def test_idle_workers_end_with_a_killed_parent(tmp_path: Path, start: str) -> None:
    """The workers hold the standard output of their parent: it ends when the last of them has."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    command = [sys.executable, str(script), start]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout is not None
        try:
            assert parent.stdout.readline() == b"ready\n"
            parent.kill()
            ended, _, _ = select.select([parent.stdout], [], [], LONG)
            assert ended
            assert parent.stdout.read() == b""
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGKILL)


def _fatal(item: int) -> int:
    if item == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def test_a_file_that_kills_its_worker_costs_that_file_only() -> None:
    told = list(mapping.over(_fatal, range(8), lambda item, why: -item, workers=2))
    assert told == [0, 1, 2, -3, 4, 5, 6, 7]


def test_a_pool_whose_parent_lives_does_its_work() -> None:
    with mapping.pool_of(2) as pool:
        assert list(pool.map(_fatal, (0, 1, 2))) == [0, 1, 2]
