"""On request: a step that another run kept on disk is put into this program at its first step, and run again there.

`traindx replay STEP --run CMD` starts the program with this probe in the protected runner; the process runs for this
alone, since its modules are changed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from traindx_tools import unlinked
from traindx_tools.errors import TraindxError
from traindx_tools.experiments.replaying.finding import finding_of
from traindx_tools.experiments.replaying.report import write
from traindx_tools.finding import Finding
from traindx_tools.live.step_file import RESULT, Stored, read_step
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.stored.modules import Met, NotFound
from traindx_tools.on_torch.stored.replayed import Outcome, replay

MOST_STEPS = 50
"""Steps of the program in which the modules of the stored step have to be called."""
SECONDS = 120.0


class StoredStep(TorchProbe):
    """Waits until the program has called the modules of the step and an optimizer steps, and replays it then."""

    name = "stored-step"
    on_request = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._stored: Stored | None = None
        self._met = Met()
        self._steps, self._missing = 0, ""
        path = scene.options.get("step_file")
        if path:
            stored = read_step(Path(str(path)))
            self._stored = stored if stored.told.get("framework") == "torch" else None
        self._seconds = float(scene.options.get("step_seconds", SECONDS))
        self.done = self._stored is None

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A module by whose signature the stored one may be found."""
        if not self.done:
            self._met.met(model)

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Model, loss and optimizer are there."""
        stored = self._stored
        if self.done or stored is None:
            return
        self._steps += 1
        began = time.monotonic()
        try:
            made = replay(stored, self._met, optimizer, self.scene, self._seconds)
        except NotFound as missing:
            self._missing = str(missing)
            if self._steps >= MOST_STEPS:
                self._tell(Outcome(why=f"{self._missing}, in its first {self._steps} steps"), began)
            return
        except (TraindxError, MemoryError) as error:
            made = Outcome(why=str(error) or "there is not enough memory")
        except Exception as error:  # noqa: BLE001 - a fault of ours is said as what it is, and the runner need not wait
            made = Outcome(why=f"{type(error).__name__}: {error}")
        self._tell(made, began)

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """The program ends before it came to a step."""
        self._ended(f"the program ended with {type(error).__name__}: {str(error)[:300]}")
        return ()

    def finish(self) -> Iterable[Finding]:
        """The same without an error."""
        self._ended("the program ended")
        return ()

    def _ended(self, how: str) -> None:
        if not self.done and self.scene.models:
            self._tell(Outcome(why=f"{how} before the step could be put in"
                                   + (f": {self._missing}" if self._missing else ": no optimizer made a step")), 0.0)

    def _tell(self, made: Outcome, began: float) -> None:
        self.done = True
        recorder = self.scene.recorder
        folder: Path = self.scene.recorder.batch_path.parent  # type: ignore[attr-defined]
        if made.study is not None:
            finding = finding_of(made.study)
            if finding is not None:
                recorder.finding(finding)
            write(made.study, folder)
        told = {**made.to_json(), "seconds": round(time.monotonic() - began, 3) if began else 0.0}
        unlinked.write(folder / RESULT, json.dumps(told, indent=1))
