/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all configuration keys. Parsing, checks, --set, descriptions and the reference use it. */
#ifndef TOMONODE_NODE_CONFIG_TABLE_H
#define TOMONODE_NODE_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "recon/core/keys.h"

enum config_key_type {			     /* continues enum key_type */
		       KEY_NAME = KEY_TYPES, /* letters, digits, . _ - */
		       KEY_NAMES,	     /* array of names, struct config_names */
		       KEY_AET,		     /* AE title, PS3.5 table 6.2-1 */
		       KEY_HOST,	     /* host name or address */
		       KEY_NETWORK,	     /* host name, address, or network as ADDRESS/BITS */
		       KEY_ADDRESS,	     /* numeric IP address to listen on */
		       KEY_TEXT,	     /* printable ASCII without backslash (a DICOM LO) */
		       KEY_PATH,	     /* absolute path */
		       KEY_DEVICE,	     /* see node/base/device_names.h */
};

struct config_section {
	const char *name; /* name in the file: "protocols" */
	const char *one;  /* name of one entry: "protocol" */
	bool list;	  /* true: a list of named groups; false: one group */
	bool merged;	  /* true: the user's entries are added to the embedded ones; false: the user's list replaces them */
	size_t entry_size;
	size_t offset, count; /* offsets in struct config: of the pointer to the array, or of the structure of a single group; of
				 the array's length */
	const struct key *keys;
	size_t n_keys;
	const char *meaning;
	bool of_kinds; /* true: the keys of an entry depend on its kind of case, see `protocols` of struct kind */
};

enum {
	SECTION_NODE,
	SECTION_LISTENERS,
	SECTION_PEERS,
	SECTION_DESTINATIONS,
	SECTION_ROUTES,
	SECTION_PROTOCOLS,
	SECTION_PROFILES,
	SECTION_SCANNERS,
	SECTION_STEPS,
	SECTION_STATUS,
	SECTION_ALERTS,
	SECTION_CLUSTER,
	SECTION_SLURM,
	SECTION_COUNT
};
/* For a section with of_kinds, `keys` are only those that entries of every kind have. */
extern const struct config_section config_sections[SECTION_COUNT];

/* Return the section with the keys of the kind of this name, for a section with of_kinds; NULL: unknown kind. */
const struct config_section *config_section_kind(const struct config_section *section, const char *kind);
/* Return the section with the keys of the entry's kind, or `section` itself without of_kinds. */
const struct config_section *config_section_of(const struct config_section *section, const void *entry);
/* Return the section of a kind other than that of `section` that has this key; NULL: none. */
const struct config_section *config_section_with(const struct config_section *section, const char *key);

/* Write the kinds whose protocols have this key: "pet or parallel". */
#define CONFIG_KINDS_TEXT 64
void config_kinds_with(const char *key, char ret_text[CONFIG_KINDS_TEXT]);

const struct key *config_key_find(const struct config_section *section, const char *name); /* NULL: none */
/* Return the name of the key of the section most similar to `word`, or NULL. */
const char *config_key_nearest(const struct config_section *section, const char *word);
/* List the names of the keys from the index `first` on, separated by commas; the text says where the reference is if they do not
 * fit. size: at least 40. */
void config_keys_list(const struct config_section *section, size_t first, char *ret_text, size_t size);

#endif
