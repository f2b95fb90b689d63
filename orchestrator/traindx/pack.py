"""Finds skills, agents, templates and the plugin manifest: in the wheel, or at the root of a checkout."""

from __future__ import annotations

from pathlib import Path

from traindx_tools.errors import UnreadableInput

PARTS = ("skills", "agents", "templates", ".claude-plugin")
"""The folders of the pack, by the names that they have in a checkout and in a wheel."""


def pack_root() -> Path:
    """The folder that holds the pack: `traindx/_pack` of an installed wheel, else the root of the checkout.

    Raises UnreadableInput when neither is there (an installation that lost files).
    """
    package = Path(__file__).resolve().parent
    candidates = (package / "_pack", package.parent.parent)
    for root in candidates:
        if all((root / part).is_dir() for part in PARTS):
            return root
    looked = " and ".join(str(c) for c in candidates)
    raise UnreadableInput(f"the skills, agents and templates of traindx are missing: expected the folders "
                          f"{', '.join(PARTS)} in {looked}. Install traindx again")


def pack_folder(part: str) -> Path:
    """One folder of the pack: "skills", "agents", "templates" or ".claude-plugin". Raises ValueError for another."""
    if part not in PARTS:
        raise ValueError(f"the pack has {', '.join(PARTS)}, not {part!r}")
    return pack_root() / part
