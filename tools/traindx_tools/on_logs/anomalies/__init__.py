"""What stands out in any series, whatever its name: each kind with a false-alarm rate that length does not raise."""

from traindx_tools.on_logs.anomalies.anomaly import Anomaly, Kind
from traindx_tools.on_logs.anomalies.detect import anomalies_of

__all__ = ["Anomaly", "Kind", "anomalies_of"]
