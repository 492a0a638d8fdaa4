/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the public library: its objects, calls of a device, arrays of the caller. */
#ifndef TOMONODE_RECON_API_INTERNAL_H
#define TOMONODE_RECON_API_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "kernels/device.h"
#include "recon/api/tomonode.h"
#include "recon/core/linop.h"
#include "recon/dbt/dbt.h"
#include "recon/parallel/parallel.h"
#include "recon/pet/pet.h"
#include "recon/pet/pet_list.h"

_Static_assert(sizeof(struct err) == sizeof(struct tn_err) && offsetof(struct err, msg) == offsetof(struct tn_err, text),
	       "struct tn_err is struct err");
static inline struct err *api_err(struct tn_err *err)
{
	return (struct err *)err;
}

/* ---- devices: api_device.c ---- */

struct tn_device {
	atomic_int users; /* the caller, projectors, reconstructions */
	pid_t owner;
	pthread_mutex_t lock; /* of `dev` */
	struct device *dev;
};

/* A call of a device: what is restored at its end. */
struct api_call {
	struct tn_device *device;
	int threads, cuda;
};
/* Wait for the device. EPERM: it was opened before a fork; EDEADLK: this thread uses it already. */
int api_enter(struct tn_device *d, struct api_call *ret, struct err *err);
void api_leave(const struct api_call *call);
void api_device_keep(struct tn_device *d);

/* Copy a struct of the caller, which begins with its size, to one of ours, whose size is `own`. EINVAL: none, or of a newer
 * version, which sets a member that is not known here. */
int api_take(const void *from, void *to, size_t own, const char *name, struct err *err);
/* The same towards the caller; its size remains. */
int api_give(const void *from, void *to, size_t own, const char *name, struct err *err);

/* ---- scans: api_scan.c ---- */

enum api_kind { API_PET = 1, API_LINES, API_VIEWS, API_PARALLEL, API_KINDS };

struct tn_scan {
	atomic_int users;
	enum api_kind kind;
	int ndim;
	int64_t shape[STRIDES_MAX];
	double fov_radius; /* mm; LINES, PARALLEL: 0: all of the volume */
	struct michelogram m;
	float *points;
	size_t n_points, n_lines;
	struct event *lines; /* `tof` and `add` set */
	bool with_add;
	double background; /* number of its lines */
	struct scan_tof tof;
	struct scan *views;
	struct parallel_scan parallel;
};
/* Create the rays of PET, of parallel beams (for a field of view that holds the grid), or of views, those in `order` first.
 * *ret_plane: as scan_create_michelogram() has it; else NULL. */
int api_scan_rays(const struct tn_scan *s, const struct grid *g, const int *order, struct scan **ret, int **ret_plane,
		  struct err *err);
double api_grid_radius(const struct grid *g); /* of a cylinder around z that holds the grid */

/* ---- arrays: api_array.c ---- */

/* The order of an array on the device. */
struct api_order {
	int ndim;
	int64_t shape[STRIDES_MAX], strides[STRIDES_MAX];
	size_t floats;	  /* with padding */
	int axis;	  /* of the index */
	struct buf index; /* int32: element i of the axis is number index[i] for the caller; empty: none */
};
void api_order_c(int ndim, const int64_t *shape, struct api_order *ret); /* C order */

/* An array of the caller: checked, with as many axes as its order. */
struct api_array {
	float *data;
	int64_t strides[STRIDES_MAX];
	bool on_device; /* its memory is that of the device */
};
int api_array(const struct tn_device *d, const struct tn_array *a, const struct api_order *o, const char *name, bool written,
	      struct api_array *ret, struct err *err);
/* Return the array itself, if it has the order of the device, else *work, which is allocated when it is empty. load: with the
 * array's values. */
int api_array_begin(struct tn_device *d, const struct api_array *a, const struct api_order *o, bool load, struct buf *work,
		    struct buf *ret, struct err *err);
/* Write *work to the array, if api_array_begin() has returned it; wait for the device. */
int api_array_end(struct tn_device *d, const struct api_array *a, const struct api_order *o, const struct buf *work,
		  const struct buf *used, struct err *err);
/* Copy all of an array to host memory with these strides (NULL: C order), or with `store` from it. */
int api_array_copy(struct tn_device *d, const struct api_array *a, const struct api_order *o, const int64_t *strides, float *host,
		   bool store, struct err *err);

/* ---- operators ---- */

/* api_lines.c: the matrix of a list as an operator; y in the order of *ret_index (int32, on the device), which the caller
 * releases. Lines first, first + step ... */
int api_lines_create(struct device *dev, const struct tn_scan *s, const struct grid *g, int first, int step, bool deterministic,
		     struct linop **ret_op, struct buf *ret_index, struct err *err);

int api_grid(const struct tn_grid *from, struct grid *ret, struct err *err);

/* ---- keys: api_keys.c ---- */

struct api_protocol {
	struct pet_protocol pet;
	struct dbt_protocol dbt;
	struct parallel_protocol parallel;
	double support, thickness; /* views: z of the lowest slice, mm; of all slices, mm; 0: not given */
};
int api_keys_parse(enum api_kind kind, const char *text, struct api_protocol *ret, struct err *err);

#endif
