"""Starts the gate with the standard library alone, from a checkout, an installed plugin or the wheel's pack."""

import os
import sys

TOO_OLD = 75
"""The launcher tries the next Python."""

if sys.version_info < (3, 10):  # noqa: UP036 - the machine's Python, not the project's
    sys.exit(TOO_OLD)

PLUGIN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
CHECKOUT = [os.path.join(PLUGIN, "orchestrator"), os.path.join(PLUGIN, "tools")]
PACK = [os.path.dirname(os.path.dirname(PLUGIN))]
"""In a wheel the plugin's root is `traindx/_pack`."""

sys.path += CHECKOUT if os.path.isdir(CHECKOUT[0]) else PACK

from traindx.gate_hook.program import limit, main  # noqa: E402

if __name__ == "__main__":
    limit(sys.argv[1])
    sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    code = main(sys.argv[1], PLUGIN, sys.stdin.read(), os.environ)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # taking the interpreter down by itself costs more than the judgement
