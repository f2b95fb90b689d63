"""Runs one command under limits and leaves its result on disk. Started as a script of its own; standard library only.

    python supervise.py FOLDER

FOLDER/spec.json says what to run, in the environment of this process; FOLDER/result.json is written once, when it
ended. The supervisor outlives the session that started it: a session that is killed finds the result later instead of
running the command twice. Where the spec names a process as `ends_with`, the command ends with that one instead. Two
supervisors of one folder run it once, the second waits for the first. Sent SIGTERM, it kills what it started and
reports "cancelled".
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

GRACE_SECONDS = 5.0
"""Between the polite and the hard signal."""

POLL_SECONDS = 0.2
MEMORY_FILE = "memory.txt"
"""Where the spec asks for it: a line a look, seconds since the start and bytes of all processes together."""
MOST_LOOKS = 50_000
HEAD_SHARE = 7 / 8
"""Of the output's limit for its beginning; the rest is for its end."""


class _Stop:
    """Set by SIGTERM, looked at between two waits: an exception out of a handler could strike while the command is
    being started, and leave it running."""

    told = False
    parent: int | None = None
    """The process that the command ends with, where the spec names one: its own end, a kill too, ends the command."""

    @classmethod
    def now(cls) -> bool:
        return cls.told or (cls.parent is not None and os.getppid() != cls.parent)


def _cancel(_signal: int, _frame: object) -> None:
    _Stop.told = True


class Output:
    """Writes a bounded file: the beginning as it comes, the end when all is over, what fell between is counted."""

    def __init__(self, path: Path, limit: int) -> None:
        self.file = path.open("wb", buffering=0)
        self.head_left = int(limit * HEAD_SHARE)
        self.tail_limit = limit - self.head_left
        self.tail: deque[bytes] = deque()
        self.tail_size = 0
        self.dropped = 0

    def write(self, block: bytes) -> None:
        head, rest = block[:self.head_left], block[self.head_left:]
        if head:
            self.file.write(head)
            self.head_left -= len(head)
        if rest:
            self.tail.append(rest)
            self.tail_size += len(rest)
        while self.tail_size > self.tail_limit and self.tail:
            gone = self.tail.popleft()
            self.tail_size -= len(gone)
            self.dropped += len(gone)

    def close(self) -> None:
        if self.dropped:
            self.file.write(f"\n[{self.dropped} bytes of output were not kept]\n".encode())
        for block in self.tail:
            self.file.write(block)
        os.fsync(self.file.fileno())
        self.file.close()


def adopt_orphans() -> None:
    """Become the parent of grandchildren whose parent ends (Linux), so that none outlives the command."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    except (OSError, AttributeError):
        return


def no_core_dump() -> None:
    """In the child, before the command starts: no core dumps."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def descendants(root: int) -> list[int]:
    """Process ids below `root`, from /proc; empty where there is none."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found: list[int] = []
    queue = list(children.get(root, ()))
    while queue:
        one = queue.pop()
        found.append(one)
        queue += children.get(one, ())
    return found


def resident_bytes(pids: list[int]) -> int:
    """Resident memory of these processes together."""
    total = 0
    for pid in pids:
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError, ValueError):
            continue
    return total


def kill_all(group: int, grace: float) -> None:
    """End the command's process group and everything below this process: first politely, then not."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        for target in (-group, *descendants(os.getpid())):
            try:
                os.killpg(group, sign) if target < 0 else os.kill(target, sign)
            except (ProcessLookupError, PermissionError):
                continue
        end = time.monotonic() + grace
        while _alive(group) and time.monotonic() < end:
            time.sleep(0.02)
        if not _alive(group):
            return


def _alive(group: int) -> bool:
    _reap()
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return bool(descendants(os.getpid()))
    except PermissionError:
        return True
    return True


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return


def run(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run the command to its end or its limits; returns what became of it."""
    started = time.monotonic()
    output = Output(folder / "output.log", spec["output_limit"])
    result: dict[str, Any] = {"exit_code": None, "timed_out": False, "out_of_memory": False, "cancelled": False}
    try:
        child = subprocess.Popen(spec["argv"], cwd=spec["cwd"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                                 preexec_fn=no_core_dump)
    except OSError as error:
        output.write(f"cannot start: {error}\n".encode())
        output.close()
        return {**result, "exit_code": 127, "seconds": 0.0}
    memory = Memory(folder / MEMORY_FILE if spec.get("memory_file") else None, started)
    result.update(_watch(child, spec, output, started, memory))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    kill_all(child.pid, spec.get("grace", GRACE_SECONDS))
    output.close()
    if child.returncode is None:
        child.poll()
    return {**result, "seconds": round(time.monotonic() - started, 3), "peak_bytes": memory.peak or None}


class Memory:
    """What the command's processes hold together: the most, and each look in a file where one is asked for."""

    def __init__(self, path: Path | None, started: float) -> None:
        self.file = path.open("w", buffering=1) if path is not None else None
        self.started, self.peak, self.looks = started, 0, 0

    def look(self) -> int:
        """Bytes now."""
        held = resident_bytes(descendants(os.getpid()))
        self.peak, self.looks = max(self.peak, held), self.looks + 1
        if self.file is not None and self.looks <= MOST_LOOKS:
            self.file.write(f"{time.monotonic() - self.started:.3f} {held}\n")
        return held


def _watch(child: subprocess.Popen[bytes], spec: dict[str, Any], output: Output, started: float,
           held: Memory) -> dict[str, Any]:
    assert child.stdout is not None
    pipe = child.stdout.fileno()
    memory, deadline = spec.get("memory_bytes"), started + spec["timeout"]
    open_pipe, next_look = True, started
    while True:
        ready = _ready(child, pipe) if open_pipe else _ended(child)
        if ready and open_pipe:
            block = os.read(pipe, 2**16)
            output.write(block)
            open_pipe = bool(block)
        code = child.poll()
        if code is not None and not (open_pipe and ready):
            return {"exit_code": code}
        if _Stop.now():
            return {"cancelled": True}
        now = time.monotonic()
        if now >= deadline:
            return {"timed_out": True}
        if memory and now >= next_look:
            next_look = now + POLL_SECONDS
            if held.look() > memory:
                return {"out_of_memory": True}


def _ready(child: subprocess.Popen[bytes], pipe: int) -> bool:
    """Wait a little for output."""
    return bool(select.select([pipe], [], [], 0 if child.poll() is not None else POLL_SECONDS)[0])


def _ended(child: subprocess.Popen[bytes]) -> bool:
    """Wait a little for the end of a command that closed its output."""
    try:
        child.wait(timeout=POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def write_result(folder: Path, result: dict[str, Any]) -> None:
    """Atomic and durable: result.json is there whole or not at all."""
    part = folder / "result.part"
    with part.open("w") as file:
        json.dump(result, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, folder / "result.json")


def main(folder: Path) -> None:
    """Supervise the command of one folder, once."""
    with (folder / "supervisor.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / "result.json").exists():
            return
        if (folder / "started").exists():
            # The first supervisor died half-way (power cut): how the command ended is not known.
            write_result(folder, {"exit_code": None, "timed_out": False, "out_of_memory": False, "cancelled": True,
                                  "seconds": 0.0})
            return
        spec = json.loads((folder / "spec.json").read_text())
        signal.signal(signal.SIGTERM, _cancel)
        _Stop.parent = spec.get("ends_with")
        adopt_orphans()
        (folder / "started").touch()
        write_result(folder, run(spec, folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
