"""With consent, a change is run before it is offered: the command in a copy with the change in it, for a short time.

An error of its own disqualifies it: one that the unfixed code, run as long, does not have. A run that ends well, is
still going and printing some seconds after the changed lines were executed, or is not over when the time is up, lets
it pass: whether the change helps is for the verification.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traindx.durable import write_state
from traindx.executed import watched, watching
from traindx.hindrances import Change, last_error, tail
from traindx.model import Verify
from traindx.notices import Say, begun, unsaid
from traindx.protected_copy import CopyRefused, copy_into, in_copy
from traindx.results import signature
from traindx.sandbox import find_sandbox
from traindx.stopping import run_here
from traindx.verify import Outcome, clean_environment, ended, specification, supervised

TRIAL_SECONDS = 40.0
"""For one run of a trial, start of the program included."""
SECONDS_AFTER = 5.0
LINES_AFTER = 3
"""What the program has to go on for, and to print, after the first changed line was executed: a few steps."""
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class TrialRun:
    """What a person agreed to be run, in which workspace, and where the trial may write."""

    how: Verify
    workspace: Path
    scratch: Path
    say: Say = field(default=unsaid, compare=False, repr=False)

    def own_error(self, changes: Sequence[Change], after: Mapping[str, bytes]) -> str:
        """The error that the change brings with it, "" where it brings none or cannot be run in a copy.

        `after`: the bytes of the changed files, by their path in the workspace.
        """
        told = json.dumps([self.how.to_json(), sorted((p, hashlib.sha256(c).hexdigest()) for p, c in after.items())])
        folder = self.scratch / "trials" / hashlib.sha256(told.encode()).hexdigest()[:16]
        kept = folder / "verdict.json"
        if kept.is_file():
            return str(json.loads(kept.read_text())["own_error"])
        shutil.rmtree(folder, ignore_errors=True)  # cut off before its verdict: made anew
        found = self._tried(folder, changes, after)
        write_state(kept, json.dumps({"own_error": found}).encode())
        return found

    def _tried(self, folder: Path, changes: Sequence[Change], after: Mapping[str, bytes]) -> str:
        self.say(begun(f"the proposed change of {', '.join(sorted(after))} runs in a copy, {TRIAL_SECONDS:.0f} s at "
                       "most, so that none is offered that brings an error of its own"))
        changed = self._run(folder / "changed", after, changes)
        if changed is None or changed.exit_code == 0 or changed.timed_out:
            return ""
        error = last_error(tail(changed.folder / "output.log"))
        if changed.cancelled and error is None:
            return ""  # it was going on; a traceback that was just printed counts all the same
        self.say(begun("that ended with an error: whether the code as it is has the same is tried as well"))
        unfixed = self._run(folder / "unfixed", {})
        if unfixed is None:
            return ""
        if error is None:
            same = unfixed.exit_code not in (0, None)
            return "" if same else f"the command ends with exit code {changed.exit_code}"
        old = last_error(tail(unfixed.folder / "output.log")) if unfixed.exit_code != 0 else None
        if old is not None and signature(old) == signature(error):
            return ""
        return f"{error.type}: {error.message.strip().split(chr(10))[0]}"[:300]

    def _run(self, folder: Path, after: Mapping[str, bytes], changes: Sequence[Change] = ()) -> Outcome | None:
        """One run in a copy, which is gone afterwards; None where no copy can be made."""
        copy, sandbox = folder / "copy", find_sandbox(self.how.sandbox)
        try:
            copy_into(self.workspace, copy, after, links=sandbox.program is not None)
        except (CopyRefused, OSError):
            shutil.rmtree(folder, ignore_errors=True)
            return None
        assert self.how.command is not None, "a trial is run by a command"
        moved = self.how.model_copy(update={"command": in_copy(self.how.command, self.workspace, copy.resolve()),
                                            "timeout": min(self.how.timeout, TRIAL_SECONDS)})
        notes = folder / "lines"
        environment = watching(notes, watched(changes, copy), {
            **clean_environment(os.environ, self.how.keep_env), "PWD": str(copy.resolve()), "PYTHONUNBUFFERED": "1"})
        try:
            running = supervised(folder, specification(moved, copy, sandbox, [notes] if notes.is_dir() else []),
                                 environment)
            return run_here(_long_enough(running, folder, notes))
        finally:
            shutil.rmtree(copy, ignore_errors=True)


async def _long_enough(running: Coroutine[Any, Any, Outcome], folder: Path, notes: Path) -> Outcome:
    """The run, ended when it went on for some steps after a changed line was executed."""
    task = asyncio.ensure_future(running)
    seen: float | None = None
    printed = 0
    while not task.done():
        await asyncio.wait([task], timeout=POLL_SECONDS)
        now = time.monotonic()
        if seen is None and any(not p.name.startswith(("process-", "lines")) for p in notes.glob("*-*")):
            seen, printed = now, _lines(folder / "output.log")
        if seen is not None and now - seen > SECONDS_AFTER and _lines(folder / "output.log") >= printed + LINES_AFTER:
            task.cancel()
            break
    return await ended(task, folder)


def _lines(output: Path) -> int:
    try:
        return output.read_bytes().count(b"\n")
    except OSError:
        return 0
