"""Stores of trackers that hold many runs in one place: MLflow's folders and databases, trackio's databases."""

from traindx_tools.on_logs.stores.expanded import expanded
from traindx_tools.on_logs.stores.stored_run import STORED, StoredRun

__all__ = ["STORED", "StoredRun", "expanded"]
