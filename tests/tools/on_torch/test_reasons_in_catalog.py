"""Every reason that the tracer can give leads to a failure mode."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.nonfinite.reasons import reasons
from traindx_tools.triage import rank

NO_DIRECT_CAUSE = {"half-overflow-gradient", "overflow", "other", "infeasible-target"}
"""Named by circumstances: the operation is known, what drove its input is not."""


def origin(reason: str, **measured: object) -> Finding:
    return Finding("T101", "origin", Severity.CRITICAL, Bearing.CAUSE, "step 5: it broke",
                   Location(file="train.py", line=3, step=5), "the traced step",
                   {"reason": reason, "op": "div", "dtype": "float32", "divisor_size": 8, **measured})  # type: ignore[dict-item]


@pytest.mark.parametrize("reason", sorted(reasons()))
def test_a_reason_names_a_failure_mode(reason: str) -> None:
    first = rank([origin(reason)], load_catalog())[0]
    assert first.speaks_for[0].role in (("cause", "sign") if reason in NO_DIRECT_CAUSE else ("cause",))


@pytest.mark.parametrize(("reason", "measured", "mode"), [
    ("log-of-zero", {}, "loss.log-of-zero"),
    ("zero-by-zero", {"divisor_size": 1}, "num.zero-count-division"),
    ("zero-by-zero", {"divisor_size": 64}, "num.division-by-zero"),
    ("division-by-zero", {"dtype": "float16"}, "num.epsilon-below-resolution"),
    ("half-overflow", {"dtype": "float16"}, "num.fp16-activation-overflow"),
    ("masked-softmax-row", {}, "num.all-masked-softmax"),
    ("where-unsafe-branch", {}, "num.where-unsafe-branch"),
    ("optimizer-division", {"dtype": "float16"}, "num.adam-eps-half"),
    ("data", {}, "data.nan-in-input"),
    ("parameter", {}, "num.nonfinite-weights"),
])  # fmt: skip
def test_the_failure_mode_is_the_right_one(reason: str, measured: dict[str, object], mode: str) -> None:
    assert rank([origin(reason, **measured)], load_catalog())[0].mode.id == mode
