/* SPDX-License-Identifier: Apache-2.0 */
/* Keys: named values of a structure, each with its type, range, default and meaning. Tables of keys are the configuration, its
 * reference and the check of both; the parameters of the reconstructions are in recon/NAME/NAME_keys.h, once for the node and for
 * the library. */
#ifndef TOMONODE_RECON_KEYS_H
#define TOMONODE_RECON_KEYS_H

#include <stdbool.h>
#include <stddef.h>

enum key_type {
	KEY_WORD,   /* one of choices, stored as text */
	KEY_CHOICE, /* one of choices, stored as its value */
	KEY_INT,
	KEY_REAL,
	KEY_BOOL,
	KEY_BYTES, /* 12345, "512 MiB", "1 GB" */
	KEY_TILE,  /* "88x56" or "auto" */
	KEY_TYPES  /* first type of others (node/config/config_table.h), whose values are texts */
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

struct key {
	const char *name;
	int type;			  /* enum key_type, or a further one */
	size_t offset, size;		  /* offset and size of the field in the structure, bytes */
	char unit[20];			  /* unit for messages; "": none */
	double lo, hi;			  /* smallest and largest value of KEY_INT, KEY_REAL, KEY_BYTES, KEY_TILE */
	const char *zero;		  /* meaning of 0 if it is allowed outside lo..hi; NULL: not allowed */
	const struct key_choice *choices; /* the list ends with a NULL word */
	int element;			  /* of KEY_NAMES: what each is, KEY_NAME, KEY_TEXT or KEY_NETWORK */
	const char *fallback;		  /* default in the syntax of --set; "" for texts: may be empty; NULL: required */
	unsigned flags;			  /* enum key_flag, combined by or */
	const char *only;		  /* of protocols: the algorithms that use it, of destinations: the kinds that have it,
					     separated by blanks; NULL: all */
	const char *needs;   /* of protocols: conditions without which it has no effect, separated by blanks: "KEY" (not 0,
				false or empty), "KEY=WORD" (is this word, or has it); NULL: none */
	const char *meaning; /* description for the reference */
};

/* A row is {name, AS_...(structure, field, ...), .unit = ..., .zero = ..., .fallback = ..., .flags = ..., .meaning = ...};
 * members that a row does not set are zero. The compiler rejects KEY_FIELD_OF() if the field has another type. */
#define KEY_FIELD(s, f) .offset = offsetof(struct s, f), .size = sizeof(((struct s *)NULL)->f)
#define KEY_FIELD_OF(s, f, kind)                                                                                                 \
	.offset = offsetof(struct s, f) + 0 * sizeof((kind *)NULL == &((struct s *)NULL)->f), .size = sizeof(kind)
#define AS_WORD(s, f, list) .type = KEY_WORD, KEY_FIELD(s, f), .choices = (list)
#define AS_CHOICE(s, f, list) .type = KEY_CHOICE, KEY_FIELD(s, f), .choices = (list)
#define AS_INT(s, f, least, most) .type = KEY_INT, KEY_FIELD_OF(s, f, int), .lo = (least), .hi = (most)
#define AS_REAL(s, f, least, most) .type = KEY_REAL, KEY_FIELD_OF(s, f, double), .lo = (least), .hi = (most)
#define AS_BOOL(s, f) .type = KEY_BOOL, KEY_FIELD_OF(s, f, bool)
#define AS_BYTES(s, f, least, most) .type = KEY_BYTES, KEY_FIELD_OF(s, f, size_t), .lo = (least), .hi = (most)
#define AS_TILE(s, f, least, most) .type = KEY_TILE, KEY_FIELD(s, f), .lo = (least), .hi = (most)
/* A list of choices within a table: KEY_CHOICES({"osem", ALGORITHM_OSEM}, ...). */
#define KEY_CHOICES(...) ((const struct key_choice[]){__VA_ARGS__, {NULL, 0}})

struct key_value {
	enum { VALUE_INTEGER, VALUE_REAL, VALUE_BOOL, VALUE_TEXT, VALUE_OTHER } kind;
	long long integer; /* also VALUE_BOOL: 0 or 1 */
	double real;
	const char *text; /* VALUE_TEXT: the text; VALUE_OTHER: description of the type ("a list") */
};

static inline bool key_may_be_empty(const struct key *key)
{
	return key->fallback && key->fallback[0] == '\0';
}

/* Check `v` against the key, whose type is below KEY_TYPES, and write it to its field in the structure `base`. Returns 0, or -1:
 * not allowed, nothing written. */
int key_store(const struct key *key, const struct key_value *v, void *base);
/* Store a value in the syntax of --set, like key_store(). */
int key_store_text(const struct key *key, const char *text, void *base);
/* Join the words of a list to the text that its key takes: "a+b", with KEY_UNORDERED in the order of the choices (words is
 * sorted).
 */
#define KEY_WORDS_MAX 8
#define KEY_JOINED_SIZE 64
void key_words_join(const struct key *key, const char **words, int n, char *ret_text, size_t size);

/* Write the field in the syntax of --set: the shortest text that is read back as the same value. */
void key_format(const struct key *key, const void *base, char *ret_text, size_t size);
/* Describe the allowed values: "osem, mlem"; "1 to 1000; 0: one per projection"; ...; type below KEY_TYPES. */
void key_allowed(const struct key *key, char *ret_text, size_t size);
/* Format a value for a message: text in quotes, shortened, without control characters. */
void key_show(const struct key_value *v, char *ret_text, size_t size);

/* Return whether the field has an allowed value, of KEY_INT, KEY_REAL and KEY_CHOICE; true for the other types. */
bool key_holds(const struct key *key, const void *base);

const struct key *key_find(const struct key *keys, size_t n, const char *name); /* NULL: none */
/* Return true if all have the key, or its `only` has the word. */
bool key_is_of(const struct key *key, const char *word);
/* Return whether the key has an effect: the algorithm of `base` uses it, and what it needs is there. */
bool key_is_used(const struct key *keys, size_t n, const struct key *key, const void *base);
/* Return the name of the first key whose value differs in `base` and `before`, structures of this table, and which the algorithm
 * of `base` does not use, or which has no effect without another key; NULL: none. of: behind its name in the sentence, such as "
 * of protocol 'p'"; ret_why: the sentence. */
#define KEY_EFFECT_SIZE 400
const char *keys_without_effect(const struct key *keys, size_t n, const void *before, const void *base, const char *of,
				char ret_why[KEY_EFFECT_SIZE]);

#endif
