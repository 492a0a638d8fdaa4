/* SPDX-License-Identifier: Apache-2.0 */
/* Convert the text of a configuration to struct config. Private to node/config/. */
#ifndef TOMONODE_NODE_CONFIG_READ_H
#define TOMONODE_NODE_CONFIG_READ_H

#include "node/config/config.h"
#include "node/config/config_table.h"
#include "node/config/config_text.h"

#define CONFIG_ENTRIES_MAX 256 /* maximum number of entries of one section */

struct config_place {
	const char *file; /* borrowed from the struct config_text */
	int line;
};

/* State while a configuration is loaded. All problems are reported by config_problem(). */
struct config_reader {
	struct config *config;
	void (*report)(void *ctx, const char *problem);
	void *ctx;
	size_t n_problems;
	char first[420];			    /* the first problem */
	const struct config_text *text;		    /* the text that is being read */
	bool embedded;				    /* true: `text` is the embedded defaults */
	bool peers_checked;			    /* the user's file sets require_known_peer */
	bool refusals_given;			    /* the user's file sets peer_refusals */
	bool associations_given;		    /* the user's file sets peer_associations */
	bool names_only;			    /* config_finish_names() is running */
	bool incomplete[SECTION_COUNT];		    /* an invalid entry of the section was not stored: do not report its name as
						       missing, too */
	struct config_place *places[SECTION_COUNT]; /* file and line of each entry */
	struct config_place listed[SECTION_COUNT];  /* file and line where the user's list begins; file NULL: the user's file has
						       no such list */
};

/* Report a problem at a file and line, and count it. */
void config_problem(struct config_reader *r, const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Read one text; its values replace those already read, or are added to them. */
void config_read_text(struct config_reader *r, const struct config_text *text, bool embedded);
/* Call after all texts are read: set defaults that depend on other values; check names and combinations of keys. */
void config_finish(struct config_reader *r);
/* Call instead if there are problems: check only the names that entries refer to, so that one run reports all of them. */
void config_finish_names(struct config_reader *r);
/* The part of the first that is about destinations; of both, that about their fallbacks. destination_check.c */
void config_finish_destinations(struct config_reader *r);
void config_finish_fallbacks(struct config_reader *r);
/* The part of both that is about routes. route_check.c */
void config_finish_routes(struct config_reader *r);
/* The part of config_finish() and of config_warn() that is about the status page. config_status.c */
void config_finish_status(struct config_reader *r);
void config_warn_status(const struct config *c, void (*report)(void *ctx, const char *warning), void *ctx);
bool config_is_loopback(const char *address); /* 127.0.0.0/8 or ::1, numeric */
void config_finish_alerts(struct config_reader *r);
/* Report that a key refers to a name that no entry of a section has; nothing if the section was not read completely. */
void config_unknown_name(struct config_reader *r, struct config_place place, const char *what, const char *of, const char *key,
			 const char *wanted, size_t section);
void config_reader_clear(struct config_reader *r); /* frees `places`, not `config` */

/* Return the array of a list section in `c` as bytes, and its number of entries. */
char *config_entries(const struct config *c, const struct config_section *section, size_t *ret_n);

#endif
