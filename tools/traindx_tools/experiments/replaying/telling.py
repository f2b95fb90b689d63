"""Where the study of a step goes, and when a jump is spoken of: once it is seen whether it came back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from traindx_tools.experiments.replaying.finding import finding_of
from traindx_tools.experiments.replaying.report import write
from traindx_tools.experiments.replaying.storing import remove, say_kept
from traindx_tools.experiments.replaying.study import Study
from traindx_tools.experiments.replaying.symptom import Course, Symptom
from traindx_tools.finding import Severity
from traindx_tools.live.notice import say
from traindx_tools.live.recorder import Recorder

WAIT = 10
"""Steps after a jump before it is said: a hard batch is gone by then."""


@dataclass
class _Waiting:
    """A studied jump that is not spoken of yet, and how many losses had been seen."""

    study: Study
    course: Course
    seen: int
    path: Path | None
    """Where the step is kept."""


class Telling:
    """The studies of one process, as records, files, findings and lines."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._waiting: list[_Waiting] = []

    @property
    def folder(self) -> Path | None:
        """Where files go; None where nothing is recorded on disk."""
        path = getattr(self._recorder, "batch_path", None)
        return path.parent if isinstance(path, Path) else None

    def studied(self, made: Study) -> None:
        """A study is there: its record and its table."""
        symptom = made.symptom
        self._recorder.mark("replay", step=symptom.step, symptom=symptom.kind, runs=made.runs,
                            seconds=round(made.seconds, 3), removes=list(made.removing))
        self._written(made)

    def not_studied(self, symptom: Symptom, why: str) -> None:
        """There is none, and why."""
        self._recorder.mark("replay", step=symptom.step, symptom=symptom.kind, failed=why[:400])
        say(f"step {symptom.step}: {symptom.said}; what would change it was not tried: {why}")

    def wait(self, made: Study, course: Course, path: Path | None = None) -> None:
        """It is a jump: to be spoken of some steps later. `path`: its file, which goes where the jump came back."""
        self._waiting.append(_Waiting(made, course, course.seen, path))

    def passed(self) -> None:
        """A step more: what waited long enough is spoken of."""
        self._speak(lambda w: w.course.seen - w.seen >= WAIT, failed=False)

    def all(self, *, failed: bool) -> None:
        """The end: everything that waits is spoken of. `failed`: the run did not go on from it."""
        self._speak(lambda _: True, failed=failed)

    def tell(self, made: Study) -> bool:
        """The finding, and a line where it is more than a remark; whether it is."""
        finding = finding_of(made)
        if finding is None:
            return False
        self._recorder.finding(finding)
        if finding.severity is not Severity.INFO:
            say(finding.statement)
        return finding.severity is not Severity.INFO

    def _speak(self, due: Callable[[_Waiting], bool], *, failed: bool) -> None:
        for waiting in [w for w in self._waiting if due(w)]:
            self._waiting.remove(waiting)
            later = waiting.course.seen > waiting.seen
            back = not failed and (not later or waiting.course.back(waiting.study.symptom))
            made = replace(waiting.study, recovered=back)
            self._written(made)
            spoken = self.tell(made)
            if waiting.path is not None and back and later:
                remove(waiting.path)
            elif waiting.path is not None and spoken:
                say_kept(made.symptom, waiting.path)

    def _written(self, made: Study) -> None:
        folder = self.folder
        if folder is not None:
            try:
                write(made, folder)
            except OSError as error:
                say(f"the table of step {made.symptom.step} could not be written: {error.strerror or error}")
