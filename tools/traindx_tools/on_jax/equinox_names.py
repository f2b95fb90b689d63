"""Names of arguments under `equinox.filter_jit`, which hands jit two dicts of flat tuples and a static remainder."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

PARTS = ("fun", "first", "rest")
"""What the dicts hold: the function's own arrays, its first argument, and `(other arguments, keyword arguments)`."""


def equinox_names(fn: Callable[..., Any], args: Sequence[Any], paths: Sequence[Any]) -> Mapping[int, str]:
    """`net.layers[0].weight` for each leaf of such a call, by its number; empty where it is none.

    `paths`: those of the leaves of `(args, kwargs)`.
    """
    if not str(getattr(fn, "__module__", "")).startswith("equinox") or len(args) != 3 or not _split(args):
        return {}
    try:
        told = {part: _paths(static[1]) for part, static in zip(PARTS, args[2], strict=True)}
    except Exception:  # noqa: BLE001 - a node of the user's that cannot be built of numbers keeps the flat names
        return {}
    parameters = _parameters(args[2][0][0])
    found = {}
    for i, path in enumerate(paths):
        if path[0].idx == 0 and path[1].idx < 2 and path[2].key in told:
            name = _name(path[2].key, told[path[2].key][path[3].idx], parameters)
            found[i] = name if name.split("[")[0].split(".")[0] != "static" else f"argument {name}"
    return found


def _split(args: Sequence[Any]) -> bool:
    return (all(isinstance(a, dict) and set(a) <= set(PARTS) for a in args[:2]) and isinstance(args[2], tuple)
            and len(args[2]) == 3 and all(isinstance(s, tuple) and len(s) == 2 for s in args[2]))


def _paths(structure: Any) -> list[Any]:
    """The path of each leaf of a structure."""
    import jax

    tree = jax.tree_util.tree_unflatten(structure, list(range(structure.num_leaves)))
    return [path for path, _ in jax.tree_util.tree_flatten_with_path(tree)[0]]


def _parameters(static: Sequence[Any]) -> list[str]:
    """The names of the parameters of the function that is among these leaves."""
    function = next((f for f in static if inspect.isfunction(f)), None)
    return list(inspect.signature(function).parameters) if function is not None else []


def _name(part: str, path: Any, parameters: Sequence[str]) -> str:
    import jax

    if part == "fun":
        return f"self{jax.tree_util.keystr(tuple(path))}"
    if part == "rest" and path[0].idx == 1:
        return f"{path[1].key}{jax.tree_util.keystr(tuple(path[2:]))}"
    index, rest = (0, path) if part == "first" else (path[1].idx + 1, path[2:])
    name = parameters[index] if index < len(parameters) else f"argument {index}"
    return f"{name}{jax.tree_util.keystr(tuple(rest))}"


def function_of(watched: Any, args: Sequence[Any]) -> Any:
    """The function that a call of a jitted one runs: with equinox it is among the arguments."""
    fn = getattr(watched.inner, "__wrapped__", watched.inner)
    if not str(getattr(fn, "__module__", "")).startswith("equinox") or len(args) != 3 or not _split(args):
        return fn
    try:
        return next((f for f in args[2][0][0] if inspect.isfunction(f)), fn)
    except (TypeError, IndexError):
        return fn
