"""`with Monitor(model, optimizer) as m:` the instruments of `traindx run` around a part of a program."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from traindx_tools.errors import BadUsage
from traindx_tools.finding import Severity
from traindx_tools.live.folders import new_run_folder
from traindx_tools.live.notice import say
from traindx_tools.live.session import Session, close_session, current_session, open_session
from traindx_tools.live.settings import ORIGIN, SNAPSHOT, Settings
from traindx_tools.on_torch.attachment import attach, attached, detach
from traindx_tools.short import in_short

if TYPE_CHECKING:
    import torch

    from traindx_tools.finding import Finding


class Monitor:
    """Attaches the probes on entry and takes them out again on exit; results stay bitwise the same.

    `model` and `optimizer` may be left out: they are found when they are used. `out`: folder for the files, by default
    `traindx-run/TIME`. `trace_from`: instead of watching, trace every operation from this backward pass on (slow, ten
    times or more) until a value is not finite, and name what made it: for a notebook, where nothing can be run again.
    `snapshot`: keep each step (copies of parameters, gradients and optimizer state, the batch); name that operation at
    once, and try on copies what would have changed the step that failed or jumped (X301, `replays/` in the folder).
    Inside `traindx run` (or another Monitor) it adds nothing and leaves what is attached alone, but for probes that had
    switched themselves off: they begin anew. Raises BadUsage for what is no model or no optimizer.
    """

    def __init__(self, model: torch.nn.Module | None = None, optimizer: torch.optim.Optimizer | None = None, *,
                 out: str | Path | None = None, probes: tuple[str, ...] = ("always",),
                 trace_from: int | None = None, snapshot: bool = False) -> None:
        _require(model, optimizer)
        self._trace_from = trace_from
        self._model, self._optimizer = model, optimizer
        self._probes = (*probes, SNAPSHOT) if snapshot else probes
        self.folder = Path(out) if out is not None else new_run_folder()
        self._session: Session | None = None
        self._mine = False
        self._ended = False

    def __enter__(self) -> Monitor:
        self._mine = current_session() is None
        self._session = current_session() or open_session(self._settings())
        if not self._mine:
            self.folder = Path(self._session.settings.folder)
        attach(self._session)
        here = attached()
        if here is not None:
            here.revive()
            here.introduce(self._model, self._optimizer)
        return self

    def _settings(self) -> Settings:
        folder = str(self.folder.resolve())
        if self._trace_from is not None:
            return Settings(folder, (), ORIGIN, options={"arm": self._trace_from})
        return Settings(folder, self._probes)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._ended = True
        if not self._mine or self._session is None:
            return
        if error is not None:
            self._session.failed(error)
        close_session()
        detach()
        if not self._session.recorder.began:
            say("the Monitor saw no training, so it wrote no files: put the loop that calls backward() and step() "
                "inside its with statement")
        told = [f for f in self.findings if f.severity is not Severity.INFO]
        if told:
            say(f"{len(told)} finding{'s' * (len(told) != 1)}: traindx diagnose {shlex.quote(str(self.folder))}")

    def __repr__(self) -> str:
        seen = f", {len(self.findings)} finding{'s' * (len(self.findings) != 1)}" if self._session is not None else ""
        return f"<Monitor: {self._state}{seen}, {self.folder}>"

    @property
    def _state(self) -> str:
        if self._session is None:
            return "not started (use it in a with statement)"
        return "ended" if self._ended else "watching"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was seen so far; complete after exit."""
        return () if self._session is None else self._session.recorder.findings


def _require(model: object, optimizer: object) -> None:
    """Raises BadUsage for what is no model or no optimizer, before anything is attached to it."""
    import torch

    is_model = isinstance(model, torch.nn.Module)
    # wrappers of other libraries need not be an Optimizer; all of them have what the probes read
    steps = callable(getattr(optimizer, "step", None)) and isinstance(getattr(optimizer, "param_groups", None), list)
    if (model is None or is_model) and (optimizer is None or steps):
        return
    swapped = isinstance(optimizer, torch.nn.Module) and (model is None or hasattr(model, "param_groups"))
    if swapped:
        raise BadUsage("model and optimizer are swapped: Monitor(model, optimizer)")
    if model is not None and not is_model:
        raise BadUsage(f"the model is {in_short(model)} ({type(model).__name__}), expected a torch.nn.Module: "
                       "Monitor(model, optimizer), or leave it out and it is found when it is called")
    raise BadUsage(f"the optimizer is {in_short(optimizer)} ({type(optimizer).__name__}), expected a "
                   "torch.optim.Optimizer: name one, or leave it out: all of them are found when they step")
