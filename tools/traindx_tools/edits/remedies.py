"""The edits that a remedy asks for, by its rows in `knowledge/edits.toml`."""

from __future__ import annotations

from traindx_tools.edits import expressions, statements
from traindx_tools.edits.place import Place
from traindx_tools.edits.source_edit import SourceEdit, Unsure
from traindx_tools.finding import Patch
from traindx_tools.invariants.breach import Remedy
from traindx_tools.knowledge.tables import table

_PLACES = {**vars(statements), **vars(expressions)}


def patches(remedy: Remedy) -> tuple[Patch, ...]:
    """The edits, or none where they are not certain."""
    rows = table("edits.toml")[remedy.kind]
    return next((made for row in rows if (made := _patches(remedy, row))), ())


def _patches(remedy: Remedy, row: dict[str, str]) -> tuple[Patch, ...]:
    place = Place(remedy)
    try:
        found = _PLACES[row["place"].replace(" ", "_")](place)
        change = SourceEdit(place.file, row["summary"].format_map(place))
        for one in found if isinstance(found, list) else [found]:
            node, own = one if isinstance(one, tuple) else (one, None)
            edit = getattr(change, row["edit"].replace(" ", "_"))
            edit(node, row["text"].format_map(place) if own is None else own)
        for statement in place.gone:
            change.delete(statement)
    except Unsure:
        return ()
    return change.patches()
