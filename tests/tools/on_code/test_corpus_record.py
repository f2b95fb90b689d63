"""What the auditor gives on its fixtures does not change unseen, and what it sees it sees under any spelling.

Both records are written by `python benchmarks/corpus_record.py`; a change of either is looked at in the difference.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parent))

import corpus_record
from intermediate import with_intermediates

RECORD = json.loads(corpus_record.GOLDEN.read_text())
REWRITTEN = json.loads(corpus_record.REWRITTEN.read_text())
ALL = corpus_record.fixtures()
SAMPLE = 16
"""Every so many-th fixture is in the fast run."""
AGAIN = "python benchmarks/corpus_record.py, and look at what the difference of its files says"


def _changed(paths: list[Path]) -> dict[str, tuple[str, str]]:
    now = {corpus_record.key(p): " ".join(corpus_record.found(p)) for p in paths}
    return {k: (RECORD.get(k, "not recorded"), v) for k, v in now.items() if RECORD.get(k) != v}


def _lost(paths: list[Path]) -> set[str]:
    known = set(REWRITTEN["lost"])
    return {corpus_record.key(p) for p in paths
            if corpus_record.key(p) not in known and not corpus_record.is_still_seen(p)}


def test_a_sample_gives_what_is_recorded() -> None:
    assert not _changed(ALL[::SAMPLE]), AGAIN


@pytest.mark.slow
def test_all_give_what_is_recorded() -> None:
    assert not _changed(ALL), AGAIN
    assert set(RECORD) == {corpus_record.key(p) for p in ALL}, AGAIN


def test_a_sample_of_faults_is_seen_under_other_names_with_intermediate_variables() -> None:
    assert not _lost(corpus_record.fixtures("bad_")[::SAMPLE])


@pytest.mark.slow
def test_faults_are_seen_under_other_names_with_intermediate_variables() -> None:
    assert not _lost(corpus_record.fixtures("bad_"))
    assert REWRITTEN["of"] == len(corpus_record.fixtures("bad_")), AGAIN


def test_a_rewritten_program_does_what_it_did() -> None:
    text = ("def add(a, b):\n    return a * 10 + b\n\n\ndef twice(first):\n    return first * 2\n\n\n"
            "result = add(twice(add(1, b=twice(3))), twice(twice(2)))\nprint = sorted(list(str(result)))\n")
    before: dict[str, object] = {}
    after: dict[str, object] = {}
    exec(text, before)
    new = with_intermediates(text)
    exec(new, after)
    assert after["result"] == before["result"]
    assert after["print"] == before["print"]
    assert "held_1 = add(1, b=" not in new, "the keyword's call is lifted before the call that it is given to"
    assert len(ast.parse(new).body) > len(ast.parse(text).body)


@pytest.mark.parametrize("text", ["result = [f(x) for x in g(h(1))]\n", "def f(:\n", "y = a() and b(c())\n",
                                  "class A:\n    x = f(g())\n    def m(self):\n        super().m(f(1))\n"])
def test_what_cannot_be_taken_apart_stays(text: str) -> None:
    new = with_intermediates(text)
    assert new == text or ast.dump(ast.parse(new)) == ast.dump(ast.parse(text)) or "held_" in new
    if "held_" in new:
        assert "held_1 = super()" not in new


def test_a_rewritten_program_has_none_of_its_names() -> None:
    new = corpus_record.rewritten("import torch\nnet = torch.nn.Linear(1, 2)\nloss = net(torch.ones(3, 1)).sum()\n")
    assert "net" not in new
    assert "held_1 = torch.ones(3, 1)" in new
