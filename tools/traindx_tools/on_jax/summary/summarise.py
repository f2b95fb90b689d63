"""What a function became when JAX traced it, in lines that a person or a language model reads in a moment.

Equations are grouped by the line of the user's code that made them, in the order of execution; loops, branches and
calls of the user's own functions are indented. The function is traced for types, never run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.keys.find import reuse_findings
from traindx_tools.on_jax.keys.flow import follow
from traindx_tools.on_jax.paths.blocked import BRANCH
from traindx_tools.on_jax.places import Place, place_of
from traindx_tools.on_jax.rules import j301_no_gradient_path, j302_gradient_in_one_branch, j504_promoted_to_wide
from traindx_tools.on_jax.summary.gradient import by_itself, judged
from traindx_tools.on_jax.summary.promotions import Promoted, promotions
from traindx_tools.on_jax.summary.risks import risks
from traindx_tools.on_jax.tracing import trace

SHAPING = frozenset({"broadcast_in_dim", "convert_element_type", "reshape", "squeeze", "expand_dims", "transpose",
                     "copy", "slice", "iota", "concatenate", "copy_p"})
"""Primitives that only move values: left out unless a line has nothing else."""
LOOPS = frozenset({"scan", "while", "cond"})
MOST_LINES, MOST_NAMES = 80, 12


@dataclass(frozen=True)
class Summary:
    """A traced function. `lines` are indented text; `look` is what deserves a look; `findings` what is proven."""

    function: str
    equations: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    lines: tuple[str, ...]
    look: tuple[str, ...]
    findings: tuple[Finding, ...]
    gradient: str = ""
    """Which inputs get a gradient, where a single float comes out."""

    def text(self) -> str:
        """The summary as text, bounded."""
        shown = [*self.lines[:MOST_LINES], *_left(self.lines, MOST_LINES)]
        parts = [f"{self.function}: {self.equations} equations",
                 f"inputs   {', '.join(_some(self.inputs))}", f"outputs  {', '.join(_some(self.outputs))}",
                 *([f"gradient {self.gradient}"] if self.gradient else []), *shown]
        if self.findings:
            parts += ["found", *(f"  {f.rule} {f.severity.value}: {f.statement}" for f in self.findings)]
        if self.look:
            parts += ["look at", *(f"  {x}" for x in self.look[:MOST_NAMES]), *_left(self.look, MOST_NAMES)]
        return "\n".join(parts)

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {"function": self.function, "equations": self.equations, "inputs": list(self.inputs),
                "outputs": list(self.outputs), "lines": list(self.lines), "look_at": list(self.look),
                "gradient": self.gradient, "findings": [f.to_json() for f in self.findings]}


def summarise(fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *,
              gradient: bool | Sequence[int] | None = None) -> Summary:
    """Traces `fn` for these arguments (arrays or types) and summarises its jaxpr.

    `gradient`: the function is a loss; True judges its first argument, positions those: parameters that no gradient
    reaches are named (J301, J302). None: where a single float comes out, one line says which floats of the first
    argument get a gradient, without a finding: it may be meant. Keys that are used more than once (J201, J202) and
    large arrays that a promotion makes wider (J504) are always named. Raises what the function raises when it is
    traced.
    """
    traced = trace(fn, args, kwargs)
    found = list(reuse_findings(traced, follow(traced)))
    said = by_itself(traced) if gradient is None else ""
    if gradient is not None and gradient is not False:
        blocked, said = judged(traced, [0] if gradient is True else list(gradient))
        for group in blocked:
            rule = j302_gradient_in_one_branch if group.kind == BRANCH else j301_no_gradient_path
            found += rule.check(group)
    body = traced.jaxpr
    wider = promotions(body)
    found += j504_promoted_to_wide.check(wider, traced.name)
    look = dict.fromkeys([*(f"{_short(p.place)} {_wider(p)}" for p in wider),
                          *(f"{_short(place)} {what}" for place, what in risks(body))])
    return Summary(traced.name, internals.size(body),
                   tuple(f"{n} {v.aval.str_short()}" for n, v in zip(traced.inputs, body.jaxpr.invars, strict=True)),
                   tuple(f"{n or 'result'} {v.aval.str_short()}"
                         for n, v in zip(traced.outputs, body.jaxpr.outvars, strict=True)),
                   tuple(_lines(body, None, "  ")), tuple(look), tuple(found), said)


def _wider(promoted: Promoted) -> str:
    return f"{j504_promoted_to_wide.told(promoted)} (+{promoted.added / 2**20:.3g} MiB)"


def _lines(jaxpr: Any, around: Place | None, indent: str) -> Iterator[str]:
    for place, group in groupby(_flat(jaxpr, around), key=lambda item: item[0]):
        eqns = [eqn for _, eqn in group]
        plain = [e for e in eqns if e.primitive.name not in LOOPS]
        if plain:
            yield f"{indent}{_short(place)}  {_counted(plain)}  -> {plain[-1].outvars[-1].aval.str_short()}"
        for eqn in eqns:
            if eqn.primitive.name in LOOPS:
                yield f"{indent}{_short(place)}  {_loop(eqn)}"
                for name, body in internals.inner_jaxprs(eqn):
                    if name != "jaxpr" and eqn.primitive.name != "scan":
                        yield f"{indent}  {name}:"
                    yield from _lines(body, place, indent + "    ")


def _flat(jaxpr: Any, around: Place | None) -> Iterator[tuple[Place | None, Any]]:
    """Equations with their lines, calls opened: jit within jit, custom derivatives and remat are written out."""
    for eqn in jaxpr.jaxpr.eqns:
        place, body = place_of(eqn, around), internals.called(eqn)
        if body is None:
            yield place, eqn
        else:
            yield from _flat(body, place)


def _counted(eqns: Sequence[Any]) -> str:
    names = [e.primitive.name for e in eqns]
    telling = [n for n in names if n not in SHAPING] or names
    return ", ".join(n if c == 1 else f"{n} x{c}" for n, c in Counter(telling).items())


def _loop(eqn: Any) -> str:
    p = eqn.params
    if eqn.primitive.name == "scan":
        carry = [v.aval.str_short() for v in eqn.outvars[: p.get("num_carry", 0)]]
        return f"scan x{p.get('length')}, carry {', '.join(_some(carry)) or 'nothing'}:"
    return f"{eqn.primitive.name}, {len(eqn.outvars)} outputs:"


def _short(place: Place | None) -> str:
    return "(no line)" if place is None else f"{Path(place.file).name}:{place.line}"


def _some(names: Sequence[str]) -> list[str]:
    return [*names[:MOST_NAMES], *([f"{len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else [])]


def _left(items: Sequence[str], shown: int) -> list[str]:
    return [f"  ... {len(items) - shown} more"] if len(items) > shown else []
