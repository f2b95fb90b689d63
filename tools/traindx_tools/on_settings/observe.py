"""At the end of a process that trained: what became of the settings that it read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from traindx_tools.finding import Finding
from traindx_tools.on_settings.named import Named, codes_of, named, own_sources
from traindx_tools.on_settings.seen import SettingsSeen
from traindx_tools.on_settings.written import read
from traindx_tools.on_variables.composed import Composed
from traindx_tools.rules import rules_in

ROOM = "traindx_tools.on_settings.rules"
MOST_FILES = 50
OF_TOOLS = frozenset({"pyproject.toml", "package.json", "package-lock.json", "tsconfig.json", "mkdocs.yml"})
"""Files that tools ask, whatever the training asks for."""


def observed(paths: Sequence[str], root: str, composed: Sequence[Composed] = ()) -> Iterable[Finding]:
    """Judges the configuration files that were opened, by the names in all code of this process below a folder, and by
    what its variables held while it trained."""
    below = os.path.join(os.path.realpath(root), "")
    own = [p for p in paths if os.path.realpath(p).startswith(below) and os.path.basename(p) not in OF_TOOLS]
    own = own[:MOST_FILES]
    files = [f for f in map(read, own) if f is not None]
    names: Named = named(codes_of(own_sources(root))) if files else Named()
    seen = SettingsSeen(files, names, composed=composed)
    for module in rules_in(ROOM) if files else ():
        yield from module.check(seen)
