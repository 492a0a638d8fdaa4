/* The one table that drives the configuration: parsing, checking, --set, descriptions and docs/configuration.md come from it. */
#ifndef TOMONODE_NODE_CONFIG_TABLE_H
#define TOMONODE_NODE_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum key_type {
	KEY_NAME,    /* letters, digits, . _ - */
	KEY_NAMES,   /* array of names; the count lies right behind the array in struct route_conf */
	KEY_AET,     /* AE title, PS3.5 table 6.2-1 */
	KEY_HOST,    /* host name or address */
	KEY_NETWORK, /* host name, address, or network as ADDRESS/BITS */
	KEY_ADDRESS, /* numeric address to bind */
	KEY_TEXT,    /* printable ASCII without backslash (a DICOM LO) */
	KEY_PATH,    /* absolute path */
	KEY_DEVICE,  /* see node/base/device_names.h */
	KEY_WORD,    /* one of choices, kept as text */
	KEY_CHOICE,  /* one of choices, kept as its value */
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
	KEY_UNDESCRIBED = 1, /* not in config_describe_*: has no part in the result's pixels */
	KEY_COMPUTED = 2,    /* the default follows from other settings, after reading */
	KEY_KINDS = 4,	     /* the choices are kinds of cases, and the reference says what each is */
};

struct config_key {
	const char *name;
	enum key_type type;
	size_t offset, size;		  /* of the field in the section's structure */
	const char *unit;		  /* "" none */
	double lo, hi;			  /* KEY_INT, KEY_REAL, KEY_BYTES, KEY_TILE */
	const char *zero;		  /* what 0 means where it is allowed outside lo..hi; NULL: it is not */
	const struct key_choice *choices; /* ends with word NULL */
	const char *fallback;		  /* default, as --set would take it; "" on texts: may be empty; NULL: must be given */
	unsigned flags;
	const char *meaning;
};

struct config_section {
	const char *name; /* "protocols" */
	const char *one;  /* "protocol" */
	bool list;	  /* a list of named groups; else one group */
	bool merged;	  /* the user's entries are added to the embedded ones; else his list replaces them */
	size_t entry_size;
	size_t offset, count; /* in struct config: the array's pointer (or the structure) and its length */
	const struct config_key *keys;
	size_t n_keys;
	const char *meaning;
	bool of_kinds; /* entries are of several kinds with keys of their own: those of struct kind's protocols */
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
extern const struct config_section config_sections[SECTION_COUNT]; /* of_kinds: the keys that entries of every kind have */

/* Of a section of_kinds the keys of the kind with this name; NULL: there is none. */
const struct config_section *config_section_kind(const struct config_section *section, const char *kind);
const struct config_section *config_section_of(const struct config_section *section, const void *entry);
/* The section of another kind than `section` that has this key; NULL: none. */
const struct config_section *config_section_with(const struct config_section *section, const char *key);

const struct config_key *config_key_find(const struct config_section *section, const char *name); /* NULL: none */
/* The nearest known word, or NULL when none is near. name(ctx, i) gives the words, NULL behind the last. */
const char *config_nearest(const char *word, const char *(*name)(const void *ctx, size_t i), const void *ctx);
const char *config_key_nearest(const struct config_section *section, const char *word);

#endif
