"""First on PYTHONPATH of an instrumented command: lets the user's own `sitecustomize` run, then starts the instruments.

It is no part of the package: Python imports it by its name at its start. `traindx_tools` may not be installed in the
environment of the command, so it is found here by its own folder, and nothing else of that folder becomes importable.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(os.path.dirname(_HERE))


class _Ours:
    """Finds `traindx_tools` beside this file and nothing else."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != "traindx_tools":
            return None
        return importlib.util.spec_from_file_location(name, os.path.join(_PACKAGE, "__init__.py"),
                                                      submodule_search_locations=[_PACKAGE])


def _of_the_user() -> None:
    """Runs the `sitecustomize` that Python would have found without this folder."""
    places = [p for p in sys.path if os.path.abspath(p or os.curdir) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", places)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _start() -> None:
    if "TRAINDX_LIVE" not in os.environ:
        return
    sys.meta_path.insert(0, _Ours())
    try:
        from traindx_tools.live.start import start

        start()
    except Exception as error:  # noqa: BLE001 - an instrument that cannot start must not stop the training
        print(f"traindx: the instruments are off: {type(error).__name__}: {error}", file=sys.stderr)


try:
    _of_the_user()
finally:
    _start()
