/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of control groups: the smallest of the group and those above it. */
#include "node/base/cgroup.h"
#include "tests/test.h"

static void put(const char *folder, const char *file, const char *text)
{
	test_put_file(test_path(folder, file), text, strlen(text));
}

TEST(limits)
{
	char root[64], outer[80], inner[100], member[100];

	test_folder(root, sizeof(root));
	snprintf(outer, sizeof(outer), "%s/a.slice", root);
	snprintf(inner, sizeof(inner), "%s/b.service", outer);
	snprintf(member, sizeof(member), "%s/member", root);
	assert_int_equal(mkdir(outer, 0700) + mkdir(inner, 0700), 0);
	assert_int_equal(cgroup_memory(member, root), 0); /* no such file */
	put(root, "member", "1:name=x:/other\n0::/a.slice/b.service\n");
	assert_int_equal(cgroup_memory(member, root), 0); /* no limits */
	put(inner, "memory.max", "max\n");
	put(outer, "memory.max", "4294967296\n");
	assert_int_equal(cgroup_memory(member, root), 4294967296u);
	put(inner, "memory.max", "1048576\n");
	assert_int_equal(cgroup_memory(member, root), 1048576);
	put(inner, "memory.max", "8589934592\n");
	assert_int_equal(cgroup_memory(member, root), 4294967296u);
	put(root, "memory.max", "4096\n"); /* in a container the root has a limit, too */
	assert_int_equal(cgroup_memory(member, root), 4096);
	put(root, "member", "0::/\n");
	assert_int_equal(cgroup_memory(member, root), 4096);
	put(root, "memory.max", "12x\n");
	assert_int_equal(cgroup_memory(member, root), 0);
	assert_int_equal(cgroup_cpus(member, root), 0);
	put(root, "member", "0::/a.slice/b.service\n");
	put(inner, "cpu.max", "max 100000\n");
	assert_int_equal(cgroup_cpus(member, root), 0);
	put(outer, "cpu.max", "350000 100000\n");
	assert_int_equal(cgroup_cpus(member, root), 4);
	put(inner, "cpu.max", "20000 10000\n");
	assert_int_equal(cgroup_cpus(member, root), 2);
	put(inner, "cpu.max", "900000 100000\n");
	assert_int_equal(cgroup_cpus(member, root), 4);
	put(outer, "cpu.max", "1000 100000\n"); /* less than one processor is one thread */
	assert_int_equal(cgroup_cpus(member, root), 1);
	put(root, "member", "0::/../a.slice\n");
	assert_int_equal(cgroup_memory(member, root), 0);
}
