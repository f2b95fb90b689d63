"""Which part of what `grad` or `value_and_grad` returned is the gradient, and what its leaves are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from traindx_tools.on_jax.paths.marked import Marks, mark
from traindx_tools.on_jax.tracing import argument_names

if TYPE_CHECKING:
    from traindx_tools.on_jax.watched import Watched


def marked_call(watched: Watched, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any,
                aux: bool, place: tuple[str, int] | None = None) -> tuple[Any, Marks | None]:
    """The output of a traced call with the gradient in it marked; None where it is not recognised.

    `place`: the line of the user's code that makes the call.
    """
    alone = watched.kind == "grad" and not aux
    if not alone and not (isinstance(output, tuple) and len(output) == 2):
        return output, None
    at = 0 if watched.kind == "grad" else 1
    gradient = output if alone else output[at]
    marked, marks = mark(gradient, watched.name, _names(watched, args, kwargs), place)
    if marks is None or alone:
        return marked, marks
    return (marked, output[1]) if at == 0 else (output[0], marked), marks


def _names(watched: Watched, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sequence[str]:
    """The names of the leaves of the arguments that the gradient is of."""
    import jax

    names = argument_names(watched, args, kwargs)
    chosen = watched.argnums if isinstance(watched.argnums, (tuple, list)) else (watched.argnums,)
    ends = [0]
    for argument in args:
        ends.append(ends[-1] + len(jax.tree_util.tree_leaves(argument)))
    return [n for k in chosen for n in names[ends[k % len(args)]:ends[k % len(args) + 1]]]
