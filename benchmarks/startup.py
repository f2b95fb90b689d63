"""Start-up times: `traindx --help` and `import traindx_tools` beside an empty interpreter and `import numpy`.

    python benchmarks/startup.py [RUNS]

Prints the median of RUNS (default 11) fresh processes of each, and its ratio to the empty interpreter in the same run.
"""

from __future__ import annotations

import signal
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import traindx_tools": ["-c", "import traindx_tools"],
    "traindx --help": ["-m", "traindx", "--help"],
}


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, arguments in COMMANDS.items():
            taken[name].append(seconds(arguments))
    empty = statistics.median(taken["python -c pass"])
    print(f"{'command':24}{'median s':>10}{'ratio':>8}")
    for name, values in taken.items():
        middle = statistics.median(values)
        print(f"{name:24}{middle:10.3f}{middle / empty:8.1f}")


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    main()
