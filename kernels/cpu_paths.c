/* cpu_paths.c - transaxial paths on the CPU. */
#include "kernels/cpu.h"
#include "kernels/planes.h"

#include <errno.h>

size_t cpu_paths_bytes(const struct projection *a)
{
	(void)a;
	return 0;
}

int cpu_paths_create(struct projection *a, struct err *err)
{
	(void)a;
	return err_set(err, ENOTSUP, "projection: no transaxial paths");
}

void cpu_paths_free(struct cpu_paths *p)
{
	(void)p;
}

void cpu_paths_forward(struct projection *a, const struct cpu_forward *f)
{
	(void)a;
	(void)f;
}

void cpu_paths_back(struct projection *a, const struct cpu_back *b)
{
	(void)a;
	(void)b;
}
