"""Runs a JAX program in this process as `traindx run` does: watched first, then traced around the call it names."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.live.reading import read_folder
from traindx_tools.live.runner import MARGIN, tripped
from traindx_tools.live.session import close_session, open_session
from traindx_tools.live.settings import ORIGIN, Settings
from traindx_tools.on_jax.attachment import attach, detach


def watched(run: Callable[[], Any], settings: Settings) -> tuple[Finding, ...]:
    """What the instruments of this process see of the run."""
    session = open_session(settings)
    attach(session)
    try:
        with contextlib.suppress(RuntimeError, TypeError, ValueError):
            try:
                run()
            except Exception as error:
                session.failed(error)
                raise
    finally:
        close_session()
        detach()
    return read_folder(Path(settings.folder)).findings


def origin_of(run: Callable[[], Any], folder: Path) -> Finding | None:
    """The finding J101, None where none was made."""
    seen = tripped(watched(run, Settings(str(folder / "watch"), ("nonfinite",))))
    if not seen:
        return None
    for number, arm in enumerate((max(0, min(seen) - MARGIN), 0)):
        settings = Settings(str(folder / f"origin{number}"), (), ORIGIN, options={"arm": arm})
        found = next((f for f in watched(run, settings) if f.rule == "J101"), None)
        if found is not None:
            return found
    return None
