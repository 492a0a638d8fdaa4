/* SPDX-License-Identifier: Apache-2.0 */
/* Load the configuration into C structures; all values are checked, missing ones have their defaults.
 *
 * The embedded defaults (conf/defaults.conf, compiled in) are read first, then the file given with -c: each key of its `node`,
 * `status` and `slurm` replaces the default of that key; its protocols, profiles and scanners are added; its list of listeners,
 * peers, destinations or routes replaces the embedded list. An entry with the name of an embedded entry inherits the values of
 * that entry, so that a single key can be changed. Every problem is reported with file:line and the allowed values. The caller
 * owns a loaded configuration; it is not changed after loading.
 */
#ifndef TOMONODE_NODE_CONFIG_H
#define TOMONODE_NODE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "node/base/language.h"
#include "node/base/url.h"
#include "node/base/viewer_url.h"
#include "node/config/kinds.h"
#include "node/config/pattern.h"
#include "recon/core/keys.h"

#define CONFIG_NAME_SIZE 64
#define CONFIG_AET_SIZE 17
#define CONFIG_PATH_SIZE 256

#define CONFIG_NAMES_MAX 8
struct config_names { /* names of entries of another section, groups or networks */
	char name[CONFIG_NAMES_MAX][CONFIG_NAME_SIZE];
	size_t n;
};
bool config_names_have(const struct config_names *names, const char *name);

enum audit_target { AUDIT_NONE, AUDIT_SYSLOG, AUDIT_FILE };
enum sandbox_mode { SANDBOX_AUTO, SANDBOX_ON, SANDBOX_OFF };
/* Who runs a case, combined by or. Pilots that dial in are used by all of them. */
enum executor { EXECUTOR_PILOTS = 0, EXECUTOR_LOCAL = 1, EXECUTOR_SLURM = 2 };

struct node_conf {
	char aet[CONFIG_AET_SIZE]; /* AE title of the node */
	char bind[64];		   /* address to listen on; "127.0.0.1" by default */
	int port;
	bool plain;			 /* listen on bind and port without TLS */
	char spool[256];		 /* folder of all data: received instances, journal, results */
	int workers_per_device;		 /* of each CUDA device; 0: automatic (node/serve/slots.h) */
	bool compute_in_turn;		 /* of the workers of a CUDA device only one computes at a time */
	char device[160];		 /* see node/base/device_names.h */
	int executor;			 /* enum executor */
	int max_pdu;			 /* largest PDU to receive, bytes */
	int acse_timeout, dimse_timeout; /* s */
	int max_associations; /* simultaneous associations, one process each; further requests are rejected as transient */
	/* TLS files (PEM) for listeners and destinations that configure none; "": none. */
	char tls_certificate[CONFIG_PATH_SIZE], tls_key[CONFIG_PATH_SIZE], tls_authorities[CONFIG_PATH_SIZE],
		tls_crl[CONFIG_PATH_SIZE];
	/* Limits for each peer; see node/receive/limits.h. */
	int peer_associations;	 /* simultaneous associations of one peer; 0: no limit per peer */
	uint64_t peer_bytes;	 /* bytes that a peer may send within peer_window; 0: no limit */
	double peer_window;	 /* period of peer_bytes and peer_refusals, s */
	int peer_refusals;	 /* refused attempts within peer_window until an address is blocked; 0: never */
	double peer_block_time;	 /* duration of the block, s */
	uint64_t reserve;	 /* bytes to keep free on the spool's disk; with less, objects are refused with A700 at once */
	uint64_t max_result;	 /* largest size of a result's slices, bytes; a case with a larger one is held; 0: no limit */
	double quiet_time;	 /* time without a new instance until an incomplete case is held, s */
	double ct_wait;		 /* longest wait of a complete case for the CT series that it needs, s; 0: none */
	bool check_called;	 /* reject associations to another AE title */
	bool require_known_peer; /* accept configured peers only; off by default only if bind is a loopback address */
	bool log_syslog;	 /* log to syslog; else to stderr */
	enum audit_target audit; /* destination of the audit messages */

	int audit_facility; /* syslog(3) facility */
	char audit_socket[108], audit_file[256], audit_site[65];
	int log_facility, log_level; /* syslog(3) values */
	int retention_days;	     /* days until delivered cases are removed; 0: never */
	uint64_t retention_space; /* bytes of images and results in the spool above which delivered cases are removed earlier; 0:
				     no limit */
	int retention_unassigned_days; /* days until objects that belong to no case are removed; 0: never */
	int journal_retention_days;    /* days until the journal entries of removed cases are deleted; 0: never */
	int attempts;		       /* reconstruction attempts before a job fails */
	int worker_timeout;	       /* time without progress until a worker is killed, s */
	enum sandbox_mode sandbox;     /* see node/sandbox/sandbox.h */
	char user[33];		       /* user to change to when started as root; "": none */
};

#define LISTENERS_MAX 16
struct listener_conf { /* a port to listen on in addition to node.port */
	char name[CONFIG_NAME_SIZE];
	char bind[64]; /* "": node.bind */
	int port;
	bool tls;
	char certificate[CONFIG_PATH_SIZE], key[CONFIG_PATH_SIZE], authorities[CONFIG_PATH_SIZE]; /* "": the node's */
	char crl[CONFIG_PATH_SIZE]; /* revoked certificates of the authorities; "": the node's, together with its authorities */
	bool client_certificate;    /* refuse peers that present no trusted certificate */
};

struct peer_conf { /* a system that may send to the node */
	char name[CONFIG_NAME_SIZE];
	char aet[CONFIG_AET_SIZE]; /* "" any */
	char host[64];		   /* address, name or network ("10.1.0.0/16"); "" any */
	char certificate[128];	   /* see node/receive/admission.h; "" any or none */
	int associations;	   /* 0: node.peer_associations */
	uint64_t bytes;		   /* 0: node.peer_bytes */
};

/* Kinds of destinations: X(constant, name of the kind and of its struct destination_kind_actions). */
#define DESTINATION_KINDS(X)                                                                                                     \
	X(DICOM, dicom)	  /* C-STORE over an association */                                                                      \
	X(STOW, stow)	  /* STOW-RS over HTTP */                                                                                \
	X(FOLDER, folder) /* files in a folder */
enum destination_kind {
#define X(constant, name) DESTINATION_##constant,
	DESTINATION_KINDS(X)
#undef X
		DESTINATION_KIND_COUNT
};

struct destination_conf {
	char name[CONFIG_NAME_SIZE];
	enum destination_kind kind;
	char url[URL_SIZE];		    /* stow: of the DICOMweb service; host, port and tls below are made of it */
	char credentials[CONFIG_PATH_SIZE]; /* stow: file, see node/web/http_credentials.h; "": none */
	int answer_timeout;		    /* stow, s */
	char path[CONFIG_PATH_SIZE];	    /* folder */
	char aet[CONFIG_AET_SIZE];
	char host[64];
	int port;
	int connect_timeout, acse_timeout, dimse_timeout; /* s */
	int associations;				  /* most deliveries at a time, each of another case */
	double retry_first, retry_cap; /* wait between attempts: retry_first, doubled each time, at most retry_cap, s */
	bool tls;
	char certificate[CONFIG_PATH_SIZE], key[CONFIG_PATH_SIZE], authorities[CONFIG_PATH_SIZE]; /* "": the node's */
	char crl[CONFIG_PATH_SIZE]; /* revoked certificates of the authorities; "": the node's, together with its authorities */
	bool verify_name;	    /* check that the certificate contains tls_name */
	char tls_name[64];	    /* name that the certificate must contain; "": host */
	int retry_limit;	    /* transient failures until the job becomes a dead letter; 0: no limit */
	double alarm_after;	    /* time of continuous transient failures until an alarm is logged, s; 0: never */
	int alarm_rejections;	    /* failures in a row, the last a permanent rejection, until an alarm is logged; 0: never */
	char fallback[CONFIG_NAME_SIZE]; /* destination that receives the result if this one fails; "": none */
	double fallback_after;		 /* time of failures until the fallback is used, s; 0: only after a permanent refusal */
	bool commitment;		 /* request storage commitment; the members below belong to it */
	char commitment_aet[CONFIG_AET_SIZE]; /* AE title, host and port that the request is sent to; "", "", 0: those of the
						 destination */
	char commitment_host[64];
	int commitment_port;
	int commitment_wait;	   /* time the association stays open for the report, s */
	double commitment_timeout; /* time from the request to its report, s */
	int commitment_attempts;   /* failed requests until the job becomes a dead letter */
};

enum status_actions { STATUS_ACTIONS_LOOPBACK, STATUS_ACTIONS_ALWAYS, STATUS_ACTIONS_NEVER };

struct status_conf { /* the status page (HTML served by the node) */
	bool enabled;
	char bind[64]; /* "127.0.0.1" by default */
	int port;
	char host[64];		     /* name of the page's host in browsers, besides localhost and addresses; "": none */
	enum status_actions actions; /* see config_status_may_act() */
	bool thumbnails;
	bool show_patient;
	enum language language;
	char viewer_url[VIEWER_PATTERN_SIZE]; /* see node/base/viewer_url.h; "": no links to a viewer */
	/* Persons, see node/status/status_person.h. trusted_header "": there are none. */
	char trusted_header[CONFIG_NAME_SIZE], trusted_groups[CONFIG_NAME_SIZE]; /* names of headers: the person; the groups */
	struct config_names trusted_from; /* addresses and networks whose headers are believed, for network_parse() */
	struct config_names may_look, may_act, may_administer; /* groups */
};

struct cluster_conf { /* pilots: processes on other machines that reconstruct */
	char bind[64];
	int port;	     /* that pilots connect to; 0: none */
	char advertise[128]; /* HOST:PORT by which pilots reach the node; "": the name of this machine, and `port` */
	double lease;	     /* silence after which a pilot counts as lost, s */
	bool shared_spool;   /* pilots read and write the spool themselves */
	/* PEM files with which both ends prove who they are; certificate "": without certificates */
	char certificate[CONFIG_PATH_SIZE], key[CONFIG_PATH_SIZE], authorities[CONFIG_PATH_SIZE];
};

struct alerts_conf {			/* messages about troubles, to a web service or to a program: node/alert/alerts.h */
	char url[256];			/* "": none */
	char exec[CONFIG_PATH_SIZE];	/* the program; "": none. Never both */
	struct config_names exec_files; /* files and folders that it reads */
	char authorities[CONFIG_PATH_SIZE], credentials[CONFIG_PATH_SIZE];
	double timeout;			/* s, of one attempt */
	double delay, settle, interval; /* s, see struct alert_limits */
	int most;			/* troubles that a message lists */
};

struct slurm_conf {   /* pilots as Slurm jobs, see docs/cluster.md; "" and 0: that of the cluster */
	int min, max; /* number of pilots */
	double idle;  /* time after which an idle pilot ends, s */
	char program[256], output[CONFIG_PATH_SIZE];
	char certificate[CONFIG_PATH_SIZE], key[CONFIG_PATH_SIZE], authorities[CONFIG_PATH_SIZE]; /* of the pilots */
	char partition[64], account[64], gres[64], constraint[128], time[32], memory[32];
	int cpus;
};

/* Attributes of a case by which routes are chosen. */
enum route_fact {
	ROUTE_STUDY_DESCRIPTION,
	ROUTE_PROTOCOL_NAME,
	ROUTE_BODY_PART,
	ROUTE_VIEW,
	ROUTE_STATION,
	ROUTE_INSTITUTION,
	ROUTE_FACTS
};

struct route_conf { /* assigns cases to protocols and to destinations: see node/config/route.h */
	char name[CONFIG_NAME_SIZE];
	char kind[KIND_NAME_SIZE];		 /* name of its kind of case */
	char calling[CONFIG_AET_SIZE];		 /* "" any */
	char pattern[ROUTE_FACTS][PATTERN_SIZE]; /* "" any */
	struct config_names protocols, destinations;
	bool continues; /* the routes after it are used, too */
};

enum synthetic_class { SYNTHETIC_MAMMOGRAM = 1, SYNTHETIC_TOMOSYNTHESIS };
enum slab_mode { SLAB_MEAN = 1, SLAB_MAXIMUM };
enum compression { COMPRESSION_NONE, COMPRESSION_JPEGLS }; /* lossless JPEG-LS */

/* Whose axis of rotation parallel beams are reconstructed about. */
enum parallel_axis_rule { PARALLEL_AXIS_HEADER = 1, PARALLEL_AXIS_FOUND, PARALLEL_AXIS_AGREE };

/* What happens to a case when a step fails: held for a person; delivered without the step, with a warning; failed. */
enum step_failure { STEP_HOLD, STEP_FALLBACK, STEP_FAIL };

struct step_conf { /* a program of the site that changes a volume before it is written, see docs/steps.md */
	char name[CONFIG_NAME_SIZE];
	char program[CONFIG_PATH_SIZE];
	struct config_names files; /* files and folders that it reads */
	char sha256[65];	   /* of program and files (node/step/step_files.h) */
	char version[32], parameters[201];
	double time;   /* s */
	size_t memory; /* bytes of addresses; with gpu of data */
	int threads;
	bool gpu;	       /* it may use a GPU */
	bool deterministic;    /* the same volume gives the same bits */
	double preserves_mean; /* largest change of the mean of a constant volume, as a fraction; 0: not checked */
	enum step_failure on_failure;
};

/* A protocol is for one kind of case and accepts only the keys of this kind. */
struct protocol_conf {
	char name[CONFIG_NAME_SIZE];
	enum case_kind kind;
#define X(constant, name) struct name##_protocol name; /* only the member for `kind` is used */
	KINDS(X)
#undef X
	enum parallel_axis_rule axis; /* parallel beams */
	int ring_width;		      /* parallel beams: of rings that are removed, bins; 0: they stay */
	double mu_water; /* parallel beams: attenuation of water for Hounsfield units, 1/mm; 0: no Hounsfield units */
	/* Only for tomosynthesis, up to `synthetic`: */
	double stored_step, stored_offset; /* attenuation = offset + stored value * step, 1/mm; the same for every exam */
	int stored_bits;		   /* bits of a stored value, 12 to 16; below 16 the step is a multiple of stored_step */
	double slab_thickness;		   /* thickness of slabs (several slices combined), mm; 0: write no slabs */
	double slab_step;		   /* distance between slabs, mm; 0: slab_thickness / 2 */
	enum slab_mode slab_mode;
	bool synthetic; /* write a 2-D view computed from the slices as an additional object */
	enum synthetic_class synthetic_class;
	bool synthetic_rim;	   /* fill the missing thickness of the rim in this view (recon/dbt/rim_fill.h) */
	bool require_quantitative; /* tomosynthesis: hold cases whose attenuation is relative */
	enum compression compression;
	char description[128];				/* written to SeriesDescription */
	char purpose[256];				/* a line for people: what it is for */
	struct config_names steps;			/* in this order */
	const struct step_conf *step[CONFIG_NAMES_MAX]; /* of these names; borrowed from the configuration */
};

/* Source of I0, the stored value of the unattenuated beam; see docs/configuration.md. */
enum i0_mode { I0_FIXED = 1, I0_HEADER_MAX, I0_PERCENTILE, I0_FLATFIELD };

/* Where the numbers of a geometry profile come from. */
enum geometry_source { GEOMETRY_LITERATURE, GEOMETRY_CALIBRATED, GEOMETRY_SIMULATED };

#define PROFILE_BINNING_MAX 8 /* bins of the detector along a bin of an exam */

struct profile_conf { /* geometry of a tomosynthesis system */
	char name[CONFIG_NAME_SIZE];
	char manufacturer[64], model[64], serial[64]; /* case-insensitive, with * and ?; "" matches any */
	double axis_height, source_axis;	      /* rotation axis above the detector plane; source to axis; mm */
	double support;				      /* top of the breast support above the detector, mm */
	double source_x;			      /* position of the source along x, mm */
	double source_y;			      /* position of the rotation axis along y, mm */
	double detector_ratio;			      /* turn of the detector divided by that of the source; 0: it stands still */
	double detector_axis_y, detector_axis_height; /* axis that the detector turns around, parallel to x; mm */
	bool pose_in_header;	/* source and detector of each view are those of the header's projection matrices */
	double pose_edge;	/* of the matrices: number of bins along u up to the chest-wall edge */
	double pose_middle;	/* of the matrices: number of bins along v up to y = 0 */
	int pose_rows;		/* of the matrices: 1: v along +y; -1: along -y */
	bool sco;		/* read projections from Hologic SCO objects */
	double pose_level;	/* bins: up to this error columns are treated as parallel to x */
	double pitch;		/* size of a detector bin, mm; those of an exam are 1 to PROFILE_BINNING_MAX times as large */
	uint32_t angle_tag;	/* attribute with the projection's angle in single-frame series: 0x00181510 or 0x00181531 */
	int angle_sign;		/* +1 or -1: factor that makes the stored angle positive toward +y */
	double angle_offset;	/* degrees, added after the sign */
	bool angle_at_detector; /* the angle is that of the source as seen from the detector, not its turn about the axis */
	double sid_tolerance;	/* largest difference of (0018,1110) from axis_height + source_axis, mm */
	enum i0_mode i0_mode;
	double i0;		  /* I0_FIXED: stored value; I0_PERCENTILE: percentile, percent */
	double offset;		  /* stored value without radiation */
	char flatfield[256];	  /* path of the DICOM file for I0_FLATFIELD; with I0_PERCENTILE for exams without air */
	char flatfield_copy[256]; /* not a key: path of a copy to read instead, on another machine; "": none */
	double air_value;	  /* I0_PERCENTILE: stored value of air for exams without air; 0: unknown */
	double air_exposure;	  /* exposure of air_value, mAs; 0: air_value does not depend on it */
	bool open_field_distance; /* I0 varies with the distance and direction of the source, relative to the view at 0 degrees */
	bool open_field_fit;	  /* I0_PERCENTILE: I0 also has the slope that the air shows */
	bool scale_by_exposure;	  /* scale I0 by each projection's exposure */
	double log_zero, log_scale; /* for logarithmic data: line integral = (log_zero - stored value) * log_scale */
	double floor;		    /* fraction of I0 to which lower intensities are raised before the logarithm */
	double scatter_scale;	    /* scattered to primary radiation, relative to a system without grid */
	char chest_wall[8]; /* for single-frame objects without (0020,0020): image edge at the chest wall, "left" or "right"; "":
			       refuse them */
	/* Constants of the system, for modules of the result if the images lack them; "", 0: unknown. */
	char detector_type[17], detector_id[17], anode[17], filter_type[17], filter_material[17];
	char paddle[65], exposure_control[17], exposure_control_text[65];
	double element_spacing, focal_spot; /* mm */
	int elements_x, elements_y;	    /* detector elements of size `pitch` along x and y; 0: unknown */
	int projections;		    /* number of projections of a complete exam; 0: unknown */
	double arc;			    /* range of their angles, degrees; 0: unknown */
	enum geometry_source geometry_source;
	char calibration_date[11]; /* of a calibrated geometry, "2026-05-31"; "": unknown */
	double calibration_rms;	   /* residuals of its fit, bins; 0: unknown */
};

struct scanner_conf { /* geometry of a PET scanner and its sinograms; values in the data take precedence */
	char name[CONFIG_NAME_SIZE];
	char manufacturer[64], model[64], serial[64]; /* of the equipment, as in the DICOM header; "": any */
	struct pet_scanner scanner;
	int n_radial, n_angles;		/* numbers of radial bins and of angles of a sinogram */
	int span;			/* number of ring differences in a segment, see michelogram_segments() */
	int max_difference;		/* largest ring difference */
	double angle_offset;		/* degrees, of the first view before views are added */
	bool arc_corrected;		/* true: radial bins are equidistant by scanner.bin; false: they follow the detectors */
	double calibration;		/* (Bq/ml) per (count per second and mm of ray); 0: unknown */
	double ecat_counts;		/* ECAT counts of one count per mm of ray; 0: not asked for */
	int tof_bins;			/* TOF bins of a ray, without mashing; 0: no time of flight, or unknown */
	double tof_width;		/* ps: width of these bins, as a difference of times */
	double tof_resolution;		/* ps: full width at half maximum of a measured difference of times */
	double energy_low, energy_high; /* keV: energy window; 0: unknown */
	double energy_resolution;	/* percent: full width at half maximum at 511 keV; 0: unknown */
};

struct config {
	char path[512]; /* file that was read; "": only the embedded defaults */
	struct node_conf node;
	struct listener_conf *listeners; /* as configured; config_listeners() completes them */
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
	struct step_conf *steps;
	size_t n_steps;
	struct status_conf status;
	struct alerts_conf alerts;
	struct slurm_conf slurm;
	struct cluster_conf cluster;
};

const char *config_embedded(void); /* the text of the embedded entries, conf/defaults.conf */

/* Load a configuration. path NULL: the embedded defaults. Each problem is passed to `report` ("file:line: what; allowed: ...");
 * report may be NULL. Any problem: EINVAL, *ret_config is unchanged, and err has the first problem and their number. */
int config_load(const char *path, void (*report)(void *ctx, const char *problem), void *ctx, struct config **ret_config,
		struct err *err);
/* Load a file like config_load(), and return its checked text with all includes inserted; the caller frees *ret_text. */
int config_load_text(const char *path, void (*report)(void *ctx, const char *problem), void *ctx, struct config **ret_config,
		     char **ret_text, struct err *err);
/* Load text in memory like config_load(), for fuzzing and tests; name: file name for messages. */
int config_parse(const char *bytes, const char *name, void (*report)(void *ctx, const char *problem), void *ctx,
		 struct config **ret_config, struct err *err);
struct config *config_free(struct config *c);
/* Report settings that are allowed but risky, such as "anybody may send from the network": one call for each warning. */
void config_warn(const struct config *c, void (*report)(void *ctx, const char *warning), void *ctx);

/* List all ports to listen on: node.port (unless node.plain is false) and the entries of `listeners`, with empty values replaced
 * by those of the node. Returns their number. */
size_t config_listeners(const struct config *c, struct listener_conf ret_list[LISTENERS_MAX]);

const struct protocol_conf *config_protocol(const struct config *c, const char *name);	     /* NULL: none */
const struct destination_conf *config_destination(const struct config *c, const char *name); /* NULL: none */
/* Return the most specific matching profile; NULL: none, and the case is held for this reason. */
const struct profile_conf *config_profile(const struct config *c, const char *manufacturer, const char *model,
					  const char *serial);
/* Return the most specific matching scanner; NULL: none, which is valid if the data contain all values. */
const struct scanner_conf *config_scanner(const struct config *c, const char *manufacturer, const char *model,
					  const char *serial);
const struct scanner_conf *config_scanner_named(const struct config *c, const char *name); /* NULL: none */

bool config_tells_alerts(const struct config *c);   /* true: there is a webhook or a program for messages about troubles */
bool config_status_may_act(const struct config *c); /* true: the status page offers retry and cancel */

/* Set one value of a protocol from "key=value", blanks around = are ignored. Keys, units and ranges are those of the configuration file. */
int config_set(struct protocol_conf *p, const char *assignment, struct err *err);
/* Return the name of the first key whose value differs in `p` and `before`, a protocol of the same kind, and which the algorithm
 * of `p` does not use, or which has no effect without another key; NULL: none. of: behind its name in the sentence, such as " of
 * protocol 'p'"; ret_why: the sentence. */
const char *config_key_without_effect(const struct protocol_conf *before, const struct protocol_conf *p, const char *of,
				      char ret_why[KEY_EFFECT_SIZE]);
/* Describe a protocol as "algorithm=osem iterations=1 ..." in a fixed order, for logs, provenance and the computation of UIDs.
 * config_set() accepts each word but `steps`, which are last: steps="NAME VERSION sha256=HEX PARAMETERS; ...". Values that do not
 * affect pixels are omitted: name, description, purpose and compression. */
#define CONFIG_PROTOCOL_TEXT 4096
size_t config_describe_protocol(const struct protocol_conf *p, char *ret_text, size_t size);
/* Write the values of `p` that differ from those of `of`, a protocol of the same kind, as "key=value, key=value", in the same
 * order and with the same keys; "": none. Those that do not fit as a whole are left out. */
void config_describe_changes(const struct protocol_conf *of, const struct protocol_conf *p, char *ret_text, size_t size);
/* Return false if protocols of this kind with this algorithm do not use a key that config_describe_protocol() writes. */
bool config_protocol_uses(const char *kind, const char *algorithm, const char *key);
/* Return what 0 means as the value of a key of protocols of this kind, if it is not a quantity like other values. NULL: it is. */
const char *config_protocol_zero(const char *kind, const char *key);
/* Return the unit of a key of protocols of this kind (NULL: of profiles); NULL: none. */
const char *config_key_unit(const char *kind, const char *key);
/* Describe a profile in the same form, without name and patterns. */
size_t config_describe_profile(const struct profile_conf *p, char *ret_text, size_t size);
/* Write a profile as a configuration file: `profiles = ( { name = "..."; ... } );`. Keys with an empty default that are not set
 * are left out. */
void config_write_profile(const struct profile_conf *p, char *ret_text, size_t size);

#endif
