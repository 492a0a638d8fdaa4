/* config_table_pet.c - the keys of PET: protocols whose kind is pet, and scanners. */
#include <stddef.h>

#include "node/config/config_rows.h"

static const struct key_choice algorithms[] = {
	{"mlem", PET_MLEM}, {"osem", PET_OSEM}, {"bsrem", PET_BSREM}, {"fbp", PET_FBP}, {NULL, 0},
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
	 "what routes and --protocol call it"},
	{"kind", KEY_CHOICE, AT(protocol_conf, kind), "", 0, 0, NULL, config_kinds, "pet", KEY_UNDESCRIBED,
	 "kind of case it is for"},
	{"algorithm", KEY_CHOICE, AT(protocol_conf, pet.algorithm), "", 0, 0, NULL, algorithms, "mlem", 0,
	 "`mlem` (all angles in each update), `osem` (ordered subsets of angles), `bsrem` (ordered subsets with the relative "
	 "difference prior), `fbp` (single-slice rebinning and filtered backprojection: a quick look)"},
	{"iterations", KEY_INT, AT(protocol_conf, pet.iterations), "", 1, 1000, NULL, NULL, "40", 0,
	 "passes over all angles; `fbp` makes one whatever stands here"},
	{"subsets", KEY_INT, AT(protocol_conf, pet.subsets), "", 1, 1000, NULL, NULL, "28", 0,
	 "subsets of the angles for `osem` and `bsrem`, at most as many as there are angles; the others have one whatever stands "
	 "here"},
	{"matrix", KEY_INT, AT(protocol_conf, pet.matrix), "pixels", 8, 1024, NULL, NULL, "256", 0, "along x and along y"},
	{"voxel", KEY_REAL, AT(protocol_conf, pet.voxel), "mm", 0.1, 50, "diameter of the field of view over `matrix`", NULL, "0",
	 0, "transaxial voxel size"},
	{"slice_spacing", KEY_REAL, AT(protocol_conf, pet.slice), "mm", 0.1, 50, "half of the ring spacing", NULL, "0", 0,
	 "distance of slices"},
	{"fov_radius", KEY_REAL, AT(protocol_conf, pet.fov_radius), "mm", 1, 1000,
	 "the largest radial bin, at most 350 and 0.98 of the radius where rays end", NULL, "0", 0,
	 "radius of the field of view; what lies outside comes out as 0"},
	{"projector", KEY_CHOICE, AT(protocol_conf, pet.projector), "", 0, 0, NULL, projectors, "siddon", 0,
	 "`siddon`: path lengths through voxels, the path across the slices walked once for all planes; `joseph`: linear between "
	 "voxels; `exact`: path lengths, ray by ray, the reference"},
	{"psf", KEY_REAL, AT(protocol_conf, pet.psf), "mm", 0.1, 50, "none", NULL, "0", 0,
	 "full width at half maximum of a Gaussian resolution model"},
	{"postfilter", KEY_REAL, AT(protocol_conf, pet.postfilter), "mm", 0.1, 50, "none", NULL, "0", 0,
	 "full width at half maximum of a Gaussian over the result"},
	{"prior_weight", KEY_REAL, AT(protocol_conf, pet.prior_weight), "", 0, 1e6, NULL, NULL, "0.005", 0,
	 "`bsrem`: weight of the prior, relative to the sensitivity"},
	{"prior_gamma", KEY_REAL, AT(protocol_conf, pet.prior_gamma), "", 0, 1000, NULL, NULL, "2", 0,
	 "`bsrem`: how much edges are kept; 0: differences count by their square"},
	{"relaxation", KEY_REAL, AT(protocol_conf, pet.relaxation), "", 0, 100, NULL, NULL, "0.05", 0,
	 "`bsrem`: the step of pass n (from 0) is 1 / (1 + relaxation n)"},
	{"filter_cut", KEY_REAL, AT(protocol_conf, pet.filter_cut), "", 0.01, 1, NULL, NULL, "0.8", 0,
	 "`fbp`: fraction of the Nyquist frequency where the Hann window reaches 0"},
	{"memory_limit", KEY_BYTES, AT(protocol_conf, pet.memory_limit), "bytes", 1, 1e15, "all that the device has", NULL, "0",
	 0,
	 "memory on the device; where the data do not fit, angles are streamed; a plan that still needs more is refused before "
	 "anything is allocated"},
	{"deterministic", KEY_BOOL, AT(protocol_conf, pet.deterministic), "", 0, 0, NULL, NULL, "false", 0,
	 "bitwise the same image in every run"},
	{"compression", KEY_CHOICE, AT(protocol_conf, compression), "", 0, 0, NULL, config_compressions, "none", KEY_UNDESCRIBED,
	 "of the results' pixels: `jpeg-ls` is lossless"},
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
	"pet",
	&config_protocols_parallel,
};

const struct config_key config_scanner_keys[CONFIG_SCANNER_KEYS] = {
	{"name", KEY_NAME, AT(scanner_conf, name), "", 0, 0, NULL, NULL, NULL, 0, "what logs, provenance and --scanner call it"},
	{"manufacturer", KEY_TEXT, AT(scanner_conf, manufacturer), "", 0, 63, NULL, NULL, "", KEY_UNDESCRIBED,
	 "pattern for (0008,0070): upper or lower case, `*` and `?`; empty: any"},
	{"model", KEY_TEXT, AT(scanner_conf, model), "", 0, 63, NULL, NULL, "", KEY_UNDESCRIBED,
	 "pattern for (0008,1090); empty: any"},
	{"serial", KEY_TEXT, AT(scanner_conf, serial), "", 0, 63, NULL, NULL, "", KEY_UNDESCRIBED,
	 "pattern for (0018,1000), for one machine's own geometry; empty: any"},
	{"rings", KEY_INT, AT(scanner_conf, scanner.rings), "", 1, 1024, NULL, NULL, NULL, 0, "of detectors"},
	{"ring_spacing", KEY_REAL, AT(scanner_conf, scanner.ring_spacing), "mm", 0.1, 100, NULL, NULL, NULL, 0,
	 "distance of rings; slices lie half as far apart"},
	{"radius", KEY_REAL, AT(scanner_conf, scanner.radius), "mm", 10, 2000, NULL, NULL, NULL, 0, "inner radius of the rings"},
	{"interaction_depth", KEY_REAL, AT(scanner_conf, scanner.interaction_depth), "mm", 0, 100, NULL, NULL, "0", 0,
	 "mean depth in the crystal where photons are stopped; rays end there"},
	{"detectors", KEY_INT, AT(scanner_conf, scanner.detectors), "", 4, 16384, NULL, NULL, NULL, 0, "in a ring"},
	{"bin", KEY_REAL, AT(scanner_conf, scanner.bin), "mm", 0.01, 100, NULL, NULL, NULL, 0,
	 "radial bin of arc-corrected data; of others, that of their middle bin"},
	{"radial", KEY_INT, AT(scanner_conf, n_radial), "", 1, 16384, NULL, NULL, NULL, 0, "radial bins of its sinograms"},
	{"angles", KEY_INT, AT(scanner_conf, n_angles), "", 1, 16384, NULL, NULL, NULL, 0,
	 "angles of its sinograms, over 180 degrees"},
	{"span", KEY_INT, AT(scanner_conf, span), "", 1, 511, NULL, NULL, NULL, 0,
	 "how many ring differences are added into one segment: odd, or 2 for GE's grouping"},
	{"max_difference", KEY_INT, AT(scanner_conf, max_difference), "rings", 0, 1023, NULL, NULL, NULL, 0,
	 "the largest ring difference"},
	{"angle_offset", KEY_REAL, AT(scanner_conf, angle_offset), "degrees", -180, 180, NULL, NULL, "0", 0,
	 "of the first angle from rays along y"},
	{"arc_corrected", KEY_BOOL, AT(scanner_conf, arc_corrected), "", 0, 0, NULL, NULL, "true", 0,
	 "radial bins are equidistant; else they lie where the detectors are"},
	{"calibration", KEY_REAL, AT(scanner_conf, calibration), "", 1e-12, 1e12,
	 "not known: the object says, or values are counts", NULL, "0", 0,
	 "(Bq/ml) per (count per second and mm of ray), measured with F-18, for objects of F-18 without a calibration factor of "
	 "their own"},
};
