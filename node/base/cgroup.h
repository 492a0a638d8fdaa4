/* SPDX-License-Identifier: Apache-2.0 */
/* What the control groups of this process allow (cgroup v2: containers, systemd's MemoryMax and CPUQuota). Above its memory the
 * kernel kills the process, so that a plan must not count on the whole machine; above its time it stops the process until the
 * next period, so that more threads than processors only wait for each other. */
#ifndef TOMONODE_NODE_CGROUP_H
#define TOMONODE_NODE_CGROUP_H

#include <stddef.h>

/* Return the smallest memory.max of the process's group and of the groups above it, bytes; 0: no limit, or none that can be read.
 * membership: "/proc/self/cgroup"; root: "/sys/fs/cgroup". */
size_t cgroup_memory(const char *membership, const char *root);

/* Return the processors that the smallest cpu.max of these groups allows, rounded up; 0: no limit, or none that can be read. */
int cgroup_cpus(const char *membership, const char *root);

#endif
