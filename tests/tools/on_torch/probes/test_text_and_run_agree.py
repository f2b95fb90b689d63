"""The same programs read as text and run: what the text says will happen is what the run does.

The live attachment is the follower's oracle. A fact that is asked of both is the same in both.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from traindx_tools.code_audit.read import programs_of
from traindx_tools.on_torch.probes.program import ProgramProbe
from traindx_tools.program.courses import expected_timeline
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment, Timeline

TWINS = sorted((Path(__file__).parents[2] / "program" / "twins").glob("*.py"))
FORWARDS = (Moment.FORWARD, Moment.FORWARD_IN_EVAL, Moment.EVALUATION, Moment.EVALUATION_IN_TRAIN)


def order(timeline: Timeline) -> str:
    """What usually happens up to a step."""
    return next((text for text, _ in timeline.usual(1)), "")


def modes(timeline: Timeline) -> set[Moment]:
    """In which modes modules are called."""
    return {m for m in FORWARDS if timeline.count(m)}


def losses(program: Program) -> set[tuple[str, int]]:
    """Each loss by its name and line."""
    return {(x.name, int((x.line or ":0").rpartition(":")[2])) for x in program.losses}


@pytest.mark.parametrize("path", TWINS, ids=lambda p: p.stem)
def test_text_and_run_agree(path, watching):
    (text,), notes = programs_of([path])
    assert not notes
    with watching(ProgramProbe) as seen:
        runpy.run_path(str(path), run_name="__main__")
    ran = seen.scene.program
    expected = expected_timeline(text)
    assert order(ran.timeline)
    assert order(expected) == order(ran.timeline)
    assert modes(expected) == modes(ran.timeline)
    assert sorted(o.kind for o in text.optimizers) == sorted(o.kind for o in ran.optimizers)
    assert sorted(s.kind for s in text.schedules) == sorted(s.kind for s in ran.schedules)
    assert losses(text) == losses(ran)


def test_there_are_a_dozen_and_more() -> None:
    assert len(TWINS) >= 12
