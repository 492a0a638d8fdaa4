/* config_table.c - every key of the configuration: type, unit, default, range, meaning. The default as text is next to its range,
 * so that both are changed together; a test compares conf/defaults.conf and docs/configuration.md with this table.
 */
#include "node/config/config_table.h"

#include <string.h>

#include "node/base/log.h" /* syslog levels and facilities */
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
const struct key_choice config_kinds[] = {
#define X(constant, name) {#name, KIND_##constant},
	KINDS(X)
#undef X
		{NULL, 0}};
const struct key_choice config_compressions[] = {{"none", COMPRESSION_NONE}, {"jpeg-ls", COMPRESSION_JPEGLS}, {NULL, 0}};
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
	{"aet", KEY_AET, AT(node_conf, aet), "", 0, 0, NULL, NULL, "TOMONODE", 0, "own AE title, the one that modalities call"},
	{"bind", KEY_ADDRESS, AT(node_conf, bind), "", 0, 0, NULL, NULL, "127.0.0.1", 0,
	 "address to listen on; `0.0.0.0` or `::`: all network interfaces"},
	{"port", KEY_INT, AT(node_conf, port), "", 1, 65535, "any free port (printed in the log)", NULL, "11112", 0,
	 "port to listen on without TLS; for more ports see `listeners`"},
	{"plain", KEY_BOOL, AT(node_conf, plain), "", 0, 0, NULL, NULL, "true", 0,
	 "listen on `bind` and `port` without TLS; false: listen on the entries of `listeners` only"},
	{"spool", KEY_PATH, AT(node_conf, spool), "", 0, 0, NULL, NULL, "", KEY_COMPUTED,
	 "folder for instances, journal and results; empty: the default folder, see \"Default spool folder\""},
	{"device", KEY_DEVICE, AT(node_conf, device), "", 0, 0, NULL, NULL, "auto", 0,
	 "devices that reconstruct, each one case at a time; `auto`: every CUDA device, or the CPU if there is none; `cuda`: "
	 "every CUDA device"},
	{"max_pdu", KEY_INT, AT(node_conf, max_pdu), "bytes", 4096, 131072, NULL, NULL, "131072", 0, "largest PDU to receive"},
	{"acse_timeout", KEY_INT, AT(node_conf, acse_timeout), "s", 1, 3600, NULL, NULL, "30", 0,
	 "longest time that a peer may take to open or close an association"},
	{"dimse_timeout", KEY_INT, AT(node_conf, dimse_timeout), "s", 1, 3600, NULL, NULL, "60", 0,
	 "longest time without data from a peer during an association"},
	{"max_associations", KEY_INT, AT(node_conf, max_associations), "", 1, 1000, NULL, NULL, "32", 0,
	 "maximum number of simultaneous associations; further requests are rejected as transient"},
	{"tls_certificate", KEY_PATH, AT(node_conf, tls_certificate), "", 0, 0, NULL, NULL, "", 0,
	 "own certificate (PEM), followed by the intermediate certificates of its chain; used by listeners and destinations that "
	 "configure none"},
	{"tls_key", KEY_PATH, AT(node_conf, tls_key), "", 0, 0, NULL, NULL, "", 0,
	 "private key of `tls_certificate` (PEM, without a password); empty: the key is in the certificate's file"},
	{"tls_authorities", KEY_PATH, AT(node_conf, tls_authorities), "", 0, 0, NULL, NULL, "", 0,
	 "trusted certificates (PEM): of certificate authorities or of single devices"},
	{"tls_crl", KEY_PATH, AT(node_conf, tls_crl), "", 0, 0, NULL, NULL, "", 0,
	 "certificate revocation lists (CRL, PEM) of these authorities; if set, a certificate is also refused when its authority "
	 "has no list in the file or an expired one; empty: revocation is not checked"},
	{"peer_associations", KEY_INT, AT(node_conf, peer_associations), "", 1, 1000, "no limit but max_associations", NULL, "0",
	 0, "maximum number of simultaneous associations of one peer; further requests are rejected as transient"},
	{"peer_bytes", KEY_BYTES, AT(node_conf, peer_bytes), "bytes", 1000000, 1e15, "no limit", NULL, "0", 0,
	 "bytes that one peer may send within `peer_window`; above that its data are read more slowly, but at 100 kB/s or more"},
	{"peer_window", KEY_REAL, AT(node_conf, peer_window), "s", 1, 86400, NULL, NULL, "60", 0,
	 "length of the time window for `peer_bytes` and `peer_refusals`"},
	{"peer_refusals", KEY_INT, AT(node_conf, peer_refusals), "", 1, 10000, "no address is blocked", NULL, "", KEY_COMPUTED,
	 "number of refused attempts from one address within `peer_window` after which its connections are closed at once; "
	 "default: 0 if the node listens on loopback addresses only, else 20"},
	{"peer_block_time", KEY_REAL, AT(node_conf, peer_block_time), "s", 1, 86400, NULL, NULL, "60", 0,
	 "time during which connections of such an address are closed at once"},
	{"reserve", KEY_BYTES, AT(node_conf, reserve), "bytes", 0, 1e15, NULL, NULL, "512 MB", 0,
	 "space to keep free on the spool's disk; with less free space, objects are refused with status A700"},
	{"quiet_time", KEY_REAL, AT(node_conf, quiet_time), "s", 0.1, 86400, NULL, NULL, "60", 0,
	 "time without a new instance after which an incomplete case is held"},
	{"check_called", KEY_BOOL, AT(node_conf, check_called), "", 0, 0, NULL, NULL, "false", 0,
	 "reject associations whose called AE title is not `aet`"},
	{"require_known_peer", KEY_BOOL, AT(node_conf, require_known_peer), "", 0, 0, NULL, NULL, "", KEY_COMPUTED,
	 "accept associations only from the entries of `peers`; default: false if the node listens on loopback addresses only, "
	 "else true"},
	{"log", KEY_CHOICE, AT(node_conf, log_syslog), "", 0, 0, NULL, log_targets, "stderr", 0, "destination of log lines"},
	{"log_facility", KEY_CHOICE, AT(node_conf, log_facility), "", 0, 0, NULL, log_facilities, "daemon", 0,
	 "syslog facility of log lines"},
	{"log_level", KEY_CHOICE, AT(node_conf, log_level), "", 0, 0, NULL, log_levels, "info", 0, "lowest severity to log"},
	{"audit", KEY_CHOICE, AT(node_conf, audit), "", 0, 0, NULL, audit_targets, "none", 0,
	 "destination of audit messages (DICOM PS3.15 A.5); they identify patients by patient ID"},
	{"audit_facility", KEY_CHOICE, AT(node_conf, audit_facility), "", 0, 0, NULL, audit_facilities, "authpriv", 0,
	 "syslog facility of audit messages"},
	{"audit_socket", KEY_PATH, AT(node_conf, audit_socket), "", 0, 0, NULL, NULL, "/dev/log", 0,
	 "with `audit = \"syslog\"`: socket of the syslog daemon"},
	{"audit_file", KEY_PATH, AT(node_conf, audit_file), "", 0, 0, NULL, NULL, "", 0,
	 "with `audit = \"file\"`: file to append audit messages to, one per line"},
	{"audit_site", KEY_TEXT, AT(node_conf, audit_site), "", 0, 64, NULL, NULL, "", 0,
	 "name of the hospital or department in audit messages; empty: none"},
	{"retention_days", KEY_INT, AT(node_conf, retention_days), "days", 1, 36500, "keep for ever", NULL, "30", 0,
	 "time after delivery after which a case is removed from the spool; undelivered cases are never removed"},
	{"retention_space", KEY_BYTES, AT(node_conf, retention_space), "bytes", 1e6, 1e15, "no limit", NULL, "0", 0,
	 "maximum size of all images and results in the spool; above it delivered cases are removed, in the order of their "
	 "delivery; undelivered cases are never removed"},
	{"retention_unassigned_days", KEY_INT, AT(node_conf, retention_unassigned_days), "days", 1, 36500, "keep for ever", NULL,
	 "0", 0,
	 "time after which unassigned objects (received, but not part of a case: nothing to reconstruct, refused, sent again, or "
	 "different content under a known UID) and cancelled cases are removed from the spool, even if there is enough free "
	 "space"},
	{"journal_retention_days", KEY_INT, AT(node_conf, journal_retention_days), "days", 1, 36500, "keep for ever", NULL, "365",
	 0, "time after the removal of a case, or of an unassigned object, after which its rows are deleted from the journal"},
	{"attempts", KEY_INT, AT(node_conf, attempts), "", 1, 100, NULL, NULL, "3", 0,
	 "number of crashed reconstructions after which a case fails"},
	{"worker_timeout", KEY_INT, AT(node_conf, worker_timeout), "s", 2, 604800, NULL, NULL, "1800", 0,
	 "a reconstruction without progress for this time is killed, which counts as a crash; a delivery or an indexer without "
	 "progress for this time is killed and tried again"},
	{"sandbox", KEY_CHOICE, AT(node_conf, sandbox), "", 0, 0, NULL, sandbox_modes, "auto", 0,
	 "restrictions on the processes that handle data from outside: `auto`: those that this system supports; `on`: all, and "
	 "the node does not start where one is missing; `off`: none"},
	{"user", KEY_NAME, AT(node_conf, user), "", 0, 0, NULL, NULL, "", 0,
	 "user that a node started as root switches to after it has opened its ports; `root`: stay root; empty: a node started "
	 "as root exits with an error"},
};

static const struct config_key listener_keys[] = {
	{"name", KEY_NAME, AT(listener_conf, name), "", 0, 0, NULL, NULL, NULL, 0, "name of the listener in log lines"},
	{"bind", KEY_ADDRESS, AT(listener_conf, bind), "", 0, 0, NULL, NULL, "", 0, "address to listen on; empty: `node.bind`"},
	{"port", KEY_INT, AT(listener_conf, port), "", 1, 65535, "any free port (printed in the log)", NULL, "2762", 0,
	 "port to listen on; 2762 is the registered port for DICOM over TLS"},
	{"tls", KEY_BOOL, AT(listener_conf, tls), "", 0, 0, NULL, NULL, "true", 0,
	 "use TLS; false: plain DICOM, the keys below are ignored"},
	{"certificate", KEY_PATH, AT(listener_conf, certificate), "", 0, 0, NULL, NULL, "", 0,
	 "own certificate (PEM); empty: `node.tls_certificate` and its key"},
	{"key", KEY_PATH, AT(listener_conf, key), "", 0, 0, NULL, NULL, "", 0,
	 "private key of `certificate`; empty: the key is in the certificate's file"},
	{"authorities", KEY_PATH, AT(listener_conf, authorities), "", 0, 0, NULL, NULL, "", 0,
	 "trusted certificates for checking those of peers; empty: `node.tls_authorities`"},
	{"crl", KEY_PATH, AT(listener_conf, crl), "", 0, 0, NULL, NULL, "", 0,
	 "revocation lists of these authorities; empty: `node.tls_crl` if `authorities` is empty too, else none"},
	{"client_certificate", KEY_CHOICE, AT(listener_conf, client_certificate), "", 0, 0, NULL, demands, "required", 0,
	 "`required`: refuse peers without a certificate of a trusted authority; `none`: do not request a certificate from "
	 "peers"},
};

static const struct config_key peer_keys[] = {
	{"name", KEY_NAME, AT(peer_conf, name), "", 0, 0, NULL, NULL, NULL, 0, "name of the peer in log lines and reports"},
	{"aet", KEY_AET, AT(peer_conf, aet), "", 0, 0, NULL, NULL, "", 0, "calling AE title of the peer; empty: any"},
	{"host", KEY_NETWORK, AT(peer_conf, host), "", 0, 0, NULL, NULL, "", 0,
	 "host or network that the peer connects from; a host name is resolved at start and at reload; a link-local address "
	 "matches on the named interface (`fe80::1%eth0`), or on all if it names none; empty: any"},
	{"certificate", KEY_TEXT, AT(peer_conf, certificate), "", 0, 127, NULL, NULL, "", 0,
	 "required certificate of the peer: `sha256:` and its fingerprint, or a pattern for a name in it (common or alternative "
	 "name; case-insensitive, `*` and `?`); empty: any or none"},
	{"associations", KEY_INT, AT(peer_conf, associations), "", 1, 1000, "`node.peer_associations`", NULL, "0", 0,
	 "maximum number of simultaneous associations of this peer"},
	{"bytes", KEY_BYTES, AT(peer_conf, bytes), "bytes", 1000000, 1e15, "`node.peer_bytes`", NULL, "0", 0,
	 "bytes that this peer may send within `node.peer_window`"},
};

static const struct config_key destination_keys[] = {
	{"name", KEY_NAME, AT(destination_conf, name), "", 0, 0, NULL, NULL, NULL, 0, "name of the destination in `routes`"},
	{"aet", KEY_AET, AT(destination_conf, aet), "", 0, 0, NULL, NULL, NULL, 0, "AE title of the destination"},
	{"host", KEY_HOST, AT(destination_conf, host), "", 0, 0, NULL, NULL, NULL, 0, "host name or address of the destination"},
	{"port", KEY_INT, AT(destination_conf, port), "", 1, 65535, NULL, NULL, "104", 0, "port of the destination"},
	{"connect_timeout", KEY_INT, AT(destination_conf, connect_timeout), "s", 1, 3600, NULL, NULL, "10", 0,
	 "timeout for opening the TCP connection"},
	{"acse_timeout", KEY_INT, AT(destination_conf, acse_timeout), "s", 1, 3600, NULL, NULL, "30", 0,
	 "timeout for opening and closing the association"},
	{"dimse_timeout", KEY_INT, AT(destination_conf, dimse_timeout), "s", 1, 3600, NULL, NULL, "120", 0,
	 "timeout for the response to a C-STORE"},
	{"tls", KEY_BOOL, AT(destination_conf, tls), "", 0, 0, NULL, NULL, "false", 0,
	 "use TLS; false: plain DICOM, the six keys below are ignored"},
	{"certificate", KEY_PATH, AT(destination_conf, certificate), "", 0, 0, NULL, NULL, "", 0,
	 "own certificate (PEM); empty: `node.tls_certificate` and its key, if configured"},
	{"key", KEY_PATH, AT(destination_conf, key), "", 0, 0, NULL, NULL, "", 0,
	 "private key of `certificate`; empty: the key is in the certificate's file"},
	{"authorities", KEY_PATH, AT(destination_conf, authorities), "", 0, 0, NULL, NULL, "", 0,
	 "trusted certificates for checking that of the destination; empty: `node.tls_authorities`"},
	{"crl", KEY_PATH, AT(destination_conf, crl), "", 0, 0, NULL, NULL, "", 0,
	 "revocation lists of these authorities; empty: `node.tls_crl` if `authorities` is empty too, else none"},
	{"verify", KEY_CHOICE, AT(destination_conf, verify_name), "", 0, 0, NULL, verifications, "full", 0,
	 "checks of the destination's certificate: `full`: authority, validity period and name; `authority`: authority and "
	 "validity period"},
	{"tls_name", KEY_HOST, AT(destination_conf, tls_name), "", 0, 0, NULL, NULL, "", 0,
	 "host name or address that the destination's certificate must contain; empty: `host`"},
	{"retry_first", KEY_REAL, AT(destination_conf, retry_first), "s", 0.1, 86400, NULL, NULL, "5", 0,
	 "wait after the first transient failure; doubled after each further one"},
	{"retry_cap", KEY_REAL, AT(destination_conf, retry_cap), "s", 0.1, 86400, NULL, NULL, "900", 0,
	 "longest wait between two attempts"},
	{"retry_limit", KEY_INT, AT(destination_conf, retry_limit), "", 1, 1000000, "no limit", NULL, "0", 0,
	 "number of transient failures after which the result becomes a dead letter"},
	{"alarm_after", KEY_REAL, AT(destination_conf, alarm_after), "s", 1, 2592000, "no alarm", NULL, "3600", 0,
	 "time of continuous transient failures after which an alarm is raised; delivery is still tried"},
	{"alarm_rejections", KEY_INT, AT(destination_conf, alarm_rejections), "", 1, 1000000, "no alarm", NULL, "3", 0,
	 "number of failures in a row, the last one a permanent rejection of the association (unknown AE title, refused "
	 "certificate), after which an alarm is raised; delivery is still tried"},
	{"fallback", KEY_NAME, AT(destination_conf, fallback), "", 0, 0, NULL, NULL, "", 0,
	 "another destination, which gets the result if this one fails; empty: none"},
	{"fallback_after", KEY_REAL, AT(destination_conf, fallback_after), "s", 1, 2592000, "only after a permanent refusal",
	 NULL, "0", 0, "time of transient failures after which the result also goes to the fallback"},
	{"commitment", KEY_BOOL, AT(destination_conf, commitment), "", 0, 0, NULL, NULL, "false", 0,
	 "request storage commitment for the stored objects; a case counts as delivered, and may be removed, only after the "
	 "destination has committed"},
	{"commitment_aet", KEY_AET, AT(destination_conf, commitment_aet), "", 0, 0, NULL, NULL, "", 0,
	 "AE title to send the commitment request to, and that sends the report; empty: `aet`"},
	{"commitment_host", KEY_HOST, AT(destination_conf, commitment_host), "", 0, 0, NULL, NULL, "", 0,
	 "host of `commitment_aet`; empty: `host`"},
	{"commitment_port", KEY_INT, AT(destination_conf, commitment_port), "", 1, 65535, "the same as `port`", NULL, "0", 0,
	 "port of `commitment_aet`"},
	{"commitment_wait", KEY_INT, AT(destination_conf, commitment_wait), "s", 1, 3600, "the association is released at once",
	 NULL, "5", 0,
	 "time to keep the association open for the commitment report; a later report arrives on an association that the peer "
	 "opens"},
	{"commitment_timeout", KEY_REAL, AT(destination_conf, commitment_timeout), "s", 1, 2592000, NULL, NULL, "86400", 0,
	 "time without a report after which the objects are sent again and commitment is requested again"},
	{"commitment_attempts", KEY_INT, AT(destination_conf, commitment_attempts), "", 1, 1000, NULL, NULL, "3", 0,
	 "number of commitment requests that failed or got no report after which the result becomes a dead letter"},
};

static const struct config_key route_keys[] = {
	{"name", KEY_NAME, AT(route_conf, name), "", 0, 0, NULL, NULL, NULL, 0, "name of the route in log lines"},
	{"kind", KEY_WORD, AT(route_conf, kind), "", 0, 0, NULL, config_kinds, KIND_DEFAULT, KEY_KINDS,
	 "kind of case that the route is for"},
	{"calling", KEY_AET, AT(route_conf, calling), "", 0, 0, NULL, NULL, "", 0,
	 "calling AE title of the sender that the route is for; empty: any"},
	{"protocol", KEY_NAME, AT(route_conf, protocol), "", 0, 0, NULL, NULL, NULL, 0,
	 "name of the protocol to reconstruct with"},
	{"destinations", KEY_NAMES, AT(route_conf, destination), "", 1, ROUTE_DESTINATIONS_MAX, NULL, NULL, NULL, 0,
	 "names of the destinations that get the result"},
};

/* Keys that protocols of every kind have. */
static const struct config_key protocol_keys[] = {CONFIG_PROTOCOL_FIRST(KIND_DEFAULT)};

static const struct config_key profile_keys[] = {
	{"name", KEY_NAME, AT(profile_conf, name), "", 0, 0, NULL, NULL, NULL, 0,
	 "name of the profile in log lines and provenance"},
	{"manufacturer", KEY_TEXT, AT(profile_conf, manufacturer), "", 0, 63, NULL, NULL, "", KEY_UNDESCRIBED,
	 "pattern for (0008,0070): case-insensitive, `*` and `?`; empty: any"},
	{"model", KEY_TEXT, AT(profile_conf, model), "", 0, 63, NULL, NULL, "", KEY_UNDESCRIBED,
	 "pattern for (0008,1090); empty: any"},
	{"serial", KEY_TEXT, AT(profile_conf, serial), "", 0, 63, NULL, NULL, "", KEY_UNDESCRIBED,
	 "pattern for (0018,1000), for the geometry of a single machine; empty: any"},
	{"axis_height", KEY_REAL, AT(profile_conf, axis_height), "mm", -500, 500, NULL, NULL, NULL, 0,
	 "height of the rotation axis above the detector plane"},
	{"source_axis", KEY_REAL, AT(profile_conf, source_axis), "mm", 100, 2000, NULL, NULL, NULL, 0,
	 "distance from the source to the rotation axis"},
	{"support", KEY_REAL, AT(profile_conf, support), "mm", 0, 200, NULL, NULL, NULL, 0,
	 "height of the top of the breast support above the detector plane"},
	{"source_x", KEY_REAL, AT(profile_conf, source_x), "mm", -200, 400, NULL, NULL, "0", 0,
	 "position of the source along x; 0: above the detector's chest-wall edge"},
	{"pitch", KEY_REAL, AT(profile_conf, pitch), "mm", 0.01, 2, NULL, NULL, NULL, 0,
	 "size of a detector bin; must agree with (0018,1164)"},
	{"angle_tag", KEY_CHOICE, AT(profile_conf, angle_tag), "", 0, 0, NULL, angle_tags, "0018,1510", 0,
	 "attribute that contains the projection's angle in a single-frame series"},
	{"angle_sign", KEY_CHOICE, AT(profile_conf, angle_sign), "", 0, 0, NULL, signs, "1", 0,
	 "factor for the stored angle, so that the product is positive if the source is at y > 0"},
	{"angle_offset", KEY_REAL, AT(profile_conf, angle_offset), "degrees", -180, 180, NULL, NULL, "0", 0,
	 "added to the angle after the factor `angle_sign`"},
	{"sid_tolerance", KEY_REAL, AT(profile_conf, sid_tolerance), "mm", 0, 100, NULL, NULL, "2", 0,
	 "largest allowed difference between (0018,1110) and axis_height + source_axis"},
	{"i0_mode", KEY_CHOICE, AT(profile_conf, i0_mode), "", 0, 0, NULL, i0_modes, "percentile", 0,
	 "source of the unattenuated intensity, see \"Intensity of the unattenuated beam\""},
	{"i0", KEY_REAL, AT(profile_conf, i0), "", 0, 1e9, NULL, NULL, "95", 0,
	 "with `fixed`: the stored value of air; with `percentile`: percent, up to 100"},
	{"offset", KEY_REAL, AT(profile_conf, offset), "stored values", -65535, 65535, NULL, NULL, "0", 0,
	 "stored value of the detector without radiation"},
	{"flatfield", KEY_PATH, AT(profile_conf, flatfield), "", 0, 0, NULL, NULL, "", 0,
	 "with `flatfield`: DICOM file of an exposure without object"},
	{"scale_by_exposure", KEY_BOOL, AT(profile_conf, scale_by_exposure), "", 0, 0, NULL, NULL, "false", 0,
	 "scale I0 by each projection's (0018,1152) or (0018,1153); not needed with `percentile`"},
	{"log_zero", KEY_REAL, AT(profile_conf, log_zero), "stored values", -65535, 65535, NULL, NULL, "0", 0,
	 "for data stored as logarithm: line integral = (log_zero - value) * log_scale"},
	{"log_scale", KEY_REAL, AT(profile_conf, log_scale), "1 / stored value", -100, 100, NULL, NULL, "0", 0,
	 "see log_zero; 0: logarithmic data of this system are refused"},
	{"floor", KEY_REAL, AT(profile_conf, floor), "fraction of I0", 1e-9, 0.5, NULL, NULL, "1e-4", 0,
	 "intensities below this are raised to it before the logarithm"},
	{"chest_wall", KEY_WORD, AT(profile_conf, chest_wall), "", 0, 0, NULL, edges, "", 0,
	 "image edge at the chest wall in single-frame series without (0020,0020); empty: refuse such series"},
};

const struct config_section config_sections[SECTION_COUNT] = {
	{"node", "node", false, false, sizeof(struct node_conf), offsetof(struct config, node), 0, KEYS(node_keys), "The node.",
	 false},
	{"listeners", "listener", true, false, LIST(listener_conf, listeners), KEYS(listener_keys),
	 "Additional ports to listen on, usually with TLS.", false},
	{"peers", "peer", true, false, LIST(peer_conf, peers), KEYS(peer_keys), "Senders that the node accepts.", false},
	{"destinations", "destination", true, false, LIST(destination_conf, destinations), KEYS(destination_keys),
	 "Systems that results are sent to.", false},
	{"routes", "route", true, false, LIST(route_conf, routes), KEYS(route_keys),
	 "Assigns cases to a protocol and to destinations; the first route that matches is used.", false},
	{"protocols", "protocol", true, true, LIST(protocol_conf, protocols), KEYS(protocol_keys),
	 "Parameters of the reconstruction. All keys except name and kind can also be given with `--set`.", true},
	{"profiles", "profile", true, true, LIST(profile_conf, profiles), KEYS(profile_keys),
	 "The geometry of a tomosynthesis system, selected by manufacturer, model and serial number in the images. Without a "
	 "matching profile the case is held; a geometry is never guessed.",
	 false},
	{"scanners", "scanner", true, true, LIST(scanner_conf, scanners), config_scanner_keys, CONFIG_SCANNER_KEYS,
	 "The geometry of PET scanners and of their sinograms, selected by manufacturer, model and serial number in the objects. "
	 "Values in the sinograms' own header take precedence; if a value is in neither, the case is held; a geometry is never "
	 "guessed.",
	 false},
	{"status", "status page", false, false, sizeof(struct status_conf), offsetof(struct config, status), 0,
	 config_status_keys, CONFIG_STATUS_KEYS,
	 "The status page of the node, see docs/status-page.md. It has no password: everyone who can reach it can read it.",
	 false},
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

const struct config_key *config_key_find(const struct config_section *section, const char *name)
{
	for (size_t i = 0; i < section->n_keys; i++)
		if (!strcmp(section->keys[i].name, name))
			return &section->keys[i];
	return NULL;
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

/* Return the number of letters to insert, remove or replace (Levenshtein 1966); words are cut at 31 letters. */
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
	size_t least = strlen(word) / 3 + 2; /* more differences are allowed in a longer word */

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
