"""The protected runner: commands run as they are, and nothing that they do reaches the project. Standard library only.

Linux enforces it: Landlock says what may be written, seccomp holds what Landlock has no right for, a supervisor answers
what depends on a path or a process, and bubblewrap, where it is there, adds namespaces of its own.
"""
