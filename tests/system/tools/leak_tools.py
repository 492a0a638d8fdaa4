# SPDX-License-Identifier: Apache-2.0
"""What the long-lived processes of a node hold while nobody is busy: descriptors by kind, and memory of their own."""
import collections
import re

from tools import contract_tools as c
from tools import node_harness as h


def kinds(pid):
    """How many descriptors of each kind: "socket", "pipe", "anon_inode:[eventpoll]", or the path of a file."""
    return collections.Counter(re.sub(r"^(socket|pipe):.*", r"\1", name) for name in h.open_files(pid).values())


def private_kb(pid):
    """Memory that only this process has, and has written."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return sum(int(line.split()[1]) for line in f if line.startswith("Private_Dirty:"))


def held(node):
    """{(role, process): (descriptors, kB)} of the manager, the receiver, the workers and the processes of the page."""
    c.resting(node)
    found = {}
    for role, pids in sorted(c.roles(node).items()):
        for pid in pids:
            found[role, pid] = kinds(pid), private_kb(pid)
    return found


def lost(before, now):
    """What a process holds more than before, in words."""
    return [
        f"{role} {pid}: {(fds - before[role, pid][0]) or ''} more, {(before[role, pid][0] - fds) or ''} less"
        for (role, pid), (fds, _) in now.items()
        if fds != before[role, pid][0]
    ]
