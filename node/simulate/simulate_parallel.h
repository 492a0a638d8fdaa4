/* Simulated scans of parallel beams: `tomonode simulate parallel`.
 *
 * A phantom (recon/phantom/parallel_phantom.h), whose line integrals are analytic, or a picture, whose line integrals are path
 * lengths through its pixels: white attenuates like water (PARALLEL_WATER), black not at all. Written as sinogram objects
 * (docs/sinogram-object.md). Noise is that of a counter that sees i0 photons a bin without an object.
 */
#ifndef TOMONODE_NODE_SIMULATE_PARALLEL_H
#define TOMONODE_NODE_SIMULATE_PARALLEL_H

#include "dicom/core/dataset.h"
#include "recon/core/monitor.h"
#include "recon/phantom/parallel_phantom.h"

#define SIMULATE_PARALLEL_DATE "20260601"
#define SIMULATE_PARALLEL_START "111500"
#define SIMULATE_PARALLEL_NOW 1780313160.0 /* a minute later, s since the epoch */

struct simulate_parallel_options {
	enum parallel_phantom_kind phantom;
	const char *picture; /* path of a PNG or PGM file instead of a phantom; NULL: none */
	int size;	     /* radial bins; 0: 256, of a picture its diagonal */
	int angles, slices;
	double bin, slice;	 /* mm; slice 0: bin */
	double offset;		 /* of the axis, mm */
	double first_angle, arc; /* degrees */
	double taper;		 /* slice k has lengths 1 - taper k / slices; phantoms alone */
	double counts;		 /* photons a bin; 0: no noise */
	unsigned seed;
	char position[5];  /* HFS, ... */
	const char *study; /* UID; NULL: out of the data */
};

struct simulate_parallel_report {
	int files;
	int radial, matrix; /* bins; pixels of a picture's side, of a phantom `radial` */
	double seconds;
};

/* Writes into `folder` (made with its parents when missing) the objects and truth.json. EINVAL names what does not go. */
int simulate_parallel_run(const struct simulate_parallel_options *o, const char *folder, const struct monitor *monitor,
			  struct simulate_parallel_report *ret_report, struct err *err);

/* argv[0] is not looked at; name: of the command as it was given, which messages begin with. */
int cmd_simulate_parallel(const char *name, int argc, char **argv);

#endif
