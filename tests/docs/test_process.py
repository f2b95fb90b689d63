"""The picture of the process shows the state machine as it is."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from pathlib import Path

from traindx import events
from traindx.machine import LEGAL, PHASES

_PAGE = Path(__file__).parents[2] / "docs" / "render_process.py"
_spec = importlib.util.spec_from_file_location("render_process", _PAGE)
assert _spec is not None
assert _spec.loader is not None
process = importlib.util.module_from_spec(_spec)
sys.modules["render_process"] = process
_spec.loader.exec_module(process)

ANYWHERE = {events.Halted, events.Interrupted, events.Resumed}


def kind(event: type) -> str:
    return str(event.model_fields["kind"].default)  # type: ignore[attr-defined]


def test_the_page_is_current() -> None:
    assert process.PAGE.read_text(encoding="utf-8") == process.page()


def test_every_event_is_drawn_from_exactly_the_phases_where_it_is_legal() -> None:
    legal = {(phase, kind(event)) for event, (phases, _) in LEGAL.items() if event not in ANYWHERE for phase in phases}
    assert {(a, event) for a, event, _, _ in process.EDGES} == legal


def test_every_arrow_ends_where_its_transition_goes() -> None:
    for event, (_, transition) in LEGAL.items():
        if event in ANYWHERE:
            continue
        source = inspect.getsource(transition)
        goes = {p for p in PHASES if re.search(rf'"{p}"', source)} | ({"halted"} if "_halted(" in source else set())
        drawn = {b for _, name, b, _ in process.EDGES if name == kind(event)}
        assert drawn <= goes | {"strike"}, kind(event)
        assert goes <= drawn, kind(event)
