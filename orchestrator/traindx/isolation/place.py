"""Where runs of an isolation happen: protected copies of the workspace, whose records are gone at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from traindx.abandoned import temporary
from traindx.experiment_place import ProtectedPlace
from traindx_tools.experiments.trace import Trace


def to_its_end(trace: Trace) -> bool:
    """No run is ended early: what it shows at its end decides."""
    return False


@contextlib.contextmanager
def place_for(workspace: Path) -> Iterator[ProtectedPlace]:
    """A place for runs of this workspace."""
    with temporary("traindx-isolate-") as scratch:
        yield ProtectedPlace(workspace.resolve(), scratch, reads_log=False)
