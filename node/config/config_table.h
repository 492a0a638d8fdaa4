/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all configuration keys. Parsing, checks, --set, descriptions and the reference use it. */
#ifndef TOMONODE_NODE_CONFIG_TABLE_H
#define TOMONODE_NODE_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum key_type {
	KEY_NAME,    /* letters, digits, . _ - */
	KEY_NAMES,   /* array of names, struct config_names */
	KEY_AET,     /* AE title, PS3.5 table 6.2-1 */
	KEY_HOST,    /* host name or address */
	KEY_NETWORK, /* host name, address, or network as ADDRESS/BITS */
	KEY_ADDRESS, /* numeric IP address to listen on */
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
	KEY_UNDESCRIBED = 1, /* omitted by config_describe_*(), because it does not affect the pixels of a result */
	KEY_COMPUTED = 2,    /* the default is computed from other values after reading */
	KEY_SPARSE = 8,	     /* config_describe_*() omits it while it has its default */
	KEY_UNORDERED = 32,  /* with KEY_SET: the words of the array may be in any order */
	KEY_SET = 16,	     /* a KEY_CHOICE that may also be an array of words: ["a", "b"] is "a+b" */
	KEY_KINDS = 4,	     /* the choices are kinds of cases; the reference explains each of them */
};

struct config_key {
	const char *name;
	enum key_type type;
	size_t offset, size;		  /* offset and size of the field in the section's structure, bytes */
	char unit[20];			  /* unit for messages; "": none */
	double lo, hi;			  /* smallest and largest value of KEY_INT, KEY_REAL, KEY_BYTES, KEY_TILE */
	const char *zero;		  /* meaning of 0 if it is allowed outside lo..hi; NULL: not allowed */
	const struct key_choice *choices; /* the list ends with a NULL word */
	enum key_type element;		  /* of KEY_NAMES: what each is, KEY_NAME, KEY_TEXT or KEY_NETWORK */
	const char *fallback;		  /* default in the syntax of --set; "" for texts: may be empty; NULL: required */
	unsigned flags;			  /* enum key_flag, combined by or */
	const char *only;		  /* of protocols: the algorithms that use it, of destinations: the kinds that have it,
					     separated by blanks; NULL: all */
	const char *needs;   /* of protocols: conditions without which it has no effect, separated by blanks: "KEY" (not 0,
				false or empty), "KEY=WORD" (is this word, or has it); NULL: none */
	const char *meaning; /* description for the reference */
};

struct config_section {
	const char *name; /* name in the file: "protocols" */
	const char *one;  /* name of one entry: "protocol" */
	bool list;	  /* true: a list of named groups; false: one group */
	bool merged;	  /* true: the user's entries are added to the embedded ones; false: the user's list replaces them */
	size_t entry_size;
	size_t offset, count; /* offsets in struct config: of the pointer to the array, or of the structure of a single group; of
				 the array's length */
	const struct config_key *keys;
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

const struct config_key *config_key_find(const struct config_section *section, const char *name); /* NULL: none */
/* Return the name of the key of the section most similar to `word`, or NULL. */
const char *config_key_nearest(const struct config_section *section, const char *word);
/* Return true if all have the key, or its `only` has the word. */
bool config_key_is_of(const struct config_key *key, const char *word);
/* List the names of the keys from the index `first` on, separated by commas; the text says where the reference is if they do not
 * fit. size: at least 40. */
void config_keys_list(const struct config_section *section, size_t first, char *ret_text, size_t size);

#endif
