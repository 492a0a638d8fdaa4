/* A PET or CT series (one slice an object), read from its own attributes alone: where each voxel lies in the patient
 * and what its value means. Objects may come in any order, of any maker and in any encoding that dicom/pixels/pixels.h reads.
 */
#ifndef TOMONODE_NODE_IMAGE_SERIES_H
#define TOMONODE_NODE_IMAGE_SERIES_H

#include "dicom/pixels/pixels.h"

#define PET_IMAGE_CLASS "1.2.840.10008.5.1.4.1.1.128"
#define CT_IMAGE_CLASS "1.2.840.10008.5.1.4.1.1.2"

struct image_series {
	int n[3]; /* columns, rows, slices */
	char series[DICOM_UID_SIZE];
	char units[17];	   /* (0054,1001); of CT the Rescale Type (0028,1054) */
	double spacing[3]; /* between columns, rows, slices, mm */
	double across[3];  /* direction of increasing column index, patient's left, back, head */
	double down[3];	   /* of increasing row index */
	double normal[3];  /* of increasing slice index: across x down */
	double corner[3];  /* middle of the first pixel of slice 0, mm */
	double duration;   /* s; NaN: not given */
	float *values;	   /* slices in the order of the files */
	size_t *order;	   /* of slice k: which of them */
};

/* EBADMSG: the objects are not of one series, some are missing or contradict each other; the sentence says which. ENOTSUP: a
 * series of several volumes (dynamic, gated). Files that repeat an object are passed over. */
int image_series_open(char *const *paths, size_t n, struct image_series **ret_series, struct err *err);
struct image_series *image_series_close(struct image_series *s); /* takes NULL, returns NULL */

const float *image_series_slice(const struct image_series *s, int k); /* columns fastest */

#endif
