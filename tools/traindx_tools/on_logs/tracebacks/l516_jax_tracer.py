"""JAX met a traced value where a concrete one is needed, or a traced value outlived its trace.

Concretization: Python's `if`, `bool`, `int`, an index, a shape or NumPy was applied to a tracer inside jit, vmap,
scan or grad. Leak: a traced value was stored outside (self, a global, a list, a closure) and used after the trace had
ended; the line that uses it is only where it surfaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import Incident, incidents
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule

PRIORITY = 10

RULE = Rule(
    id="L516",
    name="jax-tracer",
    title="A traced value where a concrete one is needed",
    severity=Severity.CRITICAL,
    sees="TracerBoolConversionError, ConcretizationTypeError, UnexpectedTracerError and kin, with function and "
         "argument.",
    matters="The run is over. A leak that is not caught makes a constant of what should change every step.",
    alike=("A carry whose type changes (L517).",),
    confirm=("JAX_CHECK_TRACER_LEAKS=1 python train.py names the place of a leak.",
             "Mark the argument static (static_argnums), or use jnp.where, lax.cond, lax.fori_loop instead of "
             "Python's control."),
)

_TYPES = re.compile(r"(?:TracerBoolConversionError|TracerArrayConversionError|TracerIntegerConversionError"
                    r"|ConcretizationTypeError|UnexpectedTracerError|NonConcreteBooleanIndexError|TracerLeakError"
                    r"|JaxTracerError)$")
_MESSAGE = re.compile(r"Encountered an unexpected tracer|Abstract tracer value encountered|concrete value(?:s)? "
                      r"was expected"
                      r"|Shapes must be 1D sequences of concrete values|traced array|Leaked (?:trace|level)"
                      r"|JitTracer|DynamicJaxprTracer")
_KINDS = (
    ("leak", re.compile(r"[Uu]nexpected tracer|UnexpectedTracer|Leaked|TracerLeak"),
     "a traced value escaped from its function and was used after the trace had ended"),
    ("bool-conversion", re.compile(r"boolean conversion|TracerBool|bool\(\)"),
     "Python's `if`, `while`, `and` or `assert` asked for the truth of a traced value"),
    ("boolean-mask", re.compile(r"boolean indices|NonConcreteBoolean"),
     "a traced boolean mask was used as an index, so the result's shape depends on the data"),
    ("integer-conversion", re.compile(r"__index__|TracerInteger"), "a traced value was used as a Python integer "
                                                                   "or index"),
    ("array-conversion", re.compile(r"__array__|TracerArray|numpy\.ndarray conversion"), "NumPy was called on a "
                                                                                         "traced value"),
    ("shape-concretization", re.compile(r"Shapes must be"), "a shape depends on a traced value"),
    ("concretization", re.compile(r""), "a traced value was needed as a concrete one"),
)
_TRACED = re.compile(r"(?:while tracing the function|The function being traced when the value leaked was) "
                     r"(?P<function>\S+) at "
                     r"(?P<file>\S+?):(?P<line>\d+)(?: traced)?,? for (?P<transform>\w+)")
_ARGUMENT = re.compile(r"depends on the values? of the arguments? (?P<argument>[\w.\[\]'\", ]+)")
_ABSTRACT = re.compile(r"(?:with shape|with type|got|of type) (?P<abstract>[a-z]\w*\[[^\]]*\])")


def claims(event: ErrorEvent) -> bool:
    """JAX's errors about tracers."""
    return event.kind == "exception" and bool(
        _TYPES.search(event.type) or (_MESSAGE.search(event.message) and "Tracer" in event.message + event.type)
    )


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        yield _judged(incident)


def _judged(incident: Incident) -> Finding:
    kind, words = next((k, w) for k, p, w in _KINDS if p.search(incident.error.type) or p.search(incident.text))
    measured: dict[str, Value] = {"kind": kind}
    if traced := _TRACED.search(incident.text):
        measured |= {"traced_function": traced["function"], "transform": traced["transform"],
                     "traced_at": f"{traced['file']}:{traced['line']}"}
        words += f" while {traced['function']} was traced for {traced['transform']}"
    if argument := _ARGUMENT.search(incident.text):
        measured["argument"] = argument["argument"].strip(" .")
        words += f" (it depends on argument {measured['argument']})"
    if abstract := _ABSTRACT.search(incident.text):
        measured["abstract_value"] = abstract["abstract"]
    return report(RULE, incident, words, bearing=Bearing.CAUSE, measured=measured,
                  surfaced="the traced value was stored earlier, in the function being "
                           "traced" if kind == "leak" else "")
