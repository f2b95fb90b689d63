"""What findings are worth is measured: the table, how it is read, and that a command wrote it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from traindx_tools.catalog.precision import COUNTER_ROLES, PRIOR, ROLES, Measured, load_precision, parse, place_of
from traindx_tools.catalog.shipped import table
from traindx_tools.errors import CatalogError
from traindx_tools.finding import Bearing

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "benchmarks" / "measure_precision.py"
ROW = {"judged": 40, "right": 30, "bound": 0.66}
TABLE = {
    "role": dict.fromkeys(ROLES, ROW),
    "kind": [{"place": "code", "role": "cause", "bearing": "cause", "judged": 44, "right": 40, "bound": 0.8}],
    "check": [{"rule": "C101", "role": "cause", "judged": 25, "right": 25, "bound": 0.95}],
    "against": {r: {"judged": 1, "right": 0, "weight": 1.0} for r in COUNTER_ROLES},
}


def measured(folder: Path, *cases: object, level: str = "code") -> str:
    (folder / "set.json").write_text(json.dumps({"set": "s", "level": level, "cases": cases}))
    out = folder / "precision.toml"
    subprocess.run([sys.executable, SCRIPT, folder / "set.json", "--out", out], check=True, capture_output=True)
    return out.read_text()


def case(rule: str, role: str, right: bool, mode: str = "lr.too-high", healthy: bool = False) -> dict[str, object]:
    rows = [[rule, role, "cause", mode, int(right)]]
    return {"case": "c", "healthy": healthy, "status": "", "first": None, "entries": rows}


def test_the_check_itself_counts_before_its_kind_and_the_kind_before_the_role() -> None:
    table = parse(TABLE)
    assert table.of("C101", "cause", Bearing.CAUSE).bound == 0.95
    assert table.of("C102", "cause", Bearing.CAUSE).bound == 0.8
    assert table.of("T101", "cause", Bearing.CAUSE).bound == 0.66


def test_a_sign_is_worth_no_less_than_a_companion() -> None:
    table = parse({**TABLE, "check": [{"rule": "L102", "role": "sign", "judged": 30, "right": 1, "bound": 0.02}]})
    assert table.weight("L102", "sign", Bearing.SIGN) == table.weight("L102", "companion", Bearing.SIGN)


def test_a_lone_finding_gives_its_bound_and_never_less_than_nothing() -> None:
    import math

    assert 1 / (1 + math.exp(-(PRIOR + Measured(10, 6, 0.5).weight))) == pytest.approx(0.5)
    assert Measured(50, 0, 0.001).weight == 0.0


def test_what_speaks_against_takes() -> None:
    assert parse(TABLE).weight("L102", "contradicts", Bearing.SIGN) == -1.0


@pytest.mark.parametrize("broken", [{}, {**TABLE, "role": {}}, {**TABLE, "kind": [{"place": "code"}]},
                                    {**TABLE, "check": [{"rule": "C1", "role": "cause", **ROW, "bound": 1.0}]}])
def test_a_broken_table_says_which_command_writes_it(broken: dict[str, object]) -> None:
    with pytest.raises(CatalogError, match="measure_precision"):
        parse(broken)


def test_messages_are_told_apart_from_curves_and_text_from_processes() -> None:
    assert [place_of(r) for r in ("L101", "L517", "C101", "T101", "D101", "X001")] == [
        "log", "error", "code", "live", "file", "experiment"]


@pytest.mark.slow
def test_the_table_is_what_the_judgements_give() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_more_right_judgements_raise_a_check_and_wrong_ones_lower_it(tmp_path: Path) -> None:
    good, bad = (measured(tmp_path, *(case("C101", "cause", right) for _ in range(30))) for right in (True, False))
    bounds = [float(t.split('rule = "C101"')[1].split("bound = ")[1].split()[0]) for t in (good, bad)]
    assert bounds[0] > 0.9
    assert bounds[1] < 0.1


@pytest.mark.slow
def test_what_a_healthy_case_shows_counts_as_wrong_and_effects_and_reread_text_do_not_count(tmp_path: Path) -> None:
    assert "judged = 1" in measured(tmp_path, case("C101", "cause", False, healthy=True))
    assert "C101" not in measured(tmp_path, case("C101", "cause", True, mode="rl.kl-zero"))
    assert "C101" not in measured(tmp_path, case("C101", "cause", True), level="run")
    assert "T101" in measured(tmp_path, case("T101", "cause", True), level="run")


@pytest.mark.slow
def test_judgements_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[]")
    done = subprocess.run([sys.executable, SCRIPT, tmp_path / "x.json", "--out", tmp_path / "y"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 2
    assert "first_sight.py" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_catalog_holds_no_weight_that_somebody_typed() -> None:
    from traindx_tools.catalog.catalog import MODES

    typed = [p.name for p in MODES.rglob("*.toml") if "\nweight = " in (t := p.read_text("utf-8")) or "\nprior = " in t]
    assert typed == []
    assert load_precision().kinds


def test_a_corrupt_table_is_told_with_the_command_that_mends_it(tmp_path: Path) -> None:
    broken = tmp_path / "precision.toml"
    broken.write_bytes(b"[role.cause\njudged = ")
    with pytest.raises(CatalogError, match=r"precision\.toml of the catalog cannot be read .*: write it anew"):
        table(broken, "write it anew")
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(CatalogError, match="install traindx anew"):
        table(broken)
