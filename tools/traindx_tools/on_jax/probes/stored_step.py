"""On request: a call that another run kept on disk is put into this program once it compiled the function.

`traindx replay STEP --run CMD` starts the program with this probe in the protected runner.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from traindx_tools import unlinked
from traindx_tools.errors import TraindxError
from traindx_tools.experiments.replaying.finding import finding_of
from traindx_tools.experiments.replaying.report import write
from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.finding import Finding
from traindx_tools.live.step_file import RESULT, Stored, read_step
from traindx_tools.on_jax.paths.marked import Marks
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.replaying.kept import function_of_call
from traindx_tools.on_jax.replaying.replayed import Outcome, replay
from traindx_tools.on_jax.replaying.stored import NotThis
from traindx_tools.on_jax.tracing import lowered

SECONDS = 120.0


class StoredJaxStep(JaxProbe):
    """Waits until the function of the step is compiled, and replays the step then."""

    name = "stored-step"
    on_request = True
    marks_gradients = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._marks: dict[str, tuple[Marks, str]] = {}
        self._compiled: dict[int, Any] = {}
        self._stored: Stored | None = None
        self._missing = ""
        path = scene.options.get("step_file")
        if path:
            stored = read_step(Path(str(path)))
            self._stored = stored if stored.told.get("framework") == "jax" else None
        self._seconds = float(scene.options.get("step_seconds", SECONDS))
        self._done = self._stored is None
        self._calls = 0

    def marked(self, marks: Marks) -> None:
        """A gradient was marked while its function was traced."""
        self._marks.update({label: (marks, name) for label, name in marks.names.items()})

    def compiled(self, call: Call, jaxpr: Any) -> None:
        """The function of the step may be this one."""
        if not self._done and call.watched.kind == "jit":
            self._calls += 1
            self._try(call, jaxpr)

    def _try(self, call: Call, jaxpr: Any) -> None:
        stored, began = self._stored, time.monotonic()
        assert stored is not None
        traced = lowered(call.watched, jaxpr, call.args, call.kwargs, call.output)
        same = traced.name == stored.told.get("function")
        try:
            made = replay(stored, function_of_call(traced, self._marks, 0), self._seconds, self.scene.recorder.rank)
        except NotThis as other:
            self._missing = str(other) if same or not self._missing else self._missing
            return
        except NotReplayable as why:
            if not same:
                return
            made = Outcome(why=str(why))
        except (TraindxError, MemoryError) as error:
            made = Outcome(why=str(error) or "there is not enough memory")
        except Exception as error:  # noqa: BLE001 - a fault of ours is said as what it is, and the runner need not wait
            made = Outcome(why=f"{type(error).__name__}: {error}")
        self._tell(made, began)

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """The program ends before the function was compiled."""
        self._ended(f"the program ended with {type(error).__name__}: {str(error)[:300]}")
        return ()

    def finish(self) -> Iterable[Finding]:
        """The same without an error."""
        self._ended("the program ended")
        return ()

    def _ended(self, how: str) -> None:
        if not self._done and self._calls:
            self._tell(Outcome(why=f"{how} before the step could be put in: {self._missing}"), 0.0)

    def _tell(self, made: Outcome, began: float) -> None:
        self._done = True
        recorder = self.scene.recorder
        folder: Path = recorder.batch_path.parent  # type: ignore[attr-defined]
        for finding in made.findings:
            recorder.finding(finding)
        if made.study is not None:
            found = finding_of(made.study)
            if found is not None:
                recorder.finding(found)
            write(made.study, folder)
        told = {**made.to_json(), "seconds": round(time.monotonic() - began, 3) if began else 0.0}
        unlinked.write(folder / RESULT, json.dumps(told, indent=1))
