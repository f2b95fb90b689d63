"""Attaches the instruments of this process after the frameworks that it imports."""

from __future__ import annotations

import importlib
import importlib.util

from traindx_tools.live.import_hook import after_import
from traindx_tools.live.notice import say
from traindx_tools.live.session import current_session

FRAMEWORKS = {"torch": "traindx_tools.on_torch.attachment", "jax": "traindx_tools.on_jax.attachment"}
"""The package whose import is waited for, and the module whose `attach()` is called then."""


def start() -> None:
    """Waits for the frameworks; does nothing where the environment asks for no instruments."""
    if current_session() is not None:
        start_here()


def start_here() -> None:
    """Attaches to the frameworks that are imported, and waits for the others."""
    for framework, attachment in FRAMEWORKS.items():
        after_import(framework, lambda name=attachment: _attach(name))  # type: ignore[misc]


def _attach(attachment: str) -> None:
    try:
        if importlib.util.find_spec(attachment) is not None:
            importlib.import_module(attachment).attach()
    except Exception as error:  # noqa: BLE001 - an unknown version of a framework switches us off, not the training
        say(f"the instruments of {attachment} are off: {type(error).__name__}: {error}")
