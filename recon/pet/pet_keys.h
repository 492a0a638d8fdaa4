/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of PET: rows of a table (recon/core/keys.h) whose structure `s` has the members of struct pet_protocol
 * at `at`: "" or "NAME.". */
#ifndef TOMONODE_RECON_PET_KEYS_H
#define TOMONODE_RECON_PET_KEYS_H

#include "recon/core/keys.h"
#include "recon/pet/pet.h"

/* clang-format off */
#define PET_KEYS(s, at) \
	{"algorithm", AS_CHOICE(s, at algorithm, \
		   KEY_CHOICES({"mlem", ALGORITHM_MLEM}, {"osem", ALGORITHM_OSEM}, {"bsrem", ALGORITHM_BSREM}, \
			       {"fbp", ALGORITHM_FBP})), \
	 .fallback = "mlem", \
	 .meaning = "`mlem` (all angles in each update), `osem` (ordered subsets of angles), `bsrem` (ordered subsets with the " \
		    "relative difference prior), `fbp` (single-slice rebinning and filtered backprojection: a fast preview)"}, \
	{"iterations", AS_INT(s, at iterations, 1, 1000), .fallback = "40", .only = "mlem osem bsrem", \
	 .meaning = "passes over all angles; `fbp` always makes one"}, \
	{"subsets", AS_INT(s, at subsets, 1, 1000), .fallback = "28", .only = "osem bsrem", \
	 .meaning = "subsets of the angles for `osem` and `bsrem`, at most as many as there are angles; the other algorithms " \
		    "always use one"}, \
	{"matrix", AS_INT(s, at matrix, 8, 1024), .unit = "pixels", \
	 .zero = "256; of sinograms whose radial bins are larger than two voxels then, a node and `recon` make as many as make " \
		 "them as large as the bins, unless `voxel` is set or `fbp` is used", \
	 .fallback = "0", .meaning = "number of pixels along x and along y"}, \
	{"voxel", AS_REAL(s, at voxel, 0.1, 50), .unit = "mm", .zero = "diameter of the field of view over `matrix`", \
	 .fallback = "0", .meaning = "transaxial voxel size"}, \
	{"slice_spacing", AS_REAL(s, at slice, 0.1, 50), .unit = "mm", .zero = "half of the ring spacing", \
	 .fallback = "0", .meaning = "distance between slices"}, \
	{"fov_radius", AS_REAL(s, at fov_radius, 1, 1000), .unit = "mm", \
	 .zero = "the largest radial bin, at most 350 and 0.98 of the radius where rays end", .fallback = "0", \
	 .meaning = "radius of the field of view: rays count only inside it, so what is beyond it appears inside; values outside " \
		    "are set to 0"}, \
	{"projector", AS_CHOICE(s, at projector, \
		   KEY_CHOICES({"siddon", PROJECTION_PATHS}, {"joseph", PROJECTION_JOSEPH}, \
			       {"exact", PROJECTION_EXACT})), \
	 .fallback = "siddon", .only = "mlem osem bsrem", \
	 .meaning = "`siddon`: path lengths through voxels, where the path across the slices is computed once for all planes; " \
		    "`joseph`: linear interpolation between voxels; `exact`: path lengths, ray by ray, the reference"}, \
	{"psf", AS_REAL(s, at psf, 0.1, 50), .unit = "mm", .zero = "none", .fallback = "0", \
	 .only = "mlem osem bsrem", .meaning = "full width at half maximum of a Gaussian resolution model"}, \
	{"postfilter", AS_REAL(s, at postfilter, 0.1, 50), .unit = "mm", .zero = "none", .fallback = "0", \
	 .meaning = "full width at half maximum of a Gaussian filter on the result"}, \
	{"prior_weight", AS_REAL(s, at prior_weight, 0, 1e6), .fallback = "0.005", .only = "bsrem", \
	 .meaning = "`bsrem`: weight of the prior, relative to the sensitivity"}, \
	{"prior_gamma", AS_REAL(s, at prior_gamma, 0, 1000), .fallback = "2", .only = "bsrem", \
	 .needs = "prior_weight", .meaning = "`bsrem`: preservation of edges, stronger for larger values; 0: quadratic prior"}, \
	{"relaxation", AS_REAL(s, at relaxation, 0, 100), .fallback = "0.05", .only = "bsrem", \
	 .meaning = "`bsrem`: the step size of pass n (from 0) is 1 / (1 + relaxation n)"}, \
	{"filter_cut", AS_REAL(s, at filter_cut, 0.01, 1), .fallback = "0.8", .only = "fbp", \
	 .meaning = "`fbp`: fraction of the Nyquist frequency where the Hann window reaches 0"}

#define PET_KEYS_DEVICE(s, at) \
	{"memory_limit", AS_BYTES(s, at memory_limit, 1, 1e15), .unit = "bytes", \
	 .zero = "no limit but the device's memory", .fallback = "0", \
	 .meaning = "maximum memory on the device, with the working memory of one thread; if the data do not fit, angles are " \
		    "streamed; a plan that still needs more is " \
		    "refused before anything is allocated"}, \
	{"deterministic", AS_BOOL(s, at deterministic), .fallback = "false", \
	 .meaning = "compute bitwise the same image in every run"}
/* clang-format on */

#endif
