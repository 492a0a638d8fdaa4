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

/* name, type, field, unit, lo, hi, zero, choices, default, flags, meaning */
static const struct config_key protocol_keys[] = {
	CONFIG_PROTOCOL_FIRST(NAME),
	{"algorithm", KEY_CHOICE, AT(protocol_conf, parallel.algorithm), "", 0, 0, NULL, algorithms, "fbp", 0,
	 "`fbp` (filtered backprojection), `bp` (backprojection without filter: blurred, in the unit of line integrals), `art` "
	 "(Kaczmarz, ray by ray), `sart` (algebraic, subsets of angles; with one subset: SIRT), `mlem` and `osem` (emission "
	 "model on line integrals, all angles or subsets of them)"},
	{"iterations", KEY_INT, AT(protocol_conf, parallel.iterations), "", 1, 100000, NULL, NULL, "20", 0,
	 "passes over all angles; `bp` and `fbp` always make one"},
	{"subsets", KEY_INT, AT(protocol_conf, parallel.subsets), "", 1, 16384, NULL, NULL, "1", 0,
	 "subsets of the angles for `sart` and `osem`, at most as many as there are angles"},
	{"relaxation", KEY_REAL, AT(protocol_conf, parallel.relaxation), "", 0.001, 1.999, NULL, NULL, "0.5", 0,
	 "`art`, `sart`: fraction of the correction that each update applies"},
	{"non_negative", KEY_BOOL, AT(protocol_conf, parallel.non_negative), "", 0, 0, NULL, NULL, "false", 0,
	 "`art`, `sart`: set negative values to 0 after each pass (`art`) or subset (`sart`)"},
	{"in_sequence", KEY_BOOL, AT(protocol_conf, parallel.in_sequence), "", 0, 0, NULL, NULL, "false", 0,
	 "`art`: process the angles in order; false: each angle far from those before it, which converges faster"},
	{"filter", KEY_CHOICE, AT(protocol_conf, parallel.filter), "", 0, 0, NULL, filters, "shepp-logan", 0,
	 "`fbp`: `ram-lak` (the ramp without window, sharpest), `shepp-logan`, `cosine`, `hann`"},
	{"filter_cut", KEY_REAL, AT(protocol_conf, parallel.filter_cut), "", 0.01, 1, NULL, NULL, "1", 0,
	 "`hann`: fraction of the Nyquist frequency where the window reaches 0"},
	{"route", KEY_CHOICE, AT(protocol_conf, parallel.route), "", 0, 0, NULL, routes, "fourier", 0,
	 "`fbp`: filter by `fourier` transform or by `convolution`; the same image, `convolution` is slower"},
	{"matrix", KEY_INT, AT(protocol_conf, parallel.matrix), "pixels", 2, 16384, "as many as radial bins", NULL, "0", 0,
	 "number of pixels along x and along y"},
	{"pixel", KEY_REAL, AT(protocol_conf, parallel.pixel), "mm", 0.001, 1000, "the distance between rays", NULL, "0", 0,
	 "size of a pixel"},
	{"fov_radius", KEY_REAL, AT(protocol_conf, parallel.fov_radius), "mm", 0.001, 1e5,
	 "the whole image, including the corners", NULL, "0", 0, "radius of the field of view; values outside are set to 0"},
	{"projector", KEY_CHOICE, AT(protocol_conf, parallel.projector), "", 0, 0, NULL, projectors, "siddon", 0,
	 "of the iterative algorithms: `siddon` (path lengths through pixels), `joseph` (linear interpolation between pixels), "
	 "`sampled` (steps along the ray), `exact` (path lengths, ray by ray, the reference; not for `art`)"},
	{"sampling", KEY_REAL, AT(protocol_conf, parallel.sampling), "mm", 0.001, 100, "a tenth of a pixel", NULL, "0", 0,
	 "`sampled`: length of a step along the ray"},
	{"memory_limit", KEY_BYTES, AT(protocol_conf, parallel.memory_limit), "bytes", 1, 1e15,
	 "no limit but the device's memory", NULL, "0", 0,
	 "maximum memory on the device; if the data do not fit, slices are processed in parts; a plan that still needs more is "
	 "refused"},
	{"deterministic", KEY_BOOL, AT(protocol_conf, parallel.deterministic), "", 0, 0, NULL, NULL, "false", 0,
	 "compute bitwise the same image in every run"},
	{"mu_water", KEY_REAL, AT(protocol_conf, mu_water), "1/mm", 1e-6, 100, "no Hounsfield units", NULL, "0", 0,
	 "attenuation of water at the energy of the scan, for values in Hounsfield units: 1000 (value / mu_water - 1); without "
	 "it, values keep the unit of the data"},
	CONFIG_PROTOCOL_LAST,
};

static const struct config_section protocols =
	CONFIG_PROTOCOLS(protocol_keys, "Protocols for parallel beams (`kind` is `parallel`):");

const struct kind kind_parallel = {
	.name = NAME,
	.content = "sinograms of parallel beams",
	.title = "parallel beams",
	.views = "angles",
	.key = {CASE_STUDY, CASE_SERIES, CASE_FRAME_OF_REFERENCE},
	.as_is_refusal = KIND_SINOGRAMS_AS_IS,
	.protocols = &protocols,
};
