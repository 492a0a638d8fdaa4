/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of tomosynthesis: rows of a table (recon/core/keys.h) whose structure `s` has the members of struct dbt_protocol
 * at `at`: "" or "NAME.". */
#ifndef TOMONODE_RECON_DBT_KEYS_H
#define TOMONODE_RECON_DBT_KEYS_H

#include "recon/core/keys.h"
#include "recon/dbt/dbt.h"

/* clang-format off */
#define DBT_KEYS(s, at) \
	{"algorithm", AS_CHOICE(s, at algorithm, \
		   KEY_CHOICES({"osem", ALGORITHM_OSEM}, {"mlem", ALGORITHM_MLEM}, {"ostr", ALGORITHM_OSTR}, \
			       {"mltr", ALGORITHM_MLTR}, {"sart", ALGORITHM_SART}, {"bp", ALGORITHM_BP}, \
			       {"fbp", ALGORITHM_FBP})), \
	 .fallback = "osem", \
	 .meaning = "emission model on line integrals: `osem` (ordered subsets), `mlem` (all projections in each update); " \
		    "transmission model: `ostr` (ordered subsets), `mltr` (all projections); algebraic: `sart`; in one step: " \
		    "`bp` (shift and add), `fbp` (filtered backprojection)"}, \
	{"iterations", AS_INT(s, at iterations, 1, 1000), .fallback = "1", .only = "osem mlem ostr mltr sart", \
	 .meaning = "passes over all projections; 1 for `osem`, 25 to 50 for `mlem` and `mltr`; `bp` and `fbp` always make one"}, \
	{"subsets", AS_INT(s, at subsets, 1, 1000), .zero = "one per projection", .fallback = "0", \
	 .only = "osem ostr sart", \
	 .meaning = "subsets of the projections for `osem`, `ostr`, `sart`; the other algorithms always use one"}, \
	{"relaxation", AS_REAL(s, at relaxation, 0.001, 1.999), .fallback = "0.5", .only = "sart", \
	 .meaning = "`sart`: fraction of the correction that each update applies"}, \
	{"normalise_rows", AS_BOOL(s, at normalise_rows), .fallback = "false", .only = "osem mlem", \
	 .meaning = "`osem`, `mlem`: divide the path lengths of every ray by their sum; for comparison only, because it shades " \
		    "the image in depth"}, \
	{"prior", AS_CHOICE(s, at prior, \
		   KEY_CHOICES({"relative", PRIOR_RELATIVE}, {"quadratic", PRIOR_QUADRATIC})), \
	 .fallback = "relative", .flags = KEY_SPARSE, \
	 .only = "osem mlem ostr mltr", .needs = "prior_weight", \
	 .meaning = "with `prior_weight`: `relative`: the relative difference prior; `quadratic`: smooths edges like noise"}, \
	{"prior_weight", AS_REAL(s, at prior_weight, 0, 1e6), .zero = "no prior", .fallback = "0", \
	 .flags = KEY_SPARSE, .only = "osem mlem ostr mltr", \
	 .meaning = "`osem`, `mlem`, `ostr`, `mltr`: weight of a penalty on differences between neighbouring voxels, relative to " \
		    "the sensitivity"}, \
	{"prior_gamma", AS_REAL(s, at prior_gamma, 0, 1000), .fallback = "2", .flags = KEY_SPARSE, \
	 .only = "osem mlem ostr mltr", .needs = "prior_weight prior=relative", \
	 .meaning = "`prior` = `relative`: preservation of edges, stronger for larger values"}, \
	{"prior_across", AS_REAL(s, at prior_across, 0, 1), .fallback = "0", .flags = KEY_SPARSE, \
	 .only = "osem mlem ostr mltr", .needs = "prior_weight", \
	 .meaning = "factor of the weight between neighbours in different slices; 0: within slices only, so that objects do not " \
		    "spread into more slices"}, \
	{"filter", AS_CHOICE(s, at filter, \
		   KEY_CHOICES({"ramp", DBT_FILTER_RAMP}, {"hann", DBT_FILTER_HANN})), \
	 .fallback = "hann", .only = "fbp", \
	 .meaning = "`fbp`: `ramp`: the ramp filter; `hann`: the ramp multiplied by a Hann window"}, \
	{"filter_cut", AS_REAL(s, at filter_cut, 0.01, 1), .fallback = "1", .only = "fbp", .needs = "filter=hann", \
	 .meaning = "`fbp`: fraction of the Nyquist frequency where the Hann window reaches 0"}, \
	{"voxel", AS_REAL(s, at voxel, 0.02, 5), .unit = "mm", .zero = "the detector's own pitch", \
	 .fallback = "0.34", \
	 .meaning = "voxel size within a slice; as many bins of the projections are merged as fit into it, and voxels of less than 0.9 " \
		    "of a bin, which rays miss, are as large as a bin"}, \
	{"slice_spacing", AS_REAL(s, at slice_spacing, 0.1, 20), .unit = "mm", .fallback = "1", \
	 .meaning = "distance between slices"}, \
	{"projector", AS_CHOICE(s, at projector, \
		   KEY_CHOICES({"slices", PROJECTION_SLICES}, {"exact", PROJECTION_EXACT})), \
	 .fallback = "slices", \
	 .meaning = "`slices`: slice by slice, fast; `exact`: path lengths through voxels, the reference"}, \
	{"breast_mask", AS_BOOL(s, at breast_mask), .fallback = "true", \
	 .meaning = "do not reconstruct the region beside the breast that a projection shows as air"}, \
	{"breast_shape", AS_BOOL(s, at breast_shape), .fallback = "false", .only = "osem mlem ostr mltr sart", \
	 .meaning = "begin the iterations with the shape of the breast, estimated from the projections, and not with its full " \
		    "compressed thickness everywhere: without a dark band and a dark nipple where the rim is thinner. No voxel is " \
		    "excluded. Where no shape is found, the result says why, and the start is uniform"}, \
	{"skin_edge", AS_BOOL(s, at skin_edge), .fallback = "false", .only = "osem mlem ostr mltr", \
	 .meaning = "soften the outermost millimetre of the breast in the projections, which voxels cannot represent: without a " \
		    "white line at the skin"}, \
	{"metal", AS_CHOICE(s, at metal, KEY_CHOICES({"off", DBT_METAL_OFF}, {"reduce", DBT_METAL_REDUCE})), \
	 .fallback = "off", \
	 .meaning = "`reduce`: clips and markers of metal, found in the projections, are replaced there and put back into the slices, " \
		    "so that they throw no streaks; the result names their number and places. No calcification is taken for " \
		    "metal, and one above or below it that its shadows cover stays if the projections agree on it. `off`: metal is " \
		    "reconstructed like tissue"}, \
	{"edge_taper", AS_REAL(s, at edge_taper, 0.1, 100), .unit = "mm", .zero = "all bins count fully", \
	 .fallback = "5", \
	 .meaning = "where the breast continues beyond the field of a projection at an end along the chest wall, the weight of " \
		    "its bins decreases to 0 over this distance from the edge of the detector, so that the image has no steps " \
		    "there; other projections are not affected. At the chest wall, bins whose rays leave the volume there count " \
		    "with the part that is in it; with 0 the first columns are then much too bright"}

#define DBT_KEYS_DEVICE(s, at) \
	{"tile", AS_TILE(s, at tile, 1, 65535), .unit = "bins", .fallback = "auto", \
	 .meaning = "unit of work on the detector, along x and y; `auto`: the whole detector at once if that fits into memory, " \
		    "else 88x56"}, \
	{"memory_limit", AS_BYTES(s, at memory_limit, 1, 1e15), .unit = "bytes", \
	 .zero = "no limit but the device's memory", .fallback = "0", \
	 .meaning = "maximum memory on the device, with the working memory of one thread; a plan that needs more is refused " \
		    "before anything is allocated"}, \
	{"deterministic", AS_BOOL(s, at deterministic), .fallback = "false", \
	 .meaning = "compute bitwise the same image in every run"}
/* clang-format on */

#endif
