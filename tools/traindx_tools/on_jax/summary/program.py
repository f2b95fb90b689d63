"""Run as `python -m traindx_tools.on_jax.summary.program FILE FUNCTION ARGUMENTS [--gradient]`: imports FILE and
summarises FUNCTION. Prints one line of JSON: `{"summary": ..., "text": ...}` or `{"error": ...}`."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from traindx_tools.errors import BadUsage


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
    """Imports, traces, prints. What the program itself prints goes to standard error."""
    from traindx_tools.on_jax.summary.shapes import arguments
    from traindx_tools.on_jax.summary.summarise import summarise

    file, name, text, *more = argv
    try:
        with contextlib.redirect_stdout(sys.stderr):
            made = summarise(load(Path(file).resolve(), name), arguments(text), gradient="--gradient" in more)
            said: dict[str, Any] = {"summary": made.to_json(), "text": made.text()}
    except BadUsage as error:
        said = {"error": str(error)}
    except Exception as error:  # noqa: BLE001 - whatever the user's own module raises is told in a line
        said = {"error": f"{name} could not be traced: {type(error).__name__}: {' '.join(str(error).split())[:600]}"}
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1:])
