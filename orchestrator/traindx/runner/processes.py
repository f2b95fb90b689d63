"""The processes of one run, from /proc: which they are, and their end."""

from __future__ import annotations

import os
import signal
import time

_POLLS, _PAUSE = 200, 0.01


def status(task: int) -> dict[str, str]:
    """The fields of /proc/TASK/status. Raises OSError where there is none."""
    with open(f"/proc/{task}/status", encoding="utf-8", errors="replace") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def leader_of(task: int) -> int:
    """The process that a thread belongs to."""
    return int(status(task)["Tgid"])


def is_below(task: int, top: int) -> bool:
    """True for a process or thread that the process `top` started, or one that those started."""
    try:
        at = leader_of(task)
        while at > 1:
            at = int(status(at)["PPid"])
            if at == top:
                return True
    except (OSError, KeyError, ValueError):
        return False
    return False


def below(top: int) -> dict[int, int]:
    """All processes below this one, and the group of each."""
    parents: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append((int(name), int(fields[2])))
    found: dict[int, int] = {}
    queue = list(parents.get(top, ()))
    while queue:
        process, group = queue.pop()
        found[process] = group
        queue += parents.get(process, ())
    return found


def end_all(top: int) -> None:
    """End whatever the run left behind. `top` adopts orphans, so that none can slip away."""
    for _ in range(_POLLS):
        left = below(top)
        if not left:
            return
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                continue
        reap()
        time.sleep(_PAUSE)


def reap() -> dict[int, int]:
    """The children that ended, and how."""
    ended: dict[int, int] = {}
    while True:
        try:
            process, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if process == 0:
            return ended
        ended[process] = how
