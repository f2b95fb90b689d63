"""Pages of failure modes and rules: everything the data hold stands on them, and they read without a run."""

from __future__ import annotations

import re

import pytest

from traindx_tools.catalog.catalog import FailureMode, load_catalog
from traindx_tools.catalog.page import WIDTH, mode_page, rule_page, without_values
from traindx_tools.finding import Severity
from traindx_tools.rules import Rule, RuleModule, Threshold, all_rules

CATALOG = load_catalog()

RULE = RuleModule(
    rule=Rule(
        id="L102",
        name="gradient-explosion",
        title="Gradients explode",
        severity=Severity.CRITICAL,
        sees="The norm of the gradients over the steps.",
        matters="One update can throw the weights away.",
        alike=("A loss scale in the logged norm.",),
        confirm=("Clip at 1.0 and rerun.",),
        thresholds={"norm": Threshold(1e3, "absolute", "a debugging guide")},
    ),
    check=lambda run: (),
    doc="Gradients that grow without bound.\n\nThe rise is measured against\nthe median of the start.",
    module="somewhere",
)


@pytest.mark.slow
def test_a_mode_page_holds_all_of_the_mode() -> None:
    for mode in CATALOG.values():
        _holds_all(mode)


def _holds_all(mode: FailureMode) -> None:
    page = mode_page(mode)
    flat = " ".join(page.split())
    assert page.startswith(f"# {mode.title}\n")
    assert "{" not in "".join(line for line in page.splitlines() if not line.startswith("       "))
    for text in (mode.claim, mode.mechanism, mode.targeted.change, mode.broader.change, *mode.will_not_fix):
        assert " ".join(without_values(text).split()) in flat
    for step in mode.confirm + mode.rule_out:
        assert re.sub(r"\{\w+\|([^{}]*)\}", r"\1", step.command) in page
    for entry in mode.speaks_for + mode.speaks_against:
        assert entry.rule in page
    for source in mode.sources:
        assert source.where in flat


@pytest.mark.slow
def test_a_mode_page_fits_a_terminal() -> None:
    prose = [line for mode in CATALOG.values() for line in mode_page(mode).splitlines() if not line.startswith("   ")]
    assert [line for line in prose if len(line) > WIDTH and " " in line.strip("- ") and "http" not in line] == []


def test_a_rule_page_holds_docstring_thresholds_and_the_modes_it_speaks_for() -> None:
    page = rule_page(RULE)
    assert page.startswith("# L102 Gradients explode\n")
    assert "The rise is measured against the median of the start." in page
    assert "`norm` = 1000.0 absolute (a debugging guide)" in page
    assert "`grad.exploding` (for, " in page
    assert "A loss scale in the logged norm." in page


def test_a_rule_that_no_mode_names_has_a_page_too() -> None:
    page = rule_page(RULE, modes={})
    assert "Failure modes" not in page
    assert page.endswith("\n")


@pytest.mark.slow
def test_every_rule_renders() -> None:
    for module in all_rules().values():
        assert rule_page(module).startswith(f"# {module.rule.id} ")


@pytest.mark.parametrize(("text", "plain"), [
    ("decays by {ratio|a constant factor} a step", "decays by a constant factor a step"),
    ("no values here", "no values here"),
    ("at {best_at}", "at best at"),
])  # fmt: skip
def test_placeholders_fall_back(text: str, plain: str) -> None:
    assert without_values(text) == plain
