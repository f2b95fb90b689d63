"""How DistributedDataParallel was used in the micro-batches of each step: what it decides in forward, and when.

DDP reads `require_backward_grad_sync` in its forward: a micro-batch whose forward ran without it is not reduced,
whatever the flag says when backward runs.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import torch

from traindx_tools.on_torch.nonfinite.places import here
from traindx_tools.on_torch.structure import modules_of

MOST_MODULES = 256
"""Modules of a called one among which a wrapper is looked for: it lies near the outside."""


@dataclass
class Wrappers:
    """The DDP wrappers of this process."""

    made: list[weakref.ref[torch.nn.Module]] = field(default_factory=list)
    reduced: set[int] = field(default_factory=set)
    """`id` of each parameter in a bucket."""
    ignored: set[int] = field(default_factory=set)
    """And of those that the program keeps out of them on purpose."""
    hooked: bool = False
    group: tuple[int, ...] = ()
    _within: dict[int, weakref.ref[torch.nn.Module] | None] = field(default_factory=dict)

    def add(self, wrapper: Any) -> None:
        """One that was just made."""
        self.made.append(weakref.ref(wrapper))
        left_out = set(wrapper.parameters_to_ignore)
        for name, parameter in wrapper.module.named_parameters():
            if name in left_out:
                self.ignored.add(id(parameter))
            elif parameter.requires_grad:
                self.reduced.add(id(parameter))
        self.group = tuple(torch.distributed.get_process_group_ranks(wrapper.process_group))

    def within(self, called: torch.nn.Module) -> Any:
        """The wrapper that a call of this module runs, None where it runs none."""
        if id(called) not in self._within:
            inside = (m for _, (_, m) in zip(range(MOST_MODULES), modules_of(called), strict=False))
            found = next((m for m in inside if isinstance(m, torch.nn.parallel.DistributedDataParallel)), None)
            self._within[id(called)] = weakref.ref(found) if found is not None else None
        known = self._within[id(called)]
        return known() if known is not None else None

    def has_hook(self) -> bool:
        """Whether a communication hook of the program's own reduces the gradients."""
        alive = (ref() for ref in self.made)
        return any(bool(getattr(w, "_comm_hooks", ())) for w in alive if w is not None)


@dataclass
class Windows:
    """Counts over the steps that were watched."""

    steps: int = 0
    passes: int = 0
    unsynchronised: int = 0
    """Steps whose last micro-batch ran its forward without synchronisation."""
    late: int = 0
    """Of these: the flag was set by the time of backward."""
    around: int = 0
    """Steps none of whose passes went through a wrapper."""
    turned: int = 0
    """Passes at whose backward the flag was another one than at forward."""
    line: str = ""
    """Of the call that was not synchronised."""
    _flag: bool | None = None
    _line: str = ""
    _ddp: Any = None
    _last: tuple[bool, bool] | None = None
    _through: bool = False
    _waiting: int = 0

    def forward(self, wrapper: Any) -> None:
        """A call that builds a graph: through this wrapper, or through none."""
        flag = bool(wrapper.require_backward_grad_sync) if wrapper is not None else None
        if flag is not None:
            self._ddp, self._flag, self._through = wrapper, bool(self._flag) or flag, True
        if not flag and (not self.line or not self.unsynchronised + self.around):
            place = here()
            self._line = f"{place.file}:{place.line}" if place is not None else ""

    def backward(self) -> None:
        """A backward pass ends what the calls before it began."""
        self.passes += 1
        self._waiting += 1
        if self._flag is not None:
            now = bool(self._ddp.require_backward_grad_sync)
            self.turned += now != self._flag
            self._last = self._flag, now
        self._flag = self._ddp = None

    def step(self) -> None:
        """The optimizer takes what there is."""
        if not self._waiting:
            return
        self.steps += 1
        bad = not self._through or (self._last is not None and not self._last[0])
        if not self._through:
            self.around += 1
        elif self._last is not None and not self._last[0]:
            self.unsynchronised += 1
            self.late += self._last[1]
        if bad and not self.line:
            self.line = self._line
        self._last, self._through, self._waiting = None, False, 0

    def told(self) -> dict[str, Any]:
        """For the record."""
        return {"steps": self.steps, "passes": self.passes, "unsynchronised": self.unsynchronised, "late": self.late,
                "around": self.around, "turned": self.turned, "line": self.line}
