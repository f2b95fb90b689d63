"""What goes along with anomalies, as the faces show it."""

from __future__ import annotations

from traindx.along import along_of
from traindx_tools.finding import Bearing, Finding, Location, Severity, Value


def finding(severity: Severity, rule: str = "L801", **measured: Value) -> Finding:
    return Finding(rule, "t", severity, Bearing.COMPANION, "`a` occurs", Location(file="x.log"), "x.log", measured)


def test_a_remark_is_told_with_its_sentence() -> None:
    (one,) = along_of([finding(Severity.INFO, event="`a`")])
    assert (one.event, one.remark, one.ruled_out) == ("`a`", "`a` occurs", ())


def test_a_finding_of_the_timeline_is_told_there_and_its_decoys_here() -> None:
    (one,) = along_of([finding(Severity.MEDIUM, event="`a`", ruled_out=("`b`",), ruled_out_why=("too few",))])
    assert (one.remark, one.ruled_out) == ("", ("`b` (too few)",))


def test_other_rules_and_bare_findings_show_nothing() -> None:
    assert along_of([finding(Severity.INFO, "L107"), finding(Severity.MEDIUM)]) == ()


def test_a_record_of_an_earlier_version_without_reasons_is_no_error() -> None:
    assert along_of([finding(Severity.MEDIUM, ruled_out=("`b`",))]) == ()
