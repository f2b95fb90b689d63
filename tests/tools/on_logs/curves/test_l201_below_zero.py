"""A loss that is negative from the start has no zero: its fall is compared with its scatter."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.examine import examine


@pytest.mark.parametrize(("fall", "flat"), [(5.0, False), (0.0, True)])
def test_an_energy_that_falls_by_a_part_of_its_size(tmp_path: Path, fall: float, *, flat: bool) -> None:
    log = tmp_path / "log.txt"
    log.write_text("".join(
        f"step {i} energy {-1234.5 + fall * 0.995**i + 0.2 * ((i * 7919) % 13 - 6) / 6:.4f}\n" for i in range(1500)))
    assert any(f.rule == "L201" for f in examine([log]).findings) is flat


def test_values_at_the_end_of_what_a_float_holds(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    log = tmp_path / "log.txt"
    log.write_text("".join(f"step {i} loss {v}\n" for i, v in enumerate(["-1e999", "-1e308", "1e-999"] * 30)))
    examine([log])
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]
