"""Runs a planted origin as `traindx run` does: watched first, then traced around the place that the watch named."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import torch

from traindx_tools.finding import Finding
from traindx_tools.live.reading import read_folder
from traindx_tools.live.runner import Job, arms, tripped
from traindx_tools.live.session import close_session, open_session
from traindx_tools.live.settings import Settings
from traindx_tools.on_torch.attachment import attach, detach


def watched(run: Callable[[], None], settings: Settings) -> tuple[Finding, ...]:
    """What the instruments of this process see of the run."""
    attach(open_session(settings))
    try:
        torch.manual_seed(0)
        with contextlib.suppress(RuntimeError):  # some operations refuse what is not finite in the step after
            run()
    finally:
        close_session()
        detach()
    return read_folder(Path(settings.folder)).findings


def origin_of(run: Callable[[], None], folder: Path) -> Finding | None:
    """The finding T101, None where none was made."""
    job = Job((), folder, ("nonfinite",))
    seen = watched(run, job.settings())
    places = arms(tripped(seen))
    if not places:
        return None
    found = watched(run, job.tracing(1, places[0], seen))
    return next((f for f in found if f.rule == "T101"), None)
