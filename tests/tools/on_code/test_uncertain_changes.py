"""Findings whose change is not certain carry no patch: a part of it unknown, or another meaning possible."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.code_audit import audit
from traindx_tools.finding import Finding

FIXTURES = Path(__file__).parent / "fixtures"


def changed(rule: str, fixture: str, folder: Path, *changes: tuple[str, str]) -> Finding:
    """The finding of a rule in a fixture, some of whose text is replaced."""
    text = (FIXTURES / rule / fixture).read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / fixture
    path.write_text(text)
    (found,) = [f for f in audit([path]).findings if f.rule.lower() == rule]
    return found


CASES = {
    "labels that were counted elsewhere": (
        "c294", "bad_counts.py", ("np.bincount(grades, minlength=5)", "np.bincount(read_grades(), minlength=5)")),
    "a mask that is no tree of bools": (
        "c530", "bad_head_only.py", ("mask)", "lambda params: {k: k == 'head' for k in params})")),
    "a metric on an unknown device": (
        "c264", "bad_patience_per_rank.py", (".to(rank)", ".cuda()"), (".to(device)", ".cuda()")),
    "a wrapper that goes on under another name": (
        "c202", "bad_backbone_thawed.py",
        ("    model = DistributedDataParallel(model, device_ids=[rank])\n",
         "    wrapped = DistributedDataParallel(model, device_ids=[rank])\n    model = wrapped\n")),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_no_patch_is_offered(case: tuple[str | tuple[str, str], ...], tmp_path: Path) -> None:
    rule, fixture, *changes = case
    assert isinstance(rule, str)
    assert isinstance(fixture, str)
    assert not changed(rule, fixture, tmp_path, *[c for c in changes if isinstance(c, tuple)]).patch
