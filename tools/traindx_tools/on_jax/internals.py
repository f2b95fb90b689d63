"""Every name that traindx takes from inside JAX, in one file: a release that moves one is noticed here and said so.

Known to work from jax 0.4.30 to 0.10.2. Nothing else in `on_jax` imports from `jax._src`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from traindx_tools.errors import TraindxError

KNOWN = "0.4.30 to 0.10.2"


class JaxMoved(TraindxError):
    """A release of JAX no longer has a name that an instrument needs."""

    def __init__(self, name: str) -> None:
        jax = sys.modules.get("jax")
        super().__init__(f"jax {getattr(jax, '__version__', '(not imported)')} has no {name}: it moved inside JAX, and "
                         f"this instrument knows jax {KNOWN}. Update traindx, or use one of these releases here.")


@cache
def _named(path: str) -> Any:
    """What `module:attribute.attribute` holds. Raises JaxMoved."""
    module, _, attributes = path.partition(":")
    try:
        found: Any = import_module(module)
        for attribute in attributes.split("."):
            found = getattr(found, attribute)
    except (ImportError, AttributeError) as error:
        raise JaxMoved(path) from error
    return found


def check() -> None:
    """Raises JaxMoved where a name is missing that the instruments cannot do without."""
    for path in ("jax._src.core:Literal", "jax._src.core:Jaxpr", "jax._src.core:ClosedJaxpr", "jax._src.core:Tracer",
                 "jax._src.core:jaxpr_as_fun", "jax._src.source_info_util:current"):
        _named(path)


# ---- the parts of a jaxpr


def is_typed_key(value: Any) -> bool:
    """Whether an array is of random keys of a type of their own."""
    dtypes = import_module("jax").dtypes
    return hasattr(value, "dtype") and bool(dtypes.issubdtype(value.dtype, dtypes.prng_key))


def is_literal(atom: Any) -> bool:
    """Whether an input of an equation is a value written into it."""
    return isinstance(atom, _named("jax._src.core:Literal"))


def is_dropped(variable: Any) -> bool:
    """Whether an output of an equation is never used."""
    return isinstance(variable, _named("jax._src.core:DropVar"))


def is_tracer(value: Any) -> bool:
    """Whether a value is known by its type only."""
    return isinstance(value, _named("jax._src.core:Tracer"))


def closed(value: Any) -> Any | None:
    """A closed jaxpr for a parameter that is an open or closed one, None for all others."""
    if isinstance(value, _named("jax._src.core:ClosedJaxpr")):
        return value
    if isinstance(value, _named("jax._src.core:Jaxpr")) and not value.constvars:
        return _named("jax._src.core:ClosedJaxpr")(value, ())
    return None


def as_function(jaxpr: Any) -> Callable[..., list[Any]]:
    """The function that a closed jaxpr is."""
    made: Callable[..., list[Any]] = _named("jax._src.core:jaxpr_as_fun")(jaxpr)
    return made


CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")
"""Parameters that hold the body of an equation which calls it once with its own inputs."""
CALLERS = frozenset({
    "jit", "pjit", "closed_call", "core_call", "call", "remat", "remat2", "checkpoint", "custom_jvp_call",
    "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_lin", "xla_call", "core_closed_call", "remat_call",
    "name_call"})  # fmt: skip


def called(eqn: Any) -> Any | None:
    """The closed jaxpr that an equation calls once with exactly its inputs, None where it is no such call."""
    if eqn.primitive.name not in CALLERS:
        return None
    for name in CALLS:
        body = closed(eqn.params.get(name))
        if body is not None and len(body.jaxpr.invars) == len(eqn.invars):
            return body
    return None


def inner_jaxprs(eqn: Any) -> Iterator[tuple[str, Any]]:
    """Every closed jaxpr among the parameters of an equation, with the name of the parameter."""
    for name, value in eqn.params.items():
        several = value if isinstance(value, (tuple, list)) else (value,)
        for index, part in enumerate(several):
            body = closed(part)
            if body is not None:
                yield (f"{name}[{index}]" if several is value else name), body


def size(jaxpr: Any) -> int:
    """How many equations a closed jaxpr holds, those within calls and loops included."""
    return len(jaxpr.jaxpr.eqns) + sum(size(body) for eqn in jaxpr.jaxpr.eqns for _, body in inner_jaxprs(eqn))


def bind(eqn: Any, values: Sequence[Any]) -> list[Any]:
    """The outputs of an equation for concrete inputs: what `jax.core.eval_jaxpr` does for one equation."""
    return bind_with(eqn, values, eqn.params)


def bind_with(eqn: Any, values: Sequence[Any], given: dict[str, Any]) -> list[Any]:
    """The same with other parameters."""
    found = eqn.primitive.get_bind_params(given)
    functions, params = found if isinstance(found, tuple) else ((), found)
    with eqn.ctx.manager if hasattr(eqn, "ctx") else contextlib.nullcontext():
        outputs = eqn.primitive.bind(*functions, *values, **params)
    return list(outputs) if eqn.primitive.multiple_results else [outputs]


@contextlib.contextmanager
def wide() -> Iterator[None]:
    """Within it numbers may have 64 bits."""
    made: Any = getattr(import_module("jax"), "enable_x64", None)
    if not callable(made):  # before 0.8
        made = _named("jax.experimental:enable_x64")
    with made(True):
        yield


# ---- shard_map


def mesh_sizes(eqn: Any) -> dict[str, int]:
    """The axes over which the body of a `shard_map` is written by hand, with their sizes. Raises JaxMoved."""
    sizes = {str(name): int(size) for name, size in dict(eqn.params["mesh"].shape).items()}
    manual = eqn.params.get("newly_manual_axes", eqn.params.get("manual_axes"))
    automatic = eqn.params.get("auto") or (set(sizes) - set(manual) if manual is not None else ())
    if automatic:
        raise JaxMoved("way to take a shard_map apart whose mesh has automatic axes")
    return sizes


def sharded_axes(eqn: Any) -> list[dict[int, tuple[str, ...]]]:
    """For each input of a `shard_map`: the mesh axes that its axes are split over. Raises JaxMoved."""
    if "in_names" in eqn.params:  # before 0.5
        return [dict(names) for names in eqn.params["in_names"]]
    if "in_specs" not in eqn.params:
        raise JaxMoved("parameter in_specs of shard_map")
    return [{i: (part,) if isinstance(part, str) else tuple(part) for i, part in enumerate(spec) if part is not None}
            for spec in eqn.params["in_specs"]]


# ---- where an equation comes from

Frame = tuple[str, int, str]
"""File, line, function."""


def frames(eqn: Any) -> Iterator[Frame]:
    """The Python frames that made an equation, the innermost first, up to where its own jaxpr began to be traced.

    What lies further out called that jaxpr when it was traced: for one from a cache that was another place.
    """
    traceback = eqn.source_info.traceback
    for frame in traceback.frames if traceback is not None else ():
        if frame.function_name.startswith("trace_to_"):
            return
        yield frame.file_name, frame.line_num, frame.function_name


def stack(eqn: Any) -> str:
    """The names and transformations around an equation, such as `transpose(jvp(vmap()))`."""
    return str(eqn.source_info.name_stack)


@contextlib.contextmanager
def fresh_sources(is_users: Callable[[str], bool]) -> Iterator[None]:
    """Within it equations that user code makes while JAX replays others get the line of that code.

    JAX gives what the backward rule of a custom_vjp computes the line where the function was called, and releases
    before 0.5 do not say that an equation belongs to the backward pass; both are read from the Python stack here.
    """
    module = import_module("jax._src.source_info_util")
    original = _named("jax._src.source_info_util:current")
    context = getattr(module, "_source_info_context", None)
    traceback_of = _fresh_traceback()
    if context is None or traceback_of is None:
        yield
        return

    def current() -> Any:
        found = original()
        if not context.context.traceback:
            return found
        replayed, by_user = _replaying(is_users)
        if replayed and "transpose" not in str(found.name_stack):
            found = found.replace(name_stack=found.name_stack.extend("transpose()"))
        return found.replace(traceback=traceback_of()) if by_user else found

    module.current = current  # type: ignore[attr-defined]
    try:
        yield
    finally:
        if module.current is current:
            module.current = original  # type: ignore[attr-defined]


_REPLAYS = frozenset({"backward_pass", "backward_pass3"})


def _replaying(is_users: Callable[[str], bool]) -> tuple[bool, bool]:
    """Whether JAX runs a backward pass on this thread, and whether it called code of the user's in it."""
    frame = sys._getframe(2)
    users = False
    while frame is not None:
        code = frame.f_code
        if code.co_name in _REPLAYS and "jax" in code.co_filename:
            return True, users
        users = users or is_users(code.co_filename)
        frame = frame.f_back  # type: ignore[assignment]
    return False, False


def _fresh_traceback() -> Callable[[], Any] | None:
    module = import_module("jax._src.source_info_util")
    client = getattr(module, "xla_client", None)
    found = getattr(getattr(client, "Traceback", None), "get_traceback", None)
    return found if callable(found) else None


# ---- the running process


def at_top_level() -> bool:
    """Whether values are computed now, rather than traced."""
    clean: bool = _named("jax._src.core:trace_state_clean")()
    return clean


def compilations(jitted: Any) -> int | None:
    """How many signatures a jitted function was called with, None where this release does not say."""
    size = getattr(jitted, "_cache_size", None)
    return int(size()) if callable(size) else None


def on_lowering(seen: Callable[[Any, str], None]) -> Callable[[], None]:
    """Calls `seen(closed jaxpr, name)` whenever JAX compiles one; returns what ends that. Nothing is traced for it."""
    module = import_module("jax._src.interpreters.pxla")
    original = _named("jax._src.interpreters.pxla:lower_sharding_computation")

    def lower(closed_jaxpr: Any, api_name: Any, fun_name: Any, *args: Any, **kwargs: Any) -> Any:
        seen(closed_jaxpr, str(fun_name))
        return original(closed_jaxpr, api_name, fun_name, *args, **kwargs)

    module.lower_sharding_computation = lower  # type: ignore[attr-defined]

    def end() -> None:
        if module.lower_sharding_computation is lower:
            module.lower_sharding_computation = original  # type: ignore[attr-defined]

    return end
