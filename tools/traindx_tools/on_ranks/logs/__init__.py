"""The logs of all ranks, hosts and restarts of a job as one: read in parallel, kept small, merged on steps and events.

Clocks of hosts differ by minutes; steps, sequence numbers of collectives and the events themselves do not.
"""

from traindx_tools.on_ranks.logs.examine import ManyRanks, examine_ranks, rank_logs

__all__ = ["ManyRanks", "examine_ranks", "rank_logs"]
