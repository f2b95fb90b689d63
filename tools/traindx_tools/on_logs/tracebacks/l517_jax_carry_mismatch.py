"""The carry of a JAX loop changes its type: scan, while_loop, fori_loop or cond got a body that returns something else.

The message names the leaf of the carry and both types. Integer zeros that become floats, Python scalars (weak types),
x64 values, shapes that grow and tuples that lose an element are the usual ways. The fault is where the initial carry is
built or what the body returns; the traceback's line is the call of the loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import Incident, incidents
from traindx_tools.on_logs.tracebacks.report import report, short
from traindx_tools.rules import Rule

PRIORITY = 8

RULE = Rule(
    id="L517",
    name="jax-carry-mismatch",
    title="A JAX loop's carry changes its type",
    severity=Severity.CRITICAL,
    sees="The leaf, and the types before and after, in the messages of scan, while_loop, fori_loop and cond.",
    matters="The loop cannot be compiled; the run ends before its first step.",
    alike=("A tracer problem (L516).", "A dtype mismatch between two operands (L506)."),
    confirm=("jax.eval_shape(body, init, x): compare its carry with jax.tree.map(jnp.asarray, init).",
             "Give the initial value the dtype of the result, e.g. jnp.zeros((), jnp.float32) for a sum of floats."),
)

_CLAIM = re.compile(r"carry (?:input and carry output|output and carry input|input|output)|carry component"
                    r"|body_fun output and input must have identical types|cond branches must have"
                    r"|(?:true_fun|branch\w*).{0,40}must have (?:equal|the same|identical)"
                    r"|branches must have equal|must have the same (?:pytree|type) structure|scan carry"
                    r"|have identical types, got|body_fun.{0,40}carry")
_LEAF = re.compile(r"(?:input )?(?:carry component|carry|loop carry|component) (?P<leaf>\S+) (?:has|is)\b")
_TYPES = re.compile(r"has type (?P<before>\w+\[[^\]]*\]\S*) but the corresponding .{0,60}? (?:has )?type "
                    r"(?P<after>\w+\[[^\]]*\])", re.DOTALL)
_STRUCTURES = re.compile(r"is a (?P<before><class '[^']+'>|\w+)(?: of length \d+)? but .{0,80}? is a "
                         r"(?P<after><class '[^']+'>|\w+)", re.DOTALL)
_OLD = re.compile(r"identical types, got\n?\s*(?P<after>.{1,300}?)\n?\s*and\n?\s*(?P<before>.{1,300}?)\.?$", re.DOTALL)
_LOOP = re.compile(r"^\W*(?P<loop>scan|while_loop|fori_loop|cond|switch|custom_root|associative_scan)")
_ABSTRACT = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[^\]]*)\]")


def claims(event: ErrorEvent) -> bool:
    """Messages of JAX's loops and branches about types that change."""
    return event.kind == "exception" and event.type.endswith(("TypeError", "ValueError", "Exception")) and bool(
        _CLAIM.search(event.message))


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        yield _judged(incident)


def _judged(incident: Incident) -> Finding:
    text = incident.text
    loop = _LOOP.search(text)
    name = loop["loop"] if loop else "a loop"
    leaf = _LEAF.search(text)
    types = _TYPES.search(text) or _STRUCTURES.search(text) or _OLD.search(text)
    measured: dict[str, Value] = {"kind": _kind(text, types), "loop": name}
    if leaf is not None:
        measured["leaf"] = leaf["leaf"]
    if types is None:
        return report(RULE, incident, f"{name} gets different types ({short(text)})", bearing=Bearing.CAUSE,
                      measured=measured)
    measured |= {"input_type": types["before"], "output_type": types["after"]}
    what = f"component {leaf['leaf']} " if leaf else ""
    if name in ("cond", "switch"):
        statement = f"the branches of {name} return {types['before']} and {types['after']}"
    else:
        statement = f"the carry {what}of {name} goes in as {types['before']} and comes out as {types['after']}"
    return report(RULE, incident, statement, bearing=Bearing.CAUSE, measured=measured,
                  surfaced="the initial carry or the body's return value is to be changed")


def _kind(text: str, types: re.Match[str] | None) -> str:
    if types is not None:
        before, after = _ABSTRACT.match(types["before"]), _ABSTRACT.match(types["after"])
        if before and after:
            if before["dtype"] != after["dtype"]:
                return "dtype" if before["shape"] == after["shape"] else "dtype-and-shape"
            return "shape" if before["shape"] != after["shape"] else "weak-type"
    if "weak_type" in text:
        return "weak-type"
    return "structure" if re.search(r"structure|length|Python types|arity|number of", text) else "type"
