"""Run as `python -m traindx_tools.on_jax.summary.program FILE FUNCTION ARGUMENTS [--gradient[=ARGUMENT]]`: imports FILE
and summarises FUNCTION. Prints lines of JSON: `{"stage": ...}` when it begins to import and to trace, then
`{"summary": ..., "text": ...}` or `{"error": ...}`. What the program itself prints goes to standard error."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from traindx_tools.errors import BadUsage

IMPORT, TRACE = "imported", "traced"
GUARD = 'put what starts a program below if __name__ == "__main__"'


def load(file: Path, name: str) -> Callable[..., Any]:
    """The function of a file, dotted names allowed. The module is executed, its `__main__` part is not."""
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise BadUsage(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None:
            known = [n for n, v in vars(module).items() if callable(v) and getattr(v, "__module__", "") == file.stem]
            raise BadUsage(f"{file.name} has no {name}; it defines {', '.join(known[:12]) or 'no function'}")
    if not callable(found):
        raise BadUsage(f"{name} in {file.name} is no function")
    return found  # type: ignore[no-any-return]


def main(argv: list[str]) -> None:
    """Imports, traces, prints."""
    answer(argv, _channel())
    sys.stderr.flush()
    os._exit(0)  # threads and exit functions of the user's module have no say any more


def answer(argv: list[str], speak: Callable[[dict[str, Any]], None]) -> None:
    """Says what begins, then the summary, or why there is none."""
    file, name, text, *more = argv
    stage = IMPORT
    speak({"stage": stage})
    try:
        fn = load(Path(file).resolve(), name)
        stage = TRACE
        speak({"stage": stage})
        speak(_summary(fn, text, more))
    except BadUsage as error:
        speak({"error": str(error)})
    except BaseException as error:  # noqa: BLE001 - whatever the user's own module raises is told in a line
        speak({"error": _told(error, stage, Path(file).name if stage is IMPORT else name)})


def _summary(fn: Callable[..., Any], text: str, more: list[str]) -> dict[str, Any]:
    from traindx_tools.on_jax.summary.gradient import positions_of
    from traindx_tools.on_jax.summary.shapes import arguments
    from traindx_tools.on_jax.summary.summarise import summarise

    asked = next((m.partition("=")[2] for m in more if m.startswith("--gradient")), None)
    gradient = None if asked is None else positions_of(fn, asked) if asked else True
    made = summarise(fn, arguments(text), gradient=gradient)
    return {"summary": made.to_json(), "text": made.text()}


def _told(error: BaseException, stage: str, what: str) -> str:
    said = " ".join(str(error).split())[:600]
    if isinstance(error, (SystemExit, KeyboardInterrupt)):
        advice = f": {GUARD}" if stage is IMPORT else ""
        return f"{what} ended the program while it was {stage}: {type(error).__name__}({said}){advice}"
    return f"{what} could not be {stage}: {type(error).__name__}: {said}"


def _channel() -> Callable[[dict[str, Any]], None]:
    """Writes lines to standard output, which nobody else reaches from now on."""
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def speak(said: dict[str, Any]) -> None:
        own.write(json.dumps(said) + "\n")
        own.flush()

    return speak


if __name__ == "__main__":
    main(sys.argv[1:])
