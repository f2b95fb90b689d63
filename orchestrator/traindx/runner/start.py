"""Starts the runner from an installed package: `python -I -S start.py [...] -- COMMAND ...`."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from traindx.runner.program import main

if __name__ == "__main__":
    code = main(sys.argv[1:], os.path.realpath(__file__))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
