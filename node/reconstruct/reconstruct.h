/* One case, from files to files: what the worker process and `tomonode recon` both do. */
#ifndef TOMONODE_NODE_RECONSTRUCT_H
#define TOMONODE_NODE_RECONSTRUCT_H

#include <jansson.h>

#include "kernels/device.h"
#include "node/config/config.h"
#include "node/result/ct_result.h"
#include "node/result/pet_result.h"
#include "node/result/result.h"
#include "recon/core/monitor.h"

struct reconstruct_report {
	enum case_kind kind;
	struct result_report result; /* KIND_DBT: the objects, names inside out_dir */
	struct reconstruct_pet {     /* KIND_PET */
		struct pet_result_report result;
		struct pet_report run;
		size_t planes;
		int iterations, subsets, group_views;
		double fov_radius; /* mm */
	} pet;
	struct reconstruct_parallel { /* KIND_PARALLEL */
		struct ct_result_report result;
		struct parallel_report run;
		int radial, iterations, subsets, part_slices;
		double fov_radius; /* mm */
	} parallel;
	char device[96], profile[CONFIG_NAME_SIZE]; /* PET: the scanner; "": not in the configuration */
	int n_views, n[3];			    /* views used, angles; voxels along x, y, z */
	double voxel[3];			    /* mm */
	size_t bytes_device;
	/* What runs side by side (read, prepare, upload; download, write) is shared out,
	 * so that the parts add up to the total. */
	double seconds_open, seconds_read, seconds_prepare, seconds_upload, seconds_reconstruct, seconds_download, seconds_write,
		seconds_total;
	size_t padded, saturated, floored, clamped;
	size_t air;   /* merged bins that the breast mask marks */
	int unmasked; /* views in which it was wanted and found nothing to mark */
};

/* as_is: of tomosynthesis, other numbers of projections than the headers announce are taken, and the result says so.
 * The error's code tells what kind of refusal it is: EBADMSG, ENOTSUP, ENOKEY (data: hold), ENOMEM (plan), EHWPOISON (the device
 * is broken), ECANCELED. ENOTSUP, too: the protocol is for another kind of case. The device is borrowed: one case after the other
 * may run on it; nothing of a case stays there, but sensitivity images of PET until pet_forget(). */
int reconstruct_case(const struct config *config, const struct protocol_conf *protocol, struct device *dev,
		     const char *const *paths, size_t n_paths, bool as_is, const char *out_dir, const struct monitor *monitor,
		     struct reconstruct_report *ret_report, struct err *err);

void reconstruct_report_clear(struct reconstruct_report *r);

/* reconstruct_report.c. Seconds of each stage (node/base/stage_names.h) and "total". NULL: no memory. */
json_t *reconstruct_seconds(const struct reconstruct_report *r);
/* What each kind has of its own: {"bins": ...} of DBT, {"pet": ...}, {"parallel": ...}. */
json_t *reconstruct_details(const struct reconstruct_report *r);
size_t reconstruct_n_objects(const struct reconstruct_report *r);
const char *reconstruct_file(const struct reconstruct_report *r, size_t object); /* its name */
/* "file" (behind `folder` and a slash, where that is not ""), "sop_instance", "sop_class" and "series" of the first object, and
 * "objects": the same of all, with "kind" and, of DBT, "bytes". */
json_t *reconstruct_objects(const struct reconstruct_report *r, const char *folder);

#endif
