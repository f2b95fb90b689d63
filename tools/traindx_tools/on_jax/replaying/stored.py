"""A kept call on disk: its arguments and those of the call before, as bytes with names and types; and back again.

The function is not kept: the program compiles it in the process where the call is replayed, and is known there by its
name and by the names and types of its inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.experiments.replaying.symptom import Symptom
from traindx_tools.live.step_file import MOST_BYTES, Bytes, Stored, write_step
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.replaying.kept import Function, Scenario
from traindx_tools.on_jax.tracing import Traced

MOST_NAMED = 3
"""Differences between two functions that are told."""


class NotThis(Exception):
    """The function is another one than that of the step; the text says in what."""


def keep(scenario: Scenario, path: Path, *, most: int = MOST_BYTES) -> int:
    """Writes the step and returns the bytes of the file. Raises TooLarge and OSError."""
    arrays: list[Any] = []
    table: list[dict[str, Any]] = []
    numbers: dict[int, int] = {}

    def number(value: Any) -> int:
        if id(value) not in numbers:
            numbers[id(value)] = len(arrays)
            plain, about = _plain(value)
            arrays.append((plain, value))
            table.append(about)
        return numbers[id(value)]

    function = scenario.function
    symptom = {k: _text(v) for k, v in asdict(scenario.symptom).items()}
    told = {"framework": "jax", "jax": _version(), "symptom": symptom, "function": function.traced.name,
            "inputs": _types(function.traced, "in"), "outputs": _types(function.traced, "out"),
            "loss": function.loss, "value": _text(scenario.value), "fed": [[o, i] for o, i in scenario.fed.items()],
            "no_update": scenario.no_update, "now": [number(v) for v in scenario.now],
            "before": None if scenario.before is None else [number(v) for v in scenario.before], "tensors": table}
    sizes = [int(p.nbytes) for p, _ in arrays]
    return write_step(path, told, sizes, lambda i: _bytes(arrays[i][0]), most)


def bring(stored: Stored, function: Function) -> Scenario:
    """The scenario of this process's function. Raises NotThis where it is another one, UnreadableInput."""
    told = stored.told
    if told["function"] != function.traced.name:
        raise NotThis(f"the step was made by a function {told['function']}")
    for kind in ("in", "out"):
        _compare(told[f"{kind}puts"], _types(function.traced, kind), kind)
    try:
        arrays = [_array(about, stored.arrays(i)) for i, about in enumerate(told["tensors"])]
        values = {k: _number(v) for k, v in told["symptom"].items()}
        symptom = Symptom(**{f.name: values[f.name] for f in fields(Symptom) if f.name in values})
        before = None if told["before"] is None else tuple(arrays[i] for i in told["before"])
        return Scenario(symptom, replace(function, loss=int(told["loss"])), tuple(arrays[i] for i in told["now"]),
                        before, {int(o): int(i) for o, i in told["fed"]}, float(told["value"]), str(told["no_update"]))
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise UnreadableInput(f"{stored.path} does not fit this program or this version of JAX "
                              f"({type(error).__name__}: {error})") from error


def _compare(was: Sequence[Sequence[str]], here: Sequence[Sequence[str]], kind: str) -> None:
    if [list(w) for w in was] == [list(h) for h in here]:
        return
    mine, theirs = {w[0]: w[1] for w in was}, {h[0]: h[1] for h in here}
    other = [n for n in (*mine, *theirs) if mine.get(n) != theirs.get(n)]
    told = ", ".join(f"{n or 'the output'} is {theirs.get(n, 'missing')} and was {mine.get(n, 'missing')}"
                     for n in dict.fromkeys(other[:MOST_NAMED]))
    raise NotThis(f"the program's function has other {kind}puts: {told or 'in another order'}")


def _types(traced: Traced, kind: str) -> list[list[str]]:
    names, avals = (traced.inputs, traced.jaxpr.in_avals) if kind == "in" else (traced.outputs, traced.jaxpr.out_avals)
    return [[n, a.str_short()] for n, a in zip(names, avals, strict=True)]


def _plain(value: Any) -> tuple[Any, dict[str, Any]]:
    """The numbers of an array, and what it is."""
    import jax

    about: dict[str, Any] = {"shape": list(value.shape), "dtype": str(value.dtype)}
    if internals.is_typed_key(value):
        about["key"] = str(jax.random.key_impl(value))
        value = jax.random.key_data(value)
        about.update(shape=list(value.shape), dtype=str(value.dtype))
    return value, about


def _bytes(value: Any) -> Bytes:
    return np.ascontiguousarray(np.asarray(value)).reshape(-1).view(np.uint8) if value.size else np.empty(0, np.uint8)


def _array(about: Mapping[str, Any], values: Bytes) -> Any:
    import jax
    import jax.numpy as jnp

    flat = np.require(values, requirements=["W"]).view(jnp.dtype(str(about["dtype"])))
    made = jnp.asarray(flat.reshape([int(n) for n in about["shape"]]))
    if str(made.dtype) != str(about["dtype"]):
        raise ValueError(f"{about['dtype']} needs jax_enable_x64, as the program had it")
    return jax.random.wrap_key_data(made, impl=about["key"]) if "key" in about else made


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, float) else value


def _number(value: Any) -> Any:
    """Numbers were written as text, so that NaN is one; kinds are no numbers."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _version() -> str:
    import jax

    return str(jax.__version__)
