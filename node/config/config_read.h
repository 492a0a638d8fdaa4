/* From the text of a configuration to struct config; private to node/config/. */
#ifndef TOMONODE_NODE_CONFIG_READ_H
#define TOMONODE_NODE_CONFIG_READ_H

#include "node/config/config.h"
#include "node/config/config_table.h"
#include "node/config/config_text.h"

#define CONFIG_ENTRIES_MAX 256 /* in one section */

struct config_place {
	const char *file; /* lives as long as the texts */
	int line;
};

/* State of one loading. Every problem goes through config_problem(). */
struct config_reader {
	struct config *config;
	void (*report)(void *ctx, const char *problem);
	void *ctx;
	size_t n_problems;
	char first[420];
	const struct config_text *text;		    /* the one being read */
	bool embedded;				    /* it is the embedded one */
	bool peers_checked;			    /* require_known_peer was given */
	bool refusals_given;			    /* peer_refusals was given */
	struct config_place *places[SECTION_COUNT]; /* of each entry */
	struct config_place listed[SECTION_COUNT];  /* where the user's list begins; file NULL: he gave none */
};

void config_problem(struct config_reader *r, const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Read one text over what is there. */
void config_read_text(struct config_reader *r, const struct config_text *text, bool embedded);
/* Once all texts are read: defaults that follow from others, names that must exist, keys that must fit each other. */
void config_finish(struct config_reader *r);
void config_reader_clear(struct config_reader *r); /* the places; not the config */

/* The entries of a list section, as an array of bytes. */
char *config_entries(const struct config *c, const struct config_section *section, size_t *ret_n);

#endif
