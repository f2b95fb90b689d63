"""Drives sessions in forked children that die at random moments, resumes them, and counts every side effect.

    python kill_sessions.py FOLDER SESSIONS SEED        prints one JSON line a session
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from pathlib import Path

from scripted import FIXED, Scripted, approve, diagnosis, examined, fix, make_workspace, replace_line

from traindx.model import Verify
from traindx.session import list_sessions, resume_session_sync, run_debug_session_sync

os.fsync = lambda descriptor: None  # type: ignore[assignment]  # SIGKILL loses nothing that was written, synced or not

KILLS_AT_MOST = 6
STEPS_A_SESSION = 140
"""About as many fsyncs and renames as a whole session makes."""


def script() -> Scripted:
    """Two fixes that fail, then the right one; each adds a line, so that applying twice shows."""
    wrong = [diagnosis(fix(replace_line(f"learning_rate = 10.0\nguess = {n}"), summary=f"Guess number {n} at it"),
                       failure_mode=f"guess.{n}", component=f"part {n}") for n in (1, 2)]
    return Scripted([*wrong, diagnosis(failure_mode="lr.too-high")])


def die_at(operation: int) -> None:
    """SIGKILL this process before or after its n-th durable write."""
    left = [operation]

    def counted(name: str) -> None:
        real = getattr(os, name)

        def call(*arguments: object) -> object:
            left[0] -= 1
            if left[0] == 0 and operation % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*arguments)
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(os, name, call)

    for name in ("fsync", "replace", "ftruncate"):
        counted(name)


def turn(workspace: Path, effects: Path, kill: tuple[str, float] | None) -> bool:
    """One process's turn; True when it came to its end."""
    child = os.fork()
    if child == 0:
        try:
            if kill is not None and kill[0] == "operation":
                die_at(int(kill[1]))
            elif kill is not None:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.setitimer(signal.ITIMER_REAL, kill[1])
            drive(workspace, effects)
        except BaseException as error:  # noqa: BLE001 - a child reports and ends, it never returns into the parent
            print(f"child failed: {type(error).__name__}: {error}", file=sys.stderr)
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit("a turn failed instead of being killed")
    return os.WIFEXITED(status)


def drive(workspace: Path, effects: Path) -> None:
    """Begin a session, or go on with the one that is there."""
    verify = Verify(command=f"echo run >> {effects}; grep -q 'learning_rate = 0.1' train.py", timeout=60,
                    writable=(str(effects.parent),))
    known = list_sessions(workspace)
    if known:
        resume_session_sync(known[-1].folder, approve=approve(), investigator=script(), examine=examined,
                            report=False)
    else:
        run_debug_session_sync("the loss explodes", workspace, verify=verify, approve=approve(), investigator=script(),
                               examine=examined, allow_run=True, report=False)


def one_session(folder: Path, dice: random.Random) -> dict[str, object]:
    """Kill it a few times, let it finish, and report what it left."""
    workspace, effects = make_workspace(folder / "project"), folder / "effects.txt"
    kills = 0
    for _ in range(dice.randint(1, KILLS_AT_MOST)):
        at = ("operation", dice.randint(1, STEPS_A_SESSION)) if dice.random() < 0.7 else ("time",
                                                                                          dice.uniform(0.001, 1.0))
        if turn(workspace, effects, at):
            break
        kills += 1
    turn(workspace, effects, None)
    results = list_sessions(workspace)
    strikes = workspace / "scratch/debug/strikes.jsonl"
    return {
        "kills": kills,
        "statuses": [r.status for r in results],
        "reason": results[-1].reason,
        "attempts": len(results[-1].attempts),
        "runs": effects.read_text().count("run"),
        "strikes": strikes.read_text().count("\n"),
        "fixed": (workspace / "train.py").read_text() == FIXED,
        "other": (workspace / "other.py").read_text() == "value = 1\n",
        "strays": sorted(p.name for p in workspace.iterdir() if p.name not in ("train.py", "other.py", "scratch")),
    }


def main(folder: Path, sessions: int, seed: int) -> None:
    """Run them all."""
    dice = random.Random(seed)
    for number in range(sessions):
        print(json.dumps(one_session(folder / str(number), dice)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
