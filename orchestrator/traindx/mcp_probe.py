"""`run_probe` for a coding agent: its own code in the protected runner, the output kept below scratch/debug/probes.

The host asks the person for the call as for any command; the runner sees to it that the project cannot change. Where
nothing can protect it, nothing is run.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

from traindx import probing
from traindx.mcp_arguments import RunProbe
from traindx.mcp_paths import Reach
from traindx_tools import unlinked
from traindx_tools.errors import UnreadableInput

_NAMES_AT_MOST = 100_000


def run_probe(reach: Reach, given: RunProbe) -> str:
    """The output with numbered lines, and where it lies whole. Raises NotRun, Refused, UnreadableInput."""
    folder = reach.probes()
    watched = Path(tempfile.mkdtemp(prefix="traindx-probe-"))
    try:
        ran = asyncio.run(probing.run(probing.Probe(given.code, given.shell, given.seconds), reach.root,
                                      watched / "run"))
    finally:
        shutil.rmtree(watched, ignore_errors=True)
    kept = _kept(folder, ran.text)
    numbered = "".join(f"{n}\t{row}\n" for n, row in enumerate(ran.text.split("\n"), 1))
    return f"[{kept.stem}] {ran.ended}; whole output: {kept}\n{numbered}"


def _kept(folder: Path, text: str) -> Path:
    """The output in a file of its own, under the next id that is free; a link is never written through."""
    for number in range(1, _NAMES_AT_MOST):
        path = folder / f"P{number:03d}.txt"
        try:
            out = unlinked.opened(path, "x")
        except FileExistsError:
            continue
        with out:
            out.write(text.encode("utf-8", "replace").decode())
        return path
    raise UnreadableInput(f"{folder} holds {_NAMES_AT_MOST:,} outputs: remove some")
