"""Frames of a Python traceback, and whose code each one is: the user's or a library's."""

from __future__ import annotations

import re

from traindx_tools.on_logs.run import Frame

_PYTHON = re.compile(r'\s*File "(?P<file>[^"]{1,1000})", line (?P<line>\d{1,9})(?:,? in (?P<function>.{1,300}))?\s*$')
_JUPYTER = re.compile(r"File (?P<file>\S[^\n]{0,1000}?):(?P<line>\d{1,9})(?:, in (?P<function>[^\n(]{1,300}).*)?$")
_CELL = re.compile(r"(?:Cell |Input )?In ?\[(?P<cell>\d+)\](?:, line (?P<line>\d+)|, in .*)")
_CARETS = re.compile(r"\s*[\^~]+[\^~ ]*$")

_INSTALLED = re.compile(
    r"""site-packages/ | dist-packages/ | /lib(?:64)?/python\d | [/\\]python\d+\.?\d*[/\\]lib[/\\] | python3\d*\.zip
      | ^<(?!stdin|ipython|cell|module)                        # <frozen runpy>, <string>, <eval_with_key>.3
      | (?:^|/)torch/(?:nn|autograd|utils|distributed|cuda|amp|optim|multiprocessing|fx|jit|_\w+|functional\.py|
                        serialization\.py|storage\.py|hub\.py)
      | (?:^|/)(?:jax|jaxlib|flax|optax|orbax|equinox)/(?:_src|experimental|interpreters|linen|nnx|core)
      | (?:^|/)traindx_tools/(?:live|on_torch|on_jax)/         # what `traindx run` attaches
      | (?:^|/)jaxlib/ | (?:^|/)numpy/(?:core|_core|lib|linalg|random)/
      | /bin/(?:torchrun|accelerate|deepspeed|jupyter|pytest|ray)$
    """,
    re.VERBOSE | re.IGNORECASE,
)


def is_library(file: str) -> bool:
    """Whether a file belongs to an installed package or the standard library (by its path: nothing is opened)."""
    return _INSTALLED.search(file.replace("\\", "/")) is not None


def frame_of(text: str) -> Frame | None:
    """The frame that a line of a plain traceback announces (`File "train.py", line 3, in main`), or None."""
    if 'File "' not in text:
        return None
    match = _PYTHON.match(text)
    if match is None:
        return None
    return _frame(match["file"], match["line"], match["function"] or "<module>")


def jupyter_frame_of(text: str) -> Frame | None:
    """The frame that a line of IPython's traceback announces (`Cell In[3], line 2`, `File ~/a.py:7, in f(x)`)."""
    cell = _CELL.match(text)
    if cell is not None:
        return Frame(f"Cell In[{cell['cell']}]", int(cell["line"] or 0), "<module>")
    match = _JUPYTER.match(text)
    return None if match is None else _frame(match["file"], match["line"], match["function"] or "<module>")


def is_carets(text: str) -> bool:
    """Whether a line only points at a part of the code line above it (Python 3.11 and newer)."""
    return _CARETS.match(text) is not None


def _frame(file: str, line: str, function: str) -> Frame:
    return Frame(file, int(line), function.strip(), library=is_library(file))
