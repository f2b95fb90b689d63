"""What a configuration file sets, the code reads.

A file beside the code sets a key that no code knows, while the code reads the same setting under another name
(`learning_rate` in the file, `lr` in the code): a merge that drops unknown keys, or a `get` with a default, uses the
default instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.program import Program

RULES = pages("settings", ("C199",))


def check(program: Program) -> Iterator[Breach]:
    """Look at every entry that is not read."""
    for one in program.unread_settings:
        yield Breach(
            "C199", f"{one.file} sets {one.key} = {one.value}, which no code reads: the code knows the setting as "
            f"{one.known_as} (line {one.at.line}), so the value in the file is ignored", one.at,
            measured={"kind": "configuration", "name": one.key, "known_as": one.known_as, "value": one.value})
