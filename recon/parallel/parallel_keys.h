/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of parallel beams: rows of a table (recon/core/keys.h) whose structure `s` has the members of struct parallel_protocol
 * at `at`: "" or "NAME.". */
#ifndef TOMONODE_RECON_PARALLEL_KEYS_H
#define TOMONODE_RECON_PARALLEL_KEYS_H

#include "recon/core/keys.h"
#include "recon/parallel/parallel.h"

/* clang-format off */
#define PARALLEL_KEYS(s, at) \
	{"algorithm", AS_CHOICE(s, at algorithm, \
		   KEY_CHOICES({"bp", ALGORITHM_BP}, {"fbp", ALGORITHM_FBP}, {"art", ALGORITHM_ART}, \
			       {"sart", ALGORITHM_SART}, {"mlem", ALGORITHM_MLEM}, {"osem", ALGORITHM_OSEM}, \
			       {"mltr", ALGORITHM_MLTR}, {"ostr", ALGORITHM_OSTR})), \
	 .fallback = "fbp", \
	 .meaning = "`fbp` (filtered backprojection), `bp` (backprojection without filter: blurred, in the unit of line " \
		    "integrals), `art` (Kaczmarz, ray by ray), `sart` (algebraic, subsets of angles; with one subset: SIRT), " \
		    "`mlem` and `osem` (emission model on line integrals, all angles or subsets of them), `mltr` and `ostr` " \
		    "(transmission model: a ray weighs as its photons; for few photons and values below 0, line integrals " \
		    "without a unit only)"}, \
	{"iterations", AS_INT(s, at iterations, 1, 100000), .fallback = "20", .only = "art sart mlem osem mltr ostr", \
	 .meaning = "passes over all angles; `bp` and `fbp` always make one"}, \
	{"subsets", AS_INT(s, at subsets, 1, 16384), .fallback = "1", .only = "sart osem ostr", \
	 .meaning = "subsets of the angles for `sart`, `osem` and `ostr`, at most as many as there are angles"}, \
	{"relaxation", AS_REAL(s, at relaxation, 0.001, 1.999), .fallback = "0.5", .only = "art sart", \
	 .meaning = "`art`, `sart`: fraction of the correction that each update applies"}, \
	{"non_negative", AS_BOOL(s, at non_negative), .fallback = "false", .only = "art sart", \
	 .meaning = "`art`, `sart`: set negative values to 0 after each pass (`art`) or subset (`sart`)"}, \
	{"in_sequence", AS_BOOL(s, at in_sequence), .fallback = "false", .only = "art", \
	 .meaning = "`art`: process the angles in order; false: each angle far from those before it, which converges faster"}, \
	{"filter", AS_CHOICE(s, at filter, \
		   KEY_CHOICES({"ram-lak", PARALLEL_RAM_LAK}, {"shepp-logan", PARALLEL_SHEPP_LOGAN}, \
			       {"cosine", PARALLEL_COSINE}, {"hann", PARALLEL_HANN})), \
	 .fallback = "shepp-logan", .only = "fbp", \
	 .meaning = "`fbp`: `ram-lak` (the ramp without window, sharpest), `shepp-logan`, `cosine`, `hann`"}, \
	{"filter_cut", AS_REAL(s, at filter_cut, 0.01, 1), .fallback = "1", .only = "fbp", \
	 .needs = "filter=hann", .meaning = "`hann`: fraction of the Nyquist frequency where the window reaches 0"}, \
	{"route", AS_CHOICE(s, at route, \
		   KEY_CHOICES({"fourier", PARALLEL_FOURIER}, {"convolution", PARALLEL_CONVOLUTION})), \
	 .fallback = "fourier", .only = "fbp", \
	 .meaning = "`fbp`: filter by `fourier` transform or by `convolution`; the same image, `convolution` is slower"}, \
	{"matrix", AS_INT(s, at matrix, 2, 16384), .unit = "pixels", .zero = "as many as radial bins", \
	 .fallback = "0", .meaning = "number of pixels along x and along y"}, \
	{"pixel", AS_REAL(s, at pixel, 0.001, 1000), .unit = "mm", .zero = "the distance between rays", \
	 .fallback = "0", .meaning = "size of a pixel"}, \
	{"fov_radius", AS_REAL(s, at fov_radius, 0.001, 1e5), .unit = "mm", \
	 .zero = "the whole image, including the corners", .fallback = "0", \
	 .meaning = "radius of the field of view: rays count only inside it, so what is beyond it appears inside; values outside " \
		    "are set to 0"}, \
	{"projector", AS_CHOICE(s, at projector, \
		   KEY_CHOICES({"siddon", PROJECTION_PATHS}, {"joseph", PROJECTION_JOSEPH}, \
			       {"sampled", PROJECTION_SAMPLED}, {"exact", PROJECTION_EXACT})), \
	 .fallback = "siddon", \
	 .only = "art sart mlem osem mltr ostr", \
	 .meaning = "of the iterative algorithms: `siddon` (path lengths through pixels), `joseph` (linear interpolation between " \
		    "pixels), `sampled` (steps along the ray), `exact` (path lengths, ray by ray, the reference; not for `art`)"}, \
	{"sampling", AS_REAL(s, at sampling, 0.001, 100), .unit = "mm", .zero = "a tenth of a pixel", \
	 .fallback = "0", .only = "art sart mlem osem mltr ostr", .needs = "projector=sampled", \
	 .meaning = "`sampled`: length of a step along the ray"}, \
	{"memory_limit", AS_BYTES(s, at memory_limit, 1, 1e15), .unit = "bytes", \
	 .zero = "no limit but the device's memory", .fallback = "0", \
	 .meaning = "maximum memory on the device, with the working memory of one thread; if the data do not fit, slices are " \
		    "processed in parts; on the CPU line integrals and image count, too, and are in files if they do not fit; a plan " \
		    "that still needs more is refused"}, \
	{"deterministic", AS_BOOL(s, at deterministic), .fallback = "false", \
	 .meaning = "compute bitwise the same image in every run"}
/* clang-format on */

#endif
