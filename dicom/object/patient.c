/* SPDX-License-Identifier: Apache-2.0 */
/* patient.c - see dicom/object/patient.h. */
#include "dicom/object/patient.h"

#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <wctype.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "kernels/utf8.h"

#define VALUE_SIZE 4096
#define HAS_ID 1u
#define HAS_NAME 2u

static const struct {
	uint32_t tag;
	const char *name;
} attributes[PATIENT_ATTRIBUTES] = {
	[PATIENT_ID] = {TAG_PATIENT_ID, "Patient ID"},
	[PATIENT_ISSUER] = {TAG_ISSUER_OF_PATIENT_ID, "Issuer of Patient ID"},
	[PATIENT_BIRTH_DATE] = {TAG_PATIENT_BIRTH_DATE, "Patient's Birth Date"},
	[PATIENT_NAME] = {TAG_PATIENT_NAME, "Patient's Name"},
};

/* ---- text ---- */

/* Return the next character and advance the text; a byte that does not begin valid UTF-8 is one, above all characters. */
static uint32_t next_character(const char **text)
{
	uint32_t c = 0x110000u + (unsigned char)**text;
	size_t n = utf8_decode(*text, &c);

	*text += n > 0 ? n : 1;
	return c;
}

/* Append a character if there is room for it. */
static void append_character(uint32_t c, char *text, size_t size, size_t *n)
{
	static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
	size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;

	if (*n + more + 1 >= size)
		return;
	text[(*n)++] = (char)(lead[more] | c >> 6 * more);
	for (size_t i = more; i-- > 0;)
		text[(*n)++] = (char)(0x80u | (c >> 6 * i & 0x3fu));
	text[*n] = '\0';
}

static locale_t tables;

static void load_tables(void)
{
	tables = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* By the C library's tables; without them ASCII alone. Upper case first, because several lower-case letters can have one. */
static uint32_t fold_character(uint32_t c)
{
	if (c < 0x80)
		return c >= 'A' && c <= 'Z' ? c + 32 : c;
	return tables && c < 0x110000 ? (uint32_t)towlower_l(towupper_l((wint_t)c, tables), tables) : c;
}

static bool is_space(uint32_t c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == 0xa0 || c == 0x3000;
}

/* Append the text up to `end`, folded, with single spaces inside and none around. */
static void add_folded(const char *text, const char *end, char *ret, size_t size, size_t *n)
{
	bool began = false, space = false;

	while (text < end) {
		uint32_t c = next_character(&text);

		if (is_space(c)) {
			space = true;
			continue;
		}
		if (space && began)
			append_character(' ', ret, size, n);
		append_character(fold_character(c), ret, size, n);
		began = true;
		space = false;
	}
}

/* Append the components of a group of a name; false: all are empty. */
static bool add_group(const char *text, const char *end, char *ret, size_t size, size_t *n)
{
	size_t filled = *n;

	while (text <= end) {
		const char *stop = memchr(text, '^', (size_t)(end - text));
		size_t before = *n;

		stop = stop ? stop : end;
		add_folded(text, stop, ret, size, n);
		if (*n > before)
			filled = *n;
		append_character('^', ret, size, n);
		text = stop + 1;
	}
	*n = filled;
	ret[filled] = '\0';
	return filled > 0;
}

static void add_name(const char *text, char *ret, size_t size)
{
	const char *end = text + strlen(text);
	size_t n = 0;

	while (text <= end) {
		const char *stop = memchr(text, '=', (size_t)(end - text));

		stop = stop ? stop : end;
		if (add_group(text, stop, ret, size, &n))
			return;
		text = stop + 1;
	}
}

/* The date without the points of ACR-NEMA. */
static void add_date(const char *text, char *ret, size_t size)
{
	size_t n = 0;

	for (; *text; text++)
		if (*text != '.' && !is_space((unsigned char)*text))
			append_character((unsigned char)*text, ret, size, &n);
}

void patient_normalise(enum patient_attribute attribute, const char *text, char *ret_text, size_t size)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	size_t n = 0;

	pthread_once(&once, load_tables);
	ret_text[0] = '\0';
	if (attribute == PATIENT_NAME)
		add_name(text, ret_text, size);
	else if (attribute == PATIENT_BIRTH_DATE)
		add_date(text, ret_text, size);
	else
		add_folded(text, text + strlen(text), ret_text, size, &n);
}

/* ---- one header ---- */

static uint64_t digest_attribute(enum patient_attribute attribute, const uint8_t key[PATIENT_KEY_SIZE], const char *value)
{
	static const uint8_t none[PATIENT_KEY_SIZE];
	char text[2 * VALUE_SIZE];
	uint8_t mac[32];
	uint64_t first = 0;
	int n = snprintf(text, sizeof(text), "%s|%s", tag_text(attributes[attribute].tag), value);

	dicom_hmac_sha256(key ? key : none, PATIENT_KEY_SIZE, text, (size_t)n, mac);
	for (int i = 0; i < 8; i++)
		first = first << 8 | mac[i];
	return first ? first : 1;
}

/* A value that cannot be converted, in a form that no converted one has. */
static bool read_bytes(const struct dicom_item *root, uint32_t tag, char *ret, size_t size)
{
	char text[VALUE_SIZE], charset[512] = "";

	if (dicom_get_text(root, tag, text, sizeof(text), NULL) != 1)
		return false;
	dicom_get_text(root, TAG_SPECIFIC_CHARACTER_SET, charset, sizeof(charset), NULL);
	snprintf(ret, size, "\x01%s\x01%s", charset, text);
	return true;
}

void patient_read(const struct dicom_item *root, const uint8_t key[PATIENT_KEY_SIZE], struct patient_identity *ret_identity)
{
	char text[VALUE_SIZE], value[VALUE_SIZE + 600];

	for (int a = 0; a < PATIENT_ATTRIBUTES; a++) {
		int found = dicom_get_utf8(root, attributes[a].tag, text, sizeof(text), NULL);

		value[0] = '\0';
		if (found == 1)
			patient_normalise((enum patient_attribute)a, text, value, sizeof(value));
		else if (found < 0 && !read_bytes(root, attributes[a].tag, value, sizeof(value)))
			value[0] = '\0';
		ret_identity->digest[a] = value[0] ? digest_attribute((enum patient_attribute)a, key, value) : 0;
	}
}

/* ---- several headers ---- */

void patient_set_add(struct patient_set *set, const struct patient_identity *identity, int64_t header)
{
	unsigned kind = (identity->digest[PATIENT_ID] ? HAS_ID : 0) | (identity->digest[PATIENT_NAME] ? HAS_NAME : 0);

	for (int a = 0; a < PATIENT_ATTRIBUTES; a++) {
		uint64_t value = identity->digest[a];

		if (value && !set->first[a]) {
			set->first[a] = value;
			set->first_of[a] = header;
		} else if (value && value != set->first[a] && !(set->differ & 1u << a)) {
			set->differ |= 1u << a;
			set->other_of[a] = header;
		}
	}
	if (!(set->seen & 1u << kind)) {
		set->seen |= 1u << kind;
		set->seen_of[kind] = header;
	}
}

/* Do headers of these kinds have nothing in common? One without ID and name has nothing in common with one that has one; one with
 * an ID alone and one with a name alone need a third one with both. */
static bool is_unlinked(unsigned seen, unsigned *ret_a, unsigned *ret_b)
{
	bool none = seen & 1u << 0, id = seen & 1u << HAS_ID, name = seen & 1u << HAS_NAME,
	     both = seen & 1u << (HAS_ID | HAS_NAME);

	*ret_a = none ? 0 : HAS_ID;
	*ret_b = none && both ? HAS_ID | HAS_NAME : none && id ? HAS_ID : HAS_NAME;
	return (none && (id || name || both)) || (id && name && !both);
}

bool patient_set_conflict(const struct patient_set *set, struct patient_conflict *ret_conflict)
{
	struct patient_conflict c = {.attributes = set->differ};
	unsigned one, other;

	for (int a = PATIENT_ATTRIBUTES; a-- > 0;)
		if (set->differ & 1u << a) {
			c.header[0] = set->first_of[a];
			c.header[1] = set->other_of[a];
		}
	if (!set->differ) {
		if (!is_unlinked(set->seen, &one, &other))
			return false;
		c.header[0] = set->seen_of[one];
		c.header[1] = set->seen_of[other];
	}
	*ret_conflict = c;
	return true;
}

bool patient_sets_conflict(const struct patient_set *a, const struct patient_set *b, struct patient_conflict *ret_conflict)
{
	struct patient_conflict c = {.attributes = a->differ | b->differ};
	unsigned one, other;

	for (int i = 0; i < PATIENT_ATTRIBUTES; i++)
		if (a->first[i] && b->first[i] && a->first[i] != b->first[i])
			c.attributes |= 1u << i;
	if (!c.attributes && !is_unlinked(a->seen | b->seen, &one, &other))
		return false;
	*ret_conflict = c;
	return true;
}

void patient_conflict_text(const struct patient_conflict *conflict, const char *between, char *ret_text, size_t size)
{
	char names[256] = "";
	size_t n = 0;

	if (!conflict->attributes) {
		snprintf(ret_text, size, "neither Patient ID %s nor Patient's Name %s shows that it is one patient %s",
			 tag_text(TAG_PATIENT_ID), tag_text(TAG_PATIENT_NAME), between);
		return;
	}
	for (int a = 0; a < PATIENT_ATTRIBUTES && n < sizeof(names); a++)
		if (conflict->attributes & 1u << a)
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s %s", n ? ", " : "", attributes[a].name,
					      tag_text(attributes[a].tag));
	if (conflict->attributes & (conflict->attributes - 1))
		snprintf(ret_text, size, "the headers name different patients: %s differ %s", names, between);
	else
		snprintf(ret_text, size, "the headers name different patients: %s differs %s", names, between);
}

/* ---- files ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int find_header(struct dicom_file *const *files, char *const *paths, size_t n, const char *name,
		       struct dicom_file **ret_patient, struct err *err)
{
	for (size_t i = n; i-- > 0;)
		if (!name || !strcmp(base_name(paths[i]), base_name(name))) {
			*ret_patient = files[i];
			return 0;
		}
	return err_set(err, EBADMSG, "no file of the case is named %.200s", base_name(name));
}

int patient_check(struct dicom_file *const *files, char *const *paths, size_t n, const struct patient_statement *statement,
		  struct dicom_file **ret_patient, struct err *err)
{
	struct patient_set set = {0};
	struct patient_conflict conflict;
	char between[600], text[1200];

	if (statement && statement->same)
		return find_header(files, paths, n, statement->header, ret_patient, err);
	*ret_patient = NULL;
	for (size_t i = 0; i < n; i++) {
		struct patient_identity identity;

		patient_read(dicom_root(files[i]), NULL, &identity);
		patient_set_add(&set, &identity, (int64_t)i);
	}
	if (!patient_set_conflict(&set, &conflict))
		return 0;
	snprintf(between, sizeof(between), "between %.250s and %.250s", base_name(paths[conflict.header[0]]),
		 base_name(paths[conflict.header[1]]));
	patient_conflict_text(&conflict, between, text, sizeof(text));
	return err_set(err, ENOTUNIQ, "%s", text);
}
