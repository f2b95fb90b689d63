"""The system calls that the filter knows, by architecture, and what becomes of each.

Numbers: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h of Linux; 0 or more is a number,
None a call that the architecture does not have.
"""

from __future__ import annotations

import os
from typing import NamedTuple

Number = int | None


class Machine(NamedTuple):
    """An architecture: the kernel's audit name of it, the number of seccomp(2), its column of the table."""

    audit: int
    seccomp: int
    column: int


MACHINES = {"x86_64": Machine(0xC000003E, 317, 0), "aarch64": Machine(0xC00000B7, 277, 1)}

TABLE: dict[str, tuple[Number, Number]] = {
    # attributes of files: asked of the supervisor, which knows where the file lies
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "truncate": (76, 45),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16), "removexattrat": (466, 466),
    "file_setattr": (469, 469), "symlink": (88, None), "symlinkat": (266, 36), "link": (86, None), "linkat": (265, 37),
    "mkdir": (83, None), "mkdirat": (258, 34),
    "open": (2, None), "openat": (257, 56), "openat2": (437, 437), "ioctl": (16, 29), "fcntl": (72, 25),
    # sockets and other processes
    "connect": (42, 203), "socket": (41, 198), "socketpair": (53, 199),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "prlimit64": (302, 261), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
    "ptrace": (101, 117), "process_vm_writev": (311, 271), "process_madvise": (440, 440), "pidfd_getfd": (438, 438),
    "kcmp": (312, 272), "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190),
    "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
    # ways around this filter and around the file system's view
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "setns": (308, 268),
    "unshare": (272, 97), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "open_tree": (428, 428), "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265), "fanotify_init": (300, 262), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # the machine as a whole
    "reboot": (169, 142), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "swapon": (167, 224), "swapoff": (168, 225),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "sethostname": (170, 161), "setdomainname": (171, 162), "acct": (163, 89), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "iopl": (172, None), "ioperm": (173, None), "syslog": (103, 116), "vhangup": (153, 58),
}

MARK = "prctl"
MARK_NUMBER: tuple[int, int] = (157, 167)
MARK_ARGUMENT, MARK_ERROR = 0x74726478, 2718
"""prctl(MARK_ARGUMENT) fails with this error below the filter, and with EINVAL anywhere else: a run knows whether it is
protected already, and nothing in its environment can pretend it."""

REFUSED = (
    "ptrace", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp", "shmget", "shmat", "shmctl", "semget",
    "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink", "migrate_pages",
    "move_pages", "mount", "umount2", "pivot_root", "chroot", "setns", "unshare", "move_mount", "fsopen", "fsconfig",
    "fsmount", "fspick", "open_tree", "mount_setattr", "open_by_handle_at", "fanotify_init", "bpf", "perf_event_open",
    "userfaultfd", "add_key", "request_key", "keyctl", "reboot", "kexec_load", "kexec_file_load", "init_module",
    "finit_module", "delete_module", "swapon", "swapoff", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex",
    "sethostname", "setdomainname", "acct", "quotactl", "quotactl_fd", "iopl", "ioperm", "syslog", "vhangup",
    "file_setattr")
"""Fail with EPERM."""

MISSING = ("io_uring_setup", "io_uring_enter", "io_uring_register", "fchmodat2")
"""Fail with ENOSYS, so that a library takes the older way, which the filter sees."""

UNSUPPORTED = ("setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr",
               "removexattrat")
"""Fail with EOPNOTSUPP, as on a file system without attributes: tools that copy them go on without."""

ATTRIBUTES = ("chmod", "fchmod", "fchmodat", "utime", "utimes", "futimesat", "utimensat")
OWNERS = {"chown": 1, "fchown": 1, "lchown": 1, "fchownat": 2}
"""The argument that is the user; the next one is the group."""

ON_A_PROCESS = {"setpriority": 1, "ioprio_set": 1, "prlimit64": 0, "sched_setaffinity": 0, "sched_setscheduler": 0,
                "sched_setparam": 0, "sched_setattr": 0}
"""The argument that names the process; 0 is the caller itself."""

SIGNALS = {"kill": 0, "tkill": 0, "tgkill": 0, "rt_sigqueueinfo": 0, "rt_tgsigqueueinfo": 0}
FOLDERS = {"mkdir": 1, "mkdirat": 2}
"""The argument that is the mode. The sticky bit marks a session of the orchestrator: no command makes such a folder."""
LINKS = ("symlink", "symlinkat", "link", "linkat")


def machine() -> Machine | None:
    """This architecture, or None where the filter does not know it."""
    return MACHINES.get(os.uname().machine)


def number(name: str, on: Machine) -> int | None:
    """The number of a call."""
    return (TABLE[name] if name != MARK else MARK_NUMBER)[on.column]


def names(on: Machine) -> dict[int, str]:
    """The calls by number."""
    return {n: name for name, pair in TABLE.items() if (n := pair[on.column]) is not None}
