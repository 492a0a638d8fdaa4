/* config_table_scanner.c - the keys of PET scanners. */
#include <stddef.h>

#include "node/config/config_internal.h"

/* name, type, field, unit, lo, hi, zero, choices, default, flags, meaning */
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
