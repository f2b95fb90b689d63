"""The facts of a program are few, short and in order, whatever the program was like."""

from __future__ import annotations

from traindx_tools.program.entities import Loss, Model, Optimizer, Role, StateFile
from traindx_tools.program.program import Program
from traindx_tools.program.roles import roles_of
from traindx_tools.program.timeline import Moment, Timeline, written
from traindx_tools.program_texts.of_run import MOST_CHARACTERS, facts

STEP = (Moment.FORWARD, Moment.LOSS, Moment.BACKWARD)


def test_repetitions_within_a_window_are_counted() -> None:
    assert written((Moment.CLEAR, *STEP * 4, Moment.STEP)) == "clear > 4 x (forward > loss > backward) > step"
    assert written(()) == ""
    assert written((Moment.STEP,)) == "step"


def test_windows_end_with_a_step() -> None:
    timeline = Timeline()
    for step in range(3):
        for moment in (*STEP, Moment.STEP):
            timeline.note(moment, step, "train.py:3" if moment is Moment.STEP else None)
    timeline.note(Moment.EVALUATION, 3)
    assert list(timeline.usual(1)) == [("forward > loss > backward > step", 3)]
    assert timeline.count(Moment.STEP, Moment.BACKWARD) == 6
    assert timeline.courses[Moment.STEP].lines == {"train.py:3": 3}


def test_an_endless_evaluation_does_not_grow() -> None:
    timeline = Timeline()
    for n in range(10_000):
        timeline.note(Moment.BATCH if n % 2 else Moment.EVALUATION, 0)
    timeline.close()
    assert all(len(w) <= 64 for w in timeline.windows)


def test_the_text_is_bounded_and_says_what_is_left_out() -> None:
    program = Program("torch")
    program.models += [Model("M" * 50) for _ in range(6)]
    program.losses += [Loss("mse_loss" * 40, "a.py:1") for _ in range(40)]
    program.files += [StateFile("f" * 3000, False, 0) for _ in range(40)]
    text = facts(program)
    assert len(text) <= MOST_CHARACTERS
    assert "34 more of kind loss" in text
    program.remarks += ["r" * 300] * 20
    assert facts(program).endswith("more facts are left out)")


def test_nothing_seen_is_nothing_said() -> None:
    assert facts(Program("torch")) == ""


def test_paths_are_written_from_the_folder() -> None:
    program = Program("torch", losses=[Loss("mse_loss", "/home/me/run/train.py:7", 3, ("float32[2]",))])
    assert "at train.py:7" in facts(program, "/home/me/run")


def _roles(*models: Model, optimizers: int = 1) -> list[tuple[Role, ...]]:
    program = Program("torch", models=list(models), optimizers=[Optimizer("SGD", steps=2) for _ in range(optimizers)])
    return [roles for _, roles in roles_of(program)]


def test_roles_are_known_from_use() -> None:
    trained = Model("a", 10, 10, held=10, reached=10, moved=10)
    fixed, average = Model("b", 10), Model("c", 10, moved=10)
    assert _roles(trained, fixed, average) == [(Role.TRAINED,), (Role.REFERENCE,), (Role.AVERAGE,)]
    assert _roles(Model("h", 10, 2, held=2, reached=2, moved=2)) == [(Role.TRAINED, Role.PROBED)]
    both = _roles(trained, Model("d", 5, 5, held=5, reached=5, moved=5), optimizers=2)
    assert all(Role.ADVERSARY in roles for roles in both)
    assert _roles(Model("x", 3, calls={"evaluation (eval mode)": 2}, reached=3)) == [(Role.EVALUATED,)]
    assert _roles(Model("x", 3, reached=3)) == [(Role.IDLE,)]
