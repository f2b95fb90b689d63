"""Start-up times: `traindx --help` and `import traindx_tools` beside an empty interpreter and `import numpy`, and the
diagnosis of a small log of 200 lines, its picture included.

    python benchmarks/startup.py [RUNS]

Prints the median of RUNS (default 11) fresh processes of each, and its ratio to the empty interpreter in the same run.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import traindx_tools": ["-c", "import traindx_tools"],
    "traindx --help": ["-m", "traindx", "--help"],
    "traindx diagnose LOG": ["-m", "traindx", "diagnose", "run.log", "--out", "out"],
    "traindx log LOG": ["-m", "traindx", "log", "run.log"],
}
LINES = "".join(f"step {i} | loss {2.0 * 0.99**i + 0.1:.4f} | lr 3.00e-04 | grad_norm 1.1\n" for i in range(200))


def seconds(arguments: list[str], folder: str) -> float:
    """Wall-clock seconds of one process. Bytecode is kept, as on a machine that is used more than once."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   cwd=folder, env=kept)
    return time.perf_counter() - start


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "run.log").write_text(LINES)
        for _ in range(runs):
            for name, arguments in COMMANDS.items():
                taken[name].append(seconds(arguments, folder))
    empty = statistics.median(taken["python -c pass"])
    print(f"{'command':24}{'median s':>10}{'ratio':>8}")
    for name, values in taken.items():
        middle = statistics.median(values)
        print(f"{name:24}{middle:10.3f}{middle / empty:8.1f}")


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    main()
