"""Places of the follower as places of the program."""

from __future__ import annotations

from traindx_tools.on_code.project import Project
from traindx_tools.on_code.trace import Block, Event
from traindx_tools.on_code.values import Site
from traindx_tools.program.moments import Spot


def spot_of(event: Event) -> Spot:
    """The place of an event."""
    return Spot(event.file.path, event.line, getattr(event.node, "end_lineno", None),
                event.file.line(event.line).strip()[:200], event.function.qualified if event.function else None)


def spot_of_block(block: Block) -> Spot:
    """The place where a block begins."""
    return Spot(block.file.path, block.line, None, block.file.line(block.line).strip()[:200],
                block.function.qualified if block.function else None)


def spot_at(site: Site, project: Project) -> Spot:
    """The place where a value arose."""
    file = project.file(site.path)
    return Spot(site.path, site.line, None, file.line(site.line).strip()[:200] if file is not None else "")
