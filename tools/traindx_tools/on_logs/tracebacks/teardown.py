"""Errors of a program that is already ending: they follow from what ended it and are never the first cause.

Where a process fails, others are killed, connections break, and what cleans up meets what is gone. Told by where the
error was raised (in code that tears down) or, where no frame is left, by wordings that only a dying peer gives.
"""

from __future__ import annotations

import re

from traindx_tools.on_logs.run import ErrorEvent

_TEARING = frozenset({"__del__", "_run_exitfuncs", "_exit_function", "destroy_process_group", "_shutdown_workers",
                      "_shutdown_backend", "_terminate_process_handler"})
"""Functions that only run when something ends."""
_BROKEN = re.compile(
    r"(?i)bad file descriptor|broken pipe|failed to recv, got 0 bytes|recvvalue failed|killed by signal: terminated"
    r"|connection (?:closed|reset) by (?:remote )?peer|handle is closed|i/o operation on closed file"
    r"|process group (?:is|has been) (?:destroyed|aborted)|sendbytes failed|the client socket has (?:failed|timed out)"
)
"""What is met where the other side is gone. A file that is not there, or a full disk, reads otherwise."""
_CALLS = re.compile(r"\b(?:destroy_process_group|shutdown_workers|terminate|atexit)\(")


def is_teardown(event: ErrorEvent) -> bool:
    """Whether an error was raised while the program was being ended, or says that its peer is gone."""
    if any(f.function in _TEARING or _CALLS.search(f.code) for f in event.frames):
        return True
    return _BROKEN.search(event.message) is not None
