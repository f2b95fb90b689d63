"""Places of a traceback in files that were changed since: the quoted text says where the line is now."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.examine import Examination, examine

SCRIPT = """\
import torch

net = torch.nn.Linear(4, 2)


def forward(x):
    out = net(x).pow(2)
    return out.mean()


for step in range(20):
    loss = forward(torch.randn(8, 4 + (step > 11)))
    loss.backward()
    print(f"step {step} loss {loss.item():.4f}")
"""
LOG = "".join(f"step {s} loss {0.9 - 0.01 * s:.4f}\n" for s in range(12)) + """\
Traceback (most recent call last):
  File "{folder}/train.py", line 12, in <module>
    loss = forward(torch.randn(8, 4 + (step > 11)))
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "{folder}/train.py", line 7, in forward
    out = net(x).pow(2)
          ^^^^^^
  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 134, in forward
    return F.linear(input, self.weight, self.bias)
RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x5 and 4x2)
"""


def looked_at(folder: Path, script: str, log: str = LOG) -> Examination:
    (folder / "train.py").write_text(script)
    (folder / "log.txt").write_text(log.replace("{folder}", str(folder)))
    return examine([folder], root=folder)


def told(seen: Examination) -> str:
    return next(f.statement for f in seen.findings if f.rule == "L505")


def since(seen: Examination) -> list[str]:
    return [note for note in seen.notes if "changed since" in note]


def test_a_line_that_moved_is_told_where_it_is_now(tmp_path: Path) -> None:
    seen = looked_at(tmp_path, SCRIPT.replace("import torch\n", "import torch\n# a\n# b\n# c\n"))
    assert "train.py:10" in told(seen)
    assert "train.py:7" not in told(seen)
    assert since(seen) == ["train.py was changed since log.txt was written: its line 7 is line 10 now, and is told as "
                           "that"]


def test_a_line_that_is_gone_keeps_its_number_and_is_said_to_be_gone(tmp_path: Path) -> None:
    seen = looked_at(tmp_path, SCRIPT.replace("net(x).pow(2)", "net(x).square()"))
    assert "train.py:7" in told(seen)
    assert len(since(seen)) == 1
    assert "`out = net(x).pow(2)`, does not stand there any more" in since(seen)[0]


def test_the_file_that_ran_is_left_alone(tmp_path: Path) -> None:
    seen = looked_at(tmp_path, SCRIPT.replace("    out", "\tout").replace("    return", "\treturn"))
    assert "train.py:7" in told(seen)
    assert not since(seen)


def test_of_several_equal_lines_the_one_in_the_frames_function_is_meant(tmp_path: Path) -> None:
    other = "\n\ndef evaluate(x):\n    out = net(x).pow(2)\n    return out.mean()\n"
    script = SCRIPT.replace("import torch\n", "import torch\n# a\n").replace("\n\nfor", other + "\nfor")
    seen = looked_at(tmp_path, script)
    assert "train.py:8" in told(seen)


def test_of_equal_lines_in_one_function_none_is_chosen(tmp_path: Path) -> None:
    twice = SCRIPT.replace("    out = net(x).pow(2)\n", "    x = x + 1\n" + "    out = net(x).pow(2)\n" * 2)
    seen = looked_at(tmp_path, twice.replace("import torch\n", "import torch\n# a\n"))
    assert "train.py:7" in told(seen)
    assert since(seen) == ["train.py was changed since log.txt was written: its line 12 is line 15 now, and is told as "
                           "that; where its line 7 stands now is not known"]


def test_a_strangers_file_of_the_same_name_is_not_said_to_have_changed(tmp_path: Path) -> None:
    log = LOG.replace("{folder}/", "/srv/other/place/").replace("out = net(x).pow(2)", "y = head(body(x)).sum()")
    assert not since(looked_at(tmp_path, SCRIPT, log))


@pytest.mark.parametrize("quoted", ["", "\x00\x1b[31m", "x" * 5000, "}", "'''"])
def test_a_broken_quote_changes_nothing(tmp_path: Path, quoted: str) -> None:
    seen = looked_at(tmp_path, "# a\n" + SCRIPT, LOG.replace("out = net(x).pow(2)", quoted))
    assert "train.py:7" in told(seen) or "train.py:13" in told(seen)
