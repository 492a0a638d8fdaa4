# SPDX-License-Identifier: Apache-2.0
"""What the long-lived processes of a node hold while nobody is busy: descriptors by kind, and memory of their own."""
import collections
import contextlib
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


def held(node, roles):
    """{(role, process): (descriptors, kB)}, when only processes of these roles are left."""

    def alone():
        c.resting(node)
        found = c.roles(node)
        return found if set(found) == set(roles) else None

    found = h.wait_for(f"only {sorted(roles)} are left", alone)
    return {(role, pid): (kinds(pid), private_kb(pid)) for role, pids in sorted(found.items()) for pid in pids}


def held_again(node, roles, before):
    """The same later. A descriptor that is closed a moment after the last case is not lost."""
    with contextlib.suppress(AssertionError):
        h.wait_for("the same descriptors", lambda: not lost(before, held(node, roles)))
    return held(node, roles)


def lost(before, now):
    """Processes that do not have the same descriptors as before, and what differs."""
    return [
        f"{role} {pid} has more: {dict(fds - before[role, pid][0])}, less: {dict(before[role, pid][0] - fds)}"
        for (role, pid), (fds, _) in now.items()
        if (role, pid) in before and fds != before[role, pid][0]
    ]


def grown(before, now, most):
    """Processes that have grown by more than most(role) kB."""
    return [
        f"{role} {pid} has grown by {kb - before[role, pid][1]} kB, more than {most(role)} kB"
        for (role, pid), (_, kb) in now.items()
        if kb - before[role, pid][1] > most(role)
    ]
