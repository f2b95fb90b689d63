"""Gradients that stay inside a jitted step: named where they are made, measured by a function of the same inputs.

`mark` gives each leaf of a gradient a name (`jax.ad_checkpoint.checkpoint_name`, which is the identity and leaves no
trace in what is compiled). From the jaxpr of a step that holds such names, `norms_of_marked` makes a function of the
step's inputs that returns their norms alone: the step itself is not changed, and the update, the metrics and whatever
else the norms do not need is left out by the compiler. Calls, scans, branches and `while` loops are gone into; within
a loop the norm is the root mean square over the iterations.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.nonfinite.interpret import WITHOUT_RESULT
from traindx_tools.on_jax.nonfinite.values import is_inexact

PREFIX = "traindx gradient"
MOST_LEAVES = 2000

Sums = dict[str, tuple[Any, Any]]
"""By name: the sum of the squared norms, and of how many occurrences."""

_numbers = itertools.count()


@dataclass(frozen=True)
class Marks:
    """The leaves of one gradient. `names`: by the name in the jaxpr, the name that the user knows; `place`: the line of
    the user's code that asked for it."""

    function: str
    names: Mapping[str, str]
    place: tuple[str, int] | None = None

    @property
    def key(self) -> tuple[str, tuple[str, int] | None, tuple[str, ...]]:
        """The same for the same gradient in another trace: its function, its line, the arguments that it is of."""
        roots = dict.fromkeys(n.split("[")[0].split(".")[0] for n in self.names.values())
        return self.function, self.place, tuple(roots)


def mark(gradient: Any, function: str, names: Sequence[str],
         place: tuple[str, int] | None = None) -> tuple[Any, Marks | None]:
    """The same gradient with its floating-point leaves named, while it is traced; None where there are none.

    `names`: of all leaves, in the order of the tree.
    """
    import jax
    from jax.ad_checkpoint import checkpoint_name

    leaves, structure = jax.tree_util.tree_flatten(gradient)
    if len(leaves) != len(names) or len(leaves) > MOST_LEAVES:
        return gradient, None
    naming: Callable[..., Any] = checkpoint_name
    number, told, marked = next(_numbers), {}, []
    for index, (leaf, name) in enumerate(zip(leaves, names, strict=True)):
        if internals.is_tracer(leaf) and is_inexact(leaf):
            label = f"{PREFIX} {number} {index}"
            told[label] = name
            leaf = naming(leaf, label)
        marked.append(leaf)
    if not told:
        return gradient, None
    return jax.tree_util.tree_unflatten(structure, marked), Marks(function, told, place)


def marked_in(jaxpr: Any) -> tuple[str, ...]:
    """The names of marked gradients that can be measured from the inputs of a closed jaxpr, in their order."""
    return tuple(_marked(jaxpr))


def norms_of_marked(jaxpr: Any) -> Callable[..., Any]:
    """A jitted function of the inputs of a closed jaxpr: the L2 norms of `marked_in(jaxpr)` as one float32 array."""
    import jax
    import jax.numpy as jnp

    names = marked_in(jaxpr)

    def norms(*values: Any) -> Any:
        sums = _run(jaxpr, values)[1]
        return jnp.stack([jnp.sqrt(sums[n][0] / jnp.maximum(sums[n][1], 1.0)) for n in names])

    made: Callable[..., Any] = getattr(jax.jit, "__wrapped__", jax.jit)(norms)
    return made


def speaks_outside(jaxpr: Any) -> bool:
    """Whether a second run of a closed jaxpr would show outside: it calls the host for a result."""
    return any(
        (eqn.primitive.name == "io_callback" and not all(internals.is_dropped(v) for v in eqn.outvars))
        or eqn.primitive.name in ("infeed", "outfeed")
        or any(speaks_outside(body) for _, body in internals.inner_jaxprs(eqn)) for eqn in jaxpr.jaxpr.eqns)


def label_of(eqn: Any) -> str | None:
    """The name of a marked leaf of a gradient that an equation is, None for other equations."""
    name = str(eqn.params.get("name", "")) if eqn.primitive.name == "name" else ""
    return name if name.startswith(PREFIX) else None


def _marked(jaxpr: Any) -> dict[str, None]:
    """The names in a closed jaxpr and in what is entered from it, each once."""
    found: dict[str, None] = {}
    for eqn in jaxpr.jaxpr.eqns:
        label = label_of(eqn)
        if label is not None:
            found[label] = None
        for body in _entered(eqn):
            found.update(_marked(body))
    return found


def _entered(eqn: Any) -> list[Any]:
    body = internals.called(eqn)
    if body is not None:
        return [body]
    name = eqn.primitive.name
    if name == "cond":
        return list(eqn.params["branches"])
    return [eqn.params["jaxpr"] if name == "scan" else eqn.params["body_jaxpr"]] if name in ("scan", "while") else []


def _run(jaxpr: Any, values: Sequence[Any]) -> tuple[list[Any], Sums]:
    """The outputs of a closed jaxpr, and what was marked on the way."""
    body, sums = jaxpr.jaxpr, _nothing(jaxpr)
    env: dict[Any, Any] = dict(zip(body.constvars, jaxpr.consts, strict=True))
    env.update(zip(body.invars, values, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if internals.is_literal(atom) else env[atom]

    for eqn in body.eqns:
        if eqn.primitive.name in WITHOUT_RESULT and all(internals.is_dropped(v) for v in eqn.outvars):
            continue  # it spoke when the program ran
        given = [read(a) for a in eqn.invars]
        label = label_of(eqn)
        if label is not None:
            outputs = given
            _add(sums, {label: _square(given[0])})
        elif any(_marked(b) for b in _entered(eqn)):
            outputs, inner = _enter(eqn, given)
            _add(sums, inner)
        else:
            outputs = internals.bind(eqn, given)
        env.update((v, o) for v, o in zip(eqn.outvars, outputs, strict=True) if not internals.is_dropped(v))
    return [read(a) for a in body.outvars], sums


def _enter(eqn: Any, given: list[Any]) -> tuple[list[Any], Sums]:
    body = internals.called(eqn)
    if body is not None:
        return _run(body, given)
    return {"scan": _scan, "cond": _cond, "while": _while}[eqn.primitive.name](eqn, given)


def _scan(eqn: Any, given: list[Any]) -> tuple[list[Any], Sums]:
    from jax import lax

    params, body = eqn.params, eqn.params["jaxpr"]
    consts, carries = params["num_consts"], params["num_carry"]
    fixed, carry, xs = given[:consts], given[consts:consts + carries], given[consts + carries:]

    def step(state: Any, x: Any) -> Any:
        held, sums = state
        outputs, inner = _run(body, [*fixed, *held, *x])
        return (outputs[:carries], _joined(sums, inner)), outputs[carries:]

    (last, sums), stacked = lax.scan(step, (carry, _nothing(body)), xs, length=params["length"],
                                     reverse=params["reverse"])
    return [*last, *stacked], sums


def _while(eqn: Any, given: list[Any]) -> tuple[list[Any], Sums]:
    from jax import lax

    params, body = eqn.params, eqn.params["body_jaxpr"]
    tests, consts = params["cond_nconsts"], params["body_nconsts"]
    tested, fixed, carry = given[:tests], given[tests:tests + consts], given[tests + consts:]
    goes_on = internals.as_function(params["cond_jaxpr"])

    def step(state: Any) -> Any:
        held, sums = state
        outputs, inner = _run(body, [*fixed, *held])
        return outputs, _joined(sums, inner)

    last, sums = lax.while_loop(lambda s: goes_on(*tested, *s[0])[0], step, (carry, _nothing(body)))
    return list(last), sums


def _cond(eqn: Any, given: list[Any]) -> tuple[list[Any], Sums]:
    from jax import lax

    branches = eqn.params["branches"]
    none: Sums = {}
    for branch in branches:
        none.update(_nothing(branch))

    def taken(branch: Any) -> Callable[..., Any]:
        def run(*values: Any) -> Any:
            outputs, inner = _run(branch, values)
            return outputs, {**none, **inner}

        return run

    outputs, sums = lax.switch(given[0], [taken(b) for b in branches], *given[1:])
    return list(outputs), sums


def _square(value: Any) -> tuple[Any, Any]:
    import jax.numpy as jnp

    return jnp.sum(jnp.square(jnp.abs(value).astype(jnp.float32))), jnp.float32(1)


def _nothing(jaxpr: Any) -> Sums:
    import jax.numpy as jnp

    return {name: (jnp.float32(0), jnp.float32(0)) for name in _marked(jaxpr)}


def _add(sums: Sums, more: Sums) -> None:
    for name, (square, count) in more.items():
        before = sums[name]
        sums[name] = before[0] + square, before[1] + count


def _joined(sums: Sums, more: Sums) -> Sums:
    found = dict(sums)
    _add(found, more)
    return found
