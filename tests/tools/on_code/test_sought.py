"""A pattern is looked for only where a piece that it needs is written: the answer stays the pattern's own."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

from traindx_tools import on_code
from traindx_tools.on_code.sought import needed
from traindx_tools.on_code.source import SourceFile

FIXTURES = Path(__file__).parent / "fixtures"


def source(text: str) -> SourceFile:
    return SourceFile("train.py", text, ast.Module([], []))


def pieces(pattern: str, flags: int = 0) -> set[str]:
    return {piece for _, piece in needed(re.compile(pattern, flags))}


@pytest.mark.parametrize(("pattern", "found"), [
    ("nll_loss|NLLLoss", {"nll_loss", "NLLLoss"}),
    (r"\bDDP\(|fully_shard", {"DDP(", "fully_shard"}),
    (r"patch_?(size|emb)", {"patchsize", "patch_size", "patchemb", "patch_emb"}),
    (r"(^|_)(tril|triu)(_|$)", {"tril", "triu"}),
    (r"nn\.Transformer\(", {"nn.Transformer("}),
    (r"load.{3,}model", {"model"}),
    (r"colou?r", {"color", "colour"}),
    (r"(?:abc)+d", {"abc"}),
    (r"(?P<name>epoch)s", {"epochs"}),
    (r"(?<!no_)grad(?!_fn)", {"grad"}),
    (r"[)\]x]loss", {"loss"}),
    (r"loss{2}", {"los"}),
])  # fmt: skip
def test_pieces_that_a_pattern_needs(pattern: str, found: set[str]) -> None:
    assert pieces(pattern) == found


@pytest.mark.parametrize("pattern", [
    r"", r".*", r"loss|", r"(loss)?", r"(loss)*", r"[loss]", r"\d+", r"loss|\d+", r"x|loss", r"(a)(?(1)b|c)loss",
    r"(lo)ss\1", r"\x6closs|q", r"(?i:loss)", r"l.o.s.s",
])  # fmt: skip
def test_nothing_is_needed_where_that_is_not_certain(pattern: str) -> None:
    assert pieces(pattern) == set()


def test_case_is_left_out_where_the_pattern_leaves_it_out() -> None:
    pattern = re.compile(r"CrossEntropy\(|NLL_", re.IGNORECASE)
    assert {piece for _, piece in needed(pattern)} == {"crossentropy(", "nll_"}
    assert source("loss = crossENTROPY (x)\nnllx = 1\n").mentions(pattern) is False
    assert source("loss = crossENTROPY(x)\n").mentions(pattern) is True


def test_a_pattern_that_is_spread_out_needs_nothing() -> None:
    assert needed(re.compile("lo ss", re.VERBOSE)) == ()


@pytest.mark.parametrize("text", ["", "é = 'öloss'\n", "loss", "x = losses['loss\\n']", "a\u2028loss", "LOSS\tlosſ"])
def test_words_hold_every_piece(text: str) -> None:
    for pattern in (re.compile("loss"), re.compile(r"loss\b"), re.compile(r"'loss"), re.compile("öloss")):
        assert source(text).mentions(pattern) == (pattern.search(text) is not None)


def _patterns() -> dict[str, re.Pattern[str]]:
    found: dict[str, re.Pattern[str]] = {}
    for module in pkgutil.walk_packages(on_code.__path__, f"{on_code.__name__}."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                found[f"{module.name}.{name}"] = value
    return found


@pytest.mark.slow
def test_every_pattern_of_the_rules_finds_what_it_would_find_alone() -> None:
    patterns = _patterns()
    assert len(patterns) > 100
    texts = [p.read_text() for p in sorted(FIXTURES.rglob("*.py"))[::4]]
    assert len(texts) > 100
    files = [source(t) for t in texts]
    gated = 0
    for name, pattern in patterns.items():
        gated += bool(needed(pattern))
        told = [f.mentions(pattern) for f in files]
        assert told == [pattern.search(t) is not None for t in texts], name
    assert gated > len(patterns) // 2


def test_an_audit_starts_without_numerical_libraries() -> None:
    code = "import sys, traindx_tools.on_code.report; print([m for m in ('numpy', 'torch', 'jax') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
