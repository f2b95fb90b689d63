"""Values of a device are read when their event has passed, in order, and never waited for while training goes on."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from traindx_tools.on_torch import lagged
from traindx_tools.on_torch.lagged import Lagged


class Event:
    """Passes when it is told to, or when somebody waits for it."""

    made: list[Event] = []  # noqa: RUF012 - the test looks at all of them

    def __init__(self) -> None:
        self.passed = False
        self.waited = False
        Event.made.append(self)

    def query(self) -> bool:
        return self.passed

    def synchronize(self) -> None:
        self.waited = True


@pytest.fixture(autouse=True)
def _device(monkeypatch: pytest.MonkeyPatch) -> None:
    Event.made = []
    monkeypatch.setattr(lagged, "_at_once", lambda device: False)
    monkeypatch.setattr(lagged, "_recorded", lambda device: Event())


def numbers(queue: Lagged, *, wait: bool = False) -> list[tuple[object, list[float]]]:
    return list(queue.ready(wait=wait))


def test_nothing_is_read_before_its_event() -> None:
    queue = Lagged()
    queue.submit("a", [torch.tensor(1.0), torch.tensor(2.0)])
    queue.submit("b", [torch.tensor(3.0)])
    assert numbers(queue) == []
    Event.made[1].passed = True
    assert numbers(queue) == []
    Event.made[0].passed = True
    assert numbers(queue) == [("a", [1.0, 2.0]), ("b", [3.0])]
    assert not any(e.waited for e in Event.made)


def test_what_does_not_fit_is_left_out_and_buffers_are_used_again() -> None:
    queue = Lagged(most=2)
    for value in (1.0, 2.0, 3.0):
        queue.submit(value, [torch.tensor(value)])
    for event in Event.made:
        event.passed = True
    assert [tag for tag, _ in numbers(queue)] == [1.0, 2.0]
    before = {h.data_ptr() for h in queue._spare}
    queue.submit(4.0, [torch.tensor(4.0)])
    assert queue._queue[0].host is not None
    assert queue._queue[0].host.data_ptr() in before


def test_the_end_of_the_program_waits() -> None:
    queue = Lagged()
    queue.submit("last", [torch.tensor(float("nan"))])
    ((tag, (value,)),) = numbers(queue, wait=True)
    assert (tag, value != value) == ("last", True)
    assert Event.made[0].waited
