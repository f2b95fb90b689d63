"""What was found, written to the run at its tracker: only where a person asked, and nothing of theirs is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from traindx_tools.errors import BadUsage
from traindx_tools.sources import clients
from traindx_tools.sources.names import MLFLOW, TENSORBOARD, Named, named

VERDICT = "traindx.verdict"
_NOTE = "mlflow.note.content"
_MAX_TAG = 64
"""Characters of a tag that wandb takes."""
_MAX_NOTE = 5_000
"""Characters that MLflow takes for a tag in every version."""


@dataclass(frozen=True)
class Noting:
    """A run that a note can be written to: the library is there and has answered."""

    run: Named
    _write: Callable[[str, str], Any]

    def write(self, verdict: str, text: str) -> None:
        """Adds the note behind what the run's notes say already. Raises UnreadableInput where the tracker refuses."""
        clients.asked(self.run, lambda: self._write(verdict, text))


def noting_of(paths: Sequence[str]) -> Noting:
    """Where the note goes; asked before the diagnosis, so that nobody waits for one in vain.

    Raises BadUsage unless exactly one run of wandb or MLflow is named; MissingExtra, UnreadableInput.
    """
    runs = [run for run in map(named, paths) if run is not None and run.tracker != TENSORBOARD]
    if len(runs) != 1:
        raise BadUsage("--note writes to one run: name it as wandb:ENTITY/PROJECT/RUN or mlflow:RUN")
    run = runs[0]
    if run.tracker == MLFLOW:
        client = clients.mlflow_client(run, to_write=True)
        return Noting(run, lambda verdict, text: _to_mlflow(client, run.run, verdict, text))
    source = clients.wandb_run(run, to_write=True)
    return Noting(run, lambda verdict, text: _to_wandb(source, verdict, text))


def _to_wandb(source: Any, verdict: str, text: str) -> None:
    source.notes = _behind(source.notes, text)
    source.tags = list(dict.fromkeys([*(source.tags or ()), "traindx", f"traindx:{verdict}"[:_MAX_TAG]]))
    source.update()


def _to_mlflow(client: Any, run: str, verdict: str, text: str) -> None:
    before = client.get_run(run).data.tags.get(_NOTE)
    room = _MAX_NOTE - len(before or "") - 2
    if room > 0:
        client.set_tag(run, _NOTE, _behind(before, text[:room]))
    client.set_tag(run, VERDICT, verdict)


def _behind(before: str | None, text: str) -> str:
    """The note behind what is there; the same one is not added twice."""
    if before and text in before:
        return before
    return f"{before}\n\n{text}" if before else text
