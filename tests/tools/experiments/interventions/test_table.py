"""The table: what there is, what a change may say, and what is said of one that is none."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import pytest

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.change import Change, parse_change
from traindx_tools.experiments.interventions import (
    check,
    example,
    interventions,
    page,
    prepare,
    prepare_all,
    settings_options,
)
from traindx_tools.experiments.interventions.table import FAMILIES

ALL = interventions()


def test_there_are_enough_and_each_family_is_in_the_table() -> None:
    assert len(ALL) >= 40
    room = Path(importlib.import_module("traindx_tools.experiments.interventions").__file__ or "").parent
    declared = {p.stem for p in room.glob("*.py") if "INTERVENTIONS = (" in p.read_text(encoding="utf-8")}
    assert declared == set(FAMILIES)


@pytest.mark.parametrize("name", ALL)
def test_each_tells_what_it_does_and_how_it_is_typed(name: str) -> None:
    one = ALL[name]
    text = page(name)
    for sentence in (one.about, one.changes, one.keeps, one.shows, one.cannot_tell):
        assert sentence
        assert sentence in text
    assert f"--change {example(one)}" in text
    assert parse_change(example(one)).name == name
    assert one.horizon >= 1
    assert (one.holds == "inside") == bool(one.live)
    assert one.holds == "inside" or one.preparation is not None


@pytest.mark.parametrize("place", sorted({p for i in ALL.values() for p in i.live.values()}))
def test_what_applies_it_exists(place: str) -> None:
    module, _, name = place.partition(":")
    if ".on_torch." in module:
        pytest.importorskip("torch")
    assert hasattr(importlib.import_module(module), name)


def test_an_unknown_name_gets_those_that_come_close() -> None:
    with pytest.raises(BadUsage, match="learning-rate"):
        check(Change("learnin-rate"))
    with pytest.raises(BadUsage, match="no-clipping"):
        check(Change("no-clip"))
    with pytest.raises(BadUsage, match="--list"):
        check(Change("xyz"))


@pytest.mark.parametrize(("text", "said"), [
    ("learning-rate:factor=2", "no option 'factor'; its options: times"),
    ("learning-rate:times=fast", "times='fast': expected a number from 0 to"),
    ("learning-rate:times=-1", "expected a number from 0"),
    ("one-batch:number=1.5", "expected a whole number from 0"),
    ("frozen", "needs module=...: path of the modules"),
    ("optimizer:name=adamm", "expected one of sgd, momentum, adam"),
    ("placebo:much=1", "its options: none"),
    ("set", "at least one key=value"),
    ("env", "at least one key=value"),
    ("rows-alone:file=a.csv,from=0", "needs to="),
    ("frozen:module=", "expected a text"),
])
def test_a_wrong_option_is_named_with_what_is_expected(text: str, said: str) -> None:
    with pytest.raises(BadUsage) as error:
        check(parse_change(text))
    assert said in str(error.value)


def test_options_are_completed_and_the_control_passes() -> None:
    assert dict(check(parse_change("learning-rate")).options) == {"times": 0.1}
    assert check(Change()).is_control
    assert dict(check(parse_change("frozen:module=0")).options) == {"module": "0"}


def test_a_change_inside_leaves_command_environment_and_files(tmp_path: Path) -> None:
    made = prepare(parse_change("one-batch"), "python train.py", tmp_path)
    assert (made.command, dict(made.environment), dict(made.files)) == ("python train.py", {}, {})
    assert settings_options(made) == {"changes": [{"name": "one-batch", "options": {"number": 0}}]}
    control = prepare(Change(), "python train.py", tmp_path)
    assert settings_options(control) == {"changes": []}


def test_several_changes_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n2\n3\n")
    made = prepare_all([parse_change(t) for t in ("seed", "env:A=1", "rows-left-out:file=a.csv,from=0,to=0")],
                       "python t.py", tmp_path)
    assert [c.name for c in made.inside] == ["seed"]
    assert made.environment == {"A": "1"}
    assert made.files == {"a.csv": b"x\n2\n3\n"}
    with pytest.raises(BadUsage, match=r"touches a\.csv"):
        prepare_all([parse_change(f"rows-left-out:file=a.csv,from={i},to={i}") for i in (0, 1)], "python t.py",
                    tmp_path)


def test_the_table_needs_no_framework() -> None:
    import subprocess
    import sys

    code = ("import sys\nfrom traindx_tools.experiments.interventions import interventions, page\n"
            "[page(n) for n in interventions()]\nassert not {'torch', 'jax', 'pandas'} & set(sys.modules)")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
