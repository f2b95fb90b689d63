"""What is asked of a log's events: what goes along with anomalies, and what goes ahead of the first trouble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.events.associating import Along
from traindx_tools.on_logs.events.going_along import what_goes_along
from traindx_tools.on_logs.events.onsets import Onset, onsets
from traindx_tools.on_logs.run import Run


@dataclass(frozen=True, eq=False)
class Seen:
    """For the rules of `events/rules`."""

    along: tuple[Along, ...]
    onsets: tuple[Onset, ...]


def seen_in(run: Run, sources: Sequence[Source]) -> Seen:
    """Reads the files again where a series has anomalies or breaks; see `what_goes_along` and `onsets`."""
    return Seen(what_goes_along(run, sources), onsets(run, sources))
