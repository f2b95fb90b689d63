"""The tools of an investigation besides reading files: search, probes, experiments and instruments, outputs kept."""
