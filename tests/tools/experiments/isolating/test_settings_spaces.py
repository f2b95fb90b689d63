"""Configuration files, command lines and environments: what differs, and the run in which some of it is applied."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from traindx_tools.errors import BadUsage, UnreadableInput
from traindx_tools.experiments.isolating.spaces.command_lines import CommandLines
from traindx_tools.experiments.isolating.spaces.configuration import Configuration
from traindx_tools.experiments.isolating.spaces.environment import Environment
from traindx_tools.experiments.isolating.spaces.trees import applied, differences, same

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LEAVES = st.sampled_from([None, True, 1, 1.0, 0.1, "a", [1, 2], [1, 3], [1], {}])
SECTIONS = st.dictionaries(st.sampled_from("abc"), LEAVES, max_size=3)
TREES = st.dictionaries(st.sampled_from("abcd"), LEAVES | SECTIONS, max_size=4)


@given(TREES, TREES)
def test_all_differences_make_the_bad_tree_and_none_the_good_one(good: dict[str, Any], bad: dict[str, Any]) -> None:
    changes = list(differences(good, bad))
    assert same(applied(good, []), good)
    assert same(_without_empty(applied(good, changes)), _without_empty(bad))
    assert bool(changes) == (not same(good, bad))


def test_a_part_that_stands_in_two_places_changes_in_one() -> None:
    shared: dict[str, Any] = {"lr": 1}
    good = {"a": shared, "b": shared, "c": [shared, shared]}
    bad = {"a": {"lr": 1}, "b": {"lr": 2}, "c": [{"lr": 3}, {"lr": 1}]}
    assert applied(good, list(differences(good, bad))) == bad
    assert good["a"] == {"lr": 1}


def _without_empty(tree: Any) -> Any:
    return {k: v for k, v in ((k, _without_empty(v)) for k, v in tree.items()) if v != {}} if isinstance(
        tree, dict) else tree


def files(folder: Path, suffix: str, good: str, bad: str) -> tuple[Path, Path]:
    paths = folder / f"good{suffix}", folder / f"bad{suffix}"
    for path, text in zip(paths, (good, bad), strict=True):
        path.write_text(text)
    return paths


def content(space: Configuration, part: set[int]) -> str:
    (held,) = space.prepared(frozenset(part)).files.values()
    assert held is not None
    return held.decode()


def test_yaml_scalars_stay_as_they_were_written(tmp_path: Path) -> None:
    good, bad = files(tmp_path, ".yaml", "a: &x {lr: 1e-3, on: 'yes'}\nb: *x\n'1': text\n2: number\n",
                      "a: {lr: 1e-1, on: 'yes'}\nb: {lr: 1e-3, on: 'yes'}\n'1': text\n2: number\n"
                      "new: !!python/none x\n")
    space = Configuration.of(good, bad, "python train.py bad.yaml", tmp_path)
    assert space.labels == ("a.lr: 1e-3 -> 1e-1", "new: not set -> x")
    text = content(space, {0})
    assert "lr: 1e-1" in text
    assert "on: 'yes'" in text
    assert yaml.safe_load(text) == {**yaml.safe_load(good.read_text()), "a": {"lr": "1e-1", True: "yes"}}
    assert space.prepared(frozenset()).files.keys() == {"bad.yaml"}


@pytest.mark.parametrize(("suffix", "loads"), [(".json", json.loads), (".toml", tomllib.loads)])
def test_json_and_toml_are_written_back_whole(tmp_path: Path, suffix: str, loads: Any) -> None:
    tree = {"lr": 0.1, "name": 'q"\n', "steps": 5, "flag": True, "list": [1, 2], "deep": {"x y": {"z": 1e-09}}}
    texts = {".json": json.dumps(tree), ".toml": 'lr = 0.1\nname = "q\\"\\n"\nsteps = 5\nflag = true\nlist = [1, 2]\n'
             '[deep."x y"]\nz = 1e-09\n'}
    good, bad = files(tmp_path, suffix, texts[suffix], texts[suffix].replace("0.1", "9.0").replace("1e-09", "1.5"))
    space = Configuration.of(good, bad, "python train.py --config=bad" + suffix, tmp_path)
    assert set(space.labels) == {"lr: 0.1 -> 9.0", "deep.x y.z: 1e-09 -> 1.5"}
    assert loads(content(space, set())) == tree
    assert loads(content(space, {space.labels.index("lr: 0.1 -> 9.0")})) == {**tree, "lr": 9.0}


def test_where_the_run_reads_it(tmp_path: Path) -> None:
    good, bad = files(tmp_path, ".json", '{"a": 1}', '{"a": 2}')
    with_place = Configuration.of(good, bad, "python train.py {config}", tmp_path).prepared(frozenset())
    assert with_place.command == f"python train.py {tmp_path.resolve()}/.traindx-isolate/bad.json"
    told = Configuration.of(good, bad, "python train.py", tmp_path, at="conf/run.json").prepared(frozenset())
    assert told.files.keys() == {"conf/run.json"}
    elsewhere = tmp_path / "workspace"
    elsewhere.mkdir()
    moved = Configuration.of(good, bad, f"python train.py -c {bad}", elsewhere).prepared(frozenset())
    assert moved.command == f"python train.py -c {elsewhere.resolve()}/.traindx-isolate/bad.json"
    with pytest.raises(BadUsage, match="not clear where the run reads it"):
        Configuration.of(good, bad, "python train.py", tmp_path)
    with pytest.raises(BadUsage, match="names both"):
        Configuration.of(good, bad, "python train.py good.json bad.json", tmp_path)
    with pytest.raises(BadUsage, match="does not lie in the workspace"):
        Configuration.of(good, bad, "python train.py", elsewhere, at="../x.json")


@pytest.mark.parametrize(("suffix", "text", "said"), [
    (".json", "{", "no JSON"), (".yaml", "a: [", "no YAML"), (".toml", "a =", "no TOML"),
    (".json", "[1]", "holds list"), (".yaml", "a: &x\n  b: *x\n", "no YAML"),
    (".json", "[" * 100_000, "nested too deeply"),
])  # fmt: skip
def test_broken_configurations(tmp_path: Path, suffix: str, text: str, said: str) -> None:
    good, bad = files(tmp_path, suffix, text, text)
    with pytest.raises(UnreadableInput, match=said):
        Configuration.of(good, bad, f"python train.py bad{suffix}", tmp_path)


def test_no_format_that_is_known(tmp_path: Path) -> None:
    good, bad = files(tmp_path, ".cfg", "", "")
    with pytest.raises(BadUsage, match="expected"):
        Configuration.of(good, bad, "python train.py bad.cfg", tmp_path)


def test_command_lines_by_option_override_and_variable() -> None:
    space = CommandLines.of("OMP_NUM_THREADS=1 python train.py --lr 0.1 --layers 1 2 --fp16 -b 8",
                            "OMP_NUM_THREADS=4 python train.py --lr=1.0 --layers 1 2 3 -b 8 --clip -1")
    assert space.labels == ("OMP_NUM_THREADS=1 -> OMP_NUM_THREADS=4", "--lr 0.1 -> --lr=1.0",
                            "--layers 1 2 -> --layers 1 2 3", "not given -> --clip -1", "--fp16 -> not given")
    good, bad = space.prepared(frozenset()), space.prepared(frozenset(range(5)))
    assert good.command == "python train.py --lr 0.1 --layers 1 2 --fp16 -b 8"
    assert bad.command == "python train.py --lr=1.0 --layers 1 2 3 -b 8 --clip -1"
    assert (good.environment, bad.environment) == ({"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "4"})
    assert space.prepared(frozenset({1})).command == "python train.py --lr=1.0 --layers 1 2 --fp16 -b 8"


def test_hydra_overrides() -> None:
    space = CommandLines.of("python train.py optim.lr=0.1 model=small",
                            "python train.py optim.lr=1 model=small +x=2 ~y")
    assert space.labels == ("optim.lr=0.1 -> optim.lr=1", "not given -> +x=2", "not given -> '~y'")
    assert space.prepared(frozenset({1})).command == "python train.py optim.lr=0.1 model=small +x=2"


@pytest.mark.parametrize("line", ["python a.py | tee log", "python a.py && python b.py", "python 'a.py"])
def test_lines_that_are_no_single_command(line: str) -> None:
    with pytest.raises(BadUsage):
        CommandLines.of(line, "python a.py")


def test_environments(tmp_path: Path) -> None:
    good, bad = files(tmp_path, ".env", "A=1\nPWD=/x\nGONE=2\ntorch==2.3.0\nHF_TOKEN=secret\n",
                      "export A='2'\nPWD=/y\nNEW=3\ntorch==2.4.0\n")
    space = Environment.of(good, bad, "python train.py")
    assert space.labels == ("A: 1 -> 2", "NEW: not set -> 3", "GONE: 2 -> not set")
    assert space.notes == ("versions differ and cannot be changed here: torch 2.3.0 -> 2.4.0",)
    run = space.prepared(frozenset({0, 2}))
    assert run.environment == {"A": "2"}
    assert run.command == "unset NEW GONE; python train.py"
    bad.write_text("no environment")
    with pytest.raises(UnreadableInput, match="NAME=VALUE"):
        Environment.of(good, bad, "python train.py")
