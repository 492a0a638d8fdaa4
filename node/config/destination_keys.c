/* SPDX-License-Identifier: Apache-2.0 */
/* destination_keys.c - the keys of destinations: rows of the table of config_table.c. */
#include "node/config/config_internal.h"

static const struct key_choice destination_kinds[] = {
#define X(constant, name) {#name, DESTINATION_##constant},
	DESTINATION_KINDS(X)
#undef X
		{NULL, 0}};
static const struct key_choice verifications[] = {{"full", 1}, {"authority", 0}, {NULL, 0}};

const struct key config_destination_keys[CONFIG_DESTINATION_KEYS] = {
	{"name", AS_NAME(destination_conf, name), .fallback = REQUIRED, .meaning = "name of the destination in `routes`"},
	{"kind", AS_CHOICE(destination_conf, kind, destination_kinds), .fallback = "dicom",
	 .meaning =
		 "how objects are sent: `dicom`: C-STORE over an association; `stow`: STOW-RS to a DICOMweb service; `folder`: "
		 "files; keys that are marked with some kinds are refused for the others"},
	{"path", AS_PATH(destination_conf, path), .fallback = REQUIRED, .only = "folder",
	 .meaning =
		 "folder that gets the files `STUDY/SERIES/OBJECT.dcm`, named by their UIDs; the node's user must be able to write "
		 "there. It is never created: of a file system that is mounted, name a folder below the mount point, so "
		 "that nothing is written while it is not mounted"},
	{"url", AS_TEXT(destination_conf, url, URL_SIZE - 1), .fallback = "", .only = "stow",
	 .meaning =
		 "URL of the DICOMweb service, to which `/studies` is appended: `https://HOST[:PORT][/PATH]`; `http` sends "
		 "without encryption, and is refused with keys of TLS, and with `credentials` unless the host is this machine"},
	{"credentials", AS_PATH(destination_conf, credentials), .fallback = "", .only = "stow",
	 .meaning =
		 "file of one line with a bearer token, or with USER:PASSWORD for basic authentication, that other users cannot "
		 "read; it is read again for each delivery; empty: none"},
	{"answer_timeout", AS_INT(destination_conf, answer_timeout, 1, 3600), .unit = "s", .fallback = "120", .only = "stow",
	 .meaning = "time without a byte in either direction after which a request has failed"},
	{"aet", AS_AET(destination_conf, aet), .fallback = REQUIRED, .only = "dicom", .meaning = "AE title of the destination"},
	{"host", AS_HOST(destination_conf, host), .fallback = REQUIRED, .only = "dicom",
	 .meaning = "host name or address of the destination"},
	{"port", AS_INT(destination_conf, port, 1, 65535), .fallback = "104", .only = "dicom",
	 .meaning = "port of the destination"},
	{"connect_timeout", AS_INT(destination_conf, connect_timeout, 1, 3600), .unit = "s", .fallback = "10",
	 .only = "dicom stow", .meaning = "timeout for opening the TCP connection; with `stow` including the TLS handshake"},
	{"acse_timeout", AS_INT(destination_conf, acse_timeout, 1, 3600), .unit = "s", .fallback = "30", .only = "dicom",
	 .meaning = "timeout for opening and closing the association"},
	{"dimse_timeout", AS_INT(destination_conf, dimse_timeout, 1, 3600), .unit = "s", .fallback = "120", .only = "dicom",
	 .meaning = "timeout for the response to a C-STORE"},
	{"associations", AS_INT(destination_conf, associations, 1, 16), .fallback = "1",
	 .meaning =
		 "number of deliveries at a time, each of another case over an association of its own; the order within a case "
		 "is kept, and a destination that does not respond still gets one attempt at a time"},
	{"tls", AS_BOOL(destination_conf, tls), .fallback = "false", .only = "dicom",
	 .meaning = "use TLS; false: plain DICOM, the six keys below are ignored"},
	{"certificate", AS_PATH(destination_conf, certificate), .fallback = "", .only = "dicom stow",
	 .meaning = "own certificate (PEM); empty: `node.tls_certificate` and its key, if configured"},
	{"key", AS_PATH(destination_conf, key), .fallback = "", .only = "dicom stow",
	 .meaning = "private key of `certificate`; empty: the key is in the certificate's file"},
	{"authorities", AS_PATH(destination_conf, authorities), .fallback = "", .only = "dicom stow",
	 .meaning = "trusted certificates for checking that of the destination; empty: `node.tls_authorities`"},
	{"crl", AS_PATH(destination_conf, crl), .fallback = "", .only = "dicom stow",
	 .meaning = "revocation lists of these authorities; empty: `node.tls_crl` if `authorities` is empty too, else none"},
	{"verify", AS_CHOICE(destination_conf, verify_name, verifications), .fallback = "full", .only = "dicom",
	 .meaning = "checks of the destination's certificate: `full`: authority, validity period and name; `authority`: "
		    "authority and validity period"},
	{"tls_name", AS_HOST(destination_conf, tls_name), .fallback = "", .only = "dicom",
	 .meaning = "host name or address that the destination's certificate must contain; empty: `host`"},
	{"retry_first", AS_REAL(destination_conf, retry_first, 0.1, 86400), .unit = "s", .fallback = "5",
	 .meaning = "wait after the first transient failure; doubled after each further one"},
	{"retry_cap", AS_REAL(destination_conf, retry_cap, 0.1, 86400), .unit = "s", .fallback = "900",
	 .meaning = "longest wait between two attempts"},
	{"retry_limit", AS_INT(destination_conf, retry_limit, 1, 1000000), .zero = "no limit", .fallback = "0",
	 .meaning = "number of transient failures after which the result becomes a dead letter"},
	{"alarm_after", AS_REAL(destination_conf, alarm_after, 1, 2592000), .unit = "s", .zero = "no alarm", .fallback = "3600",
	 .meaning = "time of continuous transient failures after which an alarm is raised; delivery is still tried"},
	{"alarm_rejections", AS_INT(destination_conf, alarm_rejections, 1, 1000000), .zero = "no alarm", .fallback = "3",
	 .meaning = "number of failures in a row, the last one a permanent rejection of the association (unknown AE title, "
		    "refused certificate), after which an alarm is raised; delivery is still tried"},
	{"fallback", AS_NAME(destination_conf, fallback), .fallback = "",
	 .meaning = "another destination, which gets the result if this one fails; empty: none"},
	{"fallback_after", AS_REAL(destination_conf, fallback_after, 1, 2592000), .unit = "s",
	 .zero = "only after a permanent refusal", .fallback = "0",
	 .meaning = "time of transient failures after which the result also goes to the fallback"},
	{"commitment", AS_BOOL(destination_conf, commitment), .fallback = "false", .only = "dicom",
	 .meaning = "request storage commitment for the stored objects; a case counts as delivered, and may be removed, only "
		    "after the destination has committed"},
	{"commitment_aet", AS_AET(destination_conf, commitment_aet), .fallback = "", .only = "dicom",
	 .meaning = "AE title to send the commitment request to, and that sends the report; empty: `aet`"},
	{"commitment_host", AS_HOST(destination_conf, commitment_host), .fallback = "", .only = "dicom",
	 .meaning = "host of `commitment_aet`; empty: `host`"},
	{"commitment_port", AS_INT(destination_conf, commitment_port, 1, 65535), .zero = "the same as `port`", .fallback = "0",
	 .only = "dicom", .meaning = "port of `commitment_aet`"},
	{"commitment_wait", AS_INT(destination_conf, commitment_wait, 1, 3600), .unit = "s",
	 .zero = "the association is released at once", .fallback = "5", .only = "dicom",
	 .meaning = "time to keep the association open for the commitment report; a later report arrives on an association that "
		    "the peer opens"},
	{"commitment_timeout", AS_REAL(destination_conf, commitment_timeout, 1, 2592000), .unit = "s", .fallback = "86400",
	 .only = "dicom",
	 .meaning = "time without a report after which the objects are sent again and commitment is requested again"},
	{"commitment_attempts", AS_INT(destination_conf, commitment_attempts, 1, 1000), .fallback = "3", .only = "dicom",
	 .meaning = "number of commitment requests that failed or got no report after which the result becomes a dead letter"},
};
