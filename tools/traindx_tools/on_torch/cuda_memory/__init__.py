"""What the CUDA caching allocator held, from files of `torch.cuda.memory._dump_snapshot` or in process."""

from traindx_tools.on_torch.cuda_memory.findings import findings_of
from traindx_tools.on_torch.cuda_memory.snapshot import MemorySnapshot, is_memory_snapshot, read_memory_snapshot

__all__ = ["MemorySnapshot", "findings_of", "is_memory_snapshot", "read_memory_snapshot"]
