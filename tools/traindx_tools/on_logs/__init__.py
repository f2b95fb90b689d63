"""Instruments for logs: read a run from its artifacts, judge its curves and its errors."""

from traindx_tools.artifact import Artifact
from traindx_tools.on_logs.anomalies import anomalies_of
from traindx_tools.on_logs.reading import read_run
from traindx_tools.on_logs.run import ErrorEvent, Frame, Note, Run, Series, merge
from traindx_tools.on_logs.table import MetricRow, MetricsTable, extract_training_metrics, table_of

__all__ = ["Artifact", "ErrorEvent", "Frame", "MetricRow", "MetricsTable", "Note", "Run", "Series", "anomalies_of",
           "extract_training_metrics", "merge", "read_run", "table_of"]
