import os
from collections import defaultdict

import psutil


class LayerMonitor:
    """Records how many units are active per layer so that silent layers show up in the report."""

    def __init__(self, layers):
        self.active = defaultdict(list)
        for name, layer in layers:
            layer.register_forward_hook(self._make(name))

    def _make(self, name):
        def hook(module, args, output):
            self.active[name].append(output)
        return hook

    def summary(self):
        return {k: round(float((v[-1] > 0).float().mean()), 3) for k, v in self.active.items()}


def rss_mb():
    return psutil.Process(os.getpid()).memory_info().rss / 2 ** 20
