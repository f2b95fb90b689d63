"""How often the equation and the line of a planted non-finite value in a JAX function are named exactly.

    python benchmarks/jax_origins.py [--only NAME]

Each function that `tests/tools/on_jax/planted/jax_origins.py` gathers is evaluated by `find_nonfinite`; beside it
stands whether `jax_debug_nans` names the same line for the same call (its message and traceback hold that line).
Healthy functions of `jax_healthy.py` must be silent. Exit code 1 below 95 %, or where a healthy one is named.
"""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/tools/on_jax/planted"))

BAR = 0.95


def by_debug_nans(made: tuple[Any, ...], file: str, line: int) -> bool:
    """Whether JAX's own switch points at the line."""
    import jax

    fn, *args = made
    with jax.debug_nans(True), jax.debug_infs(True):
        try:
            jax.block_until_ready(fn(*args))
        except FloatingPointError as error:
            frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).name == file]
            return bool(frames) and frames[-1].lineno == line
        except Exception:  # noqa: BLE001 - the op-by-op repetition of debug_nans fails on some functions
            return False
    return False


def main() -> int:
    from jax_healthy import HEALTHY
    from jax_origins import PLANTED

    from traindx_tools.on_jax.nonfinite.origin import find_nonfinite

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only")
    only = parser.parse_args().only
    table: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    reasons = 0
    for case in PLANTED:
        if only not in (None, case.name):
            continue
        found = find_nonfinite(*case.make())
        m = found.measured if found else {}
        exact = m.get("op") == case.op and m.get("line") == case.line and set(case.path) <= set(m.get("path") or ())
        peer = by_debug_nans(case.make(), case.file, case.line)
        table[case.family].append((exact, peer))
        reasons += m.get("reason") == case.reason
        print(f"{'exact' if exact else 'MISS ':6} {case.family:22} {case.name:32} {m.get('op')} line {m.get('line')} "
              f"{m.get('reason')}{'' if peer else '   (debug_nans: another line or none)'}")
        if only and found:
            print(found.statement)
    alarms = [make.__name__ for make in HEALTHY if only is None and find_nonfinite(*make()) is not None]
    for family, hits in table.items():
        print(f"{family:24} {sum(e for e, _ in hits)}/{len(hits)}   debug_nans {sum(p for _, p in hits)}/{len(hits)}")
    total, exact = sum(map(len, table.values())), sum(e for hits in table.values() for e, _ in hits)
    peers = sum(p for hits in table.values() for _, p in hits)
    print(f"exact equation and line: {exact}/{total} ({100 * exact / total:.0f} %), right reason {reasons}/{total}, "
          f"line by jax_debug_nans and jax_debug_infs {peers}/{total}; healthy functions named: {alarms or 'none'}")
    return 0 if exact >= BAR * total and not alarms else 1


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    raise SystemExit(main())
