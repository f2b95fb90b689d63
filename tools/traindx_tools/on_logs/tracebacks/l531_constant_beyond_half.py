"""A constant does not fit into half precision.

float16 ends at 65504. `masked_fill(mask, -1e9)`, `torch.full(..., 1e10)` and their kin take the dtype of the tensor;
where that is float16 the constant cannot be represented, and torch refuses: "value cannot be converted to type
at::Half without overflow". Attention masks are filled with such constants most of the time. Half precision itself is
supported; the constant is what has to change: `torch.finfo(x.dtype).min` or `float("-inf")`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import incidents
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule

PRIORITY = 10

RULE = Rule(
    id="L531",
    name="constant-beyond-half",
    title="A constant does not fit into half precision",
    severity=Severity.CRITICAL,
    sees="torch's refusal to convert a number to Half (or another short float) without overflow.",
    matters="The run is over before it has begun.",
    alike=("An activation that overflows to inf gives no error: the loss turns NaN.",),
    confirm=("Print the dtype of the tensor that is filled, and the constant beside torch.finfo(dtype).min.",),
)

_MESSAGE = re.compile(r"value cannot be converted to type (?:at::|c10::)?(\w+) without overflow")
_MASK = re.compile(r"mask|fill|where|attn|attention|score", re.IGNORECASE)
_CONSTANT = re.compile(r"-?\s*\b(?:\d+(?:\.\d+)?[eE]\+?\d+|\d{6,}(?:\.\d*)?)\b")


def claims(event: ErrorEvent) -> bool:
    """The refusal to convert a scalar."""
    return event.kind == "exception" and _MESSAGE.search(event.message) is not None


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        found = _MESSAGE.search(incident.text)
        form = found.group(1) if found else "Half"
        codes = [f.code for f in reversed(incident.error.frames) if f.code]
        line = next((c for c in codes if _MASK.search(c) or _CONSTANT.search(c)), "")
        constant = _CONSTANT.search(line)
        masked = _MASK.search(line) is not None
        what = f"the constant {constant.group().replace(' ', '')}" if constant else "a constant"
        filled = f"a mask is filled with {what}" if masked else f"{what} is written into a tensor"
        yield report(RULE, incident, f"{filled}, which is outside the range of {form} (float16 ends at 65504)",
                     bearing=Bearing.CAUSE if masked else Bearing.SIGN,
                     measured={"kind": "mask" if masked else "constant", "dtype": form,
                               "constant": constant.group() if constant else None})
