"""What is taken out of a checkpoint, and what becomes of it before anybody reads it."""

from __future__ import annotations

from dataclasses import dataclass

from traindx_tools.program.moments import Spot


@dataclass(frozen=True)
class RestoredLost:
    """A value or state that came out of a file and is gone before it is read: `kind` says what it is: "optimizer",
    "schedule", "scaler", "generator", "position" (where a loop begins), "value", "object"."""

    kind: str
    entry: str
    """What is taken out, as it is written: `ckpt["epoch"]`."""
    target: str
    """Where it goes: a name, an attribute, an object."""
    at: Spot
    lost: Spot
    """What writes over it, or makes the object anew."""
    replaced: bool = False
    """The object into which it was loaded is another one by then."""
