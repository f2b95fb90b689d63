"""A jaxpr run again: in another precision, with gradients clipped or measured, or operation by operation.

Every value of the run has the dtype that its variable is raised to, so that loops and branches keep their types. What
cannot be done in that dtype (the bits of a number, a kernel) is done in its own, and its result raised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.nonfinite.interpret import WITHOUT_RESULT
from traindx_tools.on_jax.paths.marked import label_of

SINGLE, DOUBLE = "float32", "float64"
_BITS = frozenset({"bitcast_convert_type", "random_bits", "threefry2x32", "nextafter", "random_wrap", "random_unwrap"})
_PRECISE = ("dot_general", "conv_general_dilated")


@dataclass(frozen=True)
class Conditions:
    """What is otherwise than in the call itself; nothing by default."""

    precision: str = ""
    """Floating values of less precision are raised to this dtype."""
    compiled: bool = True
    exact_products: bool = False
    clip: float = 0.0
    """Gradients whose norm is larger are made so large; 0: none."""


PLAIN = Conditions()


@dataclass
class Took:
    """What the conditions took hold of while the jaxpr was run."""

    count: int = 0
    squares: list[Any] = field(default_factory=list)
    """Of marked gradients."""


def function_of(jaxpr: Any, conditions: Conditions, took: Took) -> Callable[..., tuple[list[Any], Any]]:
    """A function of the jaxpr's inputs: its outputs, and the norm of its marked gradients (NaN without any)."""
    import jax
    import jax.numpy as jnp

    again = _Again(conditions, took)

    def run(*values: Any) -> tuple[list[Any], Any]:
        took.count, took.squares = 0, []
        outputs = again.run(jaxpr, [again.raised(v) for v in values])
        norm = jnp.sqrt(sum(took.squares)) if took.squares else jnp.float32(math.nan)
        return outputs, norm

    if not conditions.compiled:
        return run
    made: Callable[..., tuple[list[Any], Any]] = getattr(jax.jit, "__wrapped__", jax.jit)(run)
    return made


class _Again:
    def __init__(self, conditions: Conditions, took: Took) -> None:
        self._conditions, self._took = conditions, took
        self._loops = 0
        """Loops and branches around what is run: gradients within are not measured."""

    # ---- dtypes

    def dtype(self, dtype: Any) -> Any:
        """What becomes of a dtype."""
        import jax.numpy as jnp

        wanted = self._conditions.precision
        if not wanted or not jnp.issubdtype(dtype, jnp.floating):
            return dtype
        return np.dtype(wanted) if np.dtype(dtype).itemsize < np.dtype(wanted).itemsize else dtype

    def raised(self, value: Any) -> Any:
        """A value in its dtype."""
        import jax.numpy as jnp

        if not self._conditions.precision or not hasattr(value, "dtype"):
            return value
        wanted = self.dtype(value.dtype)
        return value if wanted == value.dtype else jnp.asarray(value).astype(wanted)

    def _params(self, params: dict[str, Any]) -> dict[str, Any]:
        return {k: self.dtype(v) if isinstance(v, np.dtype) else v for k, v in params.items()}

    # ---- evaluation

    def run(self, jaxpr: Any, values: Sequence[Any]) -> list[Any]:
        """The outputs of a closed jaxpr."""
        body = jaxpr.jaxpr
        env: dict[Any, Any] = dict(zip(body.constvars, map(self.raised, jaxpr.consts), strict=True))
        env.update(zip(body.invars, values, strict=True))

        def read(atom: Any) -> Any:
            return self._literal(atom) if internals.is_literal(atom) else env[atom]

        done: set[int] = set()
        for index, eqn in enumerate(body.eqns):
            if index in done or (eqn.primitive.name in WITHOUT_RESULT and all(map(internals.is_dropped, eqn.outvars))):
                continue
            if label_of(eqn) is not None:
                done |= self._gradient(body.eqns, index, env)
                continue
            outputs = self._outputs(eqn, [read(a) for a in eqn.invars])
            env.update((v, o) for v, o in zip(eqn.outvars, outputs, strict=True) if not internals.is_dropped(v))
        return [read(a) for a in body.outvars]

    def _literal(self, atom: Any) -> Any:
        value = atom.val
        if not self._conditions.precision or not hasattr(atom.aval, "dtype"):
            return value
        wanted = self.dtype(atom.aval.dtype)
        return value if wanted == atom.aval.dtype else np.asarray(value, wanted)

    def _gradient(self, eqns: Sequence[Any], index: int, env: dict[Any, Any]) -> set[int]:
        """All leaves of one gradient, which stand together and were made before: measured, and clipped where asked."""
        import jax.numpy as jnp

        number = _gradient_number(eqns[index])
        group = [i for i in range(index, len(eqns)) if label_of(eqns[i]) is not None
                 and _gradient_number(eqns[i]) == number and eqns[i].invars[0] in env]
        leaves = [env[eqns[i].invars[0]] for i in group]
        if self._loops:
            env.update((eqns[i].outvars[0], v) for i, v in zip(group, leaves, strict=True))
            return set(group)
        square = sum(jnp.sum(jnp.square(jnp.abs(v).astype(jnp.float32))) for v in leaves)
        self._took.squares.append(square)
        if self._conditions.clip:
            self._took.count += 1
            factor = self._conditions.clip / jnp.maximum(jnp.sqrt(square), self._conditions.clip)
            leaves = [v * factor.astype(v.dtype) for v in leaves]
        for i, leaf in zip(group, leaves, strict=True):
            env[eqns[i].outvars[0]] = leaf
        return set(group)

    def _outputs(self, eqn: Any, given: list[Any]) -> list[Any]:
        body = internals.called(eqn)
        if body is not None:
            return self.run(body, given)
        if self._conditions.precision:
            return [self._to(v, o) for v, o in zip(eqn.outvars, self._raised_outputs(eqn, given), strict=True)]
        if self._conditions.exact_products and eqn.primitive.name in _PRECISE:
            return self._precisely(eqn, given)
        return internals.bind(eqn, given)

    def _to(self, variable: Any, output: Any) -> Any:
        wanted = self.dtype(variable.aval.dtype) if hasattr(variable.aval, "dtype") else None
        if wanted is None or not hasattr(output, "dtype") or output.dtype == wanted:
            return output
        return output.astype(wanted)

    def _raised_outputs(self, eqn: Any, given: list[Any]) -> list[Any]:
        lower = any(hasattr(v.aval, "dtype") and self.dtype(v.aval.dtype) != v.aval.dtype
                    for v in (*eqn.invars, *eqn.outvars))
        if not lower:
            return internals.bind(eqn, given)
        self._took.count += 1
        name = eqn.primitive.name
        if name in ("scan", "while", "cond"):
            self._loops += 1
            try:
                return {"scan": self._scan, "while": self._while, "cond": self._cond}[name](eqn, given)
            finally:
                self._loops -= 1
        if name not in _BITS:
            try:
                return internals.bind_with(eqn, given, self._params(eqn.params))
            except (TypeError, ValueError, NotImplementedError):  # an operation that knows its dtypes
                pass
        own = [v.astype(a.aval.dtype) if hasattr(v, "astype") and hasattr(a.aval, "dtype") and v.dtype != a.aval.dtype
               else v for v, a in zip(given, eqn.invars, strict=True)]
        return internals.bind(eqn, own)

    def _precisely(self, eqn: Any, given: list[Any]) -> list[Any]:
        from jax import lax

        full = lax.Precision.HIGHEST
        if eqn.params.get("precision") not in (full, (full, full)):
            self._took.count += 1
        return internals.bind_with(eqn, given, {**eqn.params, "precision": (full, full)})

    # ---- loops and branches

    def _scan(self, eqn: Any, given: list[Any]) -> list[Any]:
        from jax import lax

        params, body = eqn.params, eqn.params["jaxpr"]
        consts, carries = params["num_consts"], params["num_carry"]
        fixed, carry, xs = given[:consts], given[consts:consts + carries], given[consts + carries:]

        def step(held: Any, x: Any) -> Any:
            outputs = self.run(body, [*fixed, *held, *x])
            return outputs[:carries], outputs[carries:]

        last, stacked = lax.scan(step, list(carry), list(xs), length=params["length"], reverse=params["reverse"])
        return [*last, *stacked]

    def _while(self, eqn: Any, given: list[Any]) -> list[Any]:
        from jax import lax

        params = eqn.params
        tests, consts = params["cond_nconsts"], params["body_nconsts"]
        tested, fixed, carry = given[:tests], given[tests:tests + consts], given[tests + consts:]
        return list(lax.while_loop(lambda held: self.run(params["cond_jaxpr"], [*tested, *held])[0],
                                   lambda held: self.run(params["body_jaxpr"], [*fixed, *held]), list(carry)))

    def _cond(self, eqn: Any, given: list[Any]) -> list[Any]:
        from jax import lax

        branches = [lambda *values, branch=branch: self.run(branch, list(values)) for branch in eqn.params["branches"]]
        return list(lax.switch(given[0], branches, *given[1:]))


def _gradient_number(eqn: Any) -> str:
    """The same for all leaves of one gradient: the label without the number of the leaf."""
    return (label_of(eqn) or "").rpartition(" ")[0]
