"""What the membership rules judge: whom each parameter belongs to, what reached it, how its module was used."""

from __future__ import annotations

from dataclasses import dataclass

from traindx_tools.finding import Location

SOURCE = "torch probe: membership"


@dataclass(frozen=True)
class Member:
    """One parameter of a module that was called."""

    path: str
    module: str
    numel: int
    wants_gradient: bool
    had_gradient: bool
    held: bool
    """An optimizer that has stepped holds it."""
    waiting: str | None
    """The class of an optimizer that exists and holds it but never stepped."""
    use: str
    """Of its module: "cut" (its output went on into a later module), "first" (the first module called), "called",
    "without-gradients" (only under no_grad), "not-called", "unknown"."""
    registered: bool = True
    """False for a module that is called inside the model and is no registered part of it (a plain list)."""
    order: int = 0
    """Place in the order of the model's parameters."""


@dataclass(frozen=True)
class Membership:
    """All of them, after `steps` optimizer steps."""

    members: tuple[Member, ...]
    steps: int
    backwards: int
    strangers: tuple[tuple[str, int, int], ...] = ()
    """Optimizers none of whose parameters ever had a gradient or belong to a called model: class, parameters, and how
    many of their shapes equal those of unheld parameters that do get gradients."""
    rank: int = 0

    def at(self, path: str) -> Location:
        """A module or parameter, after these steps."""
        return Location(module=path, step=float(self.steps), rank=self.rank)


def parents(members: list[Member]) -> list[str]:
    """The modules of parameters, without those that lie below another of them; in order."""
    names = list(dict.fromkeys(m.module for m in members))
    tops = [n for n in names if not any(n != o and n.startswith(f"{o}.") for o in names)]
    return tops or names


def listed(names: list[str], most: int = 4) -> str:
    """Names for a sentence, the first few written out."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
