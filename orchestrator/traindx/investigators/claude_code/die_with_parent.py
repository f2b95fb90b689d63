"""Becomes another program that the kernel ends when the process that started it ends (Linux).

    python die_with_parent.py PARENT PROGRAM [ARGUMENT...]        standard library only
"""

from __future__ import annotations

import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, program: list[str]) -> None:
    """Asks the kernel, sees whether it is too late already, and becomes the program."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass  # the program is of use without it
    if os.getppid() == parent:
        os.execv(program[0], program)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
