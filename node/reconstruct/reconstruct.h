/* One case, from files to files: what the worker process and `tomonode recon` both do. */
#ifndef TOMONODE_NODE_RECONSTRUCT_H
#define TOMONODE_NODE_RECONSTRUCT_H

#include <jansson.h>

#include "dicom/core/dataset.h"
#include "kernels/device.h"
#include "node/config/config.h"
#include "recon/core/monitor.h"

/* One file of the result. */
struct reconstruct_object {
	char file[64]; /* its name inside the folder */
	char sop_instance[DICOM_UID_SIZE], sop_class[DICOM_UID_SIZE], series[DICOM_UID_SIZE];
	const char *kind; /* "slices", "slabs", "synthetic"; of a series "slice" */
	int64_t bytes;	  /* of the file; -1: not counted */
};

struct reconstruct_report {
	/* The result: an object for each slice, or else the first object has all slices, and the others were made of them. */
	bool is_series;
	size_t n_objects;
	struct reconstruct_object *objects;
	char content[100];			    /* what was reconstructed: "47 planes of 280 angles" */
	char unit[40], warnings[1024];		    /* of a series: of its values; sentences about them */
	json_t *details;			    /* what the kind of case has of its own: {"bins": {...}} */
	char device[96], profile[CONFIG_NAME_SIZE]; /* PET: the scanner; "": not in the configuration */
	int n_views, n[3];			    /* views used, angles; voxels along x, y, z */
	double voxel[3];			    /* mm */
	size_t bytes_device;
	/* What runs side by side (read, prepare, upload; download, write) is shared out,
	 * so that the parts add up to the total. */
	double seconds_open, seconds_read, seconds_prepare, seconds_upload, seconds_reconstruct, seconds_download, seconds_write,
		seconds_total;
};

/* as_is: of kinds that can be reconstructed with less, other numbers of instances than the headers announce are taken, and the
 * result says so.
 * The error's code tells what kind of refusal it is: EBADMSG, ENOTSUP, ENOKEY (data: hold), ENOMEM (plan), EHWPOISON (the device
 * is broken), ECANCELED. ENOTSUP, too: the protocol is for another kind of case. The device is borrowed: one case after the other
 * may run on it; nothing of a case stays there. cache: the device's, for sensitivity images of PET; NULL: none is kept. */
int reconstruct_case(const struct config *config, const struct protocol_conf *protocol, struct device *dev,
		     struct pet_cache *cache, const char *const *paths, size_t n_paths, bool as_is, const char *out_dir,
		     const struct monitor *monitor, struct reconstruct_report *ret_report, struct err *err);

void reconstruct_report_clear(struct reconstruct_report *r);

/* reconstruct_report.c. By the names of node/base/stage_names.h, and "total". NULL: no memory. */
json_t *reconstruct_seconds(const struct reconstruct_report *r);
/* "file" (behind `folder` and a slash, where that is not ""), "sop_instance", "sop_class" and "series" of the first object, and
 * "objects": the same of all, with "kind" and, where they were counted, "bytes". */
json_t *reconstruct_objects(const struct reconstruct_report *r, const char *folder);

#endif
