/* config_table_pet.c - the keys of PET: protocols whose kind is pet, and scanners. */
#include <stddef.h>

#include "node/config/config_internal.h"

static const struct key_choice algorithms[] = {
	{"mlem", ALGORITHM_MLEM}, {"osem", ALGORITHM_OSEM}, {"bsrem", ALGORITHM_BSREM}, {"fbp", ALGORITHM_FBP}, {NULL, 0},
};
static const struct key_choice projectors[] = {
	{"siddon", PROJECTION_PATHS},
	{"joseph", PROJECTION_JOSEPH},
	{"exact", PROJECTION_EXACT},
	{NULL, 0},
};

/* name, type, field, unit, lo, hi, zero, choices, default, flags, meaning */
static const struct config_key protocol_keys[] = {
	{"name", KEY_NAME, AT(protocol_conf, name), "", 0, 0, NULL, NULL, NULL, KEY_UNDESCRIBED,
	 "name of the protocol in `routes` and `--protocol`"},
	{"kind", KEY_CHOICE, AT(protocol_conf, kind), "", 0, 0, NULL, config_kinds, "pet", KEY_UNDESCRIBED,
	 "kind of case that the protocol is for"},
	{"algorithm", KEY_CHOICE, AT(protocol_conf, pet.algorithm), "", 0, 0, NULL, algorithms, "mlem", 0,
	 "`mlem` (all angles in each update), `osem` (ordered subsets of angles), `bsrem` (ordered subsets with the relative "
	 "difference prior), `fbp` (single-slice rebinning and filtered backprojection: a fast preview)"},
	{"iterations", KEY_INT, AT(protocol_conf, pet.iterations), "", 1, 1000, NULL, NULL, "40", 0,
	 "passes over all angles; `fbp` always makes one"},
	{"subsets", KEY_INT, AT(protocol_conf, pet.subsets), "", 1, 1000, NULL, NULL, "28", 0,
	 "subsets of the angles for `osem` and `bsrem`, at most as many as there are angles; the other algorithms always use "
	 "one"},
	{"matrix", KEY_INT, AT(protocol_conf, pet.matrix), "pixels", 8, 1024, NULL, NULL, "256", 0,
	 "number of pixels along x and along y"},
	{"voxel", KEY_REAL, AT(protocol_conf, pet.voxel), "mm", 0.1, 50, "diameter of the field of view over `matrix`", NULL, "0",
	 0, "transaxial voxel size"},
	{"slice_spacing", KEY_REAL, AT(protocol_conf, pet.slice), "mm", 0.1, 50, "half of the ring spacing", NULL, "0", 0,
	 "distance between slices"},
	{"fov_radius", KEY_REAL, AT(protocol_conf, pet.fov_radius), "mm", 1, 1000,
	 "the largest radial bin, at most 350 and 0.98 of the radius where rays end", NULL, "0", 0,
	 "radius of the field of view; values outside are set to 0"},
	{"projector", KEY_CHOICE, AT(protocol_conf, pet.projector), "", 0, 0, NULL, projectors, "siddon", 0,
	 "`siddon`: path lengths through voxels, where the path across the slices is computed once for all planes; `joseph`: "
	 "linear interpolation between voxels; `exact`: path lengths, ray by ray, the reference"},
	{"psf", KEY_REAL, AT(protocol_conf, pet.psf), "mm", 0.1, 50, "none", NULL, "0", 0,
	 "full width at half maximum of a Gaussian resolution model"},
	{"postfilter", KEY_REAL, AT(protocol_conf, pet.postfilter), "mm", 0.1, 50, "none", NULL, "0", 0,
	 "full width at half maximum of a Gaussian filter on the result"},
	{"prior_weight", KEY_REAL, AT(protocol_conf, pet.prior_weight), "", 0, 1e6, NULL, NULL, "0.005", 0,
	 "`bsrem`: weight of the prior, relative to the sensitivity"},
	{"prior_gamma", KEY_REAL, AT(protocol_conf, pet.prior_gamma), "", 0, 1000, NULL, NULL, "2", 0,
	 "`bsrem`: preservation of edges, stronger for larger values; 0: quadratic prior"},
	{"relaxation", KEY_REAL, AT(protocol_conf, pet.relaxation), "", 0, 100, NULL, NULL, "0.05", 0,
	 "`bsrem`: the step size of pass n (from 0) is 1 / (1 + relaxation n)"},
	{"filter_cut", KEY_REAL, AT(protocol_conf, pet.filter_cut), "", 0.01, 1, NULL, NULL, "0.8", 0,
	 "`fbp`: fraction of the Nyquist frequency where the Hann window reaches 0"},
	{"memory_limit", KEY_BYTES, AT(protocol_conf, pet.memory_limit), "bytes", 1, 1e15, "no limit but the device's memory",
	 NULL, "0", 0,
	 "maximum memory on the device; if the data do not fit, angles are streamed; a plan that still needs more is refused "
	 "before anything is allocated"},
	{"deterministic", KEY_BOOL, AT(protocol_conf, pet.deterministic), "", 0, 0, NULL, NULL, "false", 0,
	 "compute bitwise the same image in every run"},
	{"compression", KEY_CHOICE, AT(protocol_conf, compression), "", 0, 0, NULL, config_compressions, "none", KEY_UNDESCRIBED,
	 "compression of the results' pixels; `jpeg-ls` is lossless"},
	{"description", KEY_TEXT, AT(protocol_conf, description), "", 0, 64, NULL, NULL, "", KEY_UNDESCRIBED,
	 "SeriesDescription of the result; empty: made from the protocol's name"},
};

const struct config_section config_protocols_pet = {
	"protocols",
	"protocol",
	true,
	true,
	LIST(protocol_conf, protocols),
	KEYS(protocol_keys),
	"Protocols for PET (`kind` is `pet`):",
	true,
};

const struct config_key config_scanner_keys[CONFIG_SCANNER_KEYS] = {
	{"name", KEY_NAME, AT(scanner_conf, name), "", 0, 0, NULL, NULL, NULL, 0,
	 "name of the scanner in log lines, provenance and `--scanner`"},
	{"manufacturer", KEY_TEXT, AT(scanner_conf, manufacturer), "", 0, 63, NULL, NULL, "", KEY_UNDESCRIBED,
	 "pattern for (0008,0070): case-insensitive, `*` and `?`; empty: any"},
	{"model", KEY_TEXT, AT(scanner_conf, model), "", 0, 63, NULL, NULL, "", KEY_UNDESCRIBED,
	 "pattern for (0008,1090); empty: any"},
	{"serial", KEY_TEXT, AT(scanner_conf, serial), "", 0, 63, NULL, NULL, "", KEY_UNDESCRIBED,
	 "pattern for (0018,1000), for the geometry of a single machine; empty: any"},
	{"rings", KEY_INT, AT(scanner_conf, scanner.rings), "", 1, 1024, NULL, NULL, NULL, 0, "number of detector rings"},
	{"ring_spacing", KEY_REAL, AT(scanner_conf, scanner.ring_spacing), "mm", 0.1, 100, NULL, NULL, NULL, 0,
	 "distance between rings; the distance between slices is half of it"},
	{"radius", KEY_REAL, AT(scanner_conf, scanner.radius), "mm", 10, 2000, NULL, NULL, NULL, 0, "inner radius of the rings"},
	{"interaction_depth", KEY_REAL, AT(scanner_conf, scanner.interaction_depth), "mm", 0, 100, NULL, NULL, "0", 0,
	 "mean depth in the crystal at which photons are absorbed; rays end at this depth"},
	{"detectors", KEY_INT, AT(scanner_conf, scanner.detectors), "", 4, 16384, NULL, NULL, NULL, 0,
	 "number of detectors in a ring"},
	{"bin", KEY_REAL, AT(scanner_conf, scanner.bin), "mm", 0.01, 100, NULL, NULL, NULL, 0,
	 "width of a radial bin of arc-corrected data; for other data, of the central bin"},
	{"radial", KEY_INT, AT(scanner_conf, n_radial), "", 1, 16384, NULL, NULL, NULL, 0, "number of radial bins of a sinogram"},
	{"angles", KEY_INT, AT(scanner_conf, n_angles), "", 1, 16384, NULL, NULL, NULL, 0,
	 "number of angles of a sinogram, over 180 degrees"},
	{"span", KEY_INT, AT(scanner_conf, span), "", 1, 511, NULL, NULL, NULL, 0,
	 "number of ring differences that are added into one segment: odd, or 2 for GE's grouping"},
	{"max_difference", KEY_INT, AT(scanner_conf, max_difference), "rings", 0, 1023, NULL, NULL, NULL, 0,
	 "largest ring difference"},
	{"angle_offset", KEY_REAL, AT(scanner_conf, angle_offset), "degrees", -180, 180, NULL, NULL, "0", 0,
	 "angle between the first angle's rays and the y axis"},
	{"arc_corrected", KEY_BOOL, AT(scanner_conf, arc_corrected), "", 0, 0, NULL, NULL, "true", 0,
	 "radial bins are equidistant; false: they follow the positions of the detectors"},
	{"calibration", KEY_REAL, AT(scanner_conf, calibration), "", 1e-12, 1e12,
	 "unknown: the object's own factor is used; without one, values are counts", NULL, "0", 0,
	 "(Bq/ml) per (count per second and mm of ray), measured with F-18, for F-18 objects without their own calibration "
	 "factor"},
};
