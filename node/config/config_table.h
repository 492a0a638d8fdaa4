/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all configuration keys. Parsing, checks, --set, descriptions and docs/configuration.md use it. */
#ifndef TOMONODE_NODE_CONFIG_TABLE_H
#define TOMONODE_NODE_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum key_type {
	KEY_NAME,    /* letters, digits, . _ - */
	KEY_NAMES,   /* array of names; their number is the next member in struct route_conf */
	KEY_AET,     /* AE title, PS3.5 table 6.2-1 */
	KEY_HOST,    /* host name or address */
	KEY_NETWORK, /* host name, address, or network as ADDRESS/BITS */
	KEY_ADDRESS, /* numeric address to bind */
	KEY_TEXT,    /* printable ASCII without backslash (a DICOM LO) */
	KEY_PATH,    /* absolute path */
	KEY_DEVICE,  /* see node/base/device_names.h */
	KEY_WORD,    /* one of choices, stored as text */
	KEY_CHOICE,  /* one of choices, stored as its value */
	KEY_INT,
	KEY_REAL,
	KEY_BOOL,
	KEY_BYTES, /* 12345, "512 MiB", "1 GB" */
	KEY_TILE,  /* "88x56" or "auto" */
};

struct key_choice {
	const char *word;
	long long value;
};

enum key_flag {
	KEY_UNDESCRIBED = 1, /* not in config_describe_*: does not affect the pixels of the result */
	KEY_COMPUTED = 2,    /* the default is computed from other values after reading */
	KEY_KINDS = 4,	     /* the choices are kinds of cases; the reference describes each */
};

struct config_key {
	const char *name;
	enum key_type type;
	size_t offset, size;		  /* of the field in the section's structure */
	char unit[20];			  /* "" none */
	double lo, hi;			  /* KEY_INT, KEY_REAL, KEY_BYTES, KEY_TILE */
	const char *zero;		  /* meaning of 0 if it is allowed outside lo..hi; NULL: not allowed */
	const struct key_choice *choices; /* last one has word NULL */
	const char *fallback;		  /* default in the syntax of --set; "" for texts: may be empty; NULL: required */
	unsigned flags;
	const char *meaning;
};

struct config_section {
	const char *name; /* "protocols" */
	const char *one;  /* "protocol" */
	bool list;	  /* true: a list of named groups; false: one group */
	bool merged;	  /* true: the user's entries are added to the embedded ones; false: the user's list replaces them */
	size_t entry_size;
	size_t offset, count; /* offsets in struct config of the array's pointer (or the structure) and of its length */
	const struct config_key *keys;
	size_t n_keys;
	const char *meaning;
	bool of_kinds; /* entries have keys that depend on their kind of case: see protocols of struct kind */
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
	SECTION_STATUS,
	SECTION_COUNT
};
/* A section of_kinds has only the keys that entries of every kind have. */
extern const struct config_section config_sections[SECTION_COUNT];

/* Return a section of_kinds with the keys of the kind of this name; NULL: unknown kind. */
const struct config_section *config_section_kind(const struct config_section *section, const char *kind);
const struct config_section *config_section_of(const struct config_section *section, const void *entry);
/* Return the section of a kind other than that of `section` that has this key; NULL: none. */
const struct config_section *config_section_with(const struct config_section *section, const char *key);

const struct config_key *config_key_find(const struct config_section *section, const char *name); /* NULL: none */
/* Return the known word most similar to `word`, or NULL if none is similar. name(ctx, i) returns the i-th known word, NULL after
 * the last. */
const char *config_nearest(const char *word, const char *(*name)(const void *ctx, size_t i), const void *ctx);
const char *config_key_nearest(const struct config_section *section, const char *word);

#endif
