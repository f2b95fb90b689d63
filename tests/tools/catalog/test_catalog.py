"""The loader refuses what is incomplete and says what is wrong; conditions compare as they are written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.catalog.catalog import Speaks, load_catalog, load_modes, parse_mode, with_effects
from traindx_tools.catalog.condition import Condition
from traindx_tools.errors import CatalogError
from traindx_tools.finding import Bearing, Finding, Location, Severity

PLAN = {"summary": "Lower it", "change": "divide by 10", "metric": "loss falls", "verify": "200 steps",
        "otherwise": "clip"}
MODE: dict[str, Any] = {
    "id": "lr.example",
    "title": "An example",
    "family": "divergence",
    "severity": "high",
    "symptoms": ["divergence"],
    "claim": "The rate is too\n high",
    "mechanism": "Steps overshoot. The loss rises.",
    "will_change": ["slower"],
    "will_not_fix": ["bad data"],
    "speaks_for": [{"rule": "L106", "role": "sign", "when": {"onset": "later"}}],
    "confirm": [{"do": "Lower it", "command": "traindx plot PATH", "expect": "it falls"}],
    "rule_out": [{"do": "Lower it", "expect": "it does not fall"}],
    "fix": {"targeted": PLAN, "broader": PLAN},
}


def test_a_complete_mode_is_read() -> None:
    mode = parse_mode(MODE)
    assert mode.claim == "The rate is too high"
    assert (mode.effect, mode.causes) == (False, ())
    assert mode.speaks_for[0].when == (Condition("onset", "later"),)
    assert mode.rule_out[0].command == ""


@pytest.mark.parametrize(("change", "named"), [
    ({"family": "weather"}, "family 'weather' is none of"),
    ({"symptoms": ["sadness"]}, "symptoms ['sadness'] are none of"),
    ({"symptoms": []}, "'symptoms' must be a list"),
    ({"claim": "  "}, "'claim' must be a sentence"),
    ({"speaks_for": []}, "add [[speaks_for]]"),
    ({"speaks_for": [{"rule": "L106", "role": "refutes"}]}, "a role is one of cause, sign"),
    ({"speaks_against": [{"rule": "L106", "role": "cause"}]}, "a role is one of refutes, contradicts"),
    ({"speaks_for": [{"rule": "L106"}]}, "got None for L106"),
    ({"confirm": []}, "'confirm' needs at least one entry"),
    ({"fix": {"targeted": PLAN}}, "[fix.broader] is missing"),
    ({"fix": {"targeted": PLAN, "broader": {**PLAN, "otherwise": ""}}}, "'otherwise' must be a sentence"),
    ({"will_not_fix": []}, "'will_not_fix' must be a list"),
])  # fmt: skip
def test_what_is_incomplete_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    with pytest.raises(CatalogError) as error:
        parse_mode({**MODE, **change})
    assert named in str(error.value)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("id = ", encoding="utf-8")
    with pytest.raises(CatalogError, match=r"broken\.toml"):
        load_modes(tmp_path)


def test_an_id_is_taken_once(tmp_path: Path) -> None:
    from traindx_tools.catalog.catalog import MODES

    source = next(MODES.rglob("*.toml")).read_text(encoding="utf-8")
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(source, encoding="utf-8")
    with pytest.raises(CatalogError, match="is taken already"):
        load_modes(tmp_path)


@pytest.mark.parametrize(("test", "value", "holds"), [
    ("ramp", "ramp", True),
    ("ramp", "abrupt", False),
    (">= 1e3", 1000, True),
    ("< 1.3", 1.4, False),
    ("> 0", "many", False),
    ("!= 3", 4, True),
    ("in growing,erratic", "erratic", True),
    ("in growing,erratic", "from-start", False),
    ("~ ^grad_norm", "grad_norm/encoder", True),
    ("~ commit", ("recon", "COMMITMENT"), True),
    ("present", 0, True),
    ("present", None, False),
    ("absent", None, True),
    (True, True, True),
    (True, False, False),
    ("ramp", None, False),
])  # fmt: skip
def test_a_condition_compares_as_it_is_written(test: Any, value: Any, holds: bool) -> None:
    assert Condition("key", test).holds({"key": value}) is holds


def test_a_finding_counts_at_most_as_near_as_the_mode_allows() -> None:
    finding = Finding(rule="L106", title="t", severity=Severity.HIGH, bearing=Bearing.CAUSE, statement="s",
                      where=Location(file="log.txt"), source="log.txt")  # fmt: skip
    assert Speaks("L106", "sign", bearing=Bearing.COMPANION).bearing_of(finding) is Bearing.COMPANION
    assert Speaks("L106", "sign").bearing_of(finding) is Bearing.CAUSE


def test_effects_know_their_causes_and_causes_their_effects() -> None:
    modes = load_catalog()
    assert modes["rl.kl-zero"].effect
    assert "rl.kl-zero" in modes["opt.model-aliased"].causes
    assert not modes["opt.model-aliased"].effect
    assert all(effect != cause for cause in modes for effect in modes[cause].causes)


def test_an_effect_of_nothing_known_is_refused() -> None:
    with pytest.raises(CatalogError, match=r"no\.such"):
        with_effects(load_catalog(), {"rl.kl-zero": ["no.such"]})
    lost = {i: replace(m, form_of=("no.such",)) for i, m in list(load_catalog().items())[:1]}
    with pytest.raises(CatalogError, match=r"form_of names no.such"):
        with_effects(lost, {})


def test_a_list_without_its_word_is_refused() -> None:
    with pytest.raises(CatalogError, match="kind = 'gap,absent' is never true: write 'in gap,absent'"):
        Condition("kind", "gap,absent")
