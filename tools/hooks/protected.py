"""Starts the protected runner with the standard library alone: `protected.py [--copy] -- COMMAND ...`.

Nothing that the command does reaches the project: Linux holds it (Landlock, seccomp, bubblewrap where it is there).
"""

import os
import sys

PLUGIN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
CHECKOUT = [os.path.join(PLUGIN, "orchestrator"), os.path.join(PLUGIN, "tools")]
PACK = [os.path.dirname(os.path.dirname(PLUGIN))]
"""In a wheel the plugin's root is `traindx/_pack`."""

sys.path[:0] = CHECKOUT if os.path.isdir(CHECKOUT[0]) else PACK
"""First: a `traindx` of the working folder is never what runs here."""

from traindx.runner.program import main  # noqa: E402

if __name__ == "__main__":
    code = main(sys.argv[1:], os.path.realpath(__file__))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
