/* SPDX-License-Identifier: Apache-2.0 */
#include "node/command/recon_recipe.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "dicom/object/dicom_tags.h"
#include "node/tools/series_files.h"

/* The parts of a recipe, and the kind of case whose geometry each is. */
static const struct {
	const char *name;
	const struct kind *kind; /* NULL: of all */
} parts[] = {{"device", NULL}, {"protocol", NULL}, {"profile", &kind_dbt}, {"scanner", &kind_pet}, {"beams", &kind_parallel}};
enum { N_PARTS = sizeof(parts) / sizeof(parts[0]) };

/* What is compared of the object itself; values of a patient are not printed. */
static const struct {
	uint32_t tag;
	const char *sentence;
} same[] = {{TAG_STUDY_INSTANCE_UID, "another study"},
	    {TAG_FRAME_OF_REFERENCE_UID, "another frame of reference"},
	    {TAG_CORRECTED_IMAGE, "other corrections (Corrected Image)"},
	    {TAG_SERIES_INSTANCE_UID, "other data, maps or corrections, or made again by a node: the UIDs differ"}};
enum { N_SAME = sizeof(same) / sizeof(same[0]) };

struct parsed {
	char version[128], recipe[RECIPE_SIZE], name[RECIPE_SIZE], pairs[RECIPE_SIZE]; /* the last two of one part */
	char value[N_SAME][256];
};

static int read_object(const char *path, struct parsed *ret, struct err *err)
{
	struct dicom_file *file = NULL;
	const struct dicom_item *item;
	int rc = dicom_open(path, &file, err);

	if (rc < 0)
		return rc;
	item = recipe_read(dicom_root(file), ret->recipe);
	if (!item)
		rc = err_set(err, EBADMSG, "%s: no result of this program: Contributing Equipment %s has no recipe", path,
			     tag_text(TAG_CONTRIBUTING_EQUIPMENT_SEQUENCE));
	else if (dicom_get_text(item, TAG_SOFTWARE_VERSIONS, ret->version, sizeof(ret->version), NULL) != 1)
		ret->version[0] = '\0';
	for (char *at = rc == 0 ? ret->version : ""; *at; at++)
		*at = *at == '\\' ? ' ' : *at; /* between version and revision */
	for (size_t i = 0; i < N_SAME; i++)
		if (dicom_get_text(dicom_root(file), same[i].tag, ret->value[i], sizeof(ret->value[i]), NULL) != 1)
			ret->value[i][0] = '\0';
	dicom_close(file);
	return rc;
}

/* Cut "key=value key="a value" ..." into its words, in place. Returns their number, at most `most` + 1: there are more. */
static int cut_words(char *text, const char **ret_words, int most)
{
	bool quoted = false;
	int n = 0;

	for (char *at = text; *at && n <= most; n++) {
		if (n < most)
			ret_words[n] = at;
		for (; *at && (quoted || *at != ' '); at++)
			quoted ^= *at == '"';
		if (*at)
			*at++ = '\0';
	}
	return n;
}

int recon_recipe_file(const char *path, char *ret_file, size_t size, struct err *err)
{
	struct series_files found = {0};
	char names[SERIES_LIST_SIZE];
	struct stat st;
	int rc = 0;

	if (stat(path, &st) < 0)
		return err_set(err, errno, "--recipe: %s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode)) {
		rc = series_files_find((char *const[]){(char *)path, NULL}, false, &found, err);
		if (rc == 0)
			rc = series_files_check(&found, (char *const[]){(char *)path, NULL}, false, err);
		series_files_list(&found, names, sizeof(names));
		if (rc == 0 && found.n != 1)
			rc = err_set(err, EBADMSG, "%s: %zu results: %s; allowed: one, or a file of one of them", path, found.n,
				     names);
	}
	if (rc == 0 && snprintf(ret_file, size, "%s", found.n ? found.list[0].paths[0] : path) >= (int)size)
		rc = err_set(err, ENAMETOOLONG, "%s: the path is too long", path);
	series_files_clear(&found);
	return rc;
}

int recon_recipe_load(const char *path, struct recon_recipe *ret, struct err *err)
{
	struct parsed p;
	int rc = read_object(path, &p, err);

	if (rc < 0)
		return rc;
	*ret = (struct recon_recipe){0};
	for (size_t i = 0; i < N_PARTS; i++)
		if (parts[i].kind && recipe_part(p.recipe, parts[i].name, p.name, p.pairs) != RECIPE_NONE)
			ret->kind = parts[i].kind;
	if (!ret->kind || recipe_part(p.recipe, "protocol", ret->protocol, ret->text) != RECIPE_WHOLE)
		return err_set(err, EBADMSG, "%s: its recipe is not whole", path);
	ret->n = cut_words(ret->text, ret->assignments, RECON_SET_MAX);
	if (ret->n > RECON_SET_MAX)
		return err_set(err, EBADMSG, "%s: more than %d keys in its recipe", path, RECON_SET_MAX);
	/* programs of a configuration, which its protocol of this name has, or has not */
	ret->n -= ret->n > 0 && !strncmp(ret->assignments[ret->n - 1], "steps=", 6);
	return 0;
}

/* Return the word of the list with the key of this one; NULL: none. */
static const char *same_key(const char *word, const char *const *words, int n)
{
	size_t length = strcspn(word, "=") + 1;

	for (int i = 0; i < n; i++)
		if (!strncmp(words[i], word, length))
			return words[i];
	return NULL;
}

static const char *value_of(const char *word)
{
	return word[strcspn(word, "=")] ? strchr(word, '=') + 1 : word;
}

/* Say how CT and maps differ, whose digest is the word without a key; NULL: the result has none. */
static void compare_maps(json_t *to, const char *was, const char *is)
{
	if (was && is && strcmp(was, is) != 0)
		json_array_append_new(to, json_string("CT or maps with other values or in another place"));
	else if (was && !is)
		json_array_append_new(to, json_string("without its CT or maps: give them, too (files with --map)"));
	else if (!was && is)
		json_array_append_new(to, json_string("with CT or maps, was without"));
}

/* Take the word without a key out of the list; NULL: none. */
static const char *take_digest(const char **words, int *n)
{
	const char *found = NULL;
	int kept = 0;

	for (int i = 0; i < *n; i++)
		if (strchr(words[i], '='))
			words[kept++] = words[i];
		else
			found = words[i];
	*n = kept;
	return found;
}

/* Note each key of one part whose value differs, or that only one of the two has. */
static void compare_pairs(json_t *to, char *was, char *is)
{
	const char *a[RECON_SET_MAX], *b[RECON_SET_MAX], *other;
	int n_a = cut_words(was, a, RECON_SET_MAX), n_b = cut_words(is, b, RECON_SET_MAX);

	n_a = n_a < RECON_SET_MAX ? n_a : RECON_SET_MAX;
	n_b = n_b < RECON_SET_MAX ? n_b : RECON_SET_MAX;
	compare_maps(to, take_digest(a, &n_a), take_digest(b, &n_b));
	for (int i = 0; i < n_b; i++) {
		other = same_key(b[i], a, n_a);
		if (!other || strcmp(other, b[i]) != 0)
			json_array_append_new(to, json_sprintf("%s, was %s", b[i], other ? value_of(other) : "not there"));
	}
	for (int i = 0; i < n_a; i++)
		if (!same_key(a[i], b, n_b))
			json_array_append_new(to, json_sprintf("no %.*s, was %s", (int)strcspn(a[i], "="), a[i], value_of(a[i])));
}

/* Take the words of a recipe before its parts: of maps, calibration, rescaling. */
static void take_facts(const char *recipe, char ret[RECIPE_SIZE])
{
	const char *at = recipe + strcspn(recipe, " "), *end = strstr(at, " device=\"");

	snprintf(ret, RECIPE_SIZE, "%.*s", end && end > at ? (int)(end - at - 1) : 0, at + (*at == ' '));
}

/* Note what differs of the objects themselves; that the UIDs differ, only if no key of the protocol explains it. */
static void compare_values(json_t *to, struct parsed *a, struct parsed *b)
{
	size_t version = strcmp(a->version, b->version) != 0, device, known;

	recipe_part(a->recipe, "device", a->name, a->pairs);
	recipe_part(b->recipe, "device", b->name, b->pairs);
	device = strcmp(a->pairs, b->pairs) != 0;
	take_facts(a->recipe, a->pairs);
	take_facts(b->recipe, b->pairs);
	compare_pairs(to, a->pairs, b->pairs);
	known = json_array_size(to);
	for (size_t i = 0; i < N_SAME; i++)
		if (strcmp(a->value[i], b->value[i]) != 0 &&
		    (same[i].tag != TAG_SERIES_INSTANCE_UID || known == version + device))
			json_array_append_new(to, json_string(same[i].sentence));
}

json_t *recon_recipe_differences(const char *was, const char *is)
{
	struct err ignored = {0};
	struct parsed a, b;
	char pairs[RECIPE_SIZE];
	json_t *ret;

	if (read_object(was, &a, &ignored) < 0 || read_object(is, &b, &ignored) < 0)
		return NULL;
	ret = json_array();
	if (strcmp(a.version, b.version) != 0)
		json_array_append_new(ret, json_sprintf("version %s, was %s", b.version, a.version));
	for (size_t i = 0; i < N_PARTS; i++) {
		pairs[0] = a.pairs[0] = a.name[0] = b.name[0] = '\0';
		recipe_part(a.recipe, parts[i].name, a.name, a.pairs);
		recipe_part(b.recipe, parts[i].name, b.name, pairs);
		if (strcmp(a.name, b.name) != 0)
			json_array_append_new(ret, json_sprintf("%s %s, was %s", parts[i].name, b.name, a.name));
		if (i > 0)
			compare_pairs(ret, a.pairs, pairs);
		else if (strcmp(a.pairs, pairs) != 0)
			json_array_append_new(ret, json_sprintf("%s %s, was %s", parts[i].name, pairs, a.pairs));
	}
	compare_values(ret, &a, &b);
	return ret;
}
