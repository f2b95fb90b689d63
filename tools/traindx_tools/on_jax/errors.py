"""What an error of JAX says, and the line of the user's code that it came from."""

from __future__ import annotations

import os
import re
import traceback

from traindx_tools.on_jax.places import is_users

_LEAF = re.compile(r"the (?:input )?carry(?: component)? (?P<leaf>\S+) has type (?P<before>\S+) but the corresponding "
                   r"output carry component has type (?P<after>\S+)", re.IGNORECASE)
_SHAPED = re.compile(r"DIFFERENT ShapedArray\((?P<after>[^)]+)\) vs\. ShapedArray\((?P<before>[^)]+)\)")
_CARRY = ("carry input and carry output must have equal types", "body_fun output and input must have identical types")


def mismatches(error: BaseException) -> list[tuple[str, str, str]]:
    """The leaves of a carry that leave a loop with another type: leaf, before, after."""
    text = " ".join(str(error).split())
    if not isinstance(error, TypeError) or not any(c in text for c in _CARRY):
        return []
    found = [(m["leaf"], m["before"].rstrip(",."), m["after"].rstrip(",.")) for m in _LEAF.finditer(text)]
    return found or [("a leaf of the carry", m["before"], m["after"]) for m in _SHAPED.finditer(text)]


def raised_at(error: BaseException) -> tuple[str, int] | None:
    """The innermost line of the user's code in an error's traceback."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if is_users(f.filename) and f.lineno is not None]
    if not frames or frames[-1].lineno is None:
        return None
    return os.path.abspath(frames[-1].filename), frames[-1].lineno
