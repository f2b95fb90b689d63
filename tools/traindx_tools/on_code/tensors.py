"""Tensors of several others: what of their dtype, graph and models holds for the result."""

from __future__ import annotations

from dataclasses import replace

from traindx_tools.knowledge.names import DTYPES
from traindx_tools.on_code.values import Const, Ref, Site, Tensor, Value


def dtype_of(value: Value | None) -> str | None:
    """The dtype that a value names: torch.float16, jnp.bfloat16, "float32", float."""
    if isinstance(value, Ref):
        return DTYPES.get(value.name.rpartition(".")[2])
    if isinstance(value, Const) and isinstance(value.value, str):
        return DTYPES.get(value.value.rpartition(".")[2])
    return None


def merged(tensors: list[Tensor], site: Site) -> Tensor:
    """A result of several tensors: attached if any is, detached if all are, nothing known of its content."""
    grads = [t.grad for t in tensors]
    grad = True if True in grads else (None if None in grads else False)
    dtypes = {t.dtype for t in tensors}
    models = frozenset().union(*(t.models for t in tensors))
    return Tensor(
        grad=grad,
        dtype=dtypes.pop() if len(dtypes) == 1 else None,
        site=site,
        models=models,
        parents=frozenset().union(*(lineage(t) for t in tensors)) if grad is not False else frozenset(),
        copies=frozenset().union(*(t.copies for t in tensors)),
    )


def lineage(t: Tensor) -> frozenset[Site]:
    """The sites from which its graph comes: its own and its parents', at most 60."""
    own = frozenset({t.site}) if t.site is not None and t.grad is not False else frozenset()
    return own | t.parents if len(t.parents) < 60 else t.parents


WRITTEN = "written@"
"""Begins the tag of an array into which a method of its owner writes: where."""


def written_at(x: Tensor) -> Site | None:
    """Where a method of its owner writes into an array that is handed out as it is."""
    places = (t[len(WRITTEN):].rpartition(":") for t in x.tags if t.startswith(WRITTEN))
    path, line = min(((path, int(line)) for path, _, line in places), default=("", 0))
    return Site(path, line) if path else None


def copied(x: Tensor) -> Tensor:
    """The same elements in memory of its own."""
    return replace(x, tags=frozenset(t for t in x.tags if not t.startswith(WRITTEN)))
