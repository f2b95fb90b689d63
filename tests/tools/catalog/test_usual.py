"""Usual causes come first where the evidence does not decide, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools import ordering
from traindx_tools.catalog import usual
from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.catalog.usual import usual_first
from traindx_tools.errors import CatalogError
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.triage import SUSPECTED, rank


def test_each_is_a_failure_mode_of_the_catalog() -> None:
    assert set(usual_first()) <= set(load_catalog())


def found_by(rule: str, severity: Severity, bearing: Bearing, file: str) -> Finding:
    return Finding(rule, "It is so", severity, bearing, "it is so", Location(file, 3), file, {"kind": "elsewhere"})


def plateau(rule: str = "L201") -> Finding:
    return found_by(rule, Severity.MEDIUM, Bearing.SIGN, "train.log")


def test_a_plateau_alone_is_explained_by_the_usual_causes_first() -> None:
    found = rank([plateau()], load_catalog())
    assert found[0].confidence < 0.2
    places = [usual_first().get(h.mode.id, len(usual_first())) for h in found]
    assert places == sorted(places)
    assert places[0] < len(usual_first())


def test_what_was_seen_itself_stands_before_them() -> None:
    seen = found_by("C101", Severity.HIGH, Bearing.CAUSE, "train.py")
    modes = load_catalog()
    rare = next(m for m in modes.values() if any(e.rule == "C101" and e.role == "cause" for e in m.speaks_for))
    assert rank([plateau(), seen], modes)[0].mode.id == rare.id


def test_no_confidence_comes_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    modes = load_catalog()
    usual_one = rank([plateau()], modes)[0]
    monkeypatch.setattr(ordering, "usual_first", dict)
    alone = {h.mode.id: h.confidence for h in rank([plateau()], {usual_one.mode.id: modes[usual_one.mode.id]})}
    assert usual_one.confidence <= alone[usual_one.mode.id] < SUSPECTED


@pytest.mark.parametrize("text", ["", "order = []", 'order = ["lr.too-high", "lr.too-high"]', "order = 3", "order = ["])
def test_a_broken_table_is_named(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "usual.toml").write_text(text)
    monkeypatch.setattr(usual, "shipped", lambda name: tmp_path / name)
    usual_first.cache_clear()
    try:
        with pytest.raises(CatalogError, match=r"usual\.toml"):
            usual_first()
    finally:
        usual_first.cache_clear()
