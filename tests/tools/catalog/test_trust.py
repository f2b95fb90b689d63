"""How often a first lead is right is measured and told, never typed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from traindx_tools.catalog import trust
from traindx_tools.catalog.precision import ROLES, load_precision


def lead(*evidence: tuple[str, float]) -> SimpleNamespace:
    return SimpleNamespace(speaks_for=tuple(SimpleNamespace(role=role, weight=weight) for role, weight in evidence))


@pytest.mark.parametrize("role", ROLES)
def test_the_figures_are_those_of_the_role_in_the_measured_table(role: str) -> None:
    found = load_precision().roles[role]
    assert f"right in {found.right} of {found.judged} judgements" in trust.how_often_right([lead((role, 1.0))])


def test_the_best_evidence_of_the_first_lead_counts() -> None:
    said = trust.how_often_right([lead(("hint", 0.4), ("cause", 3.6)), lead(("sign", 5.0))])
    assert "(a cause)" in said


@pytest.mark.parametrize("hypotheses", [[], [lead()], [lead(), lead(("cause", 3.0))]])
def test_where_nothing_speaks_for_the_first_it_says_so(hypotheses: list[SimpleNamespace]) -> None:
    assert trust.how_often_right(hypotheses).startswith("No evidence speaks for any")


def test_what_was_never_judged_is_not_praised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "load_precision", lambda: SimpleNamespace(roles={}))
    assert "was not measured" in trust.how_often_right([lead(("sign", 1.0))])
