"""Causes at 6, 5 and 5 % are no ranking: nothing stands out, and they are listed without a number."""

from __future__ import annotations

import re
from typing import Any

import pytest

from traindx.page import Page
from traindx.render import render_report_html
from traindx.terminal_brief import render_brief
from traindx.terminal_full import render_full
from traindx.view import View

NAMES = ("Zebra labels are misaligned", "A checkpoint is not loaded", "The loss is divided twice")


def result(*confidences: float, status: str = "needs_more_data", backed: bool = True) -> dict[str, Any]:
    return {"status": status, "root_causes": [], "findings": [], "next_checks": [], "quick_fixes": [],
            "analysis_artifacts": {},
            "hypotheses": [{"issue": f"{name}.", "mechanism": "", "location": "train.py:9", "confidence": sure,
                            "confirm": ["look"], "rule_out": [], "against": [], "failure_mode": "a.b",
                            "for": ["[L201-1] +1.0 (ran, sign): the loss stays"] if backed else []}
                           for name, sure in zip(NAMES, confidences, strict=False)]}


def shown(told: dict[str, Any]) -> list[str]:
    view = View(told, reason="no cause is sure enough")
    whole = render_report_html(told, reason="no cause is sure enough")
    page = re.sub(r"<style>.*?</style>", "", whole, flags=re.DOTALL)
    return [render_brief(view, Page(100)), render_full(view, Page(100)), page]


def test_a_tie_is_no_ranking_anywhere() -> None:
    for text in shown(result(0.06, 0.05, 0.05)):
        assert "nothing stands out: 3 causes are about as likely as each other" in text
        assert [m for m in re.findall(r"\d+ %", text) if m != "70 %"] == []
        assert text.index(NAMES[0]) < text.index(NAMES[1]) < text.index(NAMES[2]), "the likeliest first"


def test_what_the_weights_tell_apart_is_a_ranking_and_said_with_its_numbers() -> None:
    for text in shown(result(0.27, 0.15, 0.12)):
        assert "nothing stands out" not in text
        assert "27 %" in text
        assert "15 %" in text


def test_the_rest_stands_below_a_tie_with_its_number() -> None:
    for text in shown(result(0.18, 0.18, 0.10))[:2]:
        assert "2 causes are about as likely as each other, the usual ones first" in text
        assert text.index(NAMES[0]) < text.index(NAMES[1]) < text.index("10 %") < text.index(NAMES[2])


@pytest.mark.parametrize("confidences", [(0.45, 0.4, 0.1), (0.20, 0.05, 0.05), (0.34, 0.22, 0.13), (0.06,)])
def test_one_that_stands_out_is_ranked_with_its_number(confidences: tuple[float, ...]) -> None:
    for text in shown(result(*confidences)):
        assert "nothing stands out" not in text
    assert f"{100 * confidences[0]:.0f} %" in shown(result(*confidences))[1]


def test_what_is_far_below_the_tie_is_no_part_of_it() -> None:
    view = View(result(0.2, 0.19, 0.02))
    assert [h["issue"] for h in view.tied] == [f"{NAMES[0]}.", f"{NAMES[1]}."]
    assert [h["issue"] for h in view.in_order][-1] == f"{NAMES[2]}."


def test_a_cause_that_is_sure_and_causes_that_nothing_speaks_for_are_no_tie() -> None:
    assert View(result(0.06, 0.05, status="diagnosis_complete")).tied == ()
    assert View(result(0.06, 0.05, backed=False)).tied == ()
    assert View(result()).tied == ()
