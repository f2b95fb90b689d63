"""`import traindx_tools.live.attach` in a notebook or a script: the always-on instruments from here on.

The files go to `traindx-run/TIME` of the current directory, unless the process was started by `traindx run`. What is
concluded from the whole of a run is written when the process ends, or by `traindx_tools.live.attach.end()`.
"""

from __future__ import annotations

from traindx_tools.live.folders import new_run_folder
from traindx_tools.live.session import current_session, open_session
from traindx_tools.live.settings import Settings
from traindx_tools.live.start import end_here as end
from traindx_tools.live.start import start_here

__all__ = ["begin", "end"]


def begin() -> None:
    """Attach the instruments, in a new folder; does nothing where they are attached already."""
    if current_session() is None:
        open_session(Settings(str(new_run_folder())))
    start_here()


begin()
