"""Drives one session in a process of its own, which a test then kills.

    python drive_session.py WORKSPACE SETTINGS_JSON
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from traindx.investigators.claude import ClaudeInvestigator
from traindx.model import Decision
from traindx.session import run_debug_session
from traindx.settings import Settings


async def main(work: Path, settings: Settings) -> None:
    """Sends the first diagnosis back, so that the specialists go to work."""
    await run_debug_session("loss is nan", work, report=False, investigator=ClaudeInvestigator(settings),
                            approve=lambda d: Decision.revise(d, "look closer, by the whole protocol"))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Settings(**json.loads(sys.argv[2]))))
