"""Which framework a file computes with, as its imports say."""

from __future__ import annotations

import re

from traindx_tools.on_code.syntax import Syntax

_BESIDE = re.compile(r"torch\.utils\.(tensorboard|data)(\.|$)")
"""Parts of torch that programs of other frameworks use too: writers of curves and loaders of data."""
_OTHERS = ("jax", "flax", "haiku", "equinox", "optax")


def trains_with_torch(code: Syntax) -> bool:
    """Whether gradients may be torch's: not where a file of JAX imports nothing of torch but a writer or a loader."""
    imported = set(code.aliases.values())
    own = any(_is(name, "torch") and _BESIDE.match(name) is None for name in imported)
    return own or not any(_is(name, other) for name in imported for other in _OTHERS)


def _is(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")
