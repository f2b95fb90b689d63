"""`traindx explain` for a person: words before figures, at the terminal's width, by the ids that a report prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from traindx.commands.explain import command, page
from traindx.page import reflowed, wrapped
from traindx.project_file import checked
from traindx_tools.errors import BadUsage


def test_evidence_is_told_in_words_and_figures_stand_at_the_end() -> None:
    words, _, figures = page("lr.too-high").partition("## Figures")
    assert "right " not in words.partition("## Evidence")[2].partition("##")[0]
    assert "log-odds" not in words
    assert "- for: L108" not in words
    assert "(L108, where kind is huge" in " ".join(words.split())
    assert re.search(r"right \d+ of \d+ times", " ".join(figures.split()))


@pytest.mark.parametrize("name", ["L102-1", "l102-12", "L102"])
def test_the_id_of_a_finding_leads_to_its_rule(name: str) -> None:
    assert page(name).startswith("# L102 ")


@pytest.mark.parametrize("name", ["L999-1", "L102-", "L102-x", "-1"])
def test_what_is_no_id_is_refused(name: str) -> None:
    with pytest.raises(BadUsage, match="no rule and no failure mode"):
        page(name)
    with pytest.raises(BadUsage, match="no rule and no failure mode"):
        checked(name, "because", source="--not")


def test_a_finding_that_is_set_aside_is_set_aside_by_its_rule() -> None:
    assert checked("L102-1", "clipped on purpose", source="--not").name == "L102"


@pytest.mark.parametrize("name", ["L102", "lr.too-high"])
def test_a_page_fits_the_terminal(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    told = CliRunner().invoke(command, [name]).output
    long = [row for row in told.splitlines() if len(row) > 60 and not row.startswith(("#", "    "))
            and " " in row.strip("- ")]
    assert long == []
    assert " ".join(told.split()) == " ".join(page(name).split()), "the same words"


def test_commands_and_headings_are_not_broken() -> None:
    page_ = ("# A heading that is long\n\n1. Do\n   it all\n\n       traindx run --probe x -- python train.py\n\n"
             "   Expect: a\n")
    assert reflowed(page_, 100) == page_
    told = reflowed(page_, 40).splitlines()
    assert "       traindx run --probe x -- python train.py" in told
    assert told[0] == "# A heading that is long"
    assert "1. Do it all" in told
    assert "   Expect: a" in told


def test_a_line_of_the_hang_report_is_wrapped_below_itself() -> None:
    assert wrapped("", 50) == [""]
    first, *rest = wrapped("  rank 3: the log ends after step 595, the last line is of the data", 50)
    assert first.startswith("  rank 3")
    assert all(row.startswith("    ") and len(row) <= 50 for row in rest)


def test_pages_are_listed_by_the_beginning_of_a_word() -> None:
    told = CliRunner().invoke(command, ["--list", "lr"]).output
    assert "lr.too-high" in told
    assert "alReady" not in told
    assert "already freed" not in told
    with pytest.raises(BadUsage, match="has the word 'zzz'"):
        CliRunner().invoke(command, ["--list", "zzz"], catch_exceptions=False, standalone_mode=False)
