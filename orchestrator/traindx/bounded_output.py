"""What of a command's output is read to judge it: the first megabyte and the last eight, whole lines."""

from __future__ import annotations

from pathlib import Path

from traindx.durable import write_state

FIRST_BYTES = 2**20
"""Settings, plans and warnings stand at the beginning."""
LAST_BYTES = 8 * 2**20
"""Where the run stands, and how it ended."""


def judged_output(folder: Path) -> Path:
    """The output of the run in this folder; of one that is too long, its two ends as a file of their own beside it."""
    path = folder / "output.log"
    if not cut(folder):
        return path
    ends = folder / "output-ends.log"
    with path.open("rb") as file:
        first = file.read(FIRST_BYTES)
        file.seek(path.stat().st_size - LAST_BYTES)
        last = file.read(LAST_BYTES)
    write_state(ends, first[:first.rfind(b"\n") + 1] + last[last.find(b"\n") + 1:])
    return ends


def cut(folder: Path) -> str:
    """What of the output is not read, in words; "" where all of it is."""
    path = folder / "output.log"
    size = path.stat().st_size if path.is_file() else 0
    if size <= FIRST_BYTES + LAST_BYTES:
        return ""
    return (f"of {size / 2**20:.1f} MiB of output only the first {FIRST_BYTES // 2**20} and the last "
            f"{LAST_BYTES // 2**20} MiB were read: what came between is not judged")
