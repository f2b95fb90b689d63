"""Two shapes do not fit: the message names both.

Matrix products, broadcasting, convolution channels, view and reshape, concatenation, and samples of different sizes
that the default collate function cannot stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import Incident, incidents
from traindx_tools.on_logs.tracebacks.report import report, short
from traindx_tools.rules import Rule

PRIORITY = 50

RULE = Rule(
    id="L505",
    name="shape-mismatch",
    title="Shapes do not fit",
    severity=Severity.CRITICAL,
    sees="The shapes in messages of torch, NumPy and JAX about products, broadcasting, channels, views, stacks.",
    matters="The run is over. A shape that broadcasts by accident instead of failing is worse: see C109 and L526.",
    alike=("A checkpoint of another architecture (L518).", "A class target of the wrong shape (L520)."),
    confirm=("Print the shapes of the operands one line above.",
             "Compare with a batch that works: last batch smaller? variable length? channels last?"),
)

_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple((kind, re.compile(pattern)) for kind, pattern in (
    ("matmul", r"shapes cannot be multiplied \((?P<a>[\dx]+) and (?P<b>[\dx]+)\)"),
    ("matmul", r"size mismatch, (?:m1: \[(?P<a>[^\]]+)\], m2: \[(?P<b>[^\]]+)\]|got.*)"),
    ("matmul", r"dot_general requires contracting dimensions to have (?:the same|equal) shape, got "
               r"(?P<a>\([^)]*\)) and "
               r"(?P<b>\([^)]*\))"),
    ("matmul", r"matmul: Input operand \d has a mismatch|Expected size for first two dimensions of batch2 tensor"),
    ("broadcast", r"size of tensor a \((?P<a>\d+)\) must match the size of tensor b \((?P<b>\d+)\) at non-singleton "
                  r"dimension (?P<dim>\d+)"),
    ("broadcast", r"incompatible shapes for broadcasting: (?P<a>\([\d, ]*\)), (?P<b>\([\d, ]*\))"),
    ("broadcast", r"could not be broadcast together with (?:remapped )?shapes (?P<a>\([\d,]*\)) (?P<b>\([\d,]*\))"),
    ("broadcast", r"output with shape (?P<a>\[[^\]]*\]) doesn't match the broadcast shape (?P<b>\[[^\]]*\])"),
    ("broadcast", r"(?:expanded size of the tensor|shape mismatch: ).*"),
    ("channels", r"weight of size (?P<b>\[[\d, ]+\]), expected input(?P<a>\[[\d, ]+\]) to have (?P<expected>\d+) "
                 r"channels, "
                 r"but got (?P<got>\d+)"),
    ("channels", r"Expected \dD.*input to|expected (?:stride|padding|input).*dimension|Expected (?:3D|4D|5D)"),
    ("channels", r"Calculated padded input size per channel|Kernel size can't be greater than actual input size"),
    ("normalized-shape", r"Given normalized_shape=(?P<b>\[[\d, ]+\]), expected input.* but got input of "
                         r"size(?P<a>\[[\d, ]+\])"),
    ("normalized-shape", r"running_mean should contain (?P<a>\d+) elements not (?P<b>\d+)"),
    ("view", r"shape '(?P<b>\[[^\]]*\])' is invalid for input of size (?P<a>\d+)"),
    ("view", r"view size is not compatible with input tensor's size and stride"),
    ("view", r"cannot reshape (?:array|tensor) of (?:size|shape|0 elements).*|cannot reshape array of.*"),
    ("cat", r"Expected size (?P<a>\d+) but got size (?P<b>\d+) for tensor number (?P<number>\d+)"),
    ("cat", r"Sizes of tensors must match|all the input array dimensions.*must match exactly"),
    ("collate", r"stack expects each tensor to be equal size, but got (?P<a>\[[^\]]*\]) at entry (?P<i>\d+) and "
                r"(?P<b>\[[^\]]*\]) at entry (?P<j>\d+)"),
    ("collate", r"each element in list of batch should be of equal size|all input arrays must have the same shape"),
    ("collate", r"Unable to create tensor, you should probably activate truncation and/or padding"),
    ("ragged", r"setting an array element with a sequence|expected sequence of length (?P<a>\d+) at dim \d+ \(got "
               r"(?P<b>\d+)\)"),
    ("einsum", r"einsum\(\): .*(?:subscript|operand|size)"),
    ("attention-mask", r"attention mask.*(?:shape|size)|The shape of the (?:2D|3D) attn_mask is .*"),
    ("flax-parameter", r"Initializer expected to generate shape (?P<a>\([^)]*\)) but got shape (?P<b>\([^)]*\))"),
    ("vmap", r"vmap got inconsistent sizes for array axes"),
    ("gradient-not-scalar", r"grad can be implicitly created only for scalar outputs"
                            r"|Gradient only defined for scalar-output functions. Output had shape: (?P<a>\([^)]*\))"),
    ("sizes", r"(?:must have|should have|expected).{0,60}(?:the )?same (?:shape|size|number of)"
              r"|mismatch in (?:shape|dimension)|incompatible (?:shape|dimension)"),
))
_WORDS = {
    "matmul": "a matrix product of {a} and {b}: the inner sizes differ",
    "broadcast": "sizes {a} and {b} cannot be broadcast together",
    "channels": "an input of {a} meets convolution weights of {b}: the channels differ",
    "normalized-shape": "a normalisation built for {b} was given {a}",
    "view": "{a} values cannot be viewed as {b}",
    "cat": "tensors of size {a} and {b} cannot be concatenated",
    "collate": "samples of shape {a} and {b} cannot be stacked into one batch",
    "flax-parameter": "a parameter of shape {b} was given where {a} is expected",
    "gradient-not-scalar": "backward was called on an output that is no scalar (reduction='none', or a missing mean)",
}


def claims(event: ErrorEvent) -> bool:
    """Messages about shapes."""
    return event.kind == "exception" and any(p.search(event.message) for _, p in _KINDS)


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        yield _judged(incident)


def _judged(incident: Incident) -> Finding:
    kind, match = next((k, m) for k, p in _KINDS for m in [p.search(incident.text)] if m is not None)
    numbers = {k: v for k, v in match.groupdict().items() if v is not None}
    words = _WORDS.get(kind, "")
    known = "{" not in words or {"a", "b"} <= set(numbers)
    statement = words.format(**numbers) if words and known else f"shapes do not fit ({short(incident.text)})"
    measured: dict[str, Value] = {"kind": kind, **{_NAMES.get(k, k): v for k, v in numbers.items()}}
    return report(RULE, incident, statement, bearing=Bearing.SIGN, measured=measured,
                  surfaced="the samples come from the data set" if kind == "collate" else "")


_NAMES = {"a": "shape_a", "b": "shape_b", "dim": "dimension", "i": "entry_a", "j": "entry_b"}
