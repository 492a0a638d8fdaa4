/* SPDX-License-Identifier: Apache-2.0 */
/* PET: from single events (list mode) to a volume of activity.
 *
 *   x <- x / S_s  sum over the events e of subset s of  a_e / (a_e x + b_e / m_e)        Parra & Barrett 1998, Huesman & al. 2000
 *   S_s = S / M,   S = sum over all LORs i of m_i S_i(t) a_i
 *
 * a_e is the row of an event without its factor (kernels/events.h), b_e the counts expected in its bin (LOR and TOF bin) besides
 * the activity's, for all of the acquisition. Event number i (from 0) belongs to subset i mod M. S is over all LORs that can be
 * measured, whether they have events or not; the sum over their TOF bins is one wide bin (kernels/tof.h). It comes from
 *   lors          the LORs, one by one, from a reader; or
 *   michelogram   the bins of a sinogram with factors, by the sinogram projector (JOSEPH): shorter where detectors form rings. If
 *                 several LORs were added into a bin (span, mashing), its factor is the sum of theirs. Rays end at the detectors:
 *                 of odd radial bins half a detector beside those of the sinogram, unless it is arc-corrected.
 *
 * The volume, the protocol, units and axes are those of recon/pet/pet.h; algorithms: mlem, osem (others: EINVAL). Plan, open,
 * run, read slices. Only the thread that owns the device may use a session. */
#ifndef TOMONODE_RECON_PET_LIST_H
#define TOMONODE_RECON_PET_LIST_H

#include "kernels/events.h"
#include "recon/pet/pet.h"

/* A source of events that can be read again from the beginning. */
struct pet_list_reader {
	void *ctx;
	int (*rewind)(void *ctx, struct err *err);
	/* Read at most `most` further events; *ret_n: number of those read, 0 only at the end. */
	int (*read)(void *ctx, struct event *ret, size_t most, size_t *ret_n, struct err *err);
};

/* The data; all pointers are borrowed. */
struct pet_list {
	const float *detectors; /* n_detectors positions x, y, z, mm */
	size_t n_detectors;
	struct scan_tof tof; /* n = 0: no time of flight */
	struct pet_list_reader events;
	size_t n_events;      /* number of events that the reader delivers */
	bool with_background; /* events have `add` > 0; else all must have 0 */
	double background;    /* expected number of background counts among the events; only for the start; 0: unknown */

	/* The LORs: every pair of detectors that can be measured, once, with its factor m >= 0 as `add`; `tof` is not used. */
	struct pet_list_reader lors;	       /* read NULL: use the michelogram */
	size_t n_lors;			       /* number of LORs that the reader delivers; 0: unknown */
	double lors_scale;		       /* all LORs over those that the reader delivers, if it delivers a sample; 0: 1 */
	const struct michelogram *michelogram; /* its TOF bins, if any, are not used */
	const float *factors;		       /* m[plane][angle][radial]; NULL: by factor_row, or all are 1 */
	/* Compute m >= 0 of the radial bins first, first + step ... of a plane and angle: ret[number stride]. Called from several
	 * threads. */
	void (*factor_row)(void *ctx, int plane, int angle, int first, int step, float *ret, size_t stride);
	void *factor_ctx;

	double slice; /* default thickness of slices, mm */
};

/* Plan a reconstruction. The volume is centred on the axis and, along z, between the outermost detectors, which it covers.
 * Default of fov_radius: as pet_plan(), but of all detectors. ENOMEM: the message gives the bytes that do not fit. */
int pet_list_plan(const struct pet_protocol *p, const struct pet_list *list, struct device *dev, struct pet_plan *ret_plan,
		  struct err *err);

struct pet_list_session;

/* Open a session; allocates all memory that it uses, except the tables of the sensitivity, which the plan contains. All pointers
 * are borrowed until pet_list_close(). */
int pet_list_open(const struct pet_protocol *p, const struct pet_plan *plan, const struct pet_list *list, struct device *dev,
		  struct pet_list_session **ret_session, struct err *err);
struct pet_list_session *pet_list_close(struct pet_list_session *s); /* accepts NULL; returns NULL */

/* A sensitivity image that several sessions with the same LORs and the same volume use: the first one computes it. values:
 * grid_size() floats, owned by the caller. Call it before pet_list_run(). */
struct pet_list_sensitivity_image {
	float *values;
	bool computed;
};
void pet_list_share_sensitivity(struct pet_list_session *s, struct pet_list_sensitivity_image *image);
/* Compute the sensitivity, and the shared image if there is one; pet_list_run() does so itself. ret_lors: LORs that were read. */
int pet_list_sensitivity(struct pet_list_session *s, const struct monitor *monitor, size_t *ret_lors, struct err *err);

/* Reconstruct. EINVAL: an event that the message names does not exist (detector, TOF bin), or the reader delivers another number
 * of events. EDOM: no events, or no LOR with a factor above 0 meets the volume. ECANCELED: the monitor has cancelled. */
int pet_list_run(struct pet_list_session *s, const struct monitor *monitor, struct pet_report *ret_report, struct err *err);

/* Copy slices [first, first + n), n[1] * n[0] floats each; after pet_list_run(), from any thread. */
int pet_list_read_slices(struct pet_list_session *s, int first, int n, float *ret_slices, struct err *err);

/* A reader of LORs: all pairs of n detectors, or of each detector's pairs every stride-th one, beginning at a random place (then
 * pet_list.lors_scale is `stride`: every detector keeps its share). factor(): m of a pair, 0: not measured. */
struct pet_list_pairs {
	size_t n;
	size_t stride; /* >= 1 */
	uint32_t seed;
	float (*factor)(void *ctx, size_t first, size_t second);
	void *ctx;
	size_t first, second; /* the next pair; set by rewind() */
};
struct pet_list_reader pet_list_pairs_reader(struct pet_list_pairs *pairs);

/* Compute the positions of the detectors of a scanner of regular rings: x, y, z of detector ring N + crystal, N =
 * m->scanner.detectors, numbered as in recon/pet/michelogram_pairs.h, where the rays end. ret: 3 N rings elements. EINVAL: the
 * michelogram is arc-corrected, or its angles are not a whole number of views. */
int pet_list_detectors(const struct michelogram *m, float *ret, struct err *err);

#endif
