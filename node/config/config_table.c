/* SPDX-License-Identifier: Apache-2.0 */
/* config_table.c - every key of the configuration: type, unit, default, range, meaning. The default as text is next to its range,
 * so that both are changed together; `check --defaults` and `check --describe` print this table.
 */
#include "node/config/config_table.h"

#include <stdio.h>
#include <string.h>

#include "node/base/log.h" /* syslog levels and facilities */
#include "node/base/nearest.h"
#include "node/config/config.h"
#include "node/config/config_internal.h"
#include "node/config/kind.h"

static const struct key_choice log_targets[] = {{"stderr", 0}, {"syslog", 1}, {NULL, 0}};
static const struct key_choice audit_targets[] = {
	{"none", AUDIT_NONE}, {"syslog", AUDIT_SYSLOG}, {"file", AUDIT_FILE}, {NULL, 0}};
static const struct key_choice log_levels[] = {
	{"error", LOG_ERR}, {"warning", LOG_WARNING}, {"notice", LOG_NOTICE}, {"info", LOG_INFO}, {"debug", LOG_DEBUG}, {NULL, 0},
};
static const struct key_choice audit_facilities[] = {
	/* those of the log are the same without the first two */
	{"authpriv", LOG_AUTHPRIV},
	{"auth", LOG_AUTH},
	{"daemon", LOG_DAEMON},
	{"user", LOG_USER},
	{"local0", LOG_LOCAL0},
	{"local1", LOG_LOCAL1},
	{"local2", LOG_LOCAL2},
	{"local3", LOG_LOCAL3},
	{"local4", LOG_LOCAL4},
	{"local5", LOG_LOCAL5},
	{"local6", LOG_LOCAL6},
	{"local7", LOG_LOCAL7},
	{NULL, 0},
};
static const struct key_choice sandbox_modes[] = {{"auto", SANDBOX_AUTO}, {"on", SANDBOX_ON}, {"off", SANDBOX_OFF}, {NULL, 0}};
static const struct key_choice executors[] = {{"local", EXECUTOR_LOCAL},
					      {"slurm", EXECUTOR_SLURM},
					      {"local+slurm", EXECUTOR_LOCAL | EXECUTOR_SLURM},
					      {"pilots", EXECUTOR_PILOTS},
					      {NULL, 0}};
const struct key_choice config_kinds[] = {
#define X(constant, name) {#name, KIND_##constant},
	KINDS(X)
#undef X
		{NULL, 0}};
const struct key_choice config_compressions[] = {{"none", COMPRESSION_NONE}, {"jpeg-ls", COMPRESSION_JPEGLS}, {NULL, 0}};
static const struct key_choice angle_tags[] = {{"0018,1510", 0x00181510}, {"0018,1531", 0x00181531}, {NULL, 0}};
static const struct key_choice geometry_sources[] = {
	{"literature", GEOMETRY_LITERATURE}, {"calibrated", GEOMETRY_CALIBRATED}, {"simulated", GEOMETRY_SIMULATED}, {NULL, 0}};
static const struct key_choice angle_origins[] = {{"axis", false}, {"detector", true}, {NULL, 0}};
static const struct key_choice pose_sources[] = {{"profile", false}, {"header", true}, {NULL, 0}};
static const struct key_choice y_directions[] = {{"+y", 1}, {"-y", -1}, {NULL, 0}};
static const struct key_choice signs[] = {{"1", 1}, {"-1", -1}, {NULL, 0}};
static const struct key_choice i0_modes[] = {
	{"percentile", I0_PERCENTILE}, {"fixed", I0_FIXED}, {"header_max", I0_HEADER_MAX}, {"flatfield", I0_FLATFIELD}, {NULL, 0},
};
static const struct key_choice open_fields[] = {{"uniform", false}, {"distance", true}, {NULL, 0}};
static const struct key_choice demands[] = {{"required", 1}, {"none", 0}, {NULL, 0}};
static const struct key_choice edges[] = {{"left", 0}, {"right", 0}, {NULL, 0}};
static const struct key_choice detector_types[] = {{"DIRECT", 0}, {"SCINTILLATOR", 0}, {"STORAGE", 0}, {NULL, 0}};
static const struct key_choice anodes[] = {{"TUNGSTEN", 0}, {"MOLYBDENUM", 0}, {"RHODIUM", 0}, {NULL, 0}};
static const struct key_choice filter_types[] = {{"FLAT", 0}, {"STRIP", 0},    {"WEDGE", 0}, {"BUTTERFLY", 0},
						 {"NONE", 0}, {"MULTIPLE", 0}, {NULL, 0}};
static const struct key_choice filter_materials[] = {{"ALUMINUM", 0},	{"SILVER", 0}, {"RHODIUM", 0},
						     {"MOLYBDENUM", 0}, {"COPPER", 0}, {NULL, 0}};
static const struct key_choice exposure_controls[] = {{"AUTOMATIC", 0}, {"MANUAL", 0}, {NULL, 0}};

static const struct key node_keys[] = {
	{"aet", AS_AET(node_conf, aet), .fallback = "TOMONODE",
	 .meaning = "AE title of the node, which modalities use as called AE title"},
	{"bind", AS_ADDRESS(node_conf, bind), .fallback = "127.0.0.1",
	 .meaning = "address to listen on; `0.0.0.0` or `::`: all network interfaces"},
	{"port", AS_INT(node_conf, port, 1, 65535), .zero = "any free port (printed in the log)", .fallback = "11112",
	 .meaning = "port to listen on without TLS; for more ports see `listeners`"},
	{"plain", AS_BOOL(node_conf, plain), .fallback = "true",
	 .meaning = "listen on `bind` and `port` without TLS; false: listen on the entries of `listeners` only"},
	{"spool", AS_PATH(node_conf, spool), .fallback = "", .flags = KEY_COMPUTED,
	 .meaning = "folder for instances, journal and results; empty: the default folder, see \"Default spool folder\""},
	{"device", AS_DEVICE(node_conf, device), .fallback = "auto",
	 .meaning = "devices that reconstruct, each one case at a time; `auto`: every CUDA device, or the CPU if there is none; "
		    "`cuda`: every CUDA device"},
	{"workers_per_device", AS_INT(node_conf, workers_per_device, 1, 8),
	 .zero = "3 of each device that `auto` or `cuda` selects, if all have 24 GB or more; else 1", .fallback = "0",
	 .meaning = "number of workers of each CUDA device: while one computes, the others read, prepare and write other cases; "
		    "a case waits until its memory fits beside that of the others"},
	{"compute_in_turn", AS_BOOL(node_conf, compute_in_turn), .fallback = "false",
	 .meaning = "of the workers of a CUDA device only one computes at a time; false: the device divides its time among them"},
	{"executor", AS_CHOICE(node_conf, executor, executors), .fallback = "local", .flags = KEY_SET,
	 .meaning =
		 "who reconstructs: `local`: `device` of this machine; `slurm`: pilots that the node starts as Slurm jobs; "
		 "`[\"local\", \"slurm\"]`: both; `pilots`: only pilots that somebody else starts. Such pilots are used by all "
		 "of them (see docs/cluster.md)"},
	{"max_pdu", AS_INT(node_conf, max_pdu, 4096, 131072), .unit = "bytes", .fallback = "131072",
	 .meaning = "largest PDU to receive"},
	{"acse_timeout", AS_INT(node_conf, acse_timeout, 1, 3600), .unit = "s", .fallback = "30",
	 .meaning = "longest time that a peer may take to open or close an association"},
	{"dimse_timeout", AS_INT(node_conf, dimse_timeout, 1, 3600), .unit = "s", .fallback = "60",
	 .meaning = "longest time without data from a peer during an association"},
	{"max_associations", AS_INT(node_conf, max_associations, 1, 1000), .fallback = "32",
	 .meaning = "maximum number of simultaneous associations; further requests are rejected as transient"},
	{"tls_certificate", AS_PATH(node_conf, tls_certificate), .fallback = "",
	 .meaning = "own certificate (PEM), followed by the intermediate certificates of its chain; used by listeners and "
		    "destinations that configure none"},
	{"tls_key", AS_PATH(node_conf, tls_key), .fallback = "",
	 .meaning = "private key of `tls_certificate` (PEM, without a password); empty: the key is in the certificate's file"},
	{"tls_authorities", AS_PATH(node_conf, tls_authorities), .fallback = "",
	 .meaning = "trusted certificates (PEM): of certificate authorities or of single devices"},
	{"tls_crl", AS_PATH(node_conf, tls_crl), .fallback = "",
	 .meaning = "certificate revocation lists (CRL, PEM) of these authorities; if set, a certificate is also refused when "
		    "its authority has no list in the file or an expired one; empty: revocation is not checked"},
	{"peer_associations", AS_INT(node_conf, peer_associations, 1, 1000), .zero = "no limit but max_associations",
	 .fallback = "", .flags = KEY_COMPUTED,
	 .meaning = "maximum number of simultaneous associations of one peer; further requests are rejected as transient; "
		    "default: 0 if the node listens on loopback addresses only, else half of `max_associations`"},
	{"peer_bytes", AS_BYTES(node_conf, peer_bytes, 1000000, 1e15), .unit = "bytes", .zero = "no limit", .fallback = "0",
	 .meaning = "bytes that one peer may send within `peer_window`; above that its data are read more slowly, but at 100 "
		    "kB/s or more"},
	{"peer_window", AS_REAL(node_conf, peer_window, 1, 86400), .unit = "s", .fallback = "60",
	 .meaning = "length of the time window for `peer_bytes` and `peer_refusals`"},
	{"peer_refusals", AS_INT(node_conf, peer_refusals, 1, 10000), .zero = "no address is blocked", .fallback = "",
	 .flags = KEY_COMPUTED,
	 .meaning = "number of refused attempts from one address within `peer_window` after which its connections are closed at "
		    "once; default: 0 if the node listens on loopback addresses only, else 20"},
	{"peer_block_time", AS_REAL(node_conf, peer_block_time, 1, 86400), .unit = "s", .fallback = "60",
	 .meaning = "time during which connections of such an address are closed at once"},
	{"reserve", AS_BYTES(node_conf, reserve, 1e6, 1e15), .unit = "bytes", .zero = "none", .fallback = "512 MB",
	 .meaning = "space to keep free on the spool's disk; with less free space, objects are refused with status A700"},
	{"max_result", AS_BYTES(node_conf, max_result, 1, 1e15), .unit = "bytes", .zero = "no limit", .fallback = "8 GB",
	 .meaning =
		 "largest size of the slices of a result, 2 bytes per voxel; a case whose result is larger is held. If the "
		 "number of voxels follows the data (`voxel` of tomosynthesis, `matrix` of parallel beams is 0), also 500 MB, or "
		 "100 times the data if that is more"},
	{"quiet_time", AS_REAL(node_conf, quiet_time, 0.1, 86400), .unit = "s", .fallback = "60",
	 .meaning = "time without a new instance after which an incomplete case is held"},
	{"ct_wait", AS_REAL(node_conf, ct_wait, 1, 604800), .unit = "s", .zero = "held at once", .fallback = "1800",
	 .meaning = "longest time that a complete PET case waits for the CT series of its attenuation correction (`corrections` "
		    "of the protocol); then it is held. When the series comes later, the case continues"},
	{"check_called", AS_BOOL(node_conf, check_called), .fallback = "false",
	 .meaning = "reject associations whose called AE title is not `aet`"},
	{"require_known_peer", AS_BOOL(node_conf, require_known_peer), .fallback = "", .flags = KEY_COMPUTED,
	 .meaning = "accept associations only from the entries of `peers`; default: false if the node listens on loopback "
		    "addresses only, else true"},
	{"log", AS_CHOICE(node_conf, log_syslog, log_targets), .fallback = "stderr", .meaning = "destination of log lines"},
	{"log_facility", AS_CHOICE(node_conf, log_facility, &audit_facilities[2]), .fallback = "daemon",
	 .meaning = "syslog facility of log lines"},
	{"log_level", AS_CHOICE(node_conf, log_level, log_levels), .fallback = "info", .meaning = "lowest severity to log"},
	{"audit", AS_CHOICE(node_conf, audit, audit_targets), .fallback = "none",
	 .meaning = "destination of audit messages (DICOM PS3.15 A.5); they identify patients by patient ID"},
	{"audit_facility", AS_CHOICE(node_conf, audit_facility, audit_facilities), .fallback = "authpriv",
	 .meaning = "syslog facility of audit messages"},
	{"audit_socket", AS_PATH(node_conf, audit_socket), .fallback = "/dev/log",
	 .meaning = "with `audit = \"syslog\"`: socket of the syslog daemon"},
	{"audit_file", AS_PATH(node_conf, audit_file), .fallback = "",
	 .meaning = "with `audit = \"file\"`: file to append audit messages to, one per line"},
	{"audit_site", AS_TEXT(node_conf, audit_site, 64), .fallback = "",
	 .meaning = "name of the hospital or department in audit messages; empty: none"},
	{"retention_days", AS_INT(node_conf, retention_days, 1, 36500), .unit = "days", .zero = "keep for ever", .fallback = "30",
	 .meaning = "time after delivery after which a case is removed from the spool; undelivered cases are never removed"},
	{"retention_space", AS_BYTES(node_conf, retention_space, 1e6, 1e15), .unit = "bytes", .zero = "no limit", .fallback = "0",
	 .meaning = "maximum size of all images and results in the spool; above it delivered cases are removed, in the order of "
		    "their delivery; undelivered cases are never removed"},
	{"retention_unassigned_days", AS_INT(node_conf, retention_unassigned_days, 1, 36500), .unit = "days",
	 .zero = "keep for ever", .fallback = "0",
	 .meaning = "time after which unassigned objects (received, but not part of a case: nothing to reconstruct, refused, "
		    "sent again, or different content under a known UID) and cancelled cases are removed from the spool, even if "
		    "there is enough free space"},
	{"journal_retention_days", AS_INT(node_conf, journal_retention_days, 1, 36500), .unit = "days", .zero = "keep for ever",
	 .fallback = "365",
	 .meaning = "time after the removal of a case, or of an unassigned object, after which its rows are deleted from the "
		    "journal"},
	{"attempts", AS_INT(node_conf, attempts, 1, 100), .fallback = "3",
	 .meaning = "number of crashed reconstructions after which a case fails"},
	{"worker_timeout", AS_INT(node_conf, worker_timeout, 2, 604800), .unit = "s", .fallback = "1800",
	 .meaning = "a reconstruction without progress for this time is killed, which counts as a crash; a delivery or an "
		    "indexer without progress for this time is killed and tried again"},
	{"sandbox", AS_CHOICE(node_conf, sandbox, sandbox_modes), .fallback = "auto",
	 .meaning = "restrictions on the processes that handle data from outside: `auto`: those that this system supports; `on`: "
		    "all, and the node does not start where one is missing; `off`: none"},
	{"user", AS_NAME(node_conf, user), .fallback = "",
	 .meaning = "user that a node started as root switches to after it has opened its ports; `root`: stay root; empty: a "
		    "node started as root exits with an error"},
};

static const struct key listener_keys[] = {
	{"name", AS_NAME(listener_conf, name), .fallback = REQUIRED, .meaning = "name of the listener in log lines"},
	{"bind", AS_ADDRESS(listener_conf, bind), .fallback = "", .meaning = "address to listen on; empty: `node.bind`"},
	{"port", AS_INT(listener_conf, port, 1, 65535), .zero = "any free port (printed in the log)", .fallback = "2762",
	 .meaning = "port to listen on; 2762 is the registered port for DICOM over TLS"},
	{"tls", AS_BOOL(listener_conf, tls), .fallback = "true",
	 .meaning = "use TLS; false: plain DICOM, the keys below are ignored"},
	{"certificate", AS_PATH(listener_conf, certificate), .fallback = "",
	 .meaning = "own certificate (PEM); empty: `node.tls_certificate` and its key"},
	{"key", AS_PATH(listener_conf, key), .fallback = "",
	 .meaning = "private key of `certificate`; empty: the key is in the certificate's file"},
	{"authorities", AS_PATH(listener_conf, authorities), .fallback = "",
	 .meaning = "trusted certificates for checking those of peers; empty: `node.tls_authorities`"},
	{"crl", AS_PATH(listener_conf, crl), .fallback = "",
	 .meaning = "revocation lists of these authorities; empty: `node.tls_crl` if `authorities` is empty too, else none"},
	{"client_certificate", AS_CHOICE(listener_conf, client_certificate, demands), .fallback = "required",
	 .meaning = "`required`: refuse peers without a certificate of a trusted authority; `none`: do not request a certificate "
		    "from peers"},
};

static const struct key peer_keys[] = {
	{"name", AS_NAME(peer_conf, name), .fallback = REQUIRED, .meaning = "name of the peer in log lines and reports"},
	{"aet", AS_AET(peer_conf, aet), .fallback = "", .meaning = "calling AE title of the peer; empty: any"},
	{"host", AS_NETWORK(peer_conf, host), .fallback = "",
	 .meaning = "host or network that the peer connects from; a host name is resolved at start and at reload; a link-local "
		    "address matches on the named interface (`fe80::1%eth0`), or on all if it names none; empty: any"},
	{"certificate", AS_TEXT(peer_conf, certificate, 127), .fallback = "",
	 .meaning = "required certificate of the peer: `sha256:` and its fingerprint, or a pattern for a name in it (common or "
		    "alternative name; case-insensitive, `*` and `?`); empty: any certificate, or none"},
	{"associations", AS_INT(peer_conf, associations, 1, 1000), .zero = "`node.peer_associations`", .fallback = "0",
	 .meaning = "maximum number of simultaneous associations of this peer"},
	{"bytes", AS_BYTES(peer_conf, bytes, 1000000, 1e15), .unit = "bytes", .zero = "`node.peer_bytes`", .fallback = "0",
	 .meaning = "bytes that this peer may send within `node.peer_window`"},
};

static const struct key route_keys[] = {
	{"name", AS_NAME(route_conf, name), .fallback = REQUIRED, .meaning = "name of the route in log lines"},
	{"kind", AS_WORD(route_conf, kind, config_kinds), .fallback = KIND_DEFAULT, .flags = KEY_KINDS,
	 .meaning = "kind of case that the route is for"},
	{"calling", AS_AET(route_conf, calling), .fallback = "",
	 .meaning = "calling AE title of the sender that the route is for; empty: any"},
	{"study_description", AS_TEXT(route_conf, pattern[ROUTE_STUDY_DESCRIPTION], PATTERN_SIZE - 1), .fallback = "",
	 .meaning = "pattern for the Study Description (0008,1030): case-insensitive, `*` and `?`; empty: any"},
	{"protocol_name", AS_TEXT(route_conf, pattern[ROUTE_PROTOCOL_NAME], PATTERN_SIZE - 1), .fallback = "",
	 .meaning = "pattern for the Protocol Name (0018,1030); empty: any"},
	{"body_part", AS_TEXT(route_conf, pattern[ROUTE_BODY_PART], PATTERN_SIZE - 1), .fallback = "",
	 .meaning = "pattern for the Body Part Examined (0018,0015); empty: any"},
	{"view", AS_TEXT(route_conf, pattern[ROUTE_VIEW], PATTERN_SIZE - 1), .fallback = "",
	 .meaning = "pattern for the view: of a tomosynthesis laterality and view, such as `LMLO`, otherwise the Patient "
		    "Position (0018,5100), such as `HFS`; empty: any"},
	{"station", AS_TEXT(route_conf, pattern[ROUTE_STATION], PATTERN_SIZE - 1), .fallback = "",
	 .meaning = "pattern for the Station Name (0008,1010); empty: any"},
	{"institution", AS_TEXT(route_conf, pattern[ROUTE_INSTITUTION], PATTERN_SIZE - 1), .fallback = "",
	 .meaning = "pattern for the Institution Name (0008,0080); empty: any"},
	{"protocols", AS_NAMES(route_conf, protocols, KEY_NAME, 1, CONFIG_NAMES_MAX), .fallback = REQUIRED,
	 .meaning = "names of the protocols to reconstruct with; each gives a result of its own"},
	{"destinations", AS_NAMES(route_conf, destinations, KEY_NAME, 1, CONFIG_NAMES_MAX), .fallback = REQUIRED,
	 .meaning = "names of the destinations that get each result"},
	{"continue", AS_BOOL(route_conf, continues), .fallback = "false",
	 .meaning = "use the following routes that match, too, up to the first without `continue`"},
};

/* Keys that protocols of every kind have. */
static const struct key protocol_keys[] = {CONFIG_PROTOCOL_FIRST(KIND_DEFAULT)};

static const struct key profile_keys[] = {
	{"name", AS_NAME(profile_conf, name), .fallback = REQUIRED, .meaning = "name of the profile in log lines and provenance"},
	{"manufacturer", AS_TEXT(profile_conf, manufacturer, 63), .fallback = "", .flags = KEY_UNDESCRIBED,
	 .meaning = "pattern for (0008,0070): case-insensitive, `*` and `?`; empty: any"},
	{"model", AS_TEXT(profile_conf, model, 63), .fallback = "", .flags = KEY_UNDESCRIBED,
	 .meaning = "pattern for (0008,1090); empty: any"},
	{"serial", AS_TEXT(profile_conf, serial, 63), .fallback = "", .flags = KEY_UNDESCRIBED,
	 .meaning = "pattern for (0018,1000), for the geometry of a single machine; empty: any"},
	{"axis_height", AS_REAL(profile_conf, axis_height, -500, 500), .unit = "mm", .fallback = REQUIRED,
	 .meaning = "height of the rotation axis above the detector plane"},
	{"source_axis", AS_REAL(profile_conf, source_axis, 100, 2000), .unit = "mm", .fallback = REQUIRED,
	 .meaning = "distance from the source to the rotation axis"},
	{"support", AS_REAL(profile_conf, support, 0, 200), .unit = "mm", .fallback = REQUIRED,
	 .meaning = "height of the top of the breast support above the detector plane"},
	{"source_x", AS_REAL(profile_conf, source_x, -200, 400), .unit = "mm", .fallback = "0",
	 .meaning = "position of the source along x; 0: above the detector's chest-wall edge"},
	{"source_y", AS_REAL(profile_conf, source_y, -200, 200), .unit = "mm", .fallback = "0", .flags = KEY_SPARSE,
	 .meaning = "position of the rotation axis along y; 0: above the detector's middle"},
	{"detector_ratio", AS_REAL(profile_conf, detector_ratio, -1, 1), .fallback = "0", .flags = KEY_SPARSE,
	 .meaning = "turn of the detector divided by the angle of the source; above 0: its normal follows the source; 0: it "
		    "stands still"},
	{"detector_axis_y", AS_REAL(profile_conf, detector_axis_y, -500, 500), .unit = "mm", .fallback = "0", .flags = KEY_SPARSE,
	 .meaning = "y of the axis around which the detector turns; 0: its middle"},
	{"detector_axis_height", AS_REAL(profile_conf, detector_axis_height, -500, 500), .unit = "mm", .fallback = "0",
	 .flags = KEY_SPARSE, .meaning = "height of that axis above the detector plane; 0: in the plane"},
	{"pose", AS_CHOICE(profile_conf, pose_in_header, pose_sources), .fallback = "profile", .flags = KEY_SPARSE,
	 .meaning = "position of source and detector in each view: `profile`: from the keys above; `header`: from the projection "
		    "matrices (0019,xx60) of Hologic, which must agree with SID and angles"},
	{"pose_edge", AS_REAL(profile_conf, pose_edge, 0, 65535), .unit = "bins", .fallback = "1664", .flags = KEY_SPARSE,
	 .meaning = "with `pose` header: bins of the matrices up to the chest-wall edge, along u"},
	{"pose_middle", AS_REAL(profile_conf, pose_middle, 0, 65535), .unit = "bins", .fallback = "1024", .flags = KEY_SPARSE,
	 .meaning = "with `pose` header: bins of the matrices up to the detector's middle, along v"},
	{"pose_rows", AS_CHOICE(profile_conf, pose_rows, y_directions), .fallback = "+y", .flags = KEY_SPARSE,
	 .meaning = "with `pose` header: direction of v of the matrices"},
	{"pose_level", AS_REAL(profile_conf, pose_level, 1e-3, 5), .unit = "bins", .fallback = "0.1", .flags = KEY_SPARSE,
	 .meaning = "with `pose` header: error at any bin up to which the detector's columns are made parallel to x, which every "
		    "projector except `exact` requires"},
	{"sco", AS_BOOL(profile_conf, sco), .fallback = "false", .flags = KEY_SPARSE,
	 .meaning = "read projections, and in `export` and `measure` slices, from Hologic's SCO objects, whose format is not "
		    "documented by the manufacturer: only with the consent of the site, and after a comparison with Breast "
		    "Projection objects of the same machine"},
	{"pitch", AS_REAL(profile_conf, pitch, 0.01, 2), .unit = "mm", .fallback = REQUIRED,
	 .meaning = "size of a detector element; bins of the images must be 1 to 8 elements wide"},
	{"angle_tag", AS_CHOICE(profile_conf, angle_tag, angle_tags), .fallback = "0018,1510",
	 .meaning = "attribute that contains the projection's angle in a single-frame series"},
	{"angle_sign", AS_CHOICE(profile_conf, angle_sign, signs), .fallback = "1",
	 .meaning = "factor for the stored angle, so that the product is positive if the source is at y > 0; not used for frames "
		    "with (0018,9543)"},
	{"angle_offset", AS_REAL(profile_conf, angle_offset, -180, 180), .unit = "degrees", .fallback = "0",
	 .meaning = "added to the angle after the factor `angle_sign`; not used for frames with (0018,9543)"},
	{"angle_about", AS_CHOICE(profile_conf, angle_at_detector, angle_origins), .fallback = "axis", .flags = KEY_SPARSE,
	 .meaning = "what the stored angle is: `axis`: the turn of the source about its axis; `detector`: its direction as seen "
		    "from the point of the detector below the axis, which is smaller; not used for frames with (0018,9543)"},
	{"sid_tolerance", AS_REAL(profile_conf, sid_tolerance, 0, 100), .unit = "mm", .fallback = "2",
	 .meaning = "largest allowed difference between (0018,1110) and axis_height + source_axis"},
	{"i0_mode", AS_CHOICE(profile_conf, i0_mode, i0_modes), .fallback = "percentile",
	 .meaning = "source of the unattenuated intensity, see \"Intensity of the unattenuated beam\""},
	{"i0", AS_REAL(profile_conf, i0, 0, 1e9), .fallback = "95",
	 .meaning = "with `fixed`: the stored value of air; with `percentile`: percent, up to 100"},
	{"offset", AS_REAL(profile_conf, offset, -65535, 65535), .unit = "stored values", .fallback = "0",
	 .meaning = "stored value of the detector without radiation"},
	{"flatfield", AS_PATH(profile_conf, flatfield), .fallback = "",
	 .meaning = "DICOM file of an exposure without object, or a folder or multi-frame file with one for each angle: with "
		    "`flatfield` for all exams, with `percentile` for exams "
		    "without air"},
	{"air_value", AS_REAL(profile_conf, air_value, 1, 65535), .unit = "stored values", .zero = "unknown", .fallback = "0",
	 .flags = KEY_SPARSE, .meaning = "with `percentile`: stored value of air, for exams that show no air"},
	{"air_exposure", AS_REAL(profile_conf, air_exposure, 1e-3, 1e5), .unit = "mAs", .zero = "any", .fallback = "0",
	 .flags = KEY_SPARSE,
	 .meaning = "exposure at which air is `air_value`; the value is scaled by each projection's exposure"},
	{"open_field", AS_CHOICE(profile_conf, open_field_distance, open_fields), .fallback = "uniform", .flags = KEY_SPARSE,
	 .meaning = "how I0 varies over the detector: `uniform`: not at all; `distance`: with the distance and the direction of "
		    "the source, relative to the projection at 0 degrees, for systems with one gain map"},
	{"open_field_fit", AS_BOOL(profile_conf, open_field_fit), .fallback = "false", .flags = KEY_SPARSE,
	 .meaning = "with `percentile`: I0 also has the slope along x and y that the air shows"},
	{"scale_by_exposure", AS_BOOL(profile_conf, scale_by_exposure), .fallback = "false",
	 .meaning = "scale I0 by each projection's (0018,1152) or (0018,1153); not needed with `percentile`"},
	{"log_zero", AS_REAL(profile_conf, log_zero, -65535, 65535), .unit = "stored values", .fallback = "0",
	 .meaning = "for data stored as logarithm: line integral = (log_zero - value) * log_scale"},
	{"log_scale", AS_REAL(profile_conf, log_scale, -100, 100), .unit = "1 / stored value", .fallback = "0",
	 .meaning = "see log_zero; 0: logarithmic data of this system are refused"},
	{"floor", AS_REAL(profile_conf, floor, 1e-9, 0.5), .unit = "fraction of I0", .fallback = "1e-4",
	 .meaning = "intensities below this are raised to it before the logarithm"},
	{"scatter_scale", AS_REAL(profile_conf, scatter_scale, 0, 2), .fallback = "1", .flags = KEY_SPARSE,
	 .meaning =
		 "with `scatter_correction`: ratio of scattered to primary radiation, relative to a system without anti-scatter "
		 "grid"},
	{"chest_wall", AS_WORD(profile_conf, chest_wall, edges), .fallback = "",
	 .meaning = "image edge at the chest wall in single-frame series without (0020,0020); empty: refuse such series"},
	{"detector_type", AS_WORD(profile_conf, detector_type, detector_types), .fallback = "", .flags = KEY_SPARSE,
	 .meaning = "constant of the system: (0018,7004), if the images lack it"},
	{"detector_id", AS_TEXT(profile_conf, detector_id, 16), .fallback = "", .flags = KEY_SPARSE,
	 .meaning = "constant of the system: (0018,700A), if the images lack it; for a profile of one machine (`serial`)"},
	{"element_spacing", AS_REAL(profile_conf, element_spacing, 0.01, 2), .unit = "mm", .zero = "unknown", .fallback = "0",
	 .flags = KEY_SPARSE, .meaning = "constant of the system: both values of (0018,7022), if the images lack it"},
	{"anode", AS_WORD(profile_conf, anode, anodes), .fallback = "", .flags = KEY_SPARSE,
	 .meaning = "constant of the system: (0018,1191), if the images lack it"},
	{"focal_spot", AS_REAL(profile_conf, focal_spot, 0.01, 5), .unit = "mm", .zero = "unknown", .fallback = "0",
	 .flags = KEY_SPARSE, .meaning = "constant of the system: (0018,1190), if the images lack it"},
	{"filter_type", AS_WORD(profile_conf, filter_type, filter_types), .fallback = "", .flags = KEY_SPARSE,
	 .meaning = "constant of the system: (0018,1160), if the images lack it"},
	{"filter_material", AS_WORD(profile_conf, filter_material, filter_materials), .fallback = "", .flags = KEY_SPARSE,
	 .meaning = "constant of the system: (0018,7050), if the images lack it; not for a system that changes filters"},
	{"exposure_control", AS_WORD(profile_conf, exposure_control, exposure_controls), .fallback = "", .flags = KEY_SPARSE,
	 .meaning = "constant of the system: (0018,7060), if the images lack it"},
	{"exposure_control_text", AS_TEXT(profile_conf, exposure_control_text, 64), .fallback = "", .flags = KEY_SPARSE,
	 .meaning = "constant of the system: (0018,7062), if the images lack it"},
	{"paddle", AS_TEXT(profile_conf, paddle, 64), .fallback = "", .flags = KEY_SPARSE,
	 .meaning = "constant of the system: (0018,11A4), if the images lack it"},
	{"elements_x", AS_INT(profile_conf, elements_x, 1, 65535), .zero = "unknown", .fallback = "0", .flags = KEY_SPARSE,
	 .meaning = "number of detector elements along x, of size `pitch`; locates images of a part of the detector, see "
		    "[geometry.md](geometry.md#images-of-a-part-of-the-detector); 0: unknown: images with an origin (0018,7030) "
		    "that is counted from the edge opposite the chest wall are held, unless it is `0\\0`"},
	{"elements_y", AS_INT(profile_conf, elements_y, 1, 65535), .zero = "unknown", .fallback = "0", .flags = KEY_SPARSE,
	 .meaning = "number of detector elements along y; 0: unknown: images without an origin (0018,7030), or with origin "
		    "`0\\0`, are centred at y = 0; with another origin the case is held"},
	{"projections", AS_INT(profile_conf, projections, 2, 1024), .zero = "unknown", .fallback = "0",
	 .flags = KEY_SPARSE | KEY_UNDESCRIBED,
	 .meaning =
		 "number of projections of a complete exam, for single-frame series whose headers give another number or none"},
	{"arc", AS_REAL(profile_conf, arc, 1, 120), .unit = "degrees", .zero = "unknown", .fallback = "0",
	 .flags = KEY_SPARSE | KEY_UNDESCRIBED,
	 .meaning =
		 "range of the angles of a complete exam, from the first to the last projection: a result whose angles differ by "
		 "more than a fifth of it has a warning"},
	{"geometry_source", AS_CHOICE(profile_conf, geometry_source, geometry_sources), .fallback = "literature",
	 .flags = KEY_SPARSE | KEY_UNDESCRIBED,
	 .meaning = "where the geometry is from: `literature`: every result has a warning; `calibrated`: from `tomonode profile "
		    "fit` or another measurement of this machine; `simulated`: a system that is defined by these numbers"},
	{"calibration_date", AS_TEXT(profile_conf, calibration_date, 10), .fallback = "", .flags = KEY_SPARSE | KEY_UNDESCRIBED,
	 .meaning = "with `calibrated`: the day of the measurement, for provenance"},
	{"calibration_rms", AS_REAL(profile_conf, calibration_rms, 1e-6, 100), .unit = "bins", .zero = "unknown", .fallback = "0",
	 .flags = KEY_SPARSE | KEY_UNDESCRIBED, .meaning = "with `calibrated`: residuals of the fit, for provenance"},
};

static const struct key scanner_keys[] = {
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
	 .meaning = "angle between the rays of the scanner's first view and the y axis, before views are added: angles of a "
		    "sinogram that are the sum of m views begin (m - 1) / 2 views later"},
	{"arc_corrected", AS_BOOL(scanner_conf, arc_corrected), .fallback = "true",
	 .meaning = "radial bins are equidistant; false: they follow the positions of the detectors"},
	{"calibration", AS_REAL(scanner_conf, calibration, 1e-12, 1e12),
	 .zero = "unknown: the object's own factor is used; without one, values are counts", .fallback = "0",
	 .meaning = "(Bq/ml) per (count per second and mm of ray), measured with F-18, for F-18 objects without their own "
		    "calibration factor"},
	{"ecat_counts", AS_REAL(scanner_conf, ecat_counts, 1e-6, 1e6), .zero = "the calibration of headers is not used",
	 .fallback = "0",
	 .meaning = "of a Siemens mMR: take the calibration from the header of the normalisation. Its unit is an ECAT count, and "
		    "this is the number of ECAT counts in one count per mm of ray"},
	{"tof_bins", AS_INT(scanner_conf, tof_bins, 1, 65535), .zero = "no time of flight, or unknown", .fallback = "0",
	 .meaning = "number of TOF bins without mashing; data have as many, or this number divided by an integer"},
	{"tof_width", AS_REAL(scanner_conf, tof_width, 0.1, 100000), .unit = "ps", .zero = "unknown", .fallback = "0",
	 .meaning = "width of one of these `tof_bins`, as a difference of arrival times"},
	{"tof_resolution", AS_REAL(scanner_conf, tof_resolution, 1, 100000), .unit = "ps", .zero = "unknown", .fallback = "0",
	 .meaning = "full width at half maximum of a measured difference of arrival times"},
	{"energy_low", AS_REAL(scanner_conf, energy_low, 1, 510), .unit = "keV", .zero = "unknown", .fallback = "0",
	 .meaning = "lower end of the energy window; needed for the correction `scatter`, like the following two"},
	{"energy_high", AS_REAL(scanner_conf, energy_high, 512, 10000), .unit = "keV", .zero = "unknown", .fallback = "0",
	 .meaning = "upper end of the energy window"},
	{"energy_resolution", AS_REAL(scanner_conf, energy_resolution, 0.1, 50), .unit = "percent", .zero = "unknown",
	 .fallback = "0", .meaning = "full width at half maximum of the measured energy at 511 keV"},
};

static const struct key_choice step_failures[] = {
	{"hold", STEP_HOLD}, {"fallback", STEP_FALLBACK}, {"fail", STEP_FAIL}, {NULL, 0}};

static const struct key step_keys[] = {
	{"name", AS_NAME(step_conf, name), .fallback = REQUIRED,
	 .meaning = "name of the step in `steps` of protocols, in results and log lines"},
	{"program", AS_PATH(step_conf, program), .fallback = REQUIRED,
	 .meaning = "program, called with two folders: `PROGRAM IN OUT`; a script begins with `#!` and its interpreter. It "
		    "belongs to root or the user of the node, and nobody else may write to it"},
	{"files", AS_NAMES(step_conf, files, KEY_PATH, 0, CONFIG_NAMES_MAX), .fallback = "",
	 .meaning = "files and folders that it reads or executes beside those of the system below `/usr`; they belong to the "
		    "same users"},
	{"sha256", AS_TEXT(step_conf, sha256, 64), .fallback = REQUIRED,
	 .meaning = "SHA-256 of the program and of `files`; without `files` that of `sha256sum PROGRAM`. `tomonode check` says "
		    "what it is if it differs. A program that differs is not run"},
	{"version", AS_TEXT(step_conf, version, 31), .fallback = REQUIRED, .meaning = "its version, for the header of results"},
	{"parameters", AS_TEXT(step_conf, parameters, 200), .fallback = "",
	 .meaning = "text for the program, in `case.json`; part of what results are identified by"},
	{"time", AS_REAL(step_conf, time, 0.1, 86400), .unit = "s", .fallback = "600",
	 .meaning = "longest time of one run; then all its processes are killed, and the step has failed"},
	{"memory", AS_BYTES(step_conf, memory, 1e7, 1e15), .unit = "bytes", .fallback = "4 GiB",
	 .meaning = "limit of its addresses; with gpu of its data, because a GPU's driver reserves addresses without bound"},
	{"threads", AS_INT(step_conf, threads, 1, 1024), .fallback = "1",
	 .meaning = "number of threads, told by `OMP_NUM_THREADS` and `case.json`; its processor time is limited to `time` times "
		    "`threads`"},
	{"gpu", AS_BOOL(step_conf, gpu), .fallback = "false",
	 .meaning = "it may use the GPU of the case, which `CUDA_VISIBLE_DEVICES` tells; false: it can use none"},
	{"deterministic", AS_BOOL(step_conf, deterministic), .fallback = "true",
	 .meaning = "the same volume gives the same bits, which `tomonode check --steps` tests; false: not tested"},
	{"preserves_mean", AS_REAL(step_conf, preserves_mean, 1e-9, 1), .zero = "not tested", .fallback = "0.01",
	 .meaning = "largest change of the mean of a constant volume, as a fraction, which `tomonode check --steps` tests"},
	{"on_failure", AS_CHOICE(step_conf, on_failure, step_failures), .fallback = "hold",
	 .meaning = "if the step fails: `hold`: the case is held; `fallback`: the volume without the step is delivered, with a "
		    "warning; `fail`: the case fails"},
};

static const struct key cluster_keys[] = {
	{"bind", AS_ADDRESS(cluster_conf, bind), .fallback = "0.0.0.0", .meaning = "address to listen on for pilots"},
	{"port", AS_INT(cluster_conf, port, 1, 65535), .zero = "no pilots", .fallback = "0",
	 .meaning = "port that pilots connect to"},
	{"advertise", AS_TEXT(cluster_conf, advertise, 127), .fallback = "",
	 .meaning = "HOST:PORT by which pilots reach the node; empty: the name of this machine and `port`"},
	{"lease", AS_REAL(cluster_conf, lease, 1, 3600), .unit = "s", .fallback = "30",
	 .meaning = "silence after which a pilot counts as lost; its case is then given to another device"},
	{"shared_spool", AS_BOOL(cluster_conf, shared_spool), .fallback = "false",
	 .meaning = "pilots read images and write results in the spool, which is on a file system that they share with the node; "
		    "false: images and results are sent over the connection"},
	{"certificate", AS_PATH(cluster_conf, certificate), .fallback = "",
	 .meaning = "certificate of the node (PEM), with the name by which pilots connect; node and pilots then verify each "
		    "other's certificates, besides the token; empty: the token alone"},
	{"key", AS_PATH(cluster_conf, key), .fallback = "",
	 .meaning = "private key of `certificate`; empty: the key is in the certificate's file"},
	{"authorities", AS_PATH(cluster_conf, authorities), .fallback = "",
	 .meaning = "trusted certificates for checking those of pilots; required with `certificate`"},
};

static const struct key slurm_keys[] = {
	{"min", AS_INT(slurm_conf, min, 0, 32), .fallback = "0", .meaning = "number of pilots that run also while no case waits"},
	{"max", AS_INT(slurm_conf, max, 1, 32), .fallback = "4", .meaning = "maximum number of pilots"},
	{"idle", AS_REAL(slurm_conf, idle, 1, 86400), .unit = "s", .fallback = "300",
	 .meaning = "time after which a pilot without a case ends, if there are more than `min`"},
	{"program", AS_TEXT(slurm_conf, program, 255), .fallback = "tomonode",
	 .meaning = "command of the program on those machines, in words of the shell: a path, or that of a container "
		    "(`apptainer exec --nv /opt/tomonode.sif tomonode`); it must be the version of the node"},
	{"certificate", AS_PATH(slurm_conf, certificate), .fallback = "",
	 .meaning = "file with the certificate of the pilots on those machines; required if cluster has one"},
	{"key", AS_PATH(slurm_conf, key), .fallback = "",
	 .meaning = "file with its private key there; empty: the key is in the certificate's file"},
	{"authorities", AS_PATH(slurm_conf, authorities), .fallback = "",
	 .meaning = "file there with the authorities that the certificate of the node must be from"},
	{"partition", AS_TEXT(slurm_conf, partition, 63), .fallback = "", .meaning = "partition of the jobs; empty: the default"},
	{"account", AS_TEXT(slurm_conf, account, 63), .fallback = "", .meaning = "account of the jobs; empty: the default"},
	{"gres", AS_TEXT(slurm_conf, gres, 63), .fallback = "gpu:1",
	 .meaning = "resources of a job (`--gres`); `none`: none, for pilots on the CPU"},
	{"constraint", AS_TEXT(slurm_conf, constraint, 127), .fallback = "",
	 .meaning = "features that a machine must have (`--constraint`); empty: none"},
	{"time", AS_TEXT(slurm_conf, time, 31), .fallback = "",
	 .meaning = "time limit of a job, as `1-00:00:00`; empty: that of the partition. A case that a job at its limit "
		    "computes is given to another pilot"},
	{"cpus", AS_INT(slurm_conf, cpus, 1, 1024), .zero = "the default of the cluster", .fallback = "0",
	 .meaning = "cores of a job (`--cpus-per-task`)"},
	{"memory", AS_TEXT(slurm_conf, memory, 31), .fallback = "",
	 .meaning = "memory of a job (`--mem`), as `32G`; empty: the default of the cluster"},
	{"output", AS_PATH(slurm_conf, output), .fallback = "",
	 .meaning =
		 "file for the messages of a pilot on its machine, as `/tmp/tomonode-%j.log` (`%j`: number of the job); empty: "
		 "none"},
};

const struct config_section config_sections[SECTION_COUNT] = {
	{"node", "node", GROUP(node_conf, node), KEYS(node_keys), .meaning = "The node."},
	{"listeners", "listener", LIST(listener_conf, listeners), KEYS(listener_keys),
	 .meaning = "Additional ports to listen on, usually with TLS."},
	{"peers", "peer", LIST(peer_conf, peers), KEYS(peer_keys), .meaning = "Senders that the node accepts."},
	{"destinations", "destination", LIST(destination_conf, destinations), KEYS(config_destination_keys),
	 .meaning = "Systems that results are sent to."},
	{"routes", "route", LIST(route_conf, routes), KEYS(route_keys),
	 .meaning =
		 "Assigns cases to protocols and to destinations; the first route that matches is used, and with `continue` the "
		 "following ones, too (see docs/operations.md, \"Several results of one exam\")."},
	{"protocols", "protocol", LIST(protocol_conf, protocols), .merged = true, KEYS(protocol_keys), .of_kinds = true,
	 .meaning = "Parameters of the reconstruction. All keys except name, kind and steps can also be given with `--set`."},
	{"profiles", "profile", LIST(profile_conf, profiles), .merged = true, KEYS(profile_keys),
	 .meaning = "The geometry of a tomosynthesis system, selected by manufacturer, model and serial number in the images. "
		    "Without a matching profile the case is held; a geometry is never guessed."},
	{"scanners", "scanner", LIST(scanner_conf, scanners), .merged = true, KEYS(scanner_keys),
	 .meaning = "The geometry of PET scanners and of their sinograms, selected by manufacturer, model and serial number in "
		    "the objects. Values in the sinograms' own header take precedence; if a value is in neither, the case is "
		    "held; a geometry is never guessed."},
	{"steps", "step", LIST(step_conf, steps), KEYS(step_keys),
	 .meaning = "Own programs that change a volume before it is written, named by `steps` of "
		    "protocols; see docs/steps.md."},
	{"status", "status page", GROUP(status_conf, status), KEYS(config_status_keys),
	 .meaning = "The status page of the node, see docs/status-page.md. It has no password: everyone who can reach it can "
		    "read it, unless a web server in front of it names the persons (`trusted_header`)."},
	{"alerts", "webhook", GROUP(alerts_conf, alerts), KEYS(config_alerts_keys),
	 .meaning = "Messages to a web service when something begins to be wrong and when it is solved, see docs/alerts.md. They "
		    "contain nothing of a patient."},
	{"cluster", "cluster", GROUP(cluster_conf, cluster), KEYS(cluster_keys),
	 .meaning =
		 "Pilots: processes on other machines that reconstruct cases for this node, see docs/cluster.md. Node and pilot "
		 "prove to each other that they have the same secret (`tomonode pilot-token`); the connection is encrypted."},
	{"slurm", "Slurm", GROUP(slurm_conf, slurm), KEYS(slurm_keys),
	 .meaning = "Pilots that the node starts as jobs of a Slurm cluster, with `executor` of node; see docs/cluster.md."},
};

const struct config_section *config_section_kind(const struct config_section *section, const char *kind)
{
	const struct kind *found = section->of_kinds ? kind_named(kind) : NULL;

	return found ? found->protocols : NULL;
}

const struct config_section *config_section_of(const struct config_section *section, const void *entry)
{
	const struct protocol_conf *protocol = entry;

	return section->of_kinds ? kind_of(protocol->kind)->protocols : section;
}

const struct key *config_key_find(const struct config_section *section, const char *name)
{
	return key_find(section->keys, section->n_keys, name);
}

const struct config_section *config_section_with(const struct config_section *section, const char *key)
{
	for (int i = 0; section->of_kinds && i < KIND_COUNT; i++) {
		const struct config_section *other = kind_of((enum case_kind)i)->protocols;

		if (other != section && config_key_find(other, key))
			return other;
	}
	return NULL;
}

void config_kinds_with(const char *key, char ret_text[CONFIG_KINDS_TEXT])
{
	size_t n = 0;

	ret_text[0] = '\0';
	for (int i = 0; i < KIND_COUNT && n < CONFIG_KINDS_TEXT; i++) {
		const struct kind *kind = kind_of((enum case_kind)i);

		if (config_key_find(kind->protocols, key))
			n += (size_t)snprintf(ret_text + n, CONFIG_KINDS_TEXT - n, "%s%s", n ? " or " : "", kind->name);
	}
}

static const char *key_name(const void *ctx, size_t i)
{
	const struct config_section *section = ctx;

	return i < section->n_keys ? section->keys[i].name : NULL;
}

const char *config_key_nearest(const struct config_section *section, const char *word)
{
	return nearest_word(word, key_name, section);
}

void config_keys_list(const struct config_section *section, size_t first, char *ret_text, size_t size)
{
	static const char rest[] = ", ... (tomonode check --describe)";
	size_t n = 0, all = 1;

	for (size_t i = first; i < section->n_keys; i++)
		all += strlen(section->keys[i].name) + (i > first ? 2 : 0);
	ret_text[0] = '\0';
	for (size_t i = first; i < section->n_keys; i++) {
		const char *name = section->keys[i].name;

		if (all > size && n + strlen(name) + sizeof(rest) + 2 > size) {
			snprintf(ret_text + n, size - n, "%s", rest);
			return;
		}
		n += (size_t)snprintf(ret_text + n, size - n, "%s%s", i > first ? ", " : "", name);
	}
}
