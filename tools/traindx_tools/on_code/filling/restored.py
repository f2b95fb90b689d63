"""What comes out of a checkpoint and is gone before anybody reads it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.restoring.held import Loss, kind_of
from traindx_tools.on_code.restoring.playing import Player
from traindx_tools.program.moments import Spot
from traindx_tools.program.parts import RestoredLost

_READS = ("load", "restore", "from_bytes", "deserialise")


def restored_lost(project: Project, look: Lookup) -> Iterator[RestoredLost]:
    """Each once. A position counts in a program that goes on: it restores the state of an optimizer too."""
    if not any(word in f.text for f in project.files for word in _READS):
        return
    player, told = Player(look), set()
    for loss in player.play():
        kind = _kind(loss)
        at = loss.mark.code.spot(loss.mark.node)
        if kind == "position" and "optimizer" not in player.restored:
            continue
        if (at, loss.target) not in told:
            told.add((at, loss.target))
            yield RestoredLost(kind, loss.mark.entry, loss.target, at, _place(loss), loss.replaced)


def _place(loss: Loss) -> Spot:
    """Where it is lost: of an attribute of an object, the call of the method that sets it."""
    apart = loss.called is not None and loss.target.startswith("self.") and (
        loss.called[0].function(loss.called[1]) is not loss.code.function(loss.mark.node))
    code, node = loss.called if apart and loss.called is not None and _is_reset(loss) else (loss.code, loss.node)
    return code.spot(node)


def _is_reset(loss: Loss) -> bool:
    """Whether the method sets things and does no more: no constructor, and no loop that goes on."""
    body = loss.code.function(loss.node)
    return body is not None and body.name != "__init__" and not any(
        isinstance(n, (ast.For, ast.While)) for n in ast.walk(body))


def _kind(loss: Loss) -> str:
    if loss.turns:
        return "position"
    made = kind_of(loss.new.made or loss.old.made)
    return made if made != "object" else "object" if loss.replaced else "value"
