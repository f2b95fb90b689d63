"""C194: a scaler fitted before the split is a remark, because its effect mostly is small."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.finding import Severity
from traindx_tools.on_code import audit

HEAD = """import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

x, y = np.load("x.npy"), np.load("y.npy")
"""


@pytest.mark.parametrize("body", [
    "x = StandardScaler().fit_transform(x)\na, b = train_test_split(x, y)[:2]\n",
    "scaler = StandardScaler()\nscaled = scaler.fit_transform(x)\na, b, c, d = train_test_split(scaled, y)\n"])
def test_a_scaler_that_saw_all_samples_is_a_remark(body: str, tmp_path: Path) -> None:
    (tmp_path / "data.py").write_text(HEAD + body, encoding="utf-8")
    found = [f for f in audit([tmp_path / "data.py"]).findings if f.rule == "C194"]
    assert [(f.severity, f.measured["kind"]) for f in found] == [(Severity.LOW, "fitted-on-all")]


@pytest.mark.parametrize("body", [
    "a, b, c, d = train_test_split(x, y)\nscaler = StandardScaler()\na = scaler.fit_transform(a)\n",
    "other = StandardScaler().fit_transform(np.load('z.npy'))\na, b, c, d = train_test_split(x, y)\n",
    "x = (StandardScaler()).fit_transform\n", "x = fit_transform(x)\ntrain_test_split(x)\n"])
def test_a_split_before_the_fit_or_of_other_data_is_none(body: str, tmp_path: Path) -> None:
    (tmp_path / "data.py").write_text(HEAD + body, encoding="utf-8")
    assert [f for f in audit([tmp_path / "data.py"]).findings if f.rule == "C194"] == []
