"""Which inputs of a jaxpr are weights of layers whose other side was made by trained weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.paths.reach import LAYERS, is_float


def fed_by(jaxpr: Any, weights: Sequence[int], trained: Sequence[int]) -> set[int]:
    """Those of the inputs `weights` that meet, in a layer, a value that the inputs `trained` have made.

    The backward pass is left out: there everything meets everything.
    """
    wanted, makers = _bits(weights), _bits(trained)
    found = [0]
    _run(jaxpr, [1 << i if is_float(v.aval) else 0 for i, v in enumerate(jaxpr.jaxpr.invars)], (wanted, makers), found)
    return {i for i in weights if found[0] >> i & 1}


def _bits(inputs: Sequence[int]) -> int:
    return sum(1 << i for i in set(inputs))


def _run(jaxpr: Any, given: Sequence[int], sought: tuple[int, int], found: list[int]) -> list[int]:
    env: dict[Any, int] = dict(zip(jaxpr.jaxpr.invars, given, strict=True))
    for eqn in jaxpr.jaxpr.eqns:
        told = [_read(env, a) for a in eqn.invars]
        env.update(zip(eqn.outvars, _equation(eqn, told, sought, found), strict=True))
    return [_read(env, a) for a in jaxpr.jaxpr.outvars]


def _read(env: Mapping[Any, int], atom: Any) -> int:
    return 0 if internals.is_literal(atom) else env.get(atom, 0)


def _equation(eqn: Any, given: list[int], sought: tuple[int, int], found: list[int]) -> list[int]:
    name, body = eqn.primitive.name, internals.called(eqn)
    if body is not None:
        return _run(body, given, sought, found)
    if name == "cond":
        branches = [_run(branch, given[1:], sought, found) for branch in eqn.params["branches"]]
        return [_joined(several) for several in zip(*branches, strict=True)]
    if name in ("scan", "while"):
        return _loop(eqn, given, sought, found)
    if name in LAYERS and "transpose" not in internals.stack(eqn):
        _meet(given[0], given[1], sought, found)
        _meet(given[1], given[0], sought, found)
    return [_joined(given)] * len(eqn.outvars)


def _meet(weight: int, other: int, sought: tuple[int, int], found: list[int]) -> None:
    """A side made of one weight alone, and the other of trained ones."""
    wanted, makers = sought
    if weight & wanted and not weight & (weight - 1) and other & makers:
        found[0] |= weight


def _joined(values: Sequence[int]) -> int:
    out = 0
    for value in values:
        out |= value
    return out


def _loop(eqn: Any, given: list[int], sought: tuple[int, int], found: list[int]) -> list[int]:
    params = eqn.params
    if eqn.primitive.name == "scan":
        consts, carries, body = params["num_consts"], params["num_carry"], params["jaxpr"]
        fixed, carry, rows = given[:consts], given[consts:consts + carries], given[consts + carries:]
    else:
        tests, consts = params["cond_nconsts"], params["body_nconsts"]
        body = params["body_jaxpr"]
        fixed, carry, rows = given[tests:tests + consts], given[tests + consts:], []
    results: list[int] = []
    for _ in range(len(carry) + 2):
        results = _run(body, [*fixed, *carry, *rows], sought, found)
        joined = [a | b for a, b in zip(carry, results, strict=False)]
        if joined == carry:
            break
        carry = joined
    return [*carry, *results[len(carry):]]
