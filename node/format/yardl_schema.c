/* SPDX-License-Identifier: Apache-2.0 */
/* yardl_schema.c - from the JSON schema to a tree of types.
 *
 * A type is a name (of a primitive type, a definition or a parameter of a generic definition), null, a list (union), or an
 * object: vector, array, map, or a generic definition with its arguments. Names of definitions have a namespace
 * ("PETSIRD.Header"), which is ignored. Each use of a definition is compiled anew, so that a parameter has the type of this use;
 * the limits of depth and number end the compilation of a type that contains itself, or that grows exponentially. */
#include "node/base/json_get.h"
#include "node/format/yardl_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_MAX ((uint64_t)1 << 60) /* larger than any file: sums and products of sizes end here */

struct scope { /* parameters of the definition that is being compiled */
	const json_t *names;
	const struct yardl_type *const *types;
	size_t n;
};

struct compiler {
	struct yardl_schema *s;
	struct err *err;
	int depth;
};

static const struct primitive {
	const char *name;
	enum yardl_kind kind;
	int bits;
	uint64_t least;
} primitives[] = {
	{"bool", YARDL_BYTE, 1, 1},
	{"int8", YARDL_BYTE, 8, 1},
	{"uint8", YARDL_BYTE, 8, 1},
	{"int16", YARDL_SIGNED, 16, 1},
	{"uint16", YARDL_UNSIGNED, 16, 1},
	{"int32", YARDL_SIGNED, 32, 1},
	{"uint32", YARDL_UNSIGNED, 32, 1},
	{"int64", YARDL_SIGNED, 64, 1},
	{"uint64", YARDL_UNSIGNED, 64, 1},
	{"size", YARDL_UNSIGNED, 64, 1},
	{"float32", YARDL_FIXED, 32, 4},
	{"float64", YARDL_FIXED, 64, 8},
	{"complexfloat32", YARDL_FIXED, 64, 8},
	{"complexfloat64", YARDL_FIXED, 128, 16},
	{"string", YARDL_STRING, 0, 1},
	{"date", YARDL_SIGNED, 64, 1},
	{"time", YARDL_SIGNED, 64, 1},
	{"datetime", YARDL_SIGNED, 64, 1},
};

static const struct yardl_type *compile_type(struct compiler *c, const json_t *json, const struct scope *scope);

static struct yardl_type *add_type(struct compiler *c, enum yardl_kind kind, const char *name, size_t n)
{
	struct yardl_type *t;

	if (c->s->n_types == YARDL_TYPES_MAX) {
		err_set(c->err, ENOTSUP, "schema: more than %d types", YARDL_TYPES_MAX);
		return NULL;
	}
	t = &c->s->types[c->s->n_types];
	*t = (struct yardl_type){.kind = kind, .name = name, .n = n, .length = YARDL_OPEN};
	if (n > 0) {
		t->of = calloc(n, sizeof(*t->of));
		t->names = calloc(n, sizeof(*t->names));
	}
	c->s->n_types++;
	if (n > 0 && (!t->of || !t->names)) {
		err_set(c->err, ENOMEM, "schema: no memory for %zu fields", n);
		return NULL;
	}
	return t;
}

static void *refuse_schema(struct compiler *c, const char *what, const char *name)
{
	err_set(c->err, EBADMSG, "schema: %s%s%.100s", what, name[0] ? ": " : "", name);
	return NULL;
}

static uint64_t saturated_sum(uint64_t a, uint64_t b)
{
	return a + b < LEAST_MAX ? a + b : LEAST_MAX;
}

static uint64_t saturated_product(uint64_t a, uint64_t b)
{
	return a == 0 || b <= LEAST_MAX / a ? a * b : LEAST_MAX;
}

static const char *without_namespace(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

/* ---- definitions ---- */

static const json_t *find_definition(const struct compiler *c, const char *name)
{
	const json_t *types = json_object_get(c->s->root, "types"), *found = NULL;
	size_t i;
	json_t *one;

	json_array_foreach(types, i, one) if (!found && strcmp(json_get_text(one, "name"), name) == 0) found = one;
	return found;
}

/* Return whether name i occurs among those before it: a reader that finds values by name would take the wrong one. */
static bool is_repeated(const struct yardl_type *t, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(t->names[k], t->names[i]) == 0)
			return true;
	return false;
}

static const struct yardl_type *compile_record(struct compiler *c, const json_t *definition, const struct scope *scope)
{
	const json_t *fields = json_object_get(definition, "fields");
	struct yardl_type *t = add_type(c, YARDL_RECORD, json_get_text(definition, "name"), json_array_size(fields));

	for (size_t i = 0; t && i < t->n; i++) {
		const json_t *field = json_array_get(fields, i);
		const struct yardl_type *of = compile_type(c, json_object_get(field, "type"), scope);

		if (!of)
			return NULL;
		if (of->kind == YARDL_NULL)
			return refuse_schema(c, "a field of type null in", t->name);
		t->of[i] = of;
		t->names[i] = json_get_text(field, "name");
		if (is_repeated(t, i))
			return refuse_schema(c, "two fields of the same name", t->names[i]);
		t->least = saturated_sum(t->least, of->least);
	}
	return t;
}

static const struct yardl_type *compile_enumeration(struct compiler *c, const json_t *definition, const struct scope *scope)
{
	const json_t *base = json_object_get(definition, "base");
	struct yardl_type *t;

	if (base)
		return compile_type(c, base, scope);
	t = add_type(c, YARDL_SIGNED, json_get_text(definition, "name"), 0);
	if (t) {
		t->bits = 32;
		t->least = 1;
	}
	return t;
}

static const struct yardl_type *compile_definition(struct compiler *c, const json_t *d, const struct scope *scope)
{
	if (json_is_array(json_object_get(d, "fields")))
		return compile_record(c, d, scope);
	if (json_object_get(d, "values"))
		return compile_enumeration(c, d, scope);
	return compile_type(c, json_object_get(d, "type"), scope);
}

/* Compile a use of a definition with its arguments, which belong to the scope of the use. */
static const struct yardl_type *compile_use(struct compiler *c, const char *full, const json_t *arguments,
					    const struct scope *scope)
{
	const json_t *d = find_definition(c, without_namespace(full)), *names = json_object_get(d, "typeParameters");
	const struct yardl_type *types[YARDL_RANK_MAX], *found;
	struct scope inner = {names, types, json_array_size(names)};

	if (!d)
		return refuse_schema(c, "a type is not defined", full);
	if (json_array_size(arguments) != inner.n || inner.n > YARDL_RANK_MAX)
		return refuse_schema(c, "a wrong number of arguments for the type", full);
	for (size_t i = 0; i < inner.n; i++) {
		types[i] = compile_type(c, json_array_get(arguments, i), scope);
		if (!types[i])
			return NULL;
	}
	found = compile_definition(c, d, &inner);
	return found;
}

/* ---- the forms of a type ---- */

static const struct yardl_type *compile_name(struct compiler *c, const char *name, const struct scope *scope)
{
	for (size_t i = 0; i < scope->n; i++) {
		const char *parameter = json_string_value(json_array_get(scope->names, i));

		if (parameter && strcmp(parameter, name) == 0)
			return scope->types[i];
	}
	for (size_t i = 0; i < sizeof(primitives) / sizeof(primitives[0]); i++)
		if (strcmp(primitives[i].name, name) == 0) {
			struct yardl_type *t = add_type(c, primitives[i].kind, primitives[i].name, 0);

			if (t) {
				t->bits = primitives[i].bits;
				t->least = primitives[i].least;
			}
			return t;
		}
	return compile_use(c, name, NULL, scope);
}

static const struct yardl_type *compile_union(struct compiler *c, const json_t *list, const struct scope *scope)
{
	struct yardl_type *t = add_type(c, YARDL_UNION, "", json_array_size(list));

	if (t && (t->n < 1 || t->n > UINT8_MAX))
		return refuse_schema(c, "a union of no or too many alternatives", "");
	for (size_t i = 0; t && i < t->n; i++) {
		const json_t *one = json_array_get(list, i), *tagged = json_object_get(one, "tag");

		t->of[i] = compile_type(c, tagged ? json_object_get(one, "type") : one, scope);
		if (!t->of[i])
			return NULL;
		t->names[i] = tagged ? json_get_text(one, "tag") : t->of[i]->name;
		if (tagged && is_repeated(t, i))
			return refuse_schema(c, "two alternatives of the same name", t->names[i]);
	}
	if (t)
		t->least = 1;
	return t;
}

/* Read a size that is a whole number, at least 0. */
static bool size_of(const json_t *json, int64_t *ret)
{
	*ret = json_integer_value(json);
	return json_is_integer(json) && *ret >= 0;
}

static struct yardl_type *add_list(struct compiler *c, enum yardl_kind kind, const json_t *of, const struct scope *scope)
{
	struct yardl_type *t = add_type(c, kind, "", 1);

	if (!t)
		return NULL;
	t->of[0] = compile_type(c, json_object_get(of, "items"), scope);
	t->names[0] = "";
	if (!t->of[0])
		return NULL;
	if (t->of[0]->least == 0)
		return refuse_schema(c, "a list of items that have no bytes", t->of[0]->name);
	return t;
}

static const struct yardl_type *compile_vector(struct compiler *c, const json_t *of, const struct scope *scope)
{
	const json_t *length = json_object_get(of, "length");
	struct yardl_type *t = add_list(c, YARDL_VECTOR, of, scope);

	if (t && length && !size_of(length, &t->length))
		return refuse_schema(c, "a vector of an invalid length", "");
	if (t)
		t->least = t->length == YARDL_OPEN ? 1 : saturated_product((uint64_t)t->length, t->of[0]->least);
	return t;
}

/* Set the sizes of an array whose dimensions are a list. */
static bool set_dimensions(struct yardl_type *t, const json_t *dimensions)
{
	size_t n = json_array_size(dimensions), fixed = 0;
	uint64_t elements = 1;

	for (size_t i = 0; i < n; i++) {
		const json_t *length = json_object_get(json_array_get(dimensions, i), "length");
		int64_t size = 0;

		if (length && !size_of(length, &size))
			return false;
		fixed += length != NULL;
		elements = saturated_product(elements, (uint64_t)size);
		if (i < 2)
			t->size[i] = (uint64_t)size;
	}
	if (n == 0 || n > YARDL_RANK_MAX || (fixed > 0 && fixed < n))
		return false;
	t->rank = fixed ? 0 : (int)n;
	t->length = fixed ? (int64_t)elements : YARDL_OPEN;
	if (fixed && n == 1)
		t->size[1] = 0;
	return !fixed || n <= 2;
}

static const struct yardl_type *compile_array(struct compiler *c, const json_t *of, const struct scope *scope)
{
	const json_t *dimensions = json_object_get(of, "dimensions");
	struct yardl_type *t = add_list(c, YARDL_ARRAY, of, scope);
	int64_t rank = 0;

	if (!t)
		return NULL;
	t->rank = YARDL_OPEN;
	if (json_is_array(dimensions)) {
		if (!set_dimensions(t, dimensions))
			return refuse_schema(c, "an array of unsupported dimensions", "");
	} else if (dimensions) {
		if (!size_of(dimensions, &rank) || rank < 1 || rank > YARDL_RANK_MAX)
			return refuse_schema(c, "an array of unsupported dimensions", "");
		t->rank = (int)rank;
	}
	t->least = t->rank == 0		   ? saturated_product((uint64_t)t->length, t->of[0]->least)
		   : t->rank == YARDL_OPEN ? 1
					   : (uint64_t)t->rank;
	return t;
}

static const struct yardl_type *compile_map(struct compiler *c, const json_t *of, const struct scope *scope)
{
	struct yardl_type *t = add_type(c, YARDL_MAP, "", 2);

	if (!t)
		return NULL;
	t->names[0] = t->names[1] = "";
	t->of[0] = compile_type(c, json_object_get(of, "keys"), scope);
	t->of[1] = t->of[0] ? compile_type(c, json_object_get(of, "values"), scope) : NULL;
	if (!t->of[1])
		return NULL;
	if (t->of[0]->least == 0)
		return refuse_schema(c, "a map of keys that have no bytes", "");
	t->least = 1;
	return t;
}

static const struct yardl_type *compile_object(struct compiler *c, const json_t *json, const struct scope *scope)
{
	const json_t *of = json_object_get(json, "vector");

	if (of)
		return compile_vector(c, of, scope);
	of = json_object_get(json, "array");
	if (of)
		return compile_array(c, of, scope);
	of = json_object_get(json, "map");
	if (of)
		return compile_map(c, of, scope);
	if (json_object_get(json, "typeArguments"))
		return compile_use(c, json_get_text(json, "name"), json_object_get(json, "typeArguments"), scope);
	err_set(c->err, ENOTSUP, "schema: a kind of type that is not supported");
	return NULL;
}

static const struct yardl_type *compile_type(struct compiler *c, const json_t *json, const struct scope *scope)
{
	const struct yardl_type *t = NULL;

	if (c->depth == YARDL_DEPTH_MAX)
		return refuse_schema(c, "types are nested too deeply, or contain themselves", "");
	c->depth++;
	if (json_is_null(json))
		t = add_type(c, YARDL_NULL, "null", 0);
	else if (json_is_string(json))
		t = compile_name(c, json_string_value(json), scope);
	else if (json_is_array(json))
		t = compile_union(c, json, scope);
	else if (json_is_object(json))
		t = compile_object(c, json, scope);
	else
		refuse_schema(c, "a type is missing", "");
	c->depth--;
	return t;
}

/* ---- the schema ---- */

int yardl_schema_parse(const char *text, size_t size, struct yardl_schema *ret, struct err *err)
{
	struct yardl_schema s = {0};
	json_error_t wrong;

	s.root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &wrong);
	if (!s.root)
		return err_set(err, EBADMSG, "schema: not JSON: %.100s", wrong.text);
	s.types = calloc(YARDL_TYPES_MAX, sizeof(*s.types));
	if (!s.types) {
		json_decref(s.root);
		return err_set(err, ENOMEM, "schema: no memory for its types");
	}
	*ret = s;
	return 0;
}

void yardl_schema_clear(struct yardl_schema *s)
{
	for (size_t i = 0; i < s->n_types; i++) {
		free(s->types[i].of);
		free(s->types[i].names);
	}
	free(s->types);
	json_decref(s->root);
	*s = (struct yardl_schema){0};
}

int yardl_step(struct yardl_schema *s, const char *protocol, size_t index, const char *name, bool stream,
	       const struct yardl_type **ret, struct err *err)
{
	struct compiler c = {.s = s, .err = err};
	struct scope none = {0};
	const json_t *p = json_object_get(s->root, "protocol");
	const json_t *step = json_array_get(json_object_get(p, "sequence"), index), *type = json_object_get(step, "type");
	const json_t *items = json_object_get(json_object_get(type, "stream"), "items");
	const struct yardl_type *t;

	if (strcmp(json_get_text(p, "name"), protocol) != 0)
		return err_set(err, ENOTSUP, "schema: the protocol is \"%.100s\"; supported: %s", json_get_text(p, "name"),
			       protocol);
	if (strcmp(json_get_text(step, "name"), name) != 0)
		return err_set(err, ENOTSUP, "schema: step %zu of the protocol is \"%.100s\" instead of \"%s\"", index + 1,
			       json_get_text(step, "name"), name);
	if (stream && !items)
		return err_set(err, ENOTSUP, "schema: \"%s\" is not a stream", name);
	t = compile_type(&c, stream ? items : type, &none);
	if (!t)
		return err && err->code ? -err->code : -EBADMSG;
	*ret = t;
	return 0;
}

int yardl_find(const struct yardl_type *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->names[i], name) == 0)
			return (int)i;
	return -1;
}

const char *yardl_symbol(const struct yardl_schema *s, const struct yardl_type *t, int64_t value)
{
	const struct compiler c = {.s = (struct yardl_schema *)s};
	const json_t *values = json_object_get(find_definition(&c, t->name), "values");
	size_t i;
	json_t *one;

	json_array_foreach(values, i, one) if (json_get_integer(one, "value") ==
					       value) return json_string_value(json_object_get(one, "symbol"));
	return NULL;
}
