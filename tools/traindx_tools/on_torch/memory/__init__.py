"""Where memory goes in a live torch process: what is kept, by which variable, and what a peak is made of."""

from traindx_tools.on_torch.memory.breakdown import MemoryBreakdown, memory_breakdown
from traindx_tools.on_torch.memory.census import Census, Holding, take_census

__all__ = ["Census", "Holding", "MemoryBreakdown", "memory_breakdown", "take_census"]
