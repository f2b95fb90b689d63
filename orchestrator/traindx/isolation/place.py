"""A run in a protected copy of the workspace, under limits of time and memory; the copy is gone afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from traindx.hindrances import last_error, tail
from traindx.protected_copy import copied_files, copy_into, in_copy
from traindx.sandbox import find_sandbox
from traindx.verify import Outcome, clean_environment, read_outcome, specification, supervised, verify_from
from traindx_tools.errors import UnreadableInput
from traindx_tools.experiments.place import Enough, Prepared
from traindx_tools.experiments.trace import Curve, Trace
from traindx_tools.live.settings import Settings, environment_for

POLL_SECONDS = 0.2


@dataclass
class CopyPlace:
    """See `traindx_tools.experiments.place.Place`. `scratch`: holds one folder a run; the caller removes it."""

    workspace: Path
    scratch: Path
    _made: int = field(default=0)

    def run(self, prepared: Prepared, enough: Enough | None = None, *, seconds: float) -> Trace:
        """One run. Raises CopyRefused for a workspace that is too large."""
        self._made += 1
        folder = self.scratch / f"run{self._made}"
        copy, live = folder / "copy", folder / "live"
        sandbox = find_sandbox()
        copy_into(self.workspace, copy, prepared.files, links=sandbox.program is not None)
        live.mkdir()
        try:
            before = _stamps(copy)
            how = verify_from({"command": in_copy(prepared.command, self.workspace, copy.resolve()),
                               "timeout": seconds})
            assert how is not None, "fields were given"
            outcome = asyncio.run(_supervised(
                folder, specification(how, copy, sandbox, [live]), self._environment(prepared, copy, live), enough))
            written = [p for p, stamp in _stamps(copy).items() if before.get(p) != stamp]
            return _trace(folder, outcome, written)
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def _environment(self, prepared: Prepared, copy: Path, live: Path) -> dict[str, str]:
        given = {**clean_environment(os.environ), **prepared.environment, "PWD": str(copy.resolve()),
                 "PYTHONUNBUFFERED": "1"}
        if not prepared.probes and not prepared.inside:
            return given
        told = {**prepared.options, "changes": [c.to_json() for c in prepared.inside]}
        return environment_for(Settings(str(live.resolve()), tuple(prepared.probes), options=told), given)


@contextlib.contextmanager
def place_for(workspace: Path) -> Iterator[CopyPlace]:
    """A place whose folders are gone at the end."""
    with tempfile.TemporaryDirectory(prefix="traindx-isolate-") as scratch:
        yield CopyPlace(workspace.resolve(), Path(scratch))


async def _supervised(folder: Path, spec: dict[str, object], environment: dict[str, str],
                      enough: Enough | None) -> Outcome:
    task = asyncio.ensure_future(supervised(folder, spec, environment))
    started = time.monotonic()
    while enough is not None and not task.done():
        await asyncio.wait([task], timeout=POLL_SECONDS)
        if enough(Trace(folder, seconds=time.monotonic() - started)):
            task.cancel()
            break
    with contextlib.suppress(asyncio.CancelledError):
        return await task
    return read_outcome(folder)


def _stamps(root: Path) -> dict[Path, tuple[int, int]]:
    return {p: (s.st_mtime_ns, s.st_size) for p in copied_files(root) for s in [p.lstat()]}


def _trace(folder: Path, outcome: Outcome, written: list[Path]) -> Trace:
    stopped = "time" if outcome.timed_out else "memory" if outcome.out_of_memory else (
        "decided" if outcome.cancelled else "")
    error = last_error(tail(folder / "output.log")) if outcome.exit_code not in (0, None) else None
    said = "" if error is None else f"{error.type}: {error.message.strip().splitlines()[0] if error.message else ''}"
    return Trace(folder, _curves([folder / "output.log", *written]), ended=not stopped, exit_code=outcome.exit_code,
                 stopped=stopped, error=said[:300], seconds=outcome.seconds)


def _curves(paths: list[Path]) -> dict[str, Curve]:
    """What the run printed and wrote under the names of metrics; nothing where it recorded none."""
    from traindx_tools.on_logs.each_run import read_last_run

    try:
        run = read_last_run([str(p) for p in paths if p.is_file()])
    except UnreadableInput:
        return {}
    return {str(s): Curve(s.step, s.values) for s in run.series if len(s)}
