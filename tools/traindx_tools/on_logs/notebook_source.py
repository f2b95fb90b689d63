"""A notebook as a log: the source whose bytes are what its cells printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from traindx_tools.notebooks.cells import why_no_notebook
from traindx_tools.notebooks.outputs import MOST_BYTES, Outputs, outputs_of_notebook
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.run import Series

SUFFIX = ".ipynb"


def of_outputs(source: Source) -> Source:
    """The source with the outputs of its notebook as its bytes; itself where it is none, or holds no output as text.

    Lines are counted in these outputs. A notebook larger than 64 MiB is left as it is.
    """
    if not source.name.lower().endswith(SUFFIX) or source.data is not None:
        return source
    with suppress(OSError):  # what cannot be read is told when it is read as a file
        with source.text() as stream:
            raw = stream.read(MOST_BYTES + 1)
        outputs = outputs_of_notebook(raw.decode("utf-8-sig", errors="replace")) if len(raw) <= MOST_BYTES else None
        if outputs is not None:
            return replace(source, data=outputs.text.encode("utf-8", "replace"), sections=outputs.starts)
    return source


def why_unreadable(source: Source) -> str:
    """In words why a notebook is none; "" where it is one, or is too large to be looked at. Raises OSError."""
    with source.text() as stream:
        raw = stream.read(MOST_BYTES + 1)
    if not raw.strip():
        return "an empty file" if not raw else "only blanks"
    why = why_no_notebook(raw.decode("utf-8-sig", errors="replace")) if len(raw) <= MOST_BYTES else ""
    return f"refused: {why}" if why else ""


def printed_below_cells(source: Source) -> bool:
    """Whether the bytes of this source are the outputs of a notebook, or the lines of one run among them."""
    return source.name.lower().endswith(SUFFIX) and source.data is not None


def by_cells(series: Iterable[Series]) -> Iterator[Series]:
    """The series, those of a notebook's outputs a piece a cell: `a.ipynb:cell 3 output`, with its own lines."""
    known: dict[str, Outputs | None] = {}
    for one in series:
        if one.source.lower().endswith(SUFFIX) and one.source not in known:
            known[one.source] = _outputs(one.source)
        outputs = known.get(one.source)
        if outputs is None or not len(one):
            yield one
            continue
        starts = np.asarray(outputs.starts)
        at = np.maximum(np.searchsorted(starts, one.line, side="right") - 1, 0)
        for place in np.unique(at).tolist():
            held = at == place
            yield replace(one, source=f"{one.source}:cell {outputs.cells[place]} output", values=one.values[held],
                          step=one.step[held], epoch=one.epoch[held], time=one.time[held],
                          line=one.line[held] - starts[place] + 1)


def _outputs(path: str) -> Outputs | None:
    with suppress(OSError):
        return outputs_of_notebook(Path(path).read_bytes().decode("utf-8-sig", errors="replace"))
    return None
