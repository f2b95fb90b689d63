"""Where events and blocks of the trace stand in the text."""

from __future__ import annotations

import ast

from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax
from traindx_tools.on_code.trace import Block, Event
from traindx_tools.on_code.values import Site
from traindx_tools.program.moments import Spot


def owner_of(event: Event) -> str:
    """What a method is called on, as it is written."""
    node = event.node
    target = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    return event.file.segment(target) if target is not None else ""


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


def spot_in(code: Syntax, node: ast.AST) -> Spot:
    """The place of a piece of text."""
    at = code.place(node)
    return Spot(at.file or code.file.path, at.line or 1, at.end_line, at.quote or "", at.module)
