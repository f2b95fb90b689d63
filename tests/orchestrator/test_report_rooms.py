"""report.html has a place for experiments and for what data files and weights hold, each with its own pictures."""

from __future__ import annotations

import re

import pytest

from traindx.render import render_report_html
from traindx.session_report import experiment_pictures
from traindx.view import View
from traindx_tools.finding import Bearing, Finding, Location, Severity

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
MOVED = Finding("X101", "The symptom goes with one change", Severity.HIGH, Bearing.CAUSE,
                "X002: learning-rate:times=0.1 removes the symptom: all 3 controls turn NaN, neither changed run does",
                Location(module="experiment X002"), "experiment X002",
                {"experiment": "X002", "change": "learning-rate:times=0.1", "outcome": "nan:loss", "verdict": "removes",
                 "controls": (4.0, 4.0, 5.0), "changes": (float("inf"), float("inf")), "better": True})
OPEN = Finding("X104", "An experiment that decides nothing", Severity.INFO, Bearing.COMPANION,
               "X001: schedule-fixed is inconclusive: the budget is spent", Location(module="experiment X001"),
               "experiment X001", {"experiment": "X001", "change": "schedule-fixed", "outcome": "nan:loss",
                                   "verdict": "inconclusive"})
ROWS = Finding("D104", "A shard of another scale", Severity.HIGH, Bearing.CAUSE,
               "x of shard-07.npz is 255 times as large as in the 11 others", Location(file="shard-07.npz"),
               "shard-07.npz")
LOG = Finding("L101", "A metric turns NaN", Severity.CRITICAL, Bearing.SIGN, "loss is nan from step 4 on",
              Location(file="log.txt", line=4, step=4), "log.txt")


def result(*findings):
    return {"status": "needs_more_data", "root_causes": [], "hypotheses": [], "quick_fixes": [], "next_checks": [],
            "findings": [{"id": f"{f.rule}-1", **f.to_json()} for f in findings], "analysis_artifacts": {}}


def section(page, name):
    found = re.search(rf'<section id="{name}">(.*?)</section>', page, re.DOTALL)
    return found[1] if found else ""


def test_each_experiment_is_a_row_with_the_numbers_of_control_and_change_in_the_order_they_were_made():
    told = section(render_report_html(result(LOG, MOVED, OPEN)), "experiments")
    assert told.index("X001") < told.index("X002")
    for said in ("learning-rate:times=0.1", "nan:loss", "4, 4, 5", "none, none", "removes the symptom",
                 "all 3 controls turn NaN", 'href="#X101-1"'):
        assert said in told, said
    assert "not run" in told, "an experiment that ended before a run with the change says so"


def test_what_files_hold_is_a_table_of_places():
    told = section(render_report_html(result(LOG, ROWS)), "data")
    assert "shard-07.npz" in told
    assert "255 times as large" in told
    assert "loss is nan" not in told


def test_a_run_without_them_has_no_empty_section():
    page = render_report_html(result(LOG), {"loss_visualization": PNG})
    assert section(page, "experiments") == section(page, "data") == ""
    assert 'href="#experiments"' not in page
    assert page.count("<img") == 1


def test_pictures_stand_in_their_own_section_and_nowhere_else():
    pictures = {"loss_visualization": PNG, "experiment_X002": PNG, "samples": PNG}
    page = render_report_html(result(LOG, MOVED, ROWS), pictures)
    assert [section(page, name).count("<img") for name in ("pictures", "experiments", "data")] == [1, 1, 1]
    assert "Experiment X002" in section(page, "experiments")
    without = render_report_html(result(LOG), {"samples": PNG})
    assert section(without, "pictures").count("<img") == 1, "samples without a finding on data are still shown"


@pytest.mark.parametrize("change", ["<script>alert(1)</script>", "{{ 7*7 }}", "a\x1b[31mb"])
def test_a_hostile_change_stays_text(change):
    hostile = Finding("X101", "t", Severity.HIGH, Bearing.CAUSE, f"X001: {change} removes the symptom: why",
                      Location(module="experiment X001"), "experiment X001",
                      {"experiment": "X001", "change": change, "verdict": "removes", "controls": "no numbers"})
    told = section(render_report_html(result(hostile)), "experiments")
    assert "<script" not in told
    assert "49" not in told
    assert "\x1b" not in told


def test_an_unknown_verdict_is_shown_with_its_statement():
    odd = Finding("X104", "t", Severity.INFO, Bearing.COMPANION, "what a later version says", Location(file="a"),
                  "a", {})
    assert View(result(odd)).experiments[0].why == "what a later version says"


def test_a_session_shows_the_pictures_of_its_experiments_and_follows_no_link(tmp_path):
    folder = tmp_path / "evidence" / "run-0" / "experiments"
    folder.mkdir(parents=True)
    (folder / "X001.png").write_bytes(PNG)
    (tmp_path / "secret.png").write_bytes(PNG)
    (folder / "X002.png").symlink_to(tmp_path / "secret.png")
    assert experiment_pictures(tmp_path) == {"experiment_X001": folder / "X001.png"}
    assert experiment_pictures(tmp_path / "none") == {}
