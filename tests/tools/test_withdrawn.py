"""An old id is answered with what became of it, and no rule that exists is called withdrawn."""

from __future__ import annotations

import pytest

from traindx.commands.explain import page
from traindx.project_file import checked
from traindx_tools.errors import BadUsage
from traindx_tools.rules import explained_rules
from traindx_tools.withdrawn import WITHDRAWN, withdrawn


@pytest.mark.parametrize("rule", sorted(WITHDRAWN))
def test_its_page_is_one_line_that_says_why(rule: str) -> None:
    assert rule not in explained_rules()
    assert page(rule.lower()) == withdrawn(rule)
    assert page(rule).startswith(f"{rule} was withdrawn: it ")
    assert "\n" not in page(rule)


def test_what_was_set_aside_stays_so() -> None:
    assert checked("C125", "known here").name == "C125"


def test_an_id_that_never_was_is_unknown() -> None:
    assert withdrawn("C999") == withdrawn("C101") == ""
    with pytest.raises(BadUsage, match="no rule and no failure mode is called 'C999'"):
        page("C999")
