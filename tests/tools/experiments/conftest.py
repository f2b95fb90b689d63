"""Makes the hand-made traces importable for the tests of experiments."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
