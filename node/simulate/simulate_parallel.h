/* SPDX-License-Identifier: Apache-2.0 */
/* Simulate scans with parallel beams: `tomonode simulate parallel`.
 *
 * The object is a phantom (recon/phantom/parallel_phantom.h) with analytic line integrals, or a picture, whose line integrals are
 * path lengths through its pixels: white attenuates like water (PARALLEL_WATER), black does not attenuate. The scan is written as
 * sinogram objects (docs/sinogram-object.md). Noise is that of a photon counter with a mean of i0 photons per bin without an
 * object.
 */
#ifndef TOMONODE_NODE_SIMULATE_PARALLEL_H
#define TOMONODE_NODE_SIMULATE_PARALLEL_H

#include "dicom/core/dataset.h"
#include "recon/core/monitor.h"
#include "recon/phantom/parallel_phantom.h"

#define SIMULATE_PARALLEL_DATE "20260601"
#define SIMULATE_PARALLEL_START "111500"
#define SIMULATE_PARALLEL_NOW 1780313160.0 /* 11:26:00 UTC of that date, s since the epoch */

struct simulate_parallel_options {
	enum parallel_phantom_kind phantom;
	const char *picture; /* path of a PNG or PGM file to use instead of a phantom; NULL: none */
	int size;	     /* number of radial bins; 0: 256, or for a picture its diagonal */
	int angles, slices;
	double bin, slice;	 /* size of a bin and of a slice, mm; slice 0: same as bin */
	double offset;		 /* of the rotation axis, mm */
	double first_angle, arc; /* degrees */
	double taper;		 /* slice k has lengths times 1 - taper k / slices; for phantoms only */
	double counts;		 /* photons per bin without an object; 0: no noise */
	unsigned seed;
	char position[5];  /* HFS, ... */
	const char *study; /* study UID; NULL: computed from the data */
};

struct simulate_parallel_report {
	int files;
	int radial, matrix; /* number of bins; pixels along the side of a picture, or `radial` for a phantom */
	double seconds;
};

/* Write the objects and truth.json into `folder`, which is created with its parents if missing. EINVAL: an option is invalid; the
 * text names it. */
int simulate_parallel_run(const struct simulate_parallel_options *o, const char *folder, const struct monitor *monitor,
			  struct simulate_parallel_report *ret_report, struct err *err);

/* argv[0] is ignored; name: the command as typed, which begins each message. */
int cmd_simulate_parallel(const char *name, int argc, char **argv);

#endif
