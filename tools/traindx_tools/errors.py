"""The one family of errors that traindx raises on purpose.

Each says what came, what was expected and what to do next; a face (CLI, API, MCP) prints `str(error)` and exits
with `exit_code`, so that no traceback reaches a user.
"""

from __future__ import annotations

from typing import ClassVar


class TraindxError(Exception):
    """Base of every error that traindx raises on purpose."""

    exit_code: ClassVar[int] = 2
    """Process exit code: 2 for bad usage or unreadable input, see `traindx --help`."""


class UnreadableInput(TraindxError):
    """A path, a URL or standard input could not be read as what it was given for."""


class BadUsage(TraindxError):
    """An option, an argument or a combination of them makes no sense."""


class CatalogError(TraindxError):
    """A failure-mode file is incomplete or contradicts itself."""


class MissingExtra(TraindxError):
    """A feature needs an optional package that is not installed."""

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(f"{feature} needs the package '{package}', which is not installed. "
                         f"Install it with: pip install 'traindx[{extra}]'")
