"""Modules and parameters of a program by names that another process of the same program has too.

A module that a loop calls is known by its class, the shapes of its parameters and, among equal ones, by the order of
their first calls; a parameter by its path in such a module, or by its place in an optimizer.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

MOST_MODULES = 512
"""Outermost modules that are remembered; a loop that makes its loss anew in each step makes many."""

Signature = tuple[str, tuple[tuple[str, tuple[int, ...]], ...]]


class NotFound(Exception):
    """This process has no such module or parameter (yet); the text says which."""


def signature(module: torch.nn.Module) -> Signature:
    """Class and shapes."""
    kind = type(module)
    return f"{kind.__module__}.{kind.__qualname__}", tuple((n, tuple(p.shape)) for n, p in module.named_parameters())


@dataclass
class Met:
    """The outermost modules that were called, in the order of their first calls."""

    known: list[weakref.ref[torch.nn.Module]] = field(default_factory=list)
    _ids: dict[int, weakref.ref[torch.nn.Module]] = field(default_factory=dict)

    def met(self, module: torch.nn.Module) -> None:
        """A module is called."""
        held = self._ids.get(id(module))
        if (held is not None and held() is module) or len(self.known) >= MOST_MODULES:
            return
        made = weakref.ref(module)
        self._ids[id(module)] = made
        self.known.append(made)

    def like(self, wanted: Signature) -> list[torch.nn.Module]:
        """The modules of this signature that are alive."""
        alive = (r() for r in self.known)
        return [m for m in alive if m is not None and signature(m) == wanted]

    def ordinal(self, module: torch.nn.Module) -> int:
        """Its place among equal ones."""
        return next((i for i, m in enumerate(self.like(signature(module))) if m is module), 0)

    def reference(self, module: torch.nn.Module) -> dict[str, Any]:
        """What it is found again by."""
        kind, shapes = signature(module)
        return {"class": kind, "shapes": [[n, list(s)] for n, s in shapes], "number": self.ordinal(module)}

    def find(self, told: dict[str, Any]) -> torch.nn.Module:
        """The module of this process. Raises NotFound with what there is instead."""
        wanted = str(told["class"]), tuple((str(n), tuple(int(i) for i in s)) for n, s in told["shapes"])
        found, number = self.like(wanted), int(told["number"])
        if len(found) > number:
            return found[number]
        if found and not wanted[1]:  # a loss that the loop makes anew: one is as good as another
            return found[-1]
        raise NotFound(self._instead(wanted, len(found), number))

    def _instead(self, wanted: Signature, found: int, number: int) -> str:
        short = wanted[0].rpartition(".")[2]
        if found:
            return f"the program called {found} modules {short} and the step was made by number {number + 1}"
        same = [signature(m)[1] for r in self.known if (m := r()) is not None and signature(m)[0] == wanted[0]]
        if not same:
            return f"the program did not call a module {wanted[0]}"
        mine, theirs = dict(wanted[1]), dict(same[-1])
        other = next((n for n in (*mine, *theirs) if mine.get(n) != theirs.get(n)), "")
        return (f"the program's {short} is another one: `{other}` is {_shape(theirs.get(other))} there and was "
                f"{_shape(mine.get(other))}")


def _shape(shape: Sequence[int] | None) -> str:
    return "missing" if shape is None else str(list(shape))


class Parameters:
    """The names of parameters: [number of the module, path], or [-1, place in the optimizer]."""

    def __init__(self, modules: Sequence[torch.nn.Module], groups: Sequence[dict[str, Any]] = ()) -> None:
        self._of: dict[tuple[int, str], torch.Tensor] = {}
        flat = [p for g in groups for p in g["params"]]
        for index, parameter in enumerate(flat):
            self._of[-1, str(index)] = parameter
        for number, module in enumerate(modules):
            for name, parameter in module.named_parameters(remove_duplicate=False):
                self._of[number, name] = parameter
        self._names = {id(p): key for key, p in reversed(self._of.items()) if key[0] < 0} | {
            id(p): key for key, p in reversed(self._of.items()) if key[0] >= 0}

    def all(self) -> list[torch.Tensor]:
        """Every parameter, each once."""
        return list({id(p): p for p in self._of.values()}.values())

    def name(self, parameter: torch.Tensor) -> list[Any] | None:
        """The name of one, None for a tensor that is none."""
        key = self._names.get(id(parameter))
        return None if key is None else list(key)

    def find(self, told: Sequence[Any]) -> torch.Tensor:
        """The parameter of this process. Raises NotFound."""
        found = self._of.get((int(told[0]), str(told[1])))
        if found is None:
            what = f"`{told[1]}`" if int(told[0]) >= 0 else f"number {told[1]} of the optimizer"
            raise NotFound(f"the program has no parameter {what}")
        return found
