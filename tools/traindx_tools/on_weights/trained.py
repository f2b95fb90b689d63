"""How a checkpoint tells that its weights were trained: shifts that moved, counted steps, its name, spectra."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

import numpy as np

from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.spectra import above_edge
from traindx_tools.on_weights.statistics import measure
from traindx_tools.on_weights.tensor import Tensor

_STEPS = frozenset({"global_step", "global_steps", "step", "steps", "iteration", "iter", "num_steps", "trainer_step",
                    "count"})
_IN_NAME = re.compile(r"(?i)(?:step|iter|checkpoint|ckpt)[-_=]?0*(\d+)")
_SCALES, _SHIFTS = ("weight", "scale", "gamma"), ("bias", "beta", "offset")
_MATRICES, _EDGE = 6, 2.0
"""Matrices whose spectra are looked at; times the width of the edge that noise does not pass."""
_SMALL = 2**20


def affine_moved(checkpoint: Checkpoint, module: str) -> str:
    """The shift of a normalisation that is off zero, or its scale where it has no shift; "" for neither.

    A scale alone may be drawn (normal around one in many generators); a shift begins at zero everywhere.
    """
    shift, scale = (_beside(checkpoint, module, names) for names in (_SHIFTS, _SCALES))
    told = shift or scale
    if told is None or told.nbytes > _SMALL:
        return ""
    values = told.load()
    return told.name if np.isfinite(values).all() and values.size > 1 and values.min() != values.max() else ""


def _beside(checkpoint: Checkpoint, module: str, names: tuple[str, ...]) -> Tensor | None:
    """In the part of the statistics, or in that of the parameters under the same path."""
    rest = module.partition(".")[2]
    for part in checkpoint.parts:
        if part.auxiliary:
            continue
        for name in names:
            for key in (f"{module}.{name}", f"{module}/{name}", f"params.{rest}.{name}"):
                if key in part.tensors and part.tensors[key].floating:
                    return part.tensors[key]
    return None


def steps_of(checkpoint: Checkpoint) -> str:
    """Where the file counts steps, with the number: a value, an optimizer's count, or its name; "" for none."""
    values = [(k, v) for k, v in checkpoint.values.items()]
    values += [(t.key or n, t) for p in checkpoint.parts for n, t in p.tensors.items() if t.size == 1]
    values += [(f"{o.key or 'optimizer'}.state.{k}.{n}", v) for o in checkpoint.optimizers
               for k, state in list(o.state.items())[:1] if isinstance(state, Mapping) for n, v in state.items()]
    for key, value in values:
        count = _number(value) if re.split(r"[./]", key)[-1] in _STEPS else 0
        if count > 0:
            return f"{key} is {count:g}"
    named = _IN_NAME.search(os.path.basename(checkpoint.path.rstrip("/")))
    return f"the file is called {named[0]}" if named and int(named[1]) > 0 else ""


def _number(value: object) -> float:
    if isinstance(value, Tensor):
        found = float(np.asarray(value.load()).reshape(-1)[0]) if value.size == 1 else 0.0
    else:
        found = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0
    return found if np.isfinite(found) else 0.0


def beyond_noise(checkpoint: Checkpoint) -> str:
    """A matrix of the model whose first directions no initialiser draws, where most are so; "" otherwise."""
    matrices = [t for t in checkpoint.weights.tensors.values() if t.matrix and t.floating and len(t.shape) > 1
                and t.nbytes <= _SMALL][:_MATRICES]
    edges = {t.name: e for t in matrices if (e := above_edge(measure(t))) is not None}
    trained = [n for n, e in edges.items() if e > _EDGE]
    return trained[0] if len(trained) >= 2 and 2 * len(trained) > len(edges) else ""
