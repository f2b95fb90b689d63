"""Two dtypes do not fit, or an operation does not exist for a dtype.

Common ways: NumPy's float64 reaching a float32 model, a half-precision model fed float32 outside autocast, float ids
for an embedding, integer tensors where a mean or softmax needs floats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import incidents
from traindx_tools.on_logs.tracebacks.report import report, short
from traindx_tools.rules import Rule

PRIORITY = 50

RULE = Rule(
    id="L506",
    name="dtype-mismatch",
    title="Dtypes do not fit",
    severity=Severity.CRITICAL,
    sees="The dtypes in messages about operands, inputs against weights, index dtypes and kernels that do not exist.",
    matters="The run is over; a silent cast instead would cost precision.",
    alike=("A class target of the wrong dtype (L520).", "A carry of a JAX loop (L517)."),
    confirm=("Print the dtypes of input and weights one line above the place.",
             "Check for .half(), .double(), from_numpy, and code that leaves the autocast block."),
)

_A, _B = r"(?P<a>[\w.:]+)", r"(?P<b>[\w.:]+)"
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple((kind, re.compile(pattern)) for kind, pattern in (
    ("operands", rf"must have the same dtype,? but got {_A} and {_B}"),
    ("operands", rf"expected m1 and m2 to have the same dtype, but got: {_A} != {_B}"),
    ("operands", rf"[Ee]xpected (?:scalar type|object of scalar type|dtype) {_B} but (?:found|got) (?:scalar type "
                 rf")?{_A}"),
    ("operands", rf"expected both (?:vectors|tensors) to have same dtype, but found {_A} and {_B}"),
    ("operands", rf"[Ee]xpected query, key,? and value to have the same dtype, but got query.dtype: {_A} "
                 rf"key.dtype: {_B}"),
    ("input-weight", rf"Input type \({_A}\) and (?:weight|bias) type \({_B}\) should be the same"),
    ("index", r"(?:Expected tensor for argument #\d 'indices' to have one of the following scalar types: "
              r"(?P<b>[\w, ]+);"
              r" but got (?P<a>[\w.]+))|tensors used as indices must be (?P<c>[\w, ]+)"),
    ("not-implemented", r"\"(?P<kernel>\w+)\" not implemented for '(?P<a>\w+)'"),
    ("result-cast", rf"result type {_A} can't be cast to the desired output type {_B}"),
    ("needs-float", r"could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
                    r"Got: (?P<a>\w+)"),
    ("needs-float", r"Only Tensors of floating point and complex dtype can require gradients"),
    ("needs-float", r"grad requires real- or complex-valued inputs \(input dtype that is a sub-dtype of "
                    r"np.inexact\), but got "
                    r"(?P<a>\w+)"),
    ("index-put", rf"Index put requires the source and destination dtypes match, got {_A} for the destination and "
                  rf"{_B}"),
    ("self-source", r"(?:scatter|gather|index_add)\w*\(\): [Ee]xpected (?:self|dtype).*(?P<a>\w+).*(?P<b>\w+)"),
    ("ufunc-cast", r"Cannot cast ufunc '(?P<kernel>\w+)' output from dtype\('(?P<a>\w+)'\) to dtype\('(?P<b>\w+)'\)"),
    ("lax", rf"lax\.\w+ requires arguments to have the same dtypes, got {_A}, {_B}"),
    ("object-array", r"can't convert np.ndarray of type numpy\.(?P<a>object_)"),
))


def claims(event: ErrorEvent) -> bool:
    """Messages about dtypes."""
    return event.kind == "exception" and any(p.search(event.message) for _, p in _KINDS)


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        kind, match = next((k, m) for k, p in _KINDS for m in [p.search(incident.text)] if m is not None)
        found = {k: v for k, v in match.groupdict().items() if v is not None}
        measured: dict[str, Value] = {"kind": kind, **{_NAMES.get(k, k): v for k, v in found.items()}}
        both = {"a", "b"} <= set(found)
        statement = (f"dtypes {found['a']} and {found['b']} meet" if both
                     else f"a dtype does not fit ({short(incident.text)})")
        yield report(RULE, incident, statement, bearing=Bearing.SIGN, measured=measured)


_NAMES = {"a": "dtype_a", "b": "dtype_b", "c": "dtype_b", "kernel": "operation"}
