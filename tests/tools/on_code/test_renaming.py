"""A finding that is gone without the program's own names rested on one."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.code_audit.entry import audit
from traindx_tools.code_audit.renaming import renamed, without_names
from traindx_tools.finding import Bearing, Strength

LOOP = """import torch
from torch import nn

net = nn.Linear(8, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(100):
    loss = nn.functional.cross_entropy(net(torch.randn(4, 8)), torch.randint(0, 4, (4,)))
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item():.4f}")
"""


def test_what_follows_from_the_program_is_derived(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOOP)
    found = audit([tmp_path / "train.py"]).findings
    (cleared,) = [f for f in without_names(found, [tmp_path / "train.py"]) if f.rule == "C101"]
    assert cleared.bearing is Bearing.CAUSE
    assert cleared.strength is Strength.DERIVED


@pytest.mark.slow
def test_what_is_gone_without_its_names_is_guessed(tmp_path: Path) -> None:
    fixtures = Path(__file__).parent / "fixtures"
    guessed = [p for p in sorted(fixtures.glob("c1*/bad_*.py")) if any(
        f.by_name for f in without_names(audit([p]).findings, [p]))]
    assert guessed, "some checks rest on names"


def test_nothing_to_doubt_is_returned_as_it_is(tmp_path: Path) -> None:
    assert without_names((), [tmp_path / "gone.py"]) == ()


def test_lines_stay_and_foreign_names_too() -> None:
    new = renamed(LOOP)
    assert len(new.splitlines()) == len(LOOP.splitlines())
    assert "torch.optim.SGD(" in new
    assert "lr=0.1" in new
    assert "opt.step()" not in new
    assert ".step()" in new
    assert ":.4f}" in new


@pytest.mark.parametrize("text", ["def f(:\n", "x = (\n", "\0", ""])
def test_what_does_not_parse_stays_as_it_is(text: str) -> None:
    assert renamed(text) == text


def test_the_same_program_under_other_names_does_the_same() -> None:
    def printed(source: str) -> list[object]:
        said: list[object] = []
        exec(source, {"print": said.append})
        return said

    source = ("def add(a, b=2, *rest, **more):\n    total = a + b + len(rest) + len(more)\n    return total\n"
              "class Box:\n    size = 3\n    def grow(self, by):\n        self.size += by\n        return self\n"
              "numbers = [add(n, b=n) for n in range(4)]\nprint(f'{numbers} {numbers[0]:.2f}')\n"
              "print(Box().grow(by=2).size)\nlam = lambda q: q * 2\nprint(lam(4))\n")
    new = renamed(source)
    assert "numbers" not in new
    assert printed(new) == printed(source)
