"""Why an equation gave a value that is not finite: a table from primitives and what they were given to words.

The ids are those of the torch instruments (T101), so that one failure mode speaks of both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from traindx_tools.on_jax.nonfinite.marks import ARGUMENT, CONSTANT, Candidate
from traindx_tools.on_jax.nonfinite.values import Stats

LARGEST = {"float16": 65504.0, "bfloat16": 3.3895e38, "float32": 3.4028e38, "float64": 1.7977e308,
           "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
"""The largest finite value of a dtype (IEEE 754; bfloat16 has float32's exponent)."""
HALF = ("float16", "bfloat16")
HIDING = frozenset({"select_n", "min", "max", "clamp", "gather", "dynamic_slice", "slice", "scatter", "reduce_min",
                    "reduce_max", "concatenate", "mul", "eq", "ne", "is_finite", "select_and_scatter_add"})
"""Operations that can hide a value that is not finite from the loss and not from the gradient."""

ROOT_SLOPES = ((0.5,), (1 / 3,))
"""What JAX divides by the result of sqrt and cbrt to get their derivatives."""


@dataclass(frozen=True)
class Reason:
    """`id` is what catalog entries match; `words` stand in the finding."""

    id: str
    words: str


def reason_of(candidate: Candidate, others: Sequence[Candidate], hidden: bool) -> Reason:
    """The reason for an origin. `hidden`: it reached the outputs through the backward pass alone.

    `others`: the candidates that are not seen in an output by themselves.
    """
    if candidate.kind in (ARGUMENT, CONSTANT):
        return _given(candidate)
    for judge in (_wrapped, _where_unsafe(others, hidden), _written, _by_operation, _overflow):
        found = judge(candidate)
        if found is not None:
            return found
    return Reason("other", f"{candidate.op} gave {_what(candidate)} for finite inputs")


def _what(candidate: Candidate) -> str:
    out = candidate.output
    return "NaN" if out is not None and out.nans else "an infinity"


def _given(candidate: Candidate) -> Reason:
    if candidate.kind == CONSTANT:
        return Reason("constant", f"a constant that the function captured already holds {_what(candidate)}")
    state = any(word in candidate.name.lower() for word in ("param", "state", "model", "weight", "opt"))
    what = "the state that was passed in" if state else "what was passed in"
    return Reason("parameter" if state else "data", f"{what} as {candidate.name} already holds {_what(candidate)}")


def _wrapped(candidate: Candidate) -> Reason | None:
    if not candidate.wrapped:
        return None
    return Reason("integer-overflow", "an integer wrapped around before it came here, so that the value is nonsense")


def _where_unsafe(others: Sequence[Candidate], hidden: bool) -> Callable[[Candidate], Reason | None]:
    """A value that a mask hid in the forward pass and through which the gradient still flows."""

    def judge(candidate: Candidate) -> Reason | None:
        if not hidden:
            return None
        own = not candidate.backward and bool(candidate.quenched_by & HIDING) and hidden
        beside = [c for c in others if c is not candidate and not c.backward and c.quenched_by & HIDING
                  and c.place == candidate.place and c.place is not None]
        masked = candidate.backward and candidate.op == "div" and _zero_by_zero(candidate)
        if not own and not beside and not masked:
            return None
        op = candidate.op if own else beside[0].op if beside else "operation"
        return Reason("where-unsafe-branch", f"the forward {op} of this line gave a value that is not finite and a "
                                             "mask (where, clip, indexing) hid it, but the gradient still flows "
                                             "through it: 0 * inf or 0 / 0")

    return judge


def _zero_by_zero(candidate: Candidate) -> bool:
    return len(candidate.at_index) >= 2 and candidate.at_index[0] == 0 and candidate.at_index[1] == 0


def _written(candidate: Candidate) -> Reason | None:
    if not candidate.written:
        return None
    nan = candidate.output is not None and candidate.output.nans
    if not nan:
        return None
    if candidate.op in ("select_n", "broadcast_in_dim") and not candidate.masked_row:
        return Reason("constant", "a NaN that the program wrote was chosen here")
    if candidate.masked_row or candidate.op == "sub":
        return Reason("masked-softmax-row", "a row of its input is -inf from end to end (masked completely), so that "
                                            "softmax computes exp(-inf - -inf)")
    return Reason("infinity-times-zero", "an infinity that the program wrote (a mask, a start value) met a 0 or "
                                         "another infinity: 0 * inf or inf - inf")


def _has_zero(stats: Stats) -> bool:
    return stats.zeros > 0


def _logarithm(c: Candidate) -> Reason | None:
    shift = -1.0 if c.op == "log1p" else 0.0
    least = c.inputs[0].least
    if c.output is not None and c.output.nans and least < shift:
        return Reason("log-of-negative", f"the logarithm of a negative value (smallest argument {least:.6g})")
    return Reason("log-of-zero", f"the logarithm of zero (smallest argument {least:.6g})")


def _root(c: Candidate) -> Reason | None:
    if c.inputs[0].least < 0:
        return Reason("sqrt-of-negative", f"the square root of a negative value (smallest {c.inputs[0].least:.6g})")
    if c.op == "rsqrt" and _has_zero(c.inputs[0]):
        return Reason("division-by-zero", "1/sqrt of zero")
    return None


def _division(c: Candidate) -> Reason | None:
    if len(c.inputs) < 2 or not _has_zero(c.inputs[1]):
        return None
    if len(c.makers) > 1 and c.makers[1] in ("sqrt", "cbrt") and c.at_index[:1] in ROOT_SLOPES:
        return Reason("sqrt-at-zero", "the gradient of a square root (sqrt, norm, distance) at exactly 0 is infinite")
    if c.phase == "optimizer":
        half = bool(c.output and c.output.dtype in HALF)
        why = " (in half precision its eps rounds to 0)" if half else " (eps is 0 and a second moment is 0)"
        return Reason("optimizer-division", f"the update divides by zero{why}")
    if c.output is not None and c.output.nans:
        return Reason("zero-by-zero", "0 / 0")
    if c.backward and c.inputs[1].count and "div" not in c.makers:
        return Reason("division-by-zero", "a division by zero in the gradient (of a logarithm or a division at 0)")
    return Reason("division-by-zero", "a division by zero")


def _power(c: Candidate) -> Reason | None:
    if c.output is not None and c.output.nans and c.inputs[0].least < 0:
        return Reason("power-of-negative", f"a fractional power of a negative value (smallest base "
                                           f"{c.inputs[0].least:.6g})")
    exponent = c.params.get("y")
    least = exponent if isinstance(exponent, (int, float)) else c.inputs[-1].least
    if not _has_zero(c.inputs[0]) or least >= 0:
        return None
    if c.op == "pow" and least > -1:
        return Reason("sqrt-at-zero", "the gradient of a power below 1 at exactly 0 is infinite")
    return Reason("division-by-zero", "a negative power of zero")


def _exponential(c: Candidate) -> Reason | None:
    dtype = c.output.dtype if c.output else "its dtype"
    return Reason("exp-overflow", f"the exponential of {c.inputs[0].most:.6g} is larger than {dtype} can hold")


def _domain(c: Candidate) -> Reason | None:
    given = c.inputs[0]
    return Reason("outside-domain", f"{c.op} was asked for a value at or beyond the end of its domain (argument "
                                    f"{given.least:.6g} to {given.most:.6g})")


def _matrix(c: Candidate) -> Reason | None:
    return Reason("singular-matrix", f"{c.op} met a matrix that is singular, badly conditioned or not positive "
                                     "definite")


_OPERATIONS: tuple[tuple[tuple[str, ...], Callable[[Candidate], Reason | None]], ...] = (
    (("log", "log1p", "log2"), _logarithm),
    (("sqrt", "rsqrt", "cbrt"), _root),
    (("div", "rem"), _division),
    (("pow", "integer_pow"), _power),
    (("exp", "exp2", "expm1", "sinh", "cosh"), _exponential),
    (("acos", "asin", "acosh", "atanh", "erf_inv", "lgamma", "digamma", "polygamma", "igamma", "tan", "zeta"), _domain),
    (("cholesky", "triangular_solve", "eigh", "eig", "svd", "lu", "qr", "householder_product", "linear_solve",
      "custom_linear_solve", "schur", "geqrf", "tridiagonal_solve"), _matrix),
)
_BY_NAME = {name: judge for names, judge in _OPERATIONS for name in names}


def _by_operation(c: Candidate) -> Reason | None:
    judge = _BY_NAME.get(c.op)
    return judge(c) if judge is not None and c.inputs else None


def _overflow(c: Candidate) -> Reason | None:
    if c.output is None:
        return None
    limit = LARGEST.get(c.output.dtype)
    if limit is None:
        return None
    largest = max((max(abs(s.least), abs(s.most)) for s in c.inputs if math.isfinite(s.most)), default=math.nan)
    half = c.output.dtype == "float16"
    kind = ("half-overflow-gradient" if c.backward else "half-overflow") if half else "overflow"
    return Reason(kind, f"the {'gradient' if c.backward else 'result'} exceeds {limit:.6g}, the largest "
                        f"{c.output.dtype} (largest magnitude of its inputs {largest:.6g})")
