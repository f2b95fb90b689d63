"""First on PYTHONPATH of a verification: notes which lines of a change were executed. Standard library only.

TRAINDX_LINES names a JSON file: {"folder": where to write, "lines": {real path: [line numbers]}}. Each line that is
executed leaves an empty file "<number of the path>-<line>" at once, so that workers that end without a word count too;
each Python process leaves "process-<pid>". Nothing of the program is changed; a line is looked at once.

It is no part of the package: Python imports it by its name at its start, in the environment of the command.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))


class _Watch:
    """What is looked for, and where each hit is noted."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.folder = str(told["folder"])
        self.cwd = os.getcwd()
        self.numbers = {path: number for number, path in enumerate(sorted(told["lines"]))}
        self.left = {(path, line) for path, lines in told["lines"].items() for line in lines}
        self.names: dict[str, str | None] = {}
        self.note(f"process-{os.getpid()}")

    def note(self, name: str) -> None:
        try:
            os.close(os.open(os.path.join(self.folder, name), os.O_CREAT | os.O_WRONLY, 0o644))
        except OSError:
            return

    def path(self, name: str) -> str | None:
        """The watched file that a code object's file name stands for."""
        if name not in self.names:
            real = os.path.realpath(os.path.join(self.cwd, name))
            self.names[name] = real if real in self.numbers else None
        return self.names[name]

    def hit(self, name: str, line: int) -> None:
        path = self.path(name)
        if path is not None and (path, line) in self.left:
            self.left.discard((path, line))
            self.note(f"{self.numbers[path]}-{line}")


def _by_monitoring(watch: _Watch) -> bool:
    """Python 3.12 and later: each line costs once. False where no tool of that kind is free."""
    monitoring = getattr(sys, "monitoring", None)
    free = [t for t in (4, 3) if monitoring is not None and monitoring.get_tool(t) is None]
    if not free:
        return False

    def line(code: CodeType, number: int) -> object:
        watch.hit(code.co_filename, number)
        return monitoring.DISABLE  # type: ignore[union-attr]

    monitoring.use_tool_id(free[0], "traindx")  # type: ignore[union-attr]
    monitoring.register_callback(free[0], monitoring.events.LINE, line)  # type: ignore[union-attr]
    monitoring.set_events(free[0], monitoring.events.LINE)  # type: ignore[union-attr]
    return True


def _by_tracing(watch: _Watch) -> None:
    """Python before 3.12: every call is looked at, and lines only in the files of the change."""

    def lines(frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            watch.hit(frame.f_code.co_filename, frame.f_lineno)
        return lines if watch.left else None

    def calls(frame: FrameType, event: str, argument: object) -> Any:
        if not watch.left:
            sys.settrace(None)
            return None
        return lines if watch.path(frame.f_code.co_filename) is not None else None

    threading.settrace(calls)
    sys.settrace(calls)


def _of_the_user() -> None:
    """Runs the `sitecustomize` that Python would have found without this folder."""
    places = [p for p in sys.path if os.path.abspath(p or os.curdir) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", places)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _start() -> None:
    if "TRAINDX_LINES" not in os.environ:
        return
    try:
        with open(os.environ["TRAINDX_LINES"], encoding="utf-8") as file:
            watch = _Watch(json.load(file))
        if not _by_monitoring(watch):
            _by_tracing(watch)
    except Exception as error:  # noqa: BLE001 - an instrument that cannot start must not stop the training
        print(f"traindx: executed lines are not noted: {type(error).__name__}: {error}", file=sys.stderr)


try:
    _of_the_user()
finally:
    _start()
