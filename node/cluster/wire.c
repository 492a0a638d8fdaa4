/* SPDX-License-Identifier: Apache-2.0 */
#include "node/cluster/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KIND(k) (1u << WIRE_##k)
#define OF_CASE (KIND(HELLO) | KIND(CASE) | KIND(HAVE) | KIND(PROGRESS) | KIND(OUTCOME) | KIND(ACK) | KIND(CANCEL))
#define INTEGER_MAX (1ll << 53)

enum wire_type { WIRE_INTEGER, WIRE_REAL, WIRE_BOOL, WIRE_TEXT, WIRE_OFFSETS, WIRE_BODY };

static const struct wire_field {
	const char *name;
	enum wire_type type;
	size_t at;
	int64_t max; /* largest value; of a text: size of its member */
	unsigned kinds;
} wire_fields[] = {
#define FIELD(m) #m, .at = offsetof(struct wire_message, m)
#define INTEGER(m, largest, of)                                                                                                  \
	{                                                                                                                        \
		FIELD(m), .type = WIRE_INTEGER, .max = (largest), .kinds = (of)                                                  \
	}
#define TEXT(m, of)                                                                                                              \
	{                                                                                                                        \
		FIELD(m), .type = WIRE_TEXT, .max = sizeof(((struct wire_message *)NULL)->m), .kinds = (of)                      \
	}
	INTEGER(wire, 65535, KIND(HELLO)),
	TEXT(version, KIND(HELLO)),
	TEXT(name, KIND(HELLO)),
	TEXT(instance, KIND(HELLO)),
	TEXT(device, KIND(HELLO)),
	TEXT(batch, KIND(HELLO)),
	INTEGER(memory, INTEGER_MAX, KIND(HELLO)),
	INTEGER(job, INTEGER_MAX, OF_CASE),
	INTEGER(attempt, INTEGER_MAX, OF_CASE),
	INTEGER(lease, 86400000, KIND(WELCOME)),
	{FIELD(shared), .type = WIRE_BOOL, .kinds = KIND(CASE)},
	INTEGER(index, WIRE_FILES_MAX - 1, KIND(FILE)),
	INTEGER(offset, INTEGER_MAX, KIND(FILE)),
	{FIELD(fraction), .type = WIRE_REAL, .max = 1, .kinds = KIND(PROGRESS)},
	INTEGER(code, 65535, KIND(REFUSED) | KIND(OUTCOME)),
	INTEGER(damaged, WIRE_FILES_MAX, KIND(OUTCOME)),
	INTEGER(last, INTEGER_MAX, KIND(REFUSED)),
	TEXT(text, KIND(REFUSED) | KIND(PROGRESS) | KIND(OUTCOME) | KIND(END) | KIND(TOKEN)),
	TEXT(proof, KIND(TOKEN)),
	{FIELD(offsets), .type = WIRE_OFFSETS, .max = INTEGER_MAX, .kinds = KIND(HAVE)},
	{FIELD(body), .type = WIRE_BODY, .kinds = KIND(CASE) | KIND(OUTCOME)},
};
#define N_FIELDS (sizeof(wire_fields) / sizeof(wire_fields[0]))

const char *wire_kind_name(enum wire_kind kind)
{
	static const char *const names[WIRE_KINDS] = {"",     "HELLO", "WELCOME",  "REFUSED", "CASE", "HAVE",
						      "FILE", "DATA",  "PROGRESS", "OUTCOME", "ACK",  "CANCEL",
						      "PING", "PONG",  "END",	   "TOKEN"};

	return kind > 0 && kind < WIRE_KINDS ? names[kind] : "an unknown message";
}

size_t wire_limit(unsigned kind)
{
	if (kind == 0 || kind >= WIRE_KINDS)
		return 0;
	if (kind == WIRE_DATA)
		return WIRE_DATA_MAX;
	return kind == WIRE_CASE || kind == WIRE_HAVE || kind == WIRE_OUTCOME ? WIRE_CASE_MAX : WIRE_CONTROL_MAX;
}

void wire_put_head(enum wire_kind kind, size_t n, uint8_t ret_head[WIRE_HEAD])
{
	const uint8_t head[WIRE_HEAD] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16),   (uint8_t)(n >> 8),
					 (uint8_t)n,	     (uint8_t)(kind >> 8), (uint8_t)kind};

	memcpy(ret_head, head, WIRE_HEAD);
}

int wire_get_head(const uint8_t head[WIRE_HEAD], enum wire_kind *ret_kind, size_t *ret_n, struct err *err)
{
	size_t n = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
	unsigned kind = (unsigned)head[4] << 8 | head[5];

	if (wire_limit(kind) == 0)
		return err_set(err, EBADMSG, "a message of the unknown kind %u", kind);
	if (n > wire_limit(kind))
		return err_set(err, EBADMSG, "a message %s of %zu bytes, allowed: %zu", wire_kind_name(kind), n,
			       wire_limit(kind));
	*ret_kind = kind;
	*ret_n = n;
	return 0;
}

void wire_clear(struct wire_message *m)
{
	free(m->offsets);
	json_decref(m->body);
	*m = (struct wire_message){0};
}

/* ---- encode ---- */

static json_t *encode_offsets(const struct wire_message *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < m->n_offsets; i++)
		json_array_append_new(list, json_integer(m->offsets[i]));
	return list;
}

static json_t *encode_field(const struct wire_message *m, const struct wire_field *f)
{
	const char *at = (const char *)m + f->at;

	switch (f->type) {
	case WIRE_INTEGER:
		return json_integer(*(const int64_t *)at);
	case WIRE_REAL:
		return json_real(*(const double *)at);
	case WIRE_BOOL:
		return json_boolean(*(const bool *)at);
	case WIRE_TEXT:
		return json_string(at);
	case WIRE_OFFSETS:
		return encode_offsets(m);
	case WIRE_BODY:
		return m->body ? json_incref(m->body) : json_null();
	}
	return NULL;
}

int wire_encode(const struct wire_message *m, char **ret_text, size_t *ret_n, struct err *err)
{
	json_t *root = json_object();
	char *text = NULL;
	int ret = root ? 0 : -1;

	for (size_t i = 0; ret == 0 && i < N_FIELDS; i++)
		if (wire_fields[i].kinds & 1u << m->kind)
			ret = json_object_set_new(root, wire_fields[i].name, encode_field(m, &wire_fields[i]));
	if (ret == 0)
		text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	if (!text)
		return err_set(err, ENOMEM, "a message %s cannot be encoded", wire_kind_name(m->kind));
	*ret_text = text;
	*ret_n = strlen(text);
	if (*ret_n <= wire_limit(m->kind))
		return 0;
	free(text);
	return err_set(err, EMSGSIZE, "a message %s of %zu bytes, allowed: %zu", wire_kind_name(m->kind), *ret_n,
		       wire_limit(m->kind));
}

/* ---- decode ---- */

/* Return true if nothing is nested deeper than WIRE_DEPTH: the parser calls itself. */
static bool is_flat(const char *text, size_t n)
{
	bool quoted = false;
	int depth = 0;

	for (size_t i = 0; i < n && depth <= WIRE_DEPTH; i++) {
		if (quoted && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			quoted = !quoted;
		else if (!quoted && (text[i] == '{' || text[i] == '['))
			depth++;
		else if (!quoted && (text[i] == '}' || text[i] == ']'))
			depth--;
	}
	return depth <= WIRE_DEPTH;
}

static bool decode_integer(const json_t *value, int64_t max, int64_t *ret)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > max)
		return false;
	*ret = json_integer_value(value);
	return true;
}

static bool decode_offsets(const json_t *value, const struct wire_field *f, struct wire_message *m)
{
	size_t n = json_array_size(value);

	if (!json_is_array(value) || n > WIRE_FILES_MAX)
		return false;
	m->offsets = calloc(n ? n : 1, sizeof(m->offsets[0]));
	if (!m->offsets)
		return false;
	for (; m->n_offsets < n; m->n_offsets++)
		if (!decode_integer(json_array_get(value, m->n_offsets), f->max, &m->offsets[m->n_offsets]))
			return false;
	return true;
}

static bool decode_field(const json_t *value, const struct wire_field *f, struct wire_message *m)
{
	char *at = (char *)m + f->at;

	switch (f->type) {
	case WIRE_INTEGER:
		return decode_integer(value, f->max, (int64_t *)at);
	case WIRE_REAL:
		*(double *)at = json_number_value(value);
		return json_is_number(value) && *(double *)at >= 0 && *(double *)at <= (double)f->max;
	case WIRE_BOOL:
		*(bool *)at = json_is_true(value);
		return json_is_boolean(value);
	case WIRE_TEXT:
		if (!json_is_string(value) || json_string_length(value) >= (size_t)f->max ||
		    strlen(json_string_value(value)) != json_string_length(value))
			return false;
		strcpy(at, json_string_value(value));
		err_clean(at);
		return true;
	case WIRE_OFFSETS:
		return decode_offsets(value, f, m);
	case WIRE_BODY:
		m->body = json_is_object(value) ? json_incref((json_t *)value) : NULL;
		return m->body || json_is_null(value);
	}
	return false;
}

/* Of a HELLO of another version only the first two fields are known. */
static size_t fields_to_read(const struct wire_message *m, size_t i)
{
	return m->kind == WIRE_HELLO && i >= 1 && m->wire != WIRE_VERSION ? 2 : N_FIELDS;
}

static int decode_fields(const json_t *root, struct wire_message *m, struct err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < fields_to_read(m, i); i++) {
		const struct wire_field *f = &wire_fields[i];

		if (!(f->kinds & 1u << m->kind))
			continue;
		if (!decode_field(json_object_get(root, f->name), f, m))
			return err_set(err, EBADMSG, "a message %s with a missing or wrong field '%s'", wire_kind_name(m->kind),
				       f->name);
		n++;
	}
	if (json_object_size(root) != n && fields_to_read(m, N_FIELDS) == N_FIELDS)
		return err_set(err, EBADMSG, "a message %s with an unknown field", wire_kind_name(m->kind));
	return 0;
}

int wire_decode(enum wire_kind kind, const char *text, size_t n, struct wire_message *ret_message, struct err *err)
{
	struct wire_message m = {.kind = kind};
	json_t *root;
	int ret;

	if (kind == WIRE_DATA || wire_limit(kind) == 0 || n > wire_limit(kind))
		return err_set(err, EBADMSG, "%zu bytes are no message", n);
	root = is_flat(text, n) ? json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
	if (!json_is_object(root)) {
		json_decref(root);
		return err_set(err, EBADMSG, "a message %s that is no JSON object", wire_kind_name(kind));
	}
	ret = decode_fields(root, &m, err);
	json_decref(root);
	if (ret < 0)
		wire_clear(&m);
	else
		*ret_message = m;
	return ret;
}
