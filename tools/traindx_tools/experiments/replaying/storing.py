"""Keeps the steps of one process on disk, a few of them, and says where each is or why it is not."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from traindx_tools.experiments.replaying.symptom import Symptom
from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.live.notice import say
from traindx_tools.live.recorder import Recorder
from traindx_tools.live.step_file import MOST_BYTES, MOST_STEPS, TooLarge, path_for

Keep = Callable[[Path, int], int]
"""Writes a file of at most so many bytes and returns how many it has. Raises NotReplayable, TooLarge and OSError."""


def say_kept(symptom: Symptom, path: Path) -> None:
    """The command that replays it."""
    say(f"step {symptom.step} is kept; once the program is gone: traindx replay {shlex.quote(str(path))} --run CMD")


def remove(path: Path) -> None:
    """Takes a file away, if it is there."""
    with contextlib.suppress(OSError):
        path.unlink()


class Storing:
    """`options`: those of the instruments; `step_bytes` is what a file may hold."""

    def __init__(self, recorder: Recorder, options: Mapping[str, Any]) -> None:
        self._recorder, self._options = recorder, options
        self._files = 0

    def store(self, symptom: Symptom, folder: Path | None, keep: Keep) -> Path | None:
        """Keeps the step of a symptom, and gives its file; None where it is not kept.

        Never raises: what cannot be kept costs the file, not the training. Of a jump nothing is said yet: it may be a
        hard batch.
        """
        if folder is None or self._files >= MOST_STEPS:
            return None
        path = path_for(folder, self._recorder.rank, symptom.step, symptom.kind)
        try:
            size = keep(path, int(self._options.get("step_bytes", MOST_BYTES)))
        except (NotReplayable, TooLarge) as why:
            self._failed(symptom, str(why))
        except OSError as error:
            self._failed(symptom, f"{error.strerror or error}")
        except Exception as error:  # noqa: BLE001 - see above
            self._failed(symptom, f"{type(error).__name__}: {error}")
        else:
            self._files += 1
            self._recorder.mark("step", step=symptom.step, symptom=symptom.kind, file=path.name, bytes=size)
            if not symptom.finite:
                say_kept(symptom, path)
            return path
        return None

    def forget(self, path: Path | None) -> None:
        """The step was no failure: its file goes."""
        if path is not None:
            self._files -= 1
            remove(path)

    def _failed(self, symptom: Symptom, why: str) -> None:
        self._recorder.mark("step", step=symptom.step, symptom=symptom.kind, failed=why[:400])
        if not symptom.finite:
            say(f"step {symptom.step} is not kept on disk: {why}")
