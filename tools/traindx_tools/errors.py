"""The one family of errors that traindx raises on purpose.

Each says what came, what was expected and what to do next; a face (CLI, API, MCP) prints `str(error)` and exits
with `exit_code`, so that no traceback reaches a user.
"""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import ClassVar

_OURS = {"traindx", "traindx_tools"}
"""Folders that our files lie in."""


class TraindxError(Exception):
    """Base of every error that traindx raises on purpose."""

    exit_code: ClassVar[int] = 2
    """Process exit code: 2 for bad usage or unreadable input, see `traindx --help`."""

    def _render_traceback_(self) -> list[str]:
        """What IPython and notebooks print in place of the way through our files: what was said, and the caller's
        line. `traceback.print_exception` and `%debug` still have all of it."""
        told = [f"{type(self).__name__}: {self}"]
        at, callers = self.__traceback__, ""
        while at is not None and not callers:
            name = at.tb_frame.f_code.co_filename
            theirs = name != "<string>" and not {"IPython", *_OURS} & set(Path(name).parts)
            callers = linecache.getline(name, at.tb_lineno).strip() if theirs else ""
            inner, at = at.tb_next, at.tb_next
            if callers and inner is not None and not _OURS & set(Path(inner.tb_frame.f_code.co_filename).parts):
                callers = ""  # a call of the caller's own: the line further in is nearer
        return [*told, f"  in: {callers}"] if callers else told


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
                         f"Install it with: {install_line(extra, package)}")


def install_line(extra: str, package: str = "") -> str:
    """The command that installs what an extra holds, by the packages themselves.

    The name of this project is not on every index, and installing it by that name could fetch somebody else's.
    """
    from importlib import metadata

    try:
        needed = metadata.requires("traindx") or []
    except metadata.PackageNotFoundError:  # from the archive of the instruments
        needed = []
    of_extra = [n.partition(";")[0].strip() for n in needed if re.search(rf"extra == ['\"]{re.escape(extra)}['\"]", n)]
    own = [n for n in of_extra if not n.startswith("traindx") and (extra != "all" or n.startswith(package))]
    if package and not any(n.startswith(package) for n in own):
        own = [package]  # what another package of the extra brings with it, or does not
    return f"pip install {' '.join(repr(n) for n in own or [extra])}"
