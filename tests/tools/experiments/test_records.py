"""What is written down: the journal, kept runs, a run that is watched, the table."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from experiment_traces import curve, trace

from traindx_tools.experiments.budget import Budget
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.finding import finding_of
from traindx_tools.experiments.journal import Journal
from traindx_tools.experiments.kept import Kept
from traindx_tools.experiments.place import Prepared
from traindx_tools.experiments.preparing import with_seed
from traindx_tools.experiments.simulated import World, simulate
from traindx_tools.experiments.table import lines, page
from traindx_tools.experiments.trace import Applied
from traindx_tools.experiments.watch import Watch
from traindx_tools.finding import Finding, Strength


def test_a_kept_run_is_the_same_run(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    made = trace([1.0, 0.1 + 0.2, math.nan], stopped="decided", ended=False, exit_code=None,
                 changes={"no-decay": Applied(3, "train.py:4")})
    key = kept.key("files", Prepared("python train.py"))
    kept.put(key, made)
    read = kept.get(key)
    assert read is not None
    np.testing.assert_array_equal(read.curves["live/loss"].values, made.curves["live/loss"].values)
    assert (read.stopped, read.changes, read.exit_code) == ("decided", made.changes, None)


def test_a_run_is_kept_by_what_went_into_it(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    keys = {kept.key(files, prepared) for files, prepared in [
        ("a", Prepared("x")), ("b", Prepared("x")), ("a", Prepared("y")), ("a", Prepared("x", {"A": "1"})),
        ("a", Prepared("x", files={"f": b""})), ("a", Prepared("x", inside=(Change("no-decay"),))),
        ("a", Prepared("x", options={"o": 1}))]}
    assert len(keys) == 7
    assert kept.key("a", Prepared("x")) in keys
    assert kept.get("nothing") is None
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "trace.json").write_text('{"curves": {')
    assert kept.get("half") is None


def test_ids_go_on_and_a_resumed_question_keeps_its_own(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    assert journal.begin({"change": "a"}) == "X001"
    assert journal.begin({"change": "b"}) == "X002"
    with journal.path.open("a") as file:
        file.write('{"kind": "run", "id"')  # killed while it was writing
    assert journal.begin({"change": "a"}, resume=True) == "X001"
    assert Journal(tmp_path).begin({"change": "c"}, resume=True) == "X003"


def test_a_run_is_watched_while_it_grows(tmp_path: Path) -> None:
    live, output = tmp_path / "live", tmp_path / "output.log"
    live.mkdir()
    now = [0.0]
    watch = Watch(live, output, tmp_path, clock=lambda: now[0])
    assert watch.look(0.0).reached is None
    record = live / "rank00000.jsonl"
    record.write_text(json.dumps({"kind": "metrics", "step": 1, "loss": 2.0}) + '\n{"kind": "metr')
    assert watch.look(1.0).curves["live/loss"].values.tolist() == [2.0]
    with record.open("a") as file:
        file.write('ics", "step": 2, "loss": "nan"}\n')
    now[0] = 5.0
    told = watch.look(2.0)
    assert told.reached == 2
    assert math.isnan(told.curves["live/loss"].values[1])
    now[0] = 12.0
    assert watch.look(3.0).quiet == 7.0
    output.write_text("step 7 loss 0.5\nstep 8 loss 0.25\nValueError: no\n")
    ended = watch.end(4.0, 1, "")
    assert ended.curves["loss"].values.tolist() == [0.5, 0.25]
    assert (ended.ended, ended.exit_code) == (True, 1)


def test_the_budget_is_five_lengths_and_five_minutes() -> None:
    assert Budget().seconds == 300
    assert Budget(length=30.0).seconds == 150
    assert Budget(length=1.0).seconds == 60
    assert Budget(length=900.0).seconds == 300
    assert Budget(10.0, length=900.0).seconds == 10
    assert Budget(10.0, spent=12.0).left == 0


@pytest.mark.parametrize(("command", "option", "made"), [
    ("python train.py", "--seed", "python train.py --seed=2"),
    ("python train.py --seed 40 --lr 1", "--seed", "python train.py --seed 42 --lr 1"),
    ("python train.py --seed=40", "--seed", "python train.py --seed=42"),
    ("python train.py --seeds 40", "--seed", "python train.py --seeds 40 --seed=2"),
    ("python train.py trainer.seed=1", "trainer.seed", "python train.py trainer.seed=3"),
])
def test_the_programs_own_option_holds_the_seed(command: str, option: str, made: str) -> None:
    assert with_seed(command, option, 2) == made
    assert with_seed(command, option, 0) == command


@pytest.mark.parametrize(("world", "rule"), [(World(chance=1.0, effect=-1.0), "X101"), (World(effect=-20), "X102"),
                                             (World(spread=0, noise=0), "X103"), (World(chance=0.0), "X104")])
def test_a_verdict_is_a_finding_with_a_table(world: World, rule: str) -> None:
    result, _ = simulate(world)
    found = finding_of(result)
    assert (found.rule, found.strength) == (rule, Strength.RAN)
    assert found.statement.startswith("X001: simulated ")
    assert Finding.from_json(json.loads(json.dumps(found.to_json()))).rule == rule
    assert len(lines(result)) == len(result.made) + 3
    assert page(result, "X001.png").count("\n| ") == len(result.made) + 1
    assert "![X001](X001.png)" in page(result, "X001.png")


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from traindx_tools.experiments.picture import draw_experiment

    for name, world in (("level", World(effect=-20)), ("event", World(chance=1.0, effect=-1.0))):
        out = draw_experiment(simulate(world)[0], tmp_path / f"{name}.png")
        assert out is not None
        assert out.read_bytes().startswith(b"\x89PNG")
    assert curve([1.0]).values.tolist() == [1.0]
