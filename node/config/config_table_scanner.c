/* config_table_scanner.c - the keys of PET scanners. */
#include <stddef.h>

#include "node/config/config_internal.h"

const struct config_key config_scanner_keys[CONFIG_SCANNER_KEYS] = {
	{"name", AS_NAME(scanner_conf, name), .fallback = REQUIRED,
	 .meaning = "name of the scanner in log lines, provenance and `--scanner`"},
	{"manufacturer", AS_TEXT(scanner_conf, manufacturer, 63), .fallback = "", .flags = KEY_UNDESCRIBED,
	 .meaning = "pattern for (0008,0070): case-insensitive, `*` and `?`; empty: any"},
	{"model", AS_TEXT(scanner_conf, model, 63), .fallback = "", .flags = KEY_UNDESCRIBED,
	 .meaning = "pattern for (0008,1090); empty: any"},
	{"serial", AS_TEXT(scanner_conf, serial, 63), .fallback = "", .flags = KEY_UNDESCRIBED,
	 .meaning = "pattern for (0018,1000), for the geometry of a single machine; empty: any"},
	{"rings", AS_INT(scanner_conf, scanner.rings, 1, 1024), .fallback = REQUIRED, .meaning = "number of detector rings"},
	{"ring_spacing", AS_REAL(scanner_conf, scanner.ring_spacing, 0.1, 100), .unit = "mm", .fallback = REQUIRED,
	 .meaning = "distance between rings; the distance between slices is half of it"},
	{"radius", AS_REAL(scanner_conf, scanner.radius, 10, 2000), .unit = "mm", .fallback = REQUIRED,
	 .meaning = "inner radius of the rings"},
	{"interaction_depth", AS_REAL(scanner_conf, scanner.interaction_depth, 0, 100), .unit = "mm", .fallback = "0",
	 .meaning = "mean depth in the crystal at which photons are absorbed; rays end at this depth"},
	{"detectors", AS_INT(scanner_conf, scanner.detectors, 4, 16384), .fallback = REQUIRED,
	 .meaning = "number of detectors in a ring"},
	{"bin", AS_REAL(scanner_conf, scanner.bin, 0.01, 100), .unit = "mm", .fallback = REQUIRED,
	 .meaning = "width of a radial bin of arc-corrected data; for other data, of the central bin"},
	{"radial", AS_INT(scanner_conf, n_radial, 1, 16384), .fallback = REQUIRED,
	 .meaning = "number of radial bins of a sinogram"},
	{"angles", AS_INT(scanner_conf, n_angles, 1, 16384), .fallback = REQUIRED,
	 .meaning = "number of angles of a sinogram, over 180 degrees"},
	{"span", AS_INT(scanner_conf, span, 1, 511), .fallback = REQUIRED,
	 .meaning = "number of ring differences that are added into one segment: odd, or 2 for GE's grouping"},
	{"max_difference", AS_INT(scanner_conf, max_difference, 0, 1023), .unit = "rings", .fallback = REQUIRED,
	 .meaning = "largest ring difference"},
	{"angle_offset", AS_REAL(scanner_conf, angle_offset, -180, 180), .unit = "degrees", .fallback = "0",
	 .meaning = "angle between the first angle's rays and the y axis"},
	{"arc_corrected", AS_BOOL(scanner_conf, arc_corrected), .fallback = "true",
	 .meaning = "radial bins are equidistant; false: they follow the positions of the detectors"},
	{"calibration", AS_REAL(scanner_conf, calibration, 1e-12, 1e12),
	 .zero = "unknown: the object's own factor is used; without one, values are counts", .fallback = "0",
	 .meaning = "(Bq/ml) per (count per second and mm of ray), measured with F-18, for F-18 objects without their own "
		    "calibration factor"},
};
