"""Attaches the instruments of this process after the frameworks that it imports."""

from __future__ import annotations

import importlib
import importlib.util
import sys

from traindx_tools.live.import_hook import after_import
from traindx_tools.live.notice import say
from traindx_tools.live.session import close_session, current_session

FRAMEWORKS = {"torch": "traindx_tools.on_torch.attachment", "jax": "traindx_tools.on_jax.attachment"}
"""The package whose import is waited for, and the module whose `attach()` is called then."""

LIBRARIES = {"numpy": "traindx_tools.on_variables.joined"}
"""The same of packages that no change of an experiment waits for."""

PYTHON = "python"
"""Stands for the changes that wait for no framework."""


def start() -> None:
    """Waits for the frameworks; does nothing where the environment asks for no instruments."""
    if current_session() is not None:
        start_here()


def start_here() -> None:
    """Attaches to the frameworks that are imported, and waits for the others."""
    _change(PYTHON)
    for package, attachment in (FRAMEWORKS | LIBRARIES).items():
        after_import(package, lambda p=package, a=attachment: _attach(p, a))  # type: ignore[misc]


def end_here() -> None:
    """Take the instruments out and write all that they conclude, so that a diagnosis in this process has it too."""
    close_session()
    for attachment in (*FRAMEWORKS.values(), *LIBRARIES.values()):
        if attachment in sys.modules:
            importlib.import_module(attachment).detach()


def _change(framework: str) -> None:
    """Applies the changes of an experiment, where the settings hold some: before the instruments that watch."""
    session = current_session()
    if session is None or not session.settings.options.get("changes"):
        return
    try:
        importlib.import_module("traindx_tools.experiments.live.attach").attach(framework)
    except Exception as error:  # noqa: BLE001 - a change that cannot start must not stop the training
        say(f"the changes of this run are off: {type(error).__name__}: {error}")


def _attach(package: str, attachment: str) -> None:
    if package in FRAMEWORKS:
        _change(package)
    try:
        if importlib.util.find_spec(attachment) is not None:
            importlib.import_module(attachment).attach()
    except Exception as error:  # noqa: BLE001 - an unknown version of a framework switches us off, not the training
        say(f"the instruments of {attachment} are off: {type(error).__name__}: {error}")
