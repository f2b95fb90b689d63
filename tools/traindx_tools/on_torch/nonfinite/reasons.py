"""Why an operation gave a value that is not finite: a table from operations and what they were given to words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from traindx_tools.on_torch.nonfinite import operations as ops
from traindx_tools.on_torch.nonfinite.events import (
    BATCH,
    BUFFER,
    CONSTANT,
    OUTSIDE,
    PARAMETER,
    UNINITIALISED,
    Event,
)
from traindx_tools.on_torch.nonfinite.statistics import Stats

LARGEST = {"float16": 65504.0, "bfloat16": 3.3895e38, "float32": 3.4028e38, "float64": 1.7977e308}
"""The largest finite value of a dtype (IEEE 754; bfloat16 has float32's exponent)."""


@dataclass(frozen=True)
class Reason:
    """`id` is what catalog entries match; `words` stand in the finding."""

    id: str
    words: str


def reason_of(event: Event) -> Reason:
    """The reason for a record that is an origin."""
    if event.kind in _BY_KIND:
        return _BY_KIND[event.kind](event)
    for judge in (_python_number, _where_unsafe, _from_details, _by_operation, _overflow):
        found = judge(event)
        if found is not None:
            return found
    return Reason("other", f"{event.op} gave {_given(event)} for finite inputs")


def _given(event: Event) -> str:
    return event.output.kind if event.output is not None and event.output.kind else "a value that is not finite"


def _named(event: Event, otherwise: str) -> str:
    return f"`{event.name}`" if event.name else otherwise


_BY_KIND: dict[str, Callable[[Event], Reason]] = {
    BATCH: lambda e: Reason("data", f"the batch itself holds {_given(e)}{f' in {e.name}' if e.name else ''}"),
    PARAMETER: lambda e: Reason("parameter", f"the parameter {_named(e, '')} held {_given(e)} before this step: from "
                                             "its initialisation, from a checkpoint or from an earlier step"),
    BUFFER: lambda e: Reason("buffer", f"the buffer {_named(e, '')} held {_given(e)} before this step"),
    OUTSIDE: lambda e: Reason("data", f"a tensor that enters here already holds {_given(e)}: it was not computed in "
                                      "the traced steps, so it is data or comes from outside torch"),
    UNINITIALISED: lambda e: Reason("uninitialised", f"{e.op} gives memory that nobody has written yet, and it was "
                                                     "read before it was written"),
    CONSTANT: lambda e: Reason("constant", f"an infinity that the program wrote ({e.op or 'a constant'}) reached the "
                                           "result: it was masked too much or in the wrong place"),
}


def _python_number(event: Event) -> Reason | None:
    odd = [n for n in event.numbers if not math.isfinite(n)]
    if not odd:
        return None
    return Reason("python-number", f"a plain number among its arguments is {odd[0]}: it was computed outside torch "
                                   "(a learning rate, a weight, a statistic)")


def _where_unsafe(event: Event) -> Reason | None:
    if event.phase != "backward" or "hidden-forward" not in event.details:
        return None
    return Reason("where-unsafe-branch", "the forward operation of this line gave a value that is not finite and a "
                                         "mask (where, masked_fill, indexing) hid it, but the gradient still flows "
                                         "through it: 0 * inf or 0 / 0")


def _from_details(event: Event) -> Reason | None:
    if "masked-row" in event.details:
        return Reason("masked-softmax-row", "a row of its input is -inf from end to end (masked completely), so that "
                                            "softmax computes exp(-inf - -inf)")
    if "masked-target" in event.details:
        return Reason("masked-target", "the class of a target is masked with -inf, so that its negative log-likelihood "
                                       "is infinite")
    if "from-constant" in event.details:
        return Reason("infinity-times-zero", "an infinity that the program wrote (a mask, a start value) met a 0 or "
                                             "another infinity: 0 * inf or inf - inf")
    return None


def _some(event: Event, test: Callable[[Stats], bool], which: slice = slice(None)) -> bool:
    return any(test(s) for s in event.inputs[which])


def _has_zero(stats: Stats) -> bool:
    return bool(stats.zeros) if stats.zeros is not None else stats.least <= 0 <= stats.most


def _logarithm(event: Event) -> Reason | None:
    shift = -1.0 if event.op.startswith("log1p") else 0.0
    argument = event.inputs[-1] if event.op.startswith("xlogy") else event.inputs[0]
    if argument.least < shift:
        return Reason("log-of-negative", f"the logarithm of a negative value (smallest argument {argument.least:.6g})")
    return Reason("log-of-zero", f"the logarithm of zero (smallest argument {argument.least:.6g})")


def _root(event: Event) -> Reason | None:
    if _some(event, lambda s: s.least < 0):
        return Reason("sqrt-of-negative", f"the square root of a negative value (smallest {event.inputs[0].least:.6g})")
    if event.op.startswith("rsqrt") and _some(event, _has_zero):
        return Reason("division-by-zero", "1/sqrt of zero")
    return None


def _division(event: Event) -> Reason | None:
    divisors = [s for s in event.inputs[1:] if _has_zero(s)] or [
        s for s in event.inputs[:1] if event.op.startswith("reciprocal") and _has_zero(s)]
    plain = not event.inputs[1:] and 0.0 in event.numbers
    if not divisors and not plain:
        return None
    nan = event.output is not None and event.output.nans
    return Reason("zero-by-zero" if nan else "division-by-zero", "0 / 0" if nan else "a division by zero")


def _power(event: Event) -> Reason | None:
    if event.output is not None and event.output.nans:
        return Reason("power-of-negative", f"a fractional power of a negative value (smallest base "
                                           f"{event.inputs[0].least:.6g})")
    exponent = min((n for n in event.numbers), default=0.0)
    if _some(event, _has_zero, slice(0, 1)) and (exponent < 0 or _some(event, lambda s: s.least < 0, slice(1, None))):
        return Reason("division-by-zero", "a negative power of zero")
    return None


def _exponential(event: Event) -> Reason | None:
    largest = max((s.most for s in event.inputs), default=math.nan)
    return Reason("exp-overflow", f"the exponential of {largest:.6g} is larger than {_dtype(event)} can hold")


def _statistic(event: Event) -> Reason | None:
    return Reason("variance-of-one", "a variance or standard deviation over a single value (degrees of freedom <= 0)")


def _domain(event: Event) -> Reason | None:
    given = event.inputs[0] if event.inputs else None
    span = f" (argument {given.least:.6g} to {given.most:.6g})" if given else ""
    return Reason("outside-domain", f"{event.op} was asked for a value at or beyond the end of its domain{span}")


def _mean(event: Event) -> Reason | None:
    if not event.inputs:
        return Reason("empty-mean", "the mean of no values at all: 0 / 0")
    return None


def _targets(event: Event) -> Reason | None:
    if event.output is not None and event.output.nans:
        return Reason("zero-count", "no target counts (every one is ignored, or the weights sum to 0): the mean "
                                    "divides by zero")
    return None


def _alignment(event: Event) -> Reason | None:
    return Reason("infeasible-target", "no alignment exists: a target is longer than its input allows (repeated "
                                       "symbols need a blank between them), so that its likelihood is 0")


def _scaled_direction(event: Event) -> Reason | None:
    return Reason("zero-by-zero", "0 / 0: a weight vector has the norm 0")


def _matrix(event: Event) -> Reason | None:
    return Reason("singular-matrix", f"{event.op} met a matrix that is singular or badly conditioned")


def _softmax(event: Event) -> Reason | None:
    if ops.is_attention(event.op) or event.op in ops.SOFTMAX:
        return Reason("masked-softmax-row", "a row of the attention or softmax is masked completely")
    return None


_LOG = ("log", "log2", "log10", "log1p", "xlogy", "special_xlog1py", "logit", "log_", "log2_", "log10_", "log1p_")
_OPERATIONS: tuple[tuple[tuple[str, ...], Callable[[Event], Reason | None]], ...] = (
    (_LOG[:6] + _LOG[7:], _logarithm),
    (("sqrt", "sqrt_", "rsqrt", "rsqrt_"), _root),
    (("div", "div_", "true_divide", "reciprocal", "reciprocal_", "addcdiv", "addcdiv_", "fmod", "remainder",
      "_foreach_div", "_foreach_div_", "_foreach_addcdiv", "_foreach_addcdiv_", "_foreach_reciprocal"), _division),
    (("pow", "pow_", "float_power", "_foreach_pow", "_foreach_pow_"), _power),
    (("exp", "exp_", "exp2", "expm1", "sinh", "cosh", "special_exp2"), _exponential),
    (("var", "std", "var_mean", "std_mean"), _statistic),
    (("acos", "asin", "acosh", "atanh", "logit", "erfinv", "lgamma", "digamma", "polygamma", "igamma", "tan",
      "special_ndtri", "special_zeta"), _domain),
    (("mean", "nanmean"), _mean),
    (("nll_loss_forward", "nll_loss2d_forward", "nll_loss_nd"), _targets),
    (("_softmax", "_log_softmax"), _softmax),
    (("_ctc_loss", "ctc_loss", "_cudnn_ctc_loss"), _alignment),
    (("_weight_norm_interface", "_weight_norm"), _scaled_direction),
)
_BY_NAME = {name: judge for names, judge in _OPERATIONS for name in names}
_MATRIX = ("linalg_", "_linalg_", "cholesky", "inverse", "_cholesky", "lu_", "triangular_solve", "svd", "symeig")
_BACKWARD = (
    (("Sqrt", "Norm", "LinalgVectorNorm", "Cdist", "Std", "Dist", "Renorm"), "sqrt-at-zero",
     "the gradient of a square root (sqrt, norm, distance) at exactly 0 is infinite"),
    (("Pow",), "sqrt-at-zero", "the gradient of a power below 1 at exactly 0 is infinite"),
    (("Log",), "log-of-zero", "the gradient of a logarithm at 0 is infinite"),
    (("Acos", "Asin", "Atanh", "Acosh", "Erfinv", "Logit"), "outside-domain",
     "the gradient at the end of the function's domain is infinite"),
    (("Div", "Reciprocal", "Rsqrt"), "division-by-zero", "the gradient of a division by (nearly) zero is infinite"),
    (("LinalgSvd", "LinalgEigh", "LinalgEig", "LinalgQr", "LinalgCholesky", "LinalgInv", "LinalgSolve", "Svd"),
     "singular-matrix", "the gradient of a matrix factorisation with equal or vanishing singular values is infinite"),
    (("Prod", "Cumprod"), "division-by-zero", "the gradient of a product with a factor of 0 divides by zero"),
)  # fmt: skip


def _by_operation(event: Event) -> Reason | None:
    if event.phase == "backward":
        found = next((Reason(i, w) for names, i, w in _BACKWARD if _node(event.node).startswith(names)
                      and not _overflows(event)), None)
        if found is not None:
            return found
    if event.phase == "optimizer" and event.op.rstrip("_").endswith(("div", "addcdiv", "_fused_adam", "_fused_adamw")):
        return _optimizer(event)
    if event.op.startswith(_MATRIX):
        return _matrix(event)
    if ops.is_attention(event.op):
        return _softmax(event)
    judge = _BY_NAME.get(event.op)
    return judge(event) if judge is not None and (event.inputs or event.op in ("mean", "var", "std")) else None


def _node(name: str) -> str:
    return name.rpartition("::")[2]


def _optimizer(event: Event) -> Reason | None:
    if not _some(event, _has_zero, slice(1, None)):
        return None
    half = _dtype(event) in ("float16", "bfloat16")
    why = " (in half precision its eps rounds to 0)" if half else " (eps is 0 and a second moment is 0)"
    return Reason("optimizer-division", f"the update divides by zero{why}")


def _dtype(event: Event) -> str:
    return event.output.dtype if event.output is not None else "its dtype"


def _overflows(event: Event) -> bool:
    """Whether infinities in half precision explain it: the inputs are large enough and no 0 divides."""
    infinite = event.output is not None and event.output.infs and not event.output.nans
    return _dtype(event) == "float16" and bool(infinite) and not _some(event, _has_zero)


def _overflow(event: Event) -> Reason | None:
    if event.output is None or not (event.output.infs or event.output.nans):
        return None
    largest = max((max(abs(s.least), abs(s.most)) for s in event.inputs if math.isfinite(s.most)), default=math.nan)
    limit = LARGEST.get(event.output.dtype)
    if limit is None or not _can_grow_beyond(limit, event, largest):
        return None
    part = "gradient" if event.phase == "backward" else "result"
    kind = "half-overflow" if event.output.dtype == "float16" else "overflow"
    return Reason(f"{kind}-gradient" if event.phase == "backward" and kind == "half-overflow" else kind,
                  f"the {part} exceeds {limit:.6g}, the largest {event.output.dtype} (largest magnitude of its inputs "
                  f"{largest:.6g})")


_GROWS = ("mul", "add", "sub", "mm", "linear", "conv", "dot", "sum", "prod", "pow", "square", "copy", "to", "norm",
          "mean", "var", "lerp", "div", "mse_loss", "exp", "einsum")
"""Parts of the names of operations whose result can be larger than their inputs."""


def _can_grow_beyond(limit: float, event: Event, largest: float) -> bool:
    """Whether the operation and its inputs can have led out of the range of the dtype."""
    if any(part in event.op for part in _GROWS):
        return True
    count = max((s.count for s in event.inputs), default=1)
    return math.isfinite(largest) and largest * largest * count >= limit


def reasons() -> Iterable[str]:
    """Every reason's id, for the catalog's tests."""
    return ("data", "parameter", "buffer", "uninitialised", "constant", "python-number", "where-unsafe-branch",
            "masked-softmax-row", "masked-target", "infinity-times-zero", "log-of-negative", "log-of-zero",
            "sqrt-of-negative", "sqrt-at-zero", "division-by-zero", "zero-by-zero", "power-of-negative", "exp-overflow",
            "variance-of-one", "outside-domain", "empty-mean", "zero-count", "singular-matrix", "optimizer-division",
            "half-overflow", "half-overflow-gradient", "overflow", "infeasible-target", "other")
