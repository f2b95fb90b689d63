"""That a DataLoader of this process reads rows of its dataset: before, and after."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch.utils.data import _utils as data_utils


def told(original: Callable[..., Any], tell: Callable[..., None], quiet: Callable[[], bool]) -> Callable[..., Any]:
    """The patch of `_MapDatasetFetcher.fetch`: tells "rows_asked" and "rows_read" with dataset and indices."""

    @functools.wraps(original)
    def fetch(fetcher: Any, index: Any) -> Any:
        if data_utils.worker._worker_info is not None or quiet():
            return original(fetcher, index)
        tell("rows_asked", fetcher.dataset, index)
        try:
            return original(fetcher, index)
        finally:
            tell("rows_read", fetcher.dataset, index)

    return fetch
