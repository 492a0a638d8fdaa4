/* SPDX-License-Identifier: Apache-2.0 */
/* Private to list-mode PET: data and functions shared by its files. */
#ifndef TOMONODE_RECON_PET_LIST_INTERNAL_H
#define TOMONODE_RECON_PET_LIST_INTERNAL_H

#include "recon/core/psf.h"
#include "recon/pet/pet_internal.h"
#include "recon/pet/pet_list.h"

#define PET_LIST_CHUNK ((size_t)1 << 18) /* events read at a time */

struct pet_list_session {
	const struct pet_protocol *p;
	const struct pet_plan *plan;
	const struct pet_list *list;
	struct device *dev;
	struct session_memory memory;
	bool done, result;
	struct pet_list_sensitivity_image *shared; /* NULL: none */

	/* device */
	struct buf detectors, x, num, den;	     /* den: the sensitivity S */
	struct buf seen, psf_work[PSF_WORK_VOLUMES]; /* resolution model: x as the events see it */
	struct linop *psf;
	struct buf slot[2];  /* a batch of events each */
	struct buf resident; /* all events, by subsets */
	struct buf weight;   /* of a batch of LORs */
	struct events *events;

	/* host */
	struct event *chunk;
	struct event *staging[2]; /* host memory of the device: a batch each */
	float *staging_weight;	  /* LORs */
	float *out;		  /* host memory of the device: the start, then the result */
	double unit;		  /* power of two by which counts are multiplied, so that x is about 1 or not far below */
};

/* Return the number of events of a subset, and how many are in the subsets before it. */
static inline size_t pet_list_subset(const struct pet_list_session *s, int subset, size_t *ret_before)
{
	size_t m = (size_t)s->plan->subsets, i = (size_t)subset, n = s->list->n_events;

	*ret_before = i * (n / m) + (i < n % m ? i : n % m);
	return n / m + (i < n % m);
}

/* TOF of all bins together. */
static inline struct scan_tof pet_list_wide(const struct scan_tof *tof)
{
	return tof->n > 0 ? (struct scan_tof){1, tof->n * tof->width, tof->sigma} : *tof;
}

/* pet_list_plan.c: the arguments of the matrix of the events; wide: of the LORs */
struct events_spec pet_list_spec(const struct pet_protocol *p, const struct pet_list *list, const struct pet_plan *plan,
				 bool wide, const struct buf *detectors);
/* Return in how many parts the michelogram's rays are projected: of radial bins first, first + parts ..., first < parts. */
int pet_list_parts(const struct pet_list *list);
/* Create the scan of the rays of a part with one wide TOF bin; ret_plane: see scan_create_michelogram(). */
int pet_list_scan(const struct pet_list *list, double fov_radius, int first, struct scan **ret_scan, int **ret_plane,
		  struct err *err);
/* The projection of the views from `first` on that are projected together. */
struct projection_spec pet_list_projection(const struct pet_protocol *p, const struct scan *scan, const struct grid *grid,
					   int first);

/* pet_list_events.c. load(): read all events into the device's memory. pass(): add the ratios of a subset's events to num, seen
 * through x (or through `seen`, with a resolution model). */
int pet_list_load(struct pet_list_session *s, const struct monitor *monitor, struct err *err);
int pet_list_pass(struct pet_list_session *s, int subset, float floor, const struct monitor *monitor, struct err *err);

#endif
