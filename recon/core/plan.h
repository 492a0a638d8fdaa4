/* What the plans of tomosynthesis, PET and parallel beams do alike: refuse a value, choose the limit, tell bytes. */
#ifndef TOMONODE_RECON_PLAN_H
#define TOMONODE_RECON_PLAN_H

#include "kernels/device.h"

struct plan_bytes {
	size_t total, volumes, data, tables;
};

/* EINVAL, "KEY=FOUND; allowed: ALLOWED". */
int plan_refuse(struct err *err, const char *key, double found, const char *allowed);
/* Bytes a plan may take on the device, of which `asked` (0: no wish) may be fewer than it has; 0: nobody knows. */
size_t plan_limit(const struct device *dev, size_t asked);
double plan_gigabytes(size_t bytes);
/* ENOMEM: neither all at once fits nor the least part, "one slice". */
int plan_refuse_bytes(struct plan_bytes whole, struct plan_bytes least, const char *part, const struct device *dev, size_t limit,
		      struct err *err);

#endif
