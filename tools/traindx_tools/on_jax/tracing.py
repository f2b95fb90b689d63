"""From a function and its arguments to a jaxpr whose inputs and outputs have the names that the user knows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.equinox_names import equinox_names
from traindx_tools.on_jax.places import is_users


@dataclass(frozen=True, eq=False)
class Traced:
    """A traced function. `values` are the arrays for the jaxpr's inputs (types where only types were given)."""

    name: str
    jaxpr: Any
    values: tuple[Any, ...]
    inputs: tuple[str, ...]
    """`params['enc']['w']`, one for each input."""
    outputs: tuple[str, ...]
    """`[0]['enc']['w']`, one for each output."""
    positions: tuple[int | None, ...] = ()
    """The position of the argument that each input belongs to; None for keyword arguments."""


def trace(fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Traced:
    """Traces a function for these arguments (arrays, or types such as jax.ShapeDtypeStruct).

    Leaves that are no arrays stay as they are; Python numbers become arrays unless the function needs them as numbers.
    Raises what the function raises when it is traced.
    """
    import jax

    internals.check()
    given = (tuple(args), dict(kwargs or {}))
    leaves, structure = jax.tree_util.tree_flatten_with_path(given)
    known = unwrapped(fn)
    names = _names(known, [path for path, _ in leaves])
    static = _static(fn, names)
    for traceable in (_is_array_or_number, _is_array):
        dynamic = [i for i, (_, leaf) in enumerate(leaves) if traceable(leaf) and not static[i]]
        try:
            made, shape = _made(fn, [leaf for _, leaf in leaves], structure, dynamic)
        except Exception:  # a number that decides about shapes or branches has to stay a number
            if traceable is _is_array:
                raise
            continue
        out = [_path(path) for path, _ in jax.tree_util.tree_flatten_with_path(shape)[0]]
        return Traced(getattr(known, "__name__", type(known).__name__), made, tuple(leaves[i][1] for i in dynamic),
                      tuple(names[i] for i in dynamic), tuple(out), tuple(_position(leaves[i][0]) for i in dynamic))
    raise AssertionError("the last attempt returns or raises")


def lowered(fn: Any, jaxpr: Any, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any = None) -> Traced:
    """What JAX compiled for a call, with names; the values are left out."""
    import jax

    leaves, _ = jax.tree_util.tree_flatten_with_path((tuple(args), dict(kwargs)))
    known = unwrapped(fn)
    names = _names(known, [path for path, _ in leaves], args)
    static = _static(fn, names)
    dynamic = [i for i in range(len(leaves)) if not static[i]]
    told = [names[i] for i in dynamic]
    count = len(jaxpr.jaxpr.invars)
    if len(told) != count:
        told, dynamic = [f"input {i}" for i in range(count)], []
    out = [_path(path) for path, _ in jax.tree_util.tree_flatten_with_path(output)[0]]
    if len(out) != len(jaxpr.jaxpr.outvars):
        out = [f"[{i}]" for i in range(len(jaxpr.jaxpr.outvars))]
    return Traced(getattr(known, "__name__", type(known).__name__), jaxpr, (), tuple(told), tuple(out),
                  tuple(_position(leaves[i][0]) for i in dynamic))


def dynamic_leaves(fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The argument leaves of a call without those of static arguments, in the order of the jaxpr's inputs."""
    import jax

    leaves, _ = jax.tree_util.tree_flatten_with_path((tuple(args), dict(kwargs)))
    static = _static(fn, _names(unwrapped(fn), [path for path, _ in leaves], args))
    return [leaf for (_, leaf), kept in zip(leaves, static, strict=True) if not kept]


def dynamic_numbers(fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[int]:
    """The numbers of these leaves among all argument leaves of the call."""
    import jax

    leaves, _ = jax.tree_util.tree_flatten_with_path((tuple(args), dict(kwargs)))
    return [i for i, kept in enumerate(_static(fn, _names(unwrapped(fn), [path for path, _ in leaves], args)))
            if not kept]


def argument_names(fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    """`params['enc']['w']` for each argument leaf of a call, static ones included."""
    import jax

    leaves, _ = jax.tree_util.tree_flatten_with_path((tuple(args), dict(kwargs)))
    return _names(unwrapped(fn), [path for path, _ in leaves], args)


def signature(fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, tuple[tuple[str, str], ...]]:
    """What a jitted function's cache looks at, by argument leaf: pairs of a property and its value."""
    import jax

    leaves, _ = jax.tree_util.tree_flatten_with_path((tuple(args), dict(kwargs)))
    names = _names(unwrapped(fn), [path for path, _ in leaves], args)
    static = _static(fn, names)
    return {n: _properties(leaf, kept) for n, (_, leaf), kept in zip(names, leaves, static, strict=True)}


def _properties(leaf: Any, static: bool) -> tuple[tuple[str, str], ...]:
    if static:
        return (("static value", repr(leaf)[:80]),)
    if not _is_array(leaf):
        return (("kind", type(leaf).__name__),)
    return (("shape", str(tuple(leaf.shape))), ("dtype", str(leaf.dtype)),
            ("weak type", str(bool(getattr(leaf, "weak_type", False)))), ("kind", type(leaf).__name__))


def type_of(value: Any) -> tuple[tuple[int, ...], str]:
    """Shape and dtype of an array, or of what stands for one."""
    return tuple(getattr(value, "shape", ())), str(getattr(value, "dtype", ""))


def _position(path: Any) -> int | None:
    return path[1].idx if path[0].idx == 0 else None


def unwrapped(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function that the user wrote, below jit and the like."""
    seen = 0
    while hasattr(fn, "__wrapped__") and seen < 20:
        fn, seen = fn.__wrapped__, seen + 1
    return getattr(fn, "func", fn)


def _made(fn: Callable[..., Any], leaves: list[Any], structure: Any, dynamic: list[int]) -> tuple[Any, Any]:
    import jax

    called = _without_jit(fn)

    def of_arrays(*arrays: Any) -> Any:
        filled = list(leaves)
        for i, array in zip(dynamic, arrays, strict=True):
            filled[i] = array
        args, kwargs = jax.tree_util.tree_unflatten(structure, filled)
        return called(*args, **kwargs)

    with internals.fresh_sources(is_users):
        made, shape = jax.make_jaxpr(of_arrays, return_shape=True)(*(leaves[i] for i in dynamic))
    return made, shape


def _without_jit(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function below an outermost jit: it is traced anew, so that no earlier trace answers."""
    inner = getattr(fn, "__wrapped__", None)
    jitted = callable(getattr(fn, "lower", None)) and callable(inner)
    return inner if jitted and inner is not None else fn


def _static(fn: Callable[..., Any], names: Sequence[str]) -> list[bool]:
    """Which leaves belong to arguments that a watched jit was told to keep static."""
    chosen: frozenset[str] = getattr(fn, "static_names", frozenset())
    return [_root(n) in chosen for n in names]


def _root(name: str) -> str:
    return name.split("[")[0].split(".")[0]


def _is_array(leaf: Any) -> bool:
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def _is_array_or_number(leaf: Any) -> bool:
    return _is_array(leaf) or (isinstance(leaf, (int, float, complex, np.number)) and not isinstance(leaf, bool))


def _names(fn: Callable[..., Any], paths: Sequence[Any], args: Sequence[Any] = ()) -> list[str]:
    """`params['w']` for the path of a leaf in `(args, kwargs)`."""
    known = equinox_names(fn, args, paths)
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):  # a function without a signature: built in
        parameters = []
    return [known.get(i) or _name(parameters, path) for i, path in enumerate(paths)]


def _name(parameters: Sequence[inspect.Parameter], path: Any) -> str:
    which = path[0].idx
    if which == 1:
        return f"{path[1].key}{_path(path[2:])}"
    index = path[1].idx
    if index < len(parameters) and parameters[index].kind in (inspect.Parameter.POSITIONAL_ONLY,
                                                              inspect.Parameter.POSITIONAL_OR_KEYWORD):
        return f"{parameters[index].name}{_path(path[2:])}"
    variadic = next((p for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), None)
    if variadic is not None:
        return f"{variadic.name}[{index - parameters.index(variadic)}]{_path(path[2:])}"
    return f"argument {index}{_path(path[2:])}"


def _path(path: Any) -> str:
    import jax

    found: str = jax.tree_util.keystr(tuple(path))
    return found
