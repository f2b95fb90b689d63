"""Drives one session in a process of its own, which a test then kills.

    python drive_session.py WORKSPACE SETTINGS_JSON
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from traindx.investigators.claude import ClaudeInvestigator
from traindx.session import run_debug_session
from traindx.settings import Settings


async def main(work: Path, settings: Settings) -> None:
    """A session that waits at its gate."""
    await run_debug_session("loss is nan", work, report=False, allow_run=True,
                            investigator=ClaudeInvestigator(settings))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Settings(**json.loads(sys.argv[2]))))
