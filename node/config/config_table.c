/* config_table.c - every key of the configuration: type, unit, default, range, meaning. Text and range of a default lie side by
 * side here so that a change is made once; a test holds conf/defaults.conf and docs/configuration.md against it.
 */
#include "node/config/config_table.h"

#include <string.h>

#include "node/base/log.h" /* syslog levels and facilities */
#include "node/config/config.h"
#include "node/config/config_rows.h"

static const struct key_choice log_targets[] = {{"stderr", 0}, {"syslog", 1}, {NULL, 0}};
static const struct key_choice audit_targets[] = {
	{"none", AUDIT_NONE}, {"syslog", AUDIT_SYSLOG}, {"file", AUDIT_FILE}, {NULL, 0}};
static const struct key_choice log_levels[] = {
	{"error", LOG_ERR}, {"warning", LOG_WARNING}, {"notice", LOG_NOTICE}, {"info", LOG_INFO}, {"debug", LOG_DEBUG}, {NULL, 0},
};
static const struct key_choice audit_facilities[] = {
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
static const struct key_choice log_facilities[] = {
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
const struct key_choice config_kinds[] = {{"dbt", KIND_DBT}, {"pet", KIND_PET}, {"parallel", KIND_PARALLEL}, {NULL, 0}};
static const struct key_choice algorithms[] = {
	{"osem", DBT_OSEM}, {"mlem", DBT_MLEM}, {"ostr", DBT_OSTR}, {"mltr", DBT_MLTR},
	{"sart", DBT_SART}, {"bp", DBT_BP},	{"fbp", DBT_FBP},   {NULL, 0},
};
static const struct key_choice filters[] = {{"ramp", DBT_FILTER_RAMP}, {"hann", DBT_FILTER_HANN}, {NULL, 0}};
static const struct key_choice slab_modes[] = {{"mean", SLAB_MEAN}, {"maximum", SLAB_MAXIMUM}, {NULL, 0}};
const struct key_choice config_compressions[] = {{"none", COMPRESSION_NONE}, {"jpeg-ls", COMPRESSION_JPEGLS}, {NULL, 0}};
static const struct key_choice projectors[] = {{"slices", PROJECTION_SLICES}, {"exact", PROJECTION_EXACT}, {NULL, 0}};
static const struct key_choice angle_tags[] = {{"0018,1510", 0x00181510}, {"0018,1531", 0x00181531}, {NULL, 0}};
static const struct key_choice signs[] = {{"1", 1}, {"-1", -1}, {NULL, 0}};
static const struct key_choice i0_modes[] = {
	{"percentile", I0_PERCENTILE}, {"fixed", I0_FIXED}, {"header_max", I0_HEADER_MAX}, {"flatfield", I0_FLATFIELD}, {NULL, 0},
};
static const struct key_choice demands[] = {{"required", 1}, {"none", 0}, {NULL, 0}};
static const struct key_choice verifications[] = {{"full", 1}, {"authority", 0}, {NULL, 0}};
static const struct key_choice edges[] = {{"left", 0}, {"right", 0}, {NULL, 0}};

/* name, type, field, unit, lo, hi, zero, choices, default, flags, meaning */
static const struct config_key node_keys[] = {
	{"aet", KEY_AET, AT(node_conf, aet), "", 0, 0, NULL, NULL, "TOMONODE", 0, "our AE title, as modalities call us"},
	{"bind", KEY_ADDRESS, AT(node_conf, bind), "", 0, 0, NULL, NULL, "127.0.0.1", 0,
	 "address to listen on; `0.0.0.0` or `::` for every network"},
	{"port", KEY_INT, AT(node_conf, port), "", 1, 65535, "any free port (printed in the log)", NULL, "11112", 0,
	 "port to listen on, without TLS; for further ports see `listeners`"},
	{"plain", KEY_BOOL, AT(node_conf, plain), "", 0, 0, NULL, NULL, "true", 0,
	 "listen on `bind` and `port`; false: on `listeners` alone"},
	{"spool", KEY_PATH, AT(node_conf, spool), "", 0, 0, NULL, NULL, "", KEY_COMPUTED,
	 "folder of instances, journal and results; empty: the standard place, see \"Where the spool lies\""},
	{"device", KEY_DEVICE, AT(node_conf, device), "", 0, 0, NULL, NULL, "auto", 0,
	 "where cases are reconstructed, one at a time on each; `auto`: every CUDA device, the CPU where there is none; `cuda`: "
	 "every CUDA device"},
	{"max_pdu", KEY_INT, AT(node_conf, max_pdu), "bytes", 4096, 131072, NULL, NULL, "131072", 0,
	 "largest PDU that we receive"},
	{"acse_timeout", KEY_INT, AT(node_conf, acse_timeout), "s", 1, 3600, NULL, NULL, "30", 0,
	 "how long a peer may take over opening or closing an association"},
	{"dimse_timeout", KEY_INT, AT(node_conf, dimse_timeout), "s", 1, 3600, NULL, NULL, "60", 0,
	 "how long a peer may stay silent within an association"},
	{"max_associations", KEY_INT, AT(node_conf, max_associations), "", 1, 1000, NULL, NULL, "32", 0,
	 "associations at a time; more are rejected as a passing condition"},
	{"tls_certificate", KEY_PATH, AT(node_conf, tls_certificate), "", 0, 0, NULL, NULL, "", 0,
	 "our certificate (PEM), followed by those between it and its authority, for listeners and destinations that have none "
	 "of their own"},
	{"tls_key", KEY_PATH, AT(node_conf, tls_key), "", 0, 0, NULL, NULL, "", 0,
	 "its private key (PEM, without a password); empty: it stands in the certificate's file"},
	{"tls_authorities", KEY_PATH, AT(node_conf, tls_authorities), "", 0, 0, NULL, NULL, "", 0,
	 "certificates that we trust (PEM): of authorities, or of single devices"},
	{"tls_crl", KEY_PATH, AT(node_conf, tls_crl), "", 0, 0, NULL, NULL, "", 0,
	 "lists of the certificates that these authorities revoked (CRL, PEM); with it a certificate whose authority has no list "
	 "there, or an old one, is refused, too; empty: nothing is looked up"},
	{"peer_associations", KEY_INT, AT(node_conf, peer_associations), "", 1, 1000, "no limit but max_associations", NULL, "0",
	 0, "associations of one peer at a time; more are rejected as a passing condition"},
	{"peer_bytes", KEY_BYTES, AT(node_conf, peer_bytes), "bytes", 1000000, 1e15, "no limit", NULL, "0", 0,
	 "what one peer may send within `peer_window`; who sends more is read more slowly, at least 100 kB in a second"},
	{"peer_window", KEY_REAL, AT(node_conf, peer_window), "s", 1, 86400, NULL, NULL, "60", 0,
	 "for `peer_bytes` and `peer_refusals`"},
	{"peer_refusals", KEY_INT, AT(node_conf, peer_refusals), "", 1, 10000, "nobody is shut out", NULL, "", KEY_COMPUTED,
	 "refused attempts of an address within `peer_window` until its connections are closed at once; default: 0 while we "
	 "listen on loopback addresses alone, else 20"},
	{"refusal_pause", KEY_REAL, AT(node_conf, refusal_pause), "s", 1, 86400, NULL, NULL, "60", 0, "how long that lasts"},
	{"reserve", KEY_BYTES, AT(node_conf, reserve), "bytes", 0, 1e15, NULL, NULL, "512 MB", 0,
	 "space that stays free on the spool's disk; below it, objects are refused with A700"},
	{"quiet_time", KEY_REAL, AT(node_conf, quiet_time), "s", 0.1, 86400, NULL, NULL, "60", 0,
	 "time without a new instance until an incomplete case is held"},
	{"check_called", KEY_BOOL, AT(node_conf, check_called), "", 0, 0, NULL, NULL, "false", 0,
	 "reject associations that call another AE title than ours"},
	{"require_known_peer", KEY_BOOL, AT(node_conf, require_known_peer), "", 0, 0, NULL, NULL, "", KEY_COMPUTED,
	 "only those in `peers` may send; default: false while we listen on loopback addresses alone, else true"},
	{"log", KEY_CHOICE, AT(node_conf, log_syslog), "", 0, 0, NULL, log_targets, "stderr", 0, "where log lines go"},
	{"log_facility", KEY_CHOICE, AT(node_conf, log_facility), "", 0, 0, NULL, log_facilities, "daemon", 0,
	 "facility for syslog"},
	{"log_level", KEY_CHOICE, AT(node_conf, log_level), "", 0, 0, NULL, log_levels, "info", 0,
	 "the least important lines to log"},
	{"audit", KEY_CHOICE, AT(node_conf, audit), "", 0, 0, NULL, audit_targets, "none", 0,
	 "where audit messages (DICOM PS3.15 A.5) go; they name patients by their identifier"},
	{"audit_facility", KEY_CHOICE, AT(node_conf, audit_facility), "", 0, 0, NULL, audit_facilities, "authpriv", 0,
	 "facility of audit messages"},
	{"audit_socket", KEY_PATH, AT(node_conf, audit_socket), "", 0, 0, NULL, NULL, "/dev/log", 0,
	 "with `audit = \"syslog\"`: socket of the syslog daemon"},
	{"audit_file", KEY_PATH, AT(node_conf, audit_file), "", 0, 0, NULL, NULL, "", 0,
	 "with `audit = \"file\"`: file that audit messages are appended to, a line each"},
	{"audit_site", KEY_TEXT, AT(node_conf, audit_site), "", 0, 64, NULL, NULL, "", 0,
	 "name of the hospital or department in audit messages; empty: none"},
	{"retention_days", KEY_INT, AT(node_conf, retention_days), "days", 1, 36500, "keep for ever", NULL, "30", 0,
	 "delivered cases are removed from the spool after this; undelivered ones never are"},
	{"retention_space", KEY_BYTES, AT(node_conf, retention_space), "bytes", 1e6, 1e15, "no limit", NULL, "0", 0,
	 "most that images and results may take of the spool's disk; above it delivered cases are removed, those first that were "
	 "delivered first; undelivered ones never are"},
	{"retention_apart_days", KEY_INT, AT(node_conf, retention_apart_days), "days", 1, 36500, "keep for ever", NULL, "0", 0,
	 "objects that were received but belong to no case (nothing to reconstruct, refused, sent again, other content under a "
	 "known UID), and cases that a person cancelled, are removed from the spool after this, whether or not the disk is full"},
	{"history_days", KEY_INT, AT(node_conf, history_days), "days", 1, 36500, "keep for ever", NULL, "365", 0,
	 "what the journal says of a case, or of an object of no case, is forgotten so long after it was removed"},
	{"attempts", KEY_INT, AT(node_conf, attempts), "", 1, 100, NULL, NULL, "3", 0,
	 "reconstructions that may crash before a case fails"},
	{"worker_timeout", KEY_INT, AT(node_conf, worker_timeout), "s", 2, 604800, NULL, NULL, "1800", 0,
	 "a reconstruction without progress for so long is ended; that counts as a crash. So is a delivery or an indexer that "
	 "does "
	 "nothing for so long; it is tried again"},
	{"sandbox", KEY_CHOICE, AT(node_conf, sandbox), "", 0, 0, NULL, sandbox_modes, "auto", 0,
	 "what processes that handle data from outside may still do: `auto`, what this system can enforce; `on`: all of it, or "
	 "the "
	 "node does not start; `off`: everything"},
	{"user", KEY_NAME, AT(node_conf, user), "", 0, 0, NULL, NULL, "", 0,
	 "user that a node started as root becomes, once it listens; it does not run as root unless `root` is named here"},
};

static const struct config_key listener_keys[] = {
	{"name", KEY_NAME, AT(listener_conf, name), "", 0, 0, NULL, NULL, NULL, 0, "how logs call it"},
	{"bind", KEY_ADDRESS, AT(listener_conf, bind), "", 0, 0, NULL, NULL, "", 0, "address to listen on; empty: `node.bind`"},
	{"port", KEY_INT, AT(listener_conf, port), "", 1, 65535, "any free port (printed in the log)", NULL, "2762", 0,
	 "port to listen on; 2762 is the one registered for DICOM over TLS"},
	{"tls", KEY_BOOL, AT(listener_conf, tls), "", 0, 0, NULL, NULL, "true", 0,
	 "it speaks TLS; false: plain DICOM, and the keys below say nothing"},
	{"certificate", KEY_PATH, AT(listener_conf, certificate), "", 0, 0, NULL, NULL, "", 0,
	 "our certificate; empty: `node.tls_certificate` and its key"},
	{"key", KEY_PATH, AT(listener_conf, key), "", 0, 0, NULL, NULL, "", 0,
	 "its private key; empty: it stands in the certificate's file"},
	{"authorities", KEY_PATH, AT(listener_conf, authorities), "", 0, 0, NULL, NULL, "", 0,
	 "whose certificates callers may show; empty: `node.tls_authorities`"},
	{"crl", KEY_PATH, AT(listener_conf, crl), "", 0, 0, NULL, NULL, "", 0,
	 "what these authorities revoked; empty: `node.tls_crl`, where `authorities` is empty, too"},
	{"client_certificate", KEY_CHOICE, AT(listener_conf, client_certificate), "", 0, 0, NULL, demands, "required", 0,
	 "`required`: who shows none of a known authority is refused; `none`: nobody is asked for one"},
};

static const struct config_key peer_keys[] = {
	{"name", KEY_NAME, AT(peer_conf, name), "", 0, 0, NULL, NULL, NULL, 0, "how logs and reports call it"},
	{"aet", KEY_AET, AT(peer_conf, aet), "", 0, 0, NULL, NULL, "", 0, "its calling AE title; empty: any"},
	{"host", KEY_NETWORK, AT(peer_conf, host), "", 0, 0, NULL, NULL, "", 0,
	 "host or network it calls from; a name is looked up when the node starts or reloads; a link-local address counts on the "
	 "interface that it names (`fe80::1%eth0`), on each where it names none; empty: any"},
	{"certificate", KEY_TEXT, AT(peer_conf, certificate), "", 0, 127, NULL, NULL, "", 0,
	 "certificate that it must show: `sha256:` and its fingerprint, or a name in it (common or alternative name; upper or "
	 "lower case, `*` and `?`); empty: any or none"},
	{"associations", KEY_INT, AT(peer_conf, associations), "", 1, 1000, "`node.peer_associations`", NULL, "0", 0,
	 "of this peer at a time"},
	{"bytes", KEY_BYTES, AT(peer_conf, bytes), "bytes", 1000000, 1e15, "`node.peer_bytes`", NULL, "0", 0,
	 "that this peer may send within `node.peer_window`"},
};

static const struct config_key destination_keys[] = {
	{"name", KEY_NAME, AT(destination_conf, name), "", 0, 0, NULL, NULL, NULL, 0, "what routes call it"},
	{"aet", KEY_AET, AT(destination_conf, aet), "", 0, 0, NULL, NULL, NULL, 0, "its AE title"},
	{"host", KEY_HOST, AT(destination_conf, host), "", 0, 0, NULL, NULL, NULL, 0, "its host name or address"},
	{"port", KEY_INT, AT(destination_conf, port), "", 1, 65535, NULL, NULL, "104", 0, "its port"},
	{"connect_timeout", KEY_INT, AT(destination_conf, connect_timeout), "s", 1, 3600, NULL, NULL, "10", 0,
	 "for the TCP connection"},
	{"acse_timeout", KEY_INT, AT(destination_conf, acse_timeout), "s", 1, 3600, NULL, NULL, "30", 0,
	 "for opening and closing the association"},
	{"dimse_timeout", KEY_INT, AT(destination_conf, dimse_timeout), "s", 1, 3600, NULL, NULL, "120", 0,
	 "for the answer to a C-STORE"},
	{"tls", KEY_BOOL, AT(destination_conf, tls), "", 0, 0, NULL, NULL, "false", 0,
	 "speak TLS with it; false: plain DICOM, and the six keys below say nothing"},
	{"certificate", KEY_PATH, AT(destination_conf, certificate), "", 0, 0, NULL, NULL, "", 0,
	 "our certificate; empty: `node.tls_certificate` and its key, if there is one"},
	{"key", KEY_PATH, AT(destination_conf, key), "", 0, 0, NULL, NULL, "", 0,
	 "its private key; empty: it stands in the certificate's file"},
	{"authorities", KEY_PATH, AT(destination_conf, authorities), "", 0, 0, NULL, NULL, "", 0,
	 "whose certificate it may show; empty: `node.tls_authorities`"},
	{"crl", KEY_PATH, AT(destination_conf, crl), "", 0, 0, NULL, NULL, "", 0,
	 "what these authorities revoked; empty: `node.tls_crl`, where `authorities` is empty, too"},
	{"verify", KEY_CHOICE, AT(destination_conf, verify_name), "", 0, 0, NULL, verifications, "full", 0,
	 "of its certificate: `full`, its authority, its time and its name; `authority`, all but the name"},
	{"tls_name", KEY_HOST, AT(destination_conf, tls_name), "", 0, 0, NULL, NULL, "", 0,
	 "the name or address that its certificate must be for; empty: `host`"},
	{"retry_first", KEY_REAL, AT(destination_conf, retry_first), "s", 0.1, 86400, NULL, NULL, "5", 0,
	 "wait after the first passing failure; doubled after each further one"},
	{"retry_cap", KEY_REAL, AT(destination_conf, retry_cap), "s", 0.1, 86400, NULL, NULL, "900", 0,
	 "the longest wait between attempts"},
	{"retry_limit", KEY_INT, AT(destination_conf, retry_limit), "", 1, 1000000, "no limit", NULL, "0", 0,
	 "passing failures until the result becomes a dead letter"},
	{"alarm_after", KEY_REAL, AT(destination_conf, alarm_after), "s", 1, 2592000, "no alarm", NULL, "3600", 0,
	 "passing failures for so long are an alarm; it is tried on"},
	{"alarm_rejections", KEY_INT, AT(destination_conf, alarm_rejections), "", 1, 1000000, "no alarm", NULL, "3", 0,
	 "failures in a row, the last an association rejected for good (unknown AE title, refused certificate), that are an "
	 "alarm; it is tried on"},
	{"fallback", KEY_NAME, AT(destination_conf, fallback), "", 0, 0, NULL, NULL, "", 0,
	 "another destination, which gets the result where this one fails; empty: none"},
	{"fallback_after", KEY_REAL, AT(destination_conf, fallback_after), "s", 1, 2592000, "only where it refused for good",
	 NULL, "0", 0, "passing failures for so long bring in the fallback, too"},
	{"commitment", KEY_BOOL, AT(destination_conf, commitment), "", 0, 0, NULL, NULL, "false", 0,
	 "ask it to commit itself to what it stored; until it has, a case is not delivered, and nothing of it is removed"},
	{"commitment_aet", KEY_AET, AT(destination_conf, commitment_aet), "", 0, 0, NULL, NULL, "", 0,
	 "AE title to ask for commitment, which then reports; empty: `aet`"},
	{"commitment_host", KEY_HOST, AT(destination_conf, commitment_host), "", 0, 0, NULL, NULL, "", 0,
	 "its host; empty: `host`"},
	{"commitment_port", KEY_INT, AT(destination_conf, commitment_port), "", 1, 65535, "the same as `port`", NULL, "0", 0,
	 "its port"},
	{"commitment_wait", KEY_INT, AT(destination_conf, commitment_wait), "s", 1, 3600, "it is released at once", NULL, "5", 0,
	 "how long the association is kept for a report on it; a later one comes on an association of the peer's"},
	{"commitment_timeout", KEY_REAL, AT(destination_conf, commitment_timeout), "s", 1, 2592000, NULL, NULL, "86400", 0,
	 "without a report for so long, the objects are sent and asked for again"},
	{"commitment_attempts", KEY_INT, AT(destination_conf, commitment_attempts), "", 1, 1000, NULL, NULL, "3", 0,
	 "requests that failed or were never reported on until the result becomes a dead letter"},
};

static const struct config_key route_keys[] = {
	{"name", KEY_NAME, AT(route_conf, name), "", 0, 0, NULL, NULL, NULL, 0, "how logs call it"},
	{"kind", KEY_WORD, AT(route_conf, kind), "", 0, 0, NULL, config_kinds, "dbt", 0,
	 "kind of case it takes: `dbt`, breast tomosynthesis; `pet`, sinograms of a PET scanner; `parallel`, those of parallel "
	 "beams"},
	{"calling", KEY_AET, AT(route_conf, calling), "", 0, 0, NULL, NULL, "", 0, "AE title of the sender it takes; empty: any"},
	{"protocol", KEY_NAME, AT(route_conf, protocol), "", 0, 0, NULL, NULL, NULL, 0, "the protocol to reconstruct with"},
	{"destinations", KEY_NAMES, AT(route_conf, destination), "", 1, ROUTE_DESTINATIONS_MAX, NULL, NULL, NULL, 0,
	 "destinations that get the result"},
};

static const struct config_key protocol_keys[] = {
	{"name", KEY_NAME, AT(protocol_conf, name), "", 0, 0, NULL, NULL, NULL, KEY_UNDESCRIBED,
	 "what routes and --protocol call it"},
	{"kind", KEY_CHOICE, AT(protocol_conf, kind), "", 0, 0, NULL, config_kinds, "dbt", KEY_UNDESCRIBED,
	 "kind of case it is for; what it says decides which keys there are"},
	{"algorithm", KEY_CHOICE, AT(protocol_conf, dbt.algorithm), "", 0, 0, NULL, algorithms, "osem", 0,
	 "emission model on line integrals: `osem` (ordered subsets), `mlem` (all projections in each update); transmission "
	 "model: `ostr` (ordered subsets), `mltr` (all projections); algebraic: `sart`; in one step: `bp` (shift and add), "
	 "`fbp` (filtered backprojection)"},
	{"iterations", KEY_INT, AT(protocol_conf, dbt.iterations), "", 1, 1000, NULL, NULL, "1", 0,
	 "passes over all projections; 1 for `osem`, 25 to 50 for `mlem` and `mltr`; `bp` and `fbp` make one whatever stands "
	 "here"},
	{"subsets", KEY_INT, AT(protocol_conf, dbt.subsets), "", 1, 1000, "one per projection", NULL, "0", 0,
	 "subsets of the projections for `osem`, `ostr`, `sart`; the others have one whatever stands here"},
	{"relaxation", KEY_REAL, AT(protocol_conf, dbt.relaxation), "", 0.001, 1.999, NULL, NULL, "0.5", 0,
	 "`sart`: part of the correction that each update applies"},
	{"normalise_rows", KEY_BOOL, AT(protocol_conf, dbt.normalise_rows), "", 0, 0, NULL, NULL, "false", 0,
	 "`osem`, `mlem`: divide the lengths of every ray by their sum; for comparison only: it shades the image in depth"},
	{"filter", KEY_CHOICE, AT(protocol_conf, dbt.filter), "", 0, 0, NULL, filters, "hann", 0,
	 "`fbp`: `ramp`, or `hann`, the ramp under a Hann window"},
	{"filter_cut", KEY_REAL, AT(protocol_conf, dbt.filter_cut), "", 0.01, 1, NULL, NULL, "0.8", 0,
	 "`fbp`: fraction of the Nyquist frequency where the Hann window reaches 0"},
	{"voxel", KEY_REAL, AT(protocol_conf, dbt.voxel), "mm", 0.02, 5, "the detector's own pitch", NULL, "0.34", 0,
	 "voxel size in the slice; projections are binned to the nearest whole number of bins"},
	{"slice_spacing", KEY_REAL, AT(protocol_conf, dbt.slice_spacing), "mm", 0.1, 20, NULL, NULL, "1", 0,
	 "distance of slices"},
	{"projector", KEY_CHOICE, AT(protocol_conf, dbt.projector), "", 0, 0, NULL, projectors, "slices", 0,
	 "`slices`: slice by slice, fast; `exact`: path lengths through voxels, the reference"},
	{"breast_mask", KEY_BOOL, AT(protocol_conf, dbt.breast_mask), "", 0, 0, NULL, NULL, "true", 0,
	 "what a projection shows as air beside the breast is not reconstructed"},
	{"tile", KEY_TILE, AT(protocol_conf, dbt.tile), "bins", 1, 65535, NULL, NULL, "auto", 0,
	 "unit of work on the detector, along x and y; `auto`: the whole detector at once while that fits the memory, else "
	 "88x56"},
	{"memory_limit", KEY_BYTES, AT(protocol_conf, dbt.memory_limit), "bytes", 1, 1e15, "all that the device has", NULL, "0",
	 0, "memory on the device; a plan that needs more is refused before anything is allocated"},
	{"deterministic", KEY_BOOL, AT(protocol_conf, dbt.deterministic), "", 0, 0, NULL, NULL, "false", 0,
	 "bitwise the same image in every run"},
	{"stored_step", KEY_REAL, AT(protocol_conf, stored_step), "1/mm", 1e-9, 1, NULL, NULL, "2e-5", 0,
	 "attenuation per step of the stored values, the same for every exam, so that exams compare"},
	{"stored_offset", KEY_REAL, AT(protocol_conf, stored_offset), "1/mm", -100, 100, NULL, NULL, "0", 0,
	 "attenuation that is stored as 0; below 0 for `fbp`, whose images have negative values"},
	{"slab_thickness", KEY_REAL, AT(protocol_conf, slab_thickness), "mm", 0.1, 300, "no slabs", NULL, "0", 0,
	 "a further object of slabs, each of the slices over this height"},
	{"slab_step", KEY_REAL, AT(protocol_conf, slab_step), "mm", 0.1, 300, "half of slab_thickness", NULL, "0", 0,
	 "distance of slabs"},
	{"slab_mode", KEY_CHOICE, AT(protocol_conf, slab_mode), "", 0, 0, NULL, slab_modes, "mean", 0,
	 "what a slab shows of its slices"},
	{"synthetic", KEY_BOOL, AT(protocol_conf, synthetic), "", 0, 0, NULL, NULL, "false", 0,
	 "a further object: a two-dimensional view made of the slices"},
	{"compression", KEY_CHOICE, AT(protocol_conf, compression), "", 0, 0, NULL, config_compressions, "none", KEY_UNDESCRIBED,
	 "of the results' pixels: `jpeg-ls` is lossless"},
	{"description", KEY_TEXT, AT(protocol_conf, description), "", 0, 64, NULL, NULL, "", KEY_UNDESCRIBED,
	 "SeriesDescription of the result; empty: made from the protocol's name"},
};

static const struct config_key profile_keys[] = {
	{"name", KEY_NAME, AT(profile_conf, name), "", 0, 0, NULL, NULL, NULL, 0, "how logs and provenance call it"},
	{"manufacturer", KEY_TEXT, AT(profile_conf, manufacturer), "", 0, 63, NULL, NULL, "", KEY_UNDESCRIBED,
	 "pattern for (0008,0070): upper or lower case, `*` and `?`; empty: any"},
	{"model", KEY_TEXT, AT(profile_conf, model), "", 0, 63, NULL, NULL, "", KEY_UNDESCRIBED,
	 "pattern for (0008,1090); empty: any"},
	{"serial", KEY_TEXT, AT(profile_conf, serial), "", 0, 63, NULL, NULL, "", KEY_UNDESCRIBED,
	 "pattern for (0018,1000), for one machine's own geometry; empty: any"},
	{"axis_height", KEY_REAL, AT(profile_conf, axis_height), "mm", -500, 500, NULL, NULL, NULL, 0,
	 "rotation axis above the detector plane"},
	{"source_axis", KEY_REAL, AT(profile_conf, source_axis), "mm", 100, 2000, NULL, NULL, NULL, 0, "source to rotation axis"},
	{"support", KEY_REAL, AT(profile_conf, support), "mm", 0, 200, NULL, NULL, NULL, 0,
	 "top of the breast support above the detector plane"},
	{"source_x", KEY_REAL, AT(profile_conf, source_x), "mm", -200, 400, NULL, NULL, "0", 0,
	 "source along x; 0: above the detector's chest-wall edge"},
	{"pitch", KEY_REAL, AT(profile_conf, pitch), "mm", 0.01, 2, NULL, NULL, NULL, 0,
	 "detector bin; must agree with (0018,1164)"},
	{"angle_tag", KEY_CHOICE, AT(profile_conf, angle_tag), "", 0, 0, NULL, angle_tags, "0018,1510", 0,
	 "where a single-frame series keeps the projection's angle"},
	{"angle_sign", KEY_CHOICE, AT(profile_conf, angle_sign), "", 0, 0, NULL, signs, "1", 0,
	 "the stored angle times this is positive where the source stands at y > 0"},
	{"angle_offset", KEY_REAL, AT(profile_conf, angle_offset), "degrees", -180, 180, NULL, NULL, "0", 0,
	 "added after the sign"},
	{"sid_tolerance", KEY_REAL, AT(profile_conf, sid_tolerance), "mm", 0, 100, NULL, NULL, "2", 0,
	 "how far (0018,1110) may be from axis_height + source_axis"},
	{"i0_mode", KEY_CHOICE, AT(profile_conf, i0_mode), "", 0, 0, NULL, i0_modes, "percentile", 0,
	 "where the unattenuated intensity comes from, see \"Intensity of the unattenuated beam\""},
	{"i0", KEY_REAL, AT(profile_conf, i0), "", 0, 1e9, NULL, NULL, "95", 0,
	 "with `fixed`: the stored value of air; with `percentile`: percent, up to 100"},
	{"offset", KEY_REAL, AT(profile_conf, offset), "stored values", -65535, 65535, NULL, NULL, "0", 0,
	 "what the detector stores without radiation"},
	{"flatfield", KEY_PATH, AT(profile_conf, flatfield), "", 0, 0, NULL, NULL, "", 0,
	 "DICOM file of an exposure without object, for `flatfield`"},
	{"scale_by_exposure", KEY_BOOL, AT(profile_conf, scale_by_exposure), "", 0, 0, NULL, NULL, "false", 0,
	 "I0 follows each projection's (0018,1152) or (0018,1153); not needed with `percentile`"},
	{"log_zero", KEY_REAL, AT(profile_conf, log_zero), "stored values", -65535, 65535, NULL, NULL, "0", 0,
	 "for data that are stored as logarithm: line integral = (log_zero - value) * log_scale"},
	{"log_scale", KEY_REAL, AT(profile_conf, log_scale), "1 / stored value", -100, 100, NULL, NULL, "0", 0,
	 "see log_zero; 0: logarithmic data of this system are refused"},
	{"floor", KEY_REAL, AT(profile_conf, floor), "fraction of I0", 1e-9, 0.5, NULL, NULL, "1e-4", 0,
	 "intensities below are raised to it before the logarithm"},
	{"chest_wall", KEY_WORD, AT(profile_conf, chest_wall), "", 0, 0, NULL, edges, "", 0,
	 "image edge at the chest wall in single-frame series without (0020,0020); empty: refuse those"},
};

const struct config_section config_sections[SECTION_COUNT] = {
	{"node", "node", false, false, sizeof(struct node_conf), offsetof(struct config, node), 0, KEYS(node_keys),
	 "The node itself.", NULL, NULL},
	{"listeners", "listener", true, false, LIST(listener_conf, listeners), KEYS(listener_keys),
	 "Ports beside the node's own, with TLS as a rule.", NULL, NULL},
	{"peers", "peer", true, false, LIST(peer_conf, peers), KEYS(peer_keys), "Who may send to us.", NULL, NULL},
	{"destinations", "destination", true, false, LIST(destination_conf, destinations), KEYS(destination_keys),
	 "Who gets results.", NULL, NULL},
	{"routes", "route", true, false, LIST(route_conf, routes), KEYS(route_keys),
	 "Which kind of case goes through which protocol to which destinations; the first that fits is taken.", NULL, NULL},
	{"protocols", "protocol", true, true, LIST(protocol_conf, protocols), KEYS(protocol_keys),
	 "How to reconstruct. The keys but name and kind are also those of `--set`. For breast tomosynthesis (`kind` is `dbt`):",
	 "dbt", &config_protocols_pet},
	{"profiles", "profile", true, true, LIST(profile_conf, profiles), KEYS(profile_keys),
	 "The geometry of one system, chosen by manufacturer, model and serial number of the images. Without a profile that fits "
	 "a case is "
	 "held, never guessed.",
	 NULL, NULL},
	{"scanners", "scanner", true, true, LIST(scanner_conf, scanners), config_scanner_keys, CONFIG_SCANNER_KEYS,
	 "PET scanners and the sinograms they make, chosen by manufacturer, model and serial number of the objects. What the "
	 "sinograms' own header says wins; where neither says, the case is held, never guessed.",
	 NULL, NULL},
	{"status", "status page", false, false, sizeof(struct status_conf), offsetof(struct config, status), 0,
	 config_status_keys, CONFIG_STATUS_KEYS,
	 "The page that shows what the node does, see docs/status-page.md. It has no password: whoever reaches it sees it.", NULL,
	 NULL},
};

const struct config_section *config_section_kind(const struct config_section *section, const char *kind)
{
	while (section && (!section->kind || strcmp(section->kind, kind) != 0))
		section = section->next;
	return section;
}

const struct config_section *config_section_of(const struct config_section *section, const void *entry)
{
	const struct config_key *key = section->kind ? config_key_find(section, "kind") : NULL;
	int kind;

	if (!key)
		return section;
	memcpy(&kind, (const char *)entry + key->offset, sizeof(kind));
	for (const struct key_choice *c = key->choices; c->word; c++)
		if (c->value == kind)
			return config_section_kind(section, c->word);
	return section;
}

const struct config_key *config_key_find(const struct config_section *section, const char *name)
{
	for (size_t i = 0; i < section->n_keys; i++)
		if (!strcmp(section->keys[i].name, name))
			return &section->keys[i];
	return NULL;
}

const struct config_section *config_section_with(const struct config_section *section, const char *key)
{
	for (size_t i = 0; section->kind && i < SECTION_COUNT; i++)
		for (const struct config_section *s = &config_sections[i]; s; s = s->next)
			if (s != section && s->offset == section->offset && config_key_find(s, key))
				return s;
	return NULL;
}

/* Letters to insert, remove or replace (Levenshtein 1966); words are cut at 31 letters. */
static size_t distance(const char *a, const char *b)
{
	size_t row[33];
	size_t n = strnlen(b, 31);

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 0; a[i] && i < 31; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < n; j++) {
			size_t best = diagonal + (a[i] != b[j]);

			diagonal = row[j + 1];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (diagonal + 1 < best)
				best = diagonal + 1;
			row[j + 1] = best;
		}
	}
	return row[n];
}

const char *config_nearest(const char *word, const char *(*name)(const void *ctx, size_t i), const void *ctx)
{
	const char *best = NULL, *candidate;
	size_t least = strlen(word) / 3 + 2; /* one slip in a short word, more in a long one */

	for (size_t i = 0; (candidate = name(ctx, i)); i++) {
		size_t d = distance(word, candidate);

		if (d < least) {
			least = d;
			best = candidate;
		}
	}
	return best;
}

static const char *key_name(const void *ctx, size_t i)
{
	const struct config_section *section = ctx;

	return i < section->n_keys ? section->keys[i].name : NULL;
}

const char *config_key_nearest(const struct config_section *section, const char *word)
{
	return config_nearest(word, key_name, section);
}
