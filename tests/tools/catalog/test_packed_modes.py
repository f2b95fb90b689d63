"""A wheel holds the failure modes in one file: the same modes in the same order; a damaged file is told in one line."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from traindx_tools.catalog.catalog import MODES, load_modes, packed_modes
from traindx_tools.errors import CatalogError

ROOT = Path(__file__).parents[3]


def built(version: str) -> dict[str, str]:
    """What the hook adds to a wheel of this version: the file made, and its place."""
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    data: dict[str, Any] = {"force_include": {}}
    module.OneFile.initialize(SimpleNamespace(root=str(ROOT)), version, data)
    return dict(data["force_include"])


def test_the_one_file_holds_the_same_modes_in_the_same_order() -> None:
    ((made, place),) = built("standard").items()
    assert place == "traindx_tools/catalog/modes.json"
    packed, own = packed_modes(Path(made)), load_modes(MODES)
    assert list(packed) == list(own)
    assert packed == own


def test_an_editable_installation_reads_the_repository() -> None:
    assert built("editable") == {}


@pytest.mark.parametrize(("content", "told"), [
    (b"", "install traindx anew"), (b"\xff\xfe", "install traindx anew"), (b"[1, 2]", "install traindx anew"),
    (b'{"a/b.toml": {"id"', "install traindx anew"), (b'{"a/b.toml": 3}', "a/b.toml: "),
    (b'{"a/b.toml": {"id": "x.y"}}', "a/b.toml: "),
])
def test_a_damaged_file_is_told_in_one_line(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "modes.json").write_bytes(content)
    with pytest.raises(CatalogError, match=told):
        packed_modes(tmp_path / "modes.json")
    with pytest.raises(CatalogError, match="install traindx anew"):
        packed_modes(tmp_path / "nowhere.json")
