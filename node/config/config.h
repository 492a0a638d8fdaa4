/* The configuration: what the operator wrote, checked and complete, as plain structures.
 *
 * Embedded defaults (conf/defaults.conf, compiled in) are read first; the file given with -c is laid over them: scalars replace
 * scalars; protocols, profiles and scanners are added by name; a list of listeners, peers, destinations or routes replaces the
 * embedded list. An entry with the name of an embedded one starts from that one, so that a single key can be changed. Every
 * problem is reported, with file:line and what is allowed. Owned by the caller, immutable after loading.
 */
#ifndef TOMONODE_NODE_CONFIG_H
#define TOMONODE_NODE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "node/config/kinds.h"

#define CONFIG_NAME_SIZE 64
#define CONFIG_AET_SIZE 17
#define CONFIG_PATH_SIZE 256

enum audit_target { AUDIT_NONE, AUDIT_SYSLOG, AUDIT_FILE };
enum sandbox_mode { SANDBOX_AUTO, SANDBOX_ON, SANDBOX_OFF };

struct node_conf {
	char aet[CONFIG_AET_SIZE]; /* our AE title */
	char bind[64];		   /* address to listen on; "127.0.0.1" by default */
	int port;
	bool plain;	  /* listen there, without TLS */
	char spool[256];  /* folder: instances, journal, outbox */
	char device[160]; /* see node/base/device_names.h */
	int max_pdu;
	int acse_timeout, dimse_timeout; /* s */
	int max_associations;		 /* processes at a time; more are rejected (transient) */
	/* Of listeners and destinations that have none of their own: files in PEM, "" none. */
	char tls_certificate[CONFIG_PATH_SIZE], tls_key[CONFIG_PATH_SIZE], tls_authorities[CONFIG_PATH_SIZE],
		tls_crl[CONFIG_PATH_SIZE];
	/* Limits for each peer; see node/receive/limits.h. */
	int peer_associations;	 /* at a time; 0: no limit of its own */
	uint64_t peer_bytes;	 /* that it may send within peer_window; 0: no limit */
	double peer_window;	 /* s */
	int peer_refusals;	 /* refused attempts within peer_window until an address is shut out; 0: never */
	double peer_block_time;	 /* s that it is shut out */
	uint64_t reserve;	 /* bytes that stay free on the spool's disk: below, A700 at once */
	double quiet_time;	 /* s without a new instance until an incomplete case is held */
	bool check_called;	 /* reject associations to another AE title */
	bool require_known_peer; /* allow-list on; off by default only while bind is a loopback address */
	bool log_syslog;	 /* else stderr */
	enum audit_target audit; /* where the audit trail goes */
	int audit_facility;	 /* syslog(3) value */
	char audit_socket[108], audit_file[256], audit_site[65];
	int log_facility, log_level; /* syslog(3) values */
	int retention_days;	     /* delivered cases are removed after this; 0: never */
	uint64_t
		retention_space; /* bytes of the spool's images and results above which delivered cases go earlier; 0: no limit */
	int retention_unassigned_days; /* objects of no case are removed after this; 0: never */
	int journal_retention_days;    /* what the journal says of cases that were removed goes after this; 0: never */
	int attempts;		       /* reconstruction attempts before a job fails */
	int worker_timeout;	       /* s without progress until a worker is killed */
	enum sandbox_mode sandbox;     /* see node/process/sandbox.h */
	char user[33];		       /* started as root, the node becomes this user; "": none is named */
};

#define LISTENERS_MAX 16
struct listener_conf { /* a port beside the node's own */
	char name[CONFIG_NAME_SIZE];
	char bind[64]; /* "" : the node's */
	int port;
	bool tls;
	char certificate[CONFIG_PATH_SIZE], key[CONFIG_PATH_SIZE], authorities[CONFIG_PATH_SIZE]; /* "" : the node's */
	char crl[CONFIG_PATH_SIZE]; /* of the authorities; "" : the node's, with its authorities */
	bool client_certificate;    /* who calls must show one */
};

struct peer_conf { /* who may send to us */
	char name[CONFIG_NAME_SIZE];
	char aet[CONFIG_AET_SIZE]; /* "" any */
	char host[64];		   /* address, name or network ("10.1.0.0/16"); "" any */
	char certificate[128];	   /* see node/receive/admission.h; "" any or none */
	int associations;	   /* 0: node.peer_associations */
	uint64_t bytes;		   /* 0: node.peer_bytes */
};

struct destination_conf {
	char name[CONFIG_NAME_SIZE];
	char aet[CONFIG_AET_SIZE];
	char host[64];
	int port;
	int connect_timeout, acse_timeout, dimse_timeout; /* s */
	double retry_first, retry_cap;			  /* s: exponential back-off from first to cap */
	bool tls;
	char certificate[CONFIG_PATH_SIZE], key[CONFIG_PATH_SIZE], authorities[CONFIG_PATH_SIZE]; /* "" : the node's */
	char crl[CONFIG_PATH_SIZE];	      /* of the authorities; "" : the node's, with its authorities */
	bool verify_name;		      /* its certificate must be for tls_name */
	char tls_name[64];		      /* "" : host */
	int retry_limit;		      /* transient failures until the dead letter; 0: no limit */
	double alarm_after;		      /* s of failures until an alarm; 0: never */
	int alarm_rejections;		      /* associations rejected for good until an alarm; 0: never */
	char fallback[CONFIG_NAME_SIZE];      /* gets the result where this one fails; "": none */
	double fallback_after;		      /* s of failures; 0: only where it refused for good */
	bool commitment;		      /* ask for storage commitment; the rest is about that */
	char commitment_aet[CONFIG_AET_SIZE]; /* whom to ask; "", "", 0: the same */
	char commitment_host[64];
	int commitment_port;
	int commitment_wait;	   /* s that the association is kept for a report on it */
	double commitment_timeout; /* s from the request to its report */
	int commitment_attempts;   /* requests that failed until the dead letter */
};

enum status_actions { STATUS_ACTIONS_LOOPBACK, STATUS_ACTIONS_ALWAYS, STATUS_ACTIONS_NEVER };

struct status_conf { /* the status page */
	bool enabled;
	char bind[64]; /* "127.0.0.1" by default */
	int port;
	char host[64];		     /* name under which browsers ask for it, besides localhost and addresses; "" none */
	enum status_actions actions; /* see config_status_may_act() */
	bool thumbnails;
	bool show_patient;
};

#define ROUTE_DESTINATIONS_MAX 8
struct route_conf { /* first match wins */
	char name[CONFIG_NAME_SIZE];
	char kind[KIND_NAME_SIZE];
	char calling[CONFIG_AET_SIZE]; /* "" any */
	char protocol[CONFIG_NAME_SIZE];
	char destination[ROUTE_DESTINATIONS_MAX][CONFIG_NAME_SIZE];
	size_t n_destinations;
};

enum slab_mode { SLAB_MEAN = 1, SLAB_MAXIMUM };
enum compression { COMPRESSION_NONE, COMPRESSION_JPEGLS }; /* JPEG-LS without loss */

/* A protocol is for one kind of case; the keys of other kinds cannot be given to it. */
struct protocol_conf {
	char name[CONFIG_NAME_SIZE];
	enum case_kind kind;
#define X(constant, name) struct name##_protocol name; /* that of its kind counts */
	KINDS(X)
#undef X
	double mu_water; /* parallel beams, 1/mm: attenuation of water, of which Hounsfield units are made; 0: none are */
	/* tomosynthesis, up to compression */
	double stored_step, stored_offset; /* 1/mm: attenuation = offset + stored value * step, the same for every exam */
	double slab_thickness;		   /* mm; 0: no object of slabs */
	double slab_step;		   /* mm; 0: thickness / 2 */
	enum slab_mode slab_mode;
	bool synthetic; /* a two-dimensional view as a further object */
	enum compression compression;
	char description[128]; /* goes to SeriesDescription */
};

enum i0_mode { I0_FIXED = 1, I0_HEADER_MAX, I0_PERCENTILE, I0_FLATFIELD };

struct profile_conf { /* the geometry of one system; never guessed */
	char name[CONFIG_NAME_SIZE];
	char manufacturer[64], model[64], serial[64]; /* case-insensitive, with * and ?; "" matches any */
	double axis_height, source_axis;	      /* mm */
	double support;				      /* top of the breast support above the detector, mm */
	double source_x;			      /* mm */
	double pitch;				      /* mm; checked against (0018,1164) */
	uint32_t angle_tag;			      /* single-frame series: 0x00181510 or 0x00181531 */
	int angle_sign;				      /* +1 or -1: stored angle times this is positive toward +y */
	double angle_offset;			      /* degrees, added after the sign */
	double sid_tolerance;			      /* mm: how far (0018,1110) may be from axis_height + source_axis */
	enum i0_mode i0_mode;
	double i0;		    /* FIXED: value; PERCENTILE: percent */
	double offset;		    /* detector offset, stored values */
	char flatfield[256];	    /* DICOM file, for FLATFIELD */
	bool scale_by_exposure;	    /* I0 follows each projection's exposure */
	double log_zero, log_scale; /* for (0028,1040) LOG data */
	double floor;		    /* fraction of I0 */
	char chest_wall[8]; /* single-frame without (0020,0020): image edge at the chest wall: "left", "right", or "" (refuse) */
};

struct scanner_conf { /* a PET scanner and the sinograms it makes; what data say about themselves wins */
	char name[CONFIG_NAME_SIZE];
	char manufacturer[64], model[64], serial[64]; /* as in struct profile_conf */
	struct pet_scanner scanner;
	int n_radial, n_angles;
	int span;	     /* see michelogram_segments() */
	int max_difference;  /* largest ring difference */
	double angle_offset; /* degrees */
	bool arc_corrected;  /* radial bins are equidistant, scanner.bin wide */
	double calibration;  /* (Bq/ml) per (count per second and mm of ray); 0: not known */
};

struct config {
	char path[512]; /* "" : embedded defaults alone */
	struct node_conf node;
	struct listener_conf *listeners; /* see config_listeners() */
	size_t n_listeners;
	struct peer_conf *peers;
	size_t n_peers;
	struct destination_conf *destinations;
	size_t n_destinations;
	struct route_conf *routes;
	size_t n_routes;
	struct protocol_conf *protocols;
	size_t n_protocols;
	struct profile_conf *profiles;
	size_t n_profiles;
	struct scanner_conf *scanners;
	size_t n_scanners;
	struct status_conf status;
};

/* path NULL: the embedded defaults. Problems go to `report` one by one ("file:line: what; allowed: ..."); with any, EINVAL and
 * *ret_config untouched; err holds the first one and how many there are. report may be NULL. */
int config_load(const char *path, void (*report)(void *ctx, const char *problem), void *ctx, struct config **ret_config,
		struct err *err);
/* The same of a file, and its text with all includes in place, which the caller frees: what was checked, to be kept. */
int config_load_text(const char *path, void (*report)(void *ctx, const char *problem), void *ctx, struct config **ret_config,
		     char **ret_text, struct err *err);
/* The same on bytes in memory, for fuzzing and tests; `name` stands for the file. */
int config_parse(const char *bytes, const char *name, void (*report)(void *ctx, const char *problem), void *ctx,
		 struct config **ret_config, struct err *err);
struct config *config_free(struct config *c);
/* What is allowed but looks unwise ("anybody may send from the network"): one call per warning. */
void config_warn(const struct config *c, void (*report)(void *ctx, const char *warning), void *ctx);

/* All that the node listens on: its own port, if it shall, and the others, complete with what they take from the node.
 * How many. */
size_t config_listeners(const struct config *c, struct listener_conf ret_list[LISTENERS_MAX]);

const struct protocol_conf *config_protocol(const struct config *c, const char *name);	     /* NULL: none */
const struct destination_conf *config_destination(const struct config *c, const char *name); /* NULL: none */
const struct route_conf *config_route(const struct config *c, const char *kind, const char *calling);
/* The most specific matching profile; NULL: none (the case is held with that reason). */
const struct profile_conf *config_profile(const struct config *c, const char *manufacturer, const char *model,
					  const char *serial);
/* Likewise for PET; NULL: none, which is no problem while the data say everything themselves. */
const struct scanner_conf *config_scanner(const struct config *c, const char *manufacturer, const char *model,
					  const char *serial);
const struct scanner_conf *config_scanner_named(const struct config *c, const char *name); /* NULL: none */

bool config_status_may_act(const struct config *c); /* retry and cancel on the status page */

/* Pattern with * and ?, upper and lower case alike. */
bool config_matches(const char *pattern, const char *text);

/* "key=value" on a protocol, with the keys of its kind and the same units and ranges as in the file. */
int config_set(struct protocol_conf *p, const char *assignment, struct err *err);
/* The protocol as "algorithm=osem iterations=1 ..." in fixed order: for logs, provenance and the UIDs' seed. Each word is what
 * config_set() takes. Name, description and compression, which have no part in the pixels, are left out; so are a profile's
 * patterns. At most 800 characters. */
void config_describe_protocol(const struct protocol_conf *p, char *ret_text, size_t size);
void config_describe_profile(const struct profile_conf *p, char *ret_text, size_t size);

#endif
