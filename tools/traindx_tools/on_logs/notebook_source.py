"""A notebook as a log: the source whose bytes are what its cells printed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from traindx_tools.on_code.notebook_outputs import MOST_BYTES, outputs_of_notebook
from traindx_tools.on_logs.artifacts import Source

SUFFIX = ".ipynb"


def of_outputs(source: Source) -> Source:
    """The source with the outputs of its notebook as its bytes; itself where it is none, or holds no output as text.

    Lines are counted in these outputs. A notebook larger than 64 MiB is left as it is.
    """
    if not source.name.lower().endswith(SUFFIX) or source.data is not None:
        return source
    with suppress(OSError):  # what cannot be read is told when it is read as a file
        with source.open() as stream:
            raw = stream.read(MOST_BYTES + 1)
        outputs = outputs_of_notebook(raw.decode("utf-8-sig", errors="replace")) if len(raw) <= MOST_BYTES else None
        if outputs is not None:
            return replace(source, data=outputs.text.encode("utf-8", "replace"))
    return source


def printed_below_cells(source: Source) -> bool:
    """Whether the bytes of this source are the outputs of a notebook."""
    return source.name.lower().endswith(SUFFIX) and source.data is not None and source.local is not None
