"""Mean and spread of all rows are told as little as they weigh; what labels or a projection carry over is a cause."""

from pathlib import Path

import pytest

from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.code_audit import audit

HERE = Path(__file__).parent / "variants" / "parts"


@pytest.mark.parametrize(("name", "kind", "role"), [
    ("c371_scaler_all", "statistics", "hint"),
    ("c371_torch_norm", "statistics", "hint"),
    ("c371_pca_before", "fitted", "cause"),
    ("c371_kbest_all", "labels", "cause"),
])
def test_the_role_follows_what_was_fitted(name: str, kind: str, role: str) -> None:
    found = [f for f in audit([HERE / f"{name}.py"]).findings if f.rule == "C371" and f.measured["kind"] == kind]
    assert found
    assert [s.role for s in load_catalog()["data.leakage"].speaks_for if s.matches(found[0])] == [role]
