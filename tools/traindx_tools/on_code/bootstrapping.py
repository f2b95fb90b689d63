"""Names of discounts and rewards, and where gradients are not recorded, as it is written."""

from __future__ import annotations

import re

DISCOUNT = re.compile(r"(gamma|discount)\w*", re.IGNORECASE)
REWARD = re.compile(r"r|rs|r_t|\w*rews?|\w*rewards?(_\w+)?", re.IGNORECASE)
