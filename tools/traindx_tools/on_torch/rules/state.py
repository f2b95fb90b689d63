"""What the rules on saved states judge: files that were read, states that were loaded, files that were written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traindx_tools.finding import Location

SOURCE = "torch probe: state"


@dataclass(frozen=True)
class At:
    """A line of the program, after so many optimizer steps."""

    file: str | None
    line: int | None
    step: int
    rank: int = 0

    def where(self) -> Location:
        """As the place of a finding."""
        return Location(file=self.file, line=self.line, step=float(self.step), rank=self.rank)


@dataclass(frozen=True)
class ReadFile:
    """One state of a model that was read from a file."""

    path: str
    part: str
    at: At
    keys: int
    fitting: int
    """Keys whose name (its last words) and shape are those of a tensor of a model that was called later."""
    model: str
    """That model."""
    used: bool
    """It was given to `load_state_dict`, a model's values are its values, or they could not be compared."""
    sibling_used: bool
    """Another state of a model in the same file was used."""
    steps_after: int
    """Optimizer steps between the reading and the end."""
    calls_after: int
    """Calls of that model after the reading."""
    overwritten: bool = False
    """It was loaded into that model, and none of its values was there at the next call, with no step between."""


@dataclass(frozen=True)
class Rest:
    """What lies beside a model's weights in a file whose weights were used, and training went on."""

    path: str
    at: At
    left: tuple[str, ...]
    """Kinds of states that nobody loaded though the program has such an object: "optimizer", "scheduler", "scaler"."""
    restored: tuple[str, ...]
    """Kinds that were loaded."""
    own_format: bool
    """The program writes files with the same top-level keys."""
    same_path: bool
    """It writes to that very path."""
    steps_after: int


@dataclass(frozen=True)
class LoadedKeys:
    """One call of a model's `load_state_dict`."""

    model: str
    at: At
    own: int
    """Keys of the model."""
    given: int
    missing: Sequence[str]
    unexpected: Sequence[str]
    prefix: str
    """What the keys of the file have in front of the model's ("module."), or lack ("-model."), "" where neither."""
    fresh: Sequence[str] = ()
    """Normalisation layers whose weights were in the state and whose running statistics were not."""
    used: Sequence[str] = ()
    """Those of them that were called in evaluation mode all the same; grows while the program runs."""


@dataclass(frozen=True)
class OtherModel:
    """A model whose state came from a file and that is never called, while another one with the same keys is."""

    loaded: str
    path: str
    at: At
    called: str
    calls: int
    trained: bool


@dataclass(frozen=True)
class Kept:
    """A state that was taken at one step and used at a later one, while its tensors are the parameters themselves."""

    kind: str
    """"loaded": given back to the model; "saved": written to a file."""
    model: str
    taken: At
    used: At
    times: int


@dataclass(frozen=True)
class Saved:
    """A model that is written to files, and the one that should have been."""

    kind: str
    """"untrained": what is saved was never trained; "not-evaluated": what is evaluated is never saved."""
    saved: str
    other: str
    path: str
    at: At
    evaluations: int
