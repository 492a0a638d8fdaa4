/* SPDX-License-Identifier: Apache-2.0 */
/* kind_parallel.c - line integrals of parallel beams: a case is one scan with all its chunks. */
#include <stddef.h>

#include "node/config/config_internal.h"
#include "node/config/kind.h"

#define NAME "parallel"

static const struct key_choice algorithms[] = {
	{"bp", ALGORITHM_BP},
	{"fbp", ALGORITHM_FBP},
	{"art", ALGORITHM_ART},
	{"sart", ALGORITHM_SART},
	{"mlem", ALGORITHM_MLEM},
	{"osem", ALGORITHM_OSEM},
	{NULL, 0},
};
static const struct key_choice filters[] = {
	{"ram-lak", PARALLEL_RAM_LAK},
	{"shepp-logan", PARALLEL_SHEPP_LOGAN},
	{"cosine", PARALLEL_COSINE},
	{"hann", PARALLEL_HANN},
	{NULL, 0},
};
static const struct key_choice routes[] = {{"fourier", PARALLEL_FOURIER}, {"convolution", PARALLEL_CONVOLUTION}, {NULL, 0}};
static const struct key_choice projectors[] = {
	{"siddon", PROJECTION_PATHS},
	{"joseph", PROJECTION_JOSEPH},
	{"sampled", PROJECTION_SAMPLED},
	{"exact", PROJECTION_EXACT},
	{NULL, 0},
};

static const struct config_key protocol_keys[] = {
	CONFIG_PROTOCOL_FIRST(NAME),
	{"algorithm", AS_CHOICE(protocol_conf, parallel.algorithm, algorithms), .fallback = "fbp",
	 .meaning = "`fbp` (filtered backprojection), `bp` (backprojection without filter: blurred, in the unit of line "
		    "integrals), `art` (Kaczmarz, ray by ray), `sart` (algebraic, subsets of angles; with one subset: SIRT), "
		    "`mlem` and `osem` (emission model on line integrals, all angles or subsets of them)"},
	{"iterations", AS_INT(protocol_conf, parallel.iterations, 1, 100000), .fallback = "20", .only = "art sart mlem osem",
	 .meaning = "passes over all angles; `bp` and `fbp` always make one"},
	{"subsets", AS_INT(protocol_conf, parallel.subsets, 1, 16384), .fallback = "1", .only = "sart osem",
	 .meaning = "subsets of the angles for `sart` and `osem`, at most as many as there are angles"},
	{"relaxation", AS_REAL(protocol_conf, parallel.relaxation, 0.001, 1.999), .fallback = "0.5", .only = "art sart",
	 .meaning = "`art`, `sart`: fraction of the correction that each update applies"},
	{"non_negative", AS_BOOL(protocol_conf, parallel.non_negative), .fallback = "false", .only = "art sart",
	 .meaning = "`art`, `sart`: set negative values to 0 after each pass (`art`) or subset (`sart`)"},
	{"in_sequence", AS_BOOL(protocol_conf, parallel.in_sequence), .fallback = "false", .only = "art",
	 .meaning = "`art`: process the angles in order; false: each angle far from those before it, which converges faster"},
	{"filter", AS_CHOICE(protocol_conf, parallel.filter, filters), .fallback = "shepp-logan", .only = "fbp",
	 .meaning = "`fbp`: `ram-lak` (the ramp without window, sharpest), `shepp-logan`, `cosine`, `hann`"},
	{"filter_cut", AS_REAL(protocol_conf, parallel.filter_cut, 0.01, 1), .fallback = "1", .only = "fbp",
	 .needs = "filter=hann", .meaning = "`hann`: fraction of the Nyquist frequency where the window reaches 0"},
	{"route", AS_CHOICE(protocol_conf, parallel.route, routes), .fallback = "fourier", .only = "fbp",
	 .meaning = "`fbp`: filter by `fourier` transform or by `convolution`; the same image, `convolution` is slower"},
	{"matrix", AS_INT(protocol_conf, parallel.matrix, 2, 16384), .unit = "pixels", .zero = "as many as radial bins",
	 .fallback = "0", .meaning = "number of pixels along x and along y"},
	{"pixel", AS_REAL(protocol_conf, parallel.pixel, 0.001, 1000), .unit = "mm", .zero = "the distance between rays",
	 .fallback = "0", .meaning = "size of a pixel"},
	{"fov_radius", AS_REAL(protocol_conf, parallel.fov_radius, 0.001, 1e5), .unit = "mm",
	 .zero = "the whole image, including the corners", .fallback = "0",
	 .meaning = "radius of the field of view: rays count only inside it, so what is beyond it appears inside; values outside "
		    "are set to 0"},
	{"projector", AS_CHOICE(protocol_conf, parallel.projector, projectors), .fallback = "siddon",
	 .only = "art sart mlem osem",
	 .meaning = "of the iterative algorithms: `siddon` (path lengths through pixels), `joseph` (linear interpolation between "
		    "pixels), `sampled` (steps along the ray), `exact` (path lengths, ray by ray, the reference; not for `art`)"},
	{"sampling", AS_REAL(protocol_conf, parallel.sampling, 0.001, 100), .unit = "mm", .zero = "a tenth of a pixel",
	 .fallback = "0", .only = "art sart mlem osem", .needs = "projector=sampled",
	 .meaning = "`sampled`: length of a step along the ray"},
	{"memory_limit", AS_BYTES(protocol_conf, parallel.memory_limit, 1, 1e15), .unit = "bytes",
	 .zero = "no limit but the device's memory", .fallback = "0",
	 .meaning = "maximum memory on the device, with the working memory of one thread; if the data do not fit, slices are "
		    "processed in parts; a plan that still "
		    "needs more is refused"},
	{"deterministic", AS_BOOL(protocol_conf, parallel.deterministic), .fallback = "false",
	 .meaning = "compute bitwise the same image in every run"},
	{"mu_water", AS_REAL(protocol_conf, mu_water, 1e-6, 100), .unit = "1/mm", .zero = "no Hounsfield units", .fallback = "0",
	 .meaning = "attenuation of water at the energy of the scan, for values in Hounsfield units: 1000 (value / mu_water - "
		    "1); without it, values keep the unit of the data"},
	CONFIG_PROTOCOL_LAST,
};

static const struct config_section protocols =
	CONFIG_PROTOCOLS(protocol_keys, "Protocols for parallel beams (`kind` is `parallel`):");

const struct kind kind_parallel = {
	.name = NAME,
	.content = "sinograms of parallel beams",
	.title = "parallel beams",
	.views = "angles",
	.view_patterns = kind_positions,
	.key = {CASE_STUDY, CASE_SERIES, CASE_FRAME_OF_REFERENCE},
	.as_is_refusal = KIND_SINOGRAMS_AS_IS,
	.protocols = &protocols,
};
