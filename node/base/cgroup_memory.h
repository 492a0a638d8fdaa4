/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the control groups of this process allow (cgroup v2: containers, systemd's MemoryMax). Above it the kernel
 * kills the process, so that a plan must not count on the whole machine. */
#ifndef TOMONODE_NODE_CGROUP_MEMORY_H
#define TOMONODE_NODE_CGROUP_MEMORY_H

#include <stddef.h>

/* Return the smallest memory.max of the process's group and of the groups above it, bytes; 0: no limit, or none that can be read.
 * membership: "/proc/self/cgroup"; root: "/sys/fs/cgroup". */
size_t cgroup_memory(const char *membership, const char *root);

#endif
