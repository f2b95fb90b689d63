"""Where two recordings part, what kind of parting it is, and which remedies remove it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.experiments.isolating.outcomes import Items, OutOfRuns
from traindx_tools.experiments.isolating.parting.compare import first, parting
from traindx_tools.experiments.isolating.parting.equal_runs import EqualRuns, Ran, compare_runs
from traindx_tools.experiments.isolating.parting.outputs import output_parts
from traindx_tools.experiments.isolating.parting.recording import Event, Recording, read_recordings
from traindx_tools.experiments.isolating.parting.remedies import REMEDIES, recorded

ROWS = [f"r{i}" for i in range(12)]


def course(**other: Any) -> Recording:
    """Three steps of a small training; `other`: digests by kind, `kind_step` for one step alone."""
    events = [Event(-1, "random", "torch", "t0"), Event(-1, "random", "python", other.get("python", "p"))]
    events.append(Event(0, "initial", "w", other.get("initial", "i")))
    for step in range(3):
        def told(kind: str, usual: Any, step: int = step) -> Any:
            return other.get(f"{kind}_{step}", other.get(kind, usual))

        rows, labels = told("rows", ROWS[4 * step:4 * step + 4]), told("labels", [f"l{i % 2}" for i in range(4)])
        events += [
            Event(step, "random", "torch", told("torch", f"t{step}")),
            Event(step, "batch", "batch[0]", str(rows), rows), Event(step, "batch", "batch[1]", str(labels), labels),
            Event(step, "module", told("name", "0 (Linear)"), told("module", f"m{step}"), told("given", f"g{step}")),
            Event(step, "loss", "0.5", told("loss", f"l{step}")), Event(step, "gradient", "w", told("gradient", "g")),
            Event(step + 1, "after the step", "w", told("update", "u"))]
    return Recording(0, other.get("surroundings", {}), tuple(events))


@pytest.mark.parametrize(("other", "origin", "step", "name"), [
    ({"initial": "?"}, "initial", 0, "w"),
    ({"rows_1": ["r5", "r4", "r7", "r6"]}, "order", 1, "batch[0]"),
    ({"rows_1": ROWS[8:], "rows_2": ROWS[4:8], "labels_1": ["l1", "l1", "l0", "l0"]}, "order", 1, "batch[0]"),
    ({"rows_1": ["r4", "?", "r6", "r7"]}, "values", 1, "batch[0]"),
    ({"rows_1": ["?", "?", "?", "?"], "labels_1": ["l1", "l1", "l0", "l0"]}, "rows", 1, "batch[0]"),
    ({"labels_2": ["l0", "l1", "l0", "l9"]}, "values", 2, "batch[1]"),
    ({"module_2": "?"}, "kernel", 2, "0 (Linear)"),
    ({"module_2": "?", "python": "?"}, "kernel", 2, "0 (Linear)"),
    ({"module_2": "?", "torch_2": "?"}, "random", 2, "0 (Linear)"),
    ({"module_2": "?", "given_2": "?"}, "between", 2, "0 (Linear)"),
    ({"loss_1": "?"}, "loss", 1, "0.5"),
    ({"gradient_1": "?"}, "backward", 1, "w"),
    ({"update_1": "?"}, "optimizer", 2, "w"),
    ({"name_1": "1 (ReLU)"}, "course", 1, "0 (Linear)"),
])  # fmt: skip
def test_the_first_place_and_its_origin(other: dict[str, Any], origin: str, step: int, name: str) -> None:
    found = first(course(), course(**other))
    assert found is not None
    assert (found.origin, found.step, found.name) == (origin, step, name)
    assert f"after {step} steps" in found.said


def test_equal_recordings_and_random_states_alone_are_no_parting() -> None:
    assert first(course(), course()) is None
    assert first(course(), course(python="?", torch_1="?")) is None


def test_rows_and_random_states_are_named() -> None:
    found = first(course(), course(rows_1=["r4", "?", "r6", "?"], torch_1="?", surroundings={"threads": 4}))
    assert found is not None
    assert found.rows == (1, 3)
    assert found.batch == 2
    assert found.random == ("torch from step 1 on",)
    assert found.surroundings == ("threads: None / 4",)
    assert json.loads(json.dumps(found.to_json()))["origin"] == "values"


def test_of_several_ranks_the_earliest() -> None:
    one = {0: course(), 1: course()}
    found = parting(one, {0: course(loss_2="?"), 1: course(loss_1="?")})
    assert found is not None
    assert found.step == 1


def test_a_file_that_was_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    (tmp_path / "digests-rank00003.jsonl").write_text(
        '{"traindx": "digests", "threads": 1}\n[0, "loss", "0.5", "a"]\n[1, "lo')
    (tmp_path / "digests-rank00004.jsonl").write_text("nonsense")
    (tmp_path / "digests-rankX.jsonl").write_text("")
    (found,) = read_recordings(tmp_path).items()
    assert found[0] == 3
    assert found[1].events == (Event(0, "loss", "0.5", "a"),)
    assert found[1].surroundings == {"threads": 1}


def test_outputs_without_times_and_addresses() -> None:
    one = "2026-01-01 10:00:00 start\nstep 1 loss 0.5 (0.21 s, 12.1 it/s)\n<object at 0x7f01>\nloss 0.25\n"
    assert output_parts(one, one.replace("10:00:00", "11:30:59").replace("0.21 s", "3 s").replace("7f01", "ab")) is None
    found = output_parts(one, one.replace("0.25", "0.26"))
    assert found is not None
    assert "line 4" in found.name


def arms(parts: Callable[[frozenset[str], int], bool], budget: int = 99) -> EqualRuns:
    """Runs that part where `parts` says so of the names of the remedies and the number of the run."""
    made = [0]

    def run(part: Items, number: int) -> Ran:
        made[0] += 1
        if made[0] > budget:
            raise OutOfRuns("99 runs were made")
        names = frozenset(REMEDIES[i].name for i in part)
        return Ran({0: course(module_1="?") if number and parts(names, number) else course()}, "")

    return compare_runs(run)


def test_the_remedy_that_removes_it() -> None:
    found = arms(lambda names, _: "deterministic" not in names)
    assert (found.status, found.exit_code, found.removing) == ("parts", 1, (("deterministic",),))
    assert found.parting is not None
    assert found.parting.origin == "kernel"
    assert [a.equal for a in found.arms if a.remedies == ("one thread",)] == [False]


def test_two_remedies_that_are_needed_together_and_none_at_all() -> None:
    both = arms(lambda names, _: not {"seeds", "no workers"} <= names)
    assert [set(r) for r in both.removing] == [{"seeds", "no workers"}]
    none = arms(lambda names, _: True)
    assert (none.status, none.removing) == ("parts", ())


def test_equal_runs_and_runs_that_part_late() -> None:
    assert (arms(lambda names, _: False).status, arms(lambda names, _: False).exit_code) == ("equal", 0)
    late = arms(lambda names, number: not names and number == 3)
    assert late.status == "parts"
    assert all(a.runs >= 6 for a in late.arms[1:])  # three equal ones would say little where it took four to part


def test_runs_that_fail_and_a_budget_that_ends() -> None:
    failing = compare_runs(lambda part, number: Ran({}, "", "the run ended with exit code 1"))
    assert (failing.status, failing.exit_code) == ("unresolved", 3)
    assert arms(lambda names, _: True, budget=1).status == "unfinished"
    short = arms(lambda names, _: True, budget=4)
    assert short.status == "parts"
    assert "not every remedy was tried" in short.problem


def test_a_remedy_that_takes_hold_nowhere_removes_nothing() -> None:
    def run(part: Items, number: int) -> Ran:
        told = {"no-workers": {"times": 0, "problem": "no DataLoader was made"}} if part == {1} else {}
        return Ran({0: course(module_1="?") if number and not part else course()}, "", "", told)

    found = compare_runs(run)
    assert ("no workers",) not in found.removing
    assert any("no DataLoader was made" in a.problem for a in found.arms)


def test_a_recorded_run(tmp_path: Path) -> None:
    made = recorded(frozenset({0, 2}), "python train.py", tmp_path, 7)
    assert made.probes == ("digests",)
    assert made.options["digests"] == {"steps": 7}
    assert made.environment["OMP_NUM_THREADS"] == "1"
    assert made.environment["PYTHONHASHSEED"] == "0"
    assert [c.name for c in made.inside] == ["seed"]
