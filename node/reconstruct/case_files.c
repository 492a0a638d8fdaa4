/* SPDX-License-Identifier: Apache-2.0 */
/* case_files.c - walk through folders and sort their files into cases with case_read_facts(). Files without the DICM mark at byte
 * 128 are counted and skipped; a file that cannot be read is refused with its reason. */
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/ct_series.h"
#include "node/base/dicom_mark.h"
#include "node/base/folder.h"
#include "node/base/own_files.h"
#include "node/reconstruct/case_facts.h"
#include "node/reconstruct/case_files.h"
#include "node/sinogram/pet_source.h"

#define FILES_MAX 100000

/* Enlarge an array of n elements by doubling if it has no space for one more. */
static int grow_array(void **array, size_t n, size_t size, struct err *err)
{
	void *bigger;

	if (n & (n - 1)) /* n is not a power of two: there is space */
		return 0;
	bigger = realloc(*array, (n ? 2 * n : 1) * size);
	if (!bigger)
		return err_set(err, ENOMEM, "no memory for a list of %zu entries", n);
	*array = bigger;
	return 0;
}

static int refuse_file(struct case_list *list, const char *path, const char *reason, struct err *err)
{
	struct case_refusal *r;
	int rc = grow_array((void **)&list->refused, list->n_refused, sizeof(*list->refused), err);

	if (rc < 0)
		return rc;
	r = &list->refused[list->n_refused];
	snprintf(r->reason, sizeof(r->reason), "%s", reason);
	r->path = strdup(path);
	if (!r->path)
		return err_set(err, ENOMEM, "no memory for a path");
	list->n_refused++;
	return 0;
}

static struct case_files *find_case(struct case_list *list, const struct case_facts *facts, struct err *err)
{
	struct case_files *c;
	char key[sizeof(c->key)];

	case_key(facts, key, sizeof(key));
	for (size_t i = 0; i < list->n; i++)
		if (!strcmp(list->cases[i].key, key))
			return &list->cases[i];
	if (grow_array((void **)&list->cases, list->n, sizeof(*list->cases), err) < 0)
		return NULL;
	c = &list->cases[list->n++];
	memset(c, 0, sizeof(*c));
	memcpy(c->key, key, sizeof(key));
	c->kind = facts->kind;
	memcpy(c->laterality, facts->laterality, sizeof(c->laterality));
	memcpy(c->view, facts->view, sizeof(c->view));
	memcpy(c->study, facts->study, sizeof(c->study));
	memcpy(c->series, facts->series, sizeof(c->series));
	memcpy(c->frame_of_reference, facts->frame_of_reference, sizeof(c->frame_of_reference));
	return c;
}

static int add_file(struct case_list *list, const struct case_facts *facts, const char *path, struct err *err)
{
	struct case_files *c = find_case(list, facts, err);

	if (!c)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i++)
		if (!strcmp(c->instances[i], facts->sop_instance)) {
			list->n_duplicates++;
			return 0;
		}
	if (grow_array((void **)&c->paths, c->n, sizeof(*c->paths), err) < 0 ||
	    grow_array((void **)&c->instances, c->n, sizeof(*c->instances), err) < 0)
		return -ENOMEM;
	memcpy(c->instances[c->n], facts->sop_instance, DICOM_UID_SIZE);
	c->paths[c->n] = strdup(path);
	if (!c->paths[c->n])
		return err_set(err, ENOMEM, "no memory for a path");
	c->n++;
	return 0;
}

/* Add a file that is a case of its own. */
static int add_alone(struct case_list *list, const struct kind *kind, const char *path, struct err *err)
{
	struct case_facts facts = {.kind = kind};
	struct case_files *c;

	snprintf(facts.study, sizeof(facts.study), "%zu", list->n_files); /* no other case has this key */
	if (add_file(list, &facts, path, err) < 0)
		return -ENOMEM;
	c = &list->cases[list->n - 1];
	c->study[0] = '\0';
	return 0;
}

static int add_ct(struct case_list *list, const struct case_facts *facts, const char *path, struct err *err)
{
	struct case_ct *ct;

	if (grow_array((void **)&list->ct, list->n_ct, sizeof(*list->ct), err) < 0)
		return -ENOMEM;
	ct = &list->ct[list->n_ct];
	memcpy(ct->study, facts->study, sizeof(ct->study));
	memcpy(ct->frame_of_reference, facts->frame_of_reference, sizeof(ct->frame_of_reference));
	ct->path = strdup(path);
	if (!ct->path)
		return err_set(err, ENOMEM, "no memory for a path");
	list->n_ct++;
	return 0;
}

static int add_other(struct case_list *list, const char *path, struct err *err)
{
	if (grow_array((void **)&list->other, list->n_other, sizeof(*list->other), err) < 0)
		return -ENOMEM;
	list->other[list->n_other] = strdup(path);
	if (!list->other[list->n_other])
		return err_set(err, ENOMEM, "no memory for a path");
	list->n_other++;
	return 0;
}

static int inspect_file(struct case_list *list, const char *path, struct err *err)
{
	const struct kind *kind;
	struct case_facts facts;
	struct err why = {0};
	enum dicom_mark mark;

	if (++list->n_files > FILES_MAX)
		return err_set(err, E2BIG, "more than %d files", FILES_MAX);
	kind = case_kind_of_file(path);
	if (kind)
		return add_alone(list, kind, path, err);
	if (dicom_mark_find(path, &mark, &why) < 0)
		return refuse_file(list, path, why.msg, err);
	if (mark == DICOM_MARK_DIRECTORY) { /* its images are beside it */
		list->n_ignored++;
		return 0;
	}
	if (mark == DICOM_MARK_NONE) {
		list->n_own += own_file(path);
		return own_file(path) ? 0 : add_other(list, path, err);
	}
	if (case_read_facts(path, &facts, &why) < 0)
		return refuse_file(list, path, why.msg, err);
	if (facts.refused)
		return refuse_file(list, path, facts.reason, err);
	if (!facts.kind && facts.ct != CT_NO_SLICE)
		return add_ct(list, &facts, path, err);
	if (!facts.kind) {
		list->n_ignored++;
		return 0;
	}
	return add_file(list, &facts, path, err);
}

static void remove_other(struct case_list *list, const char *path)
{
	for (size_t i = 0; i < list->n_other; i++)
		if (!strcmp(list->other[i], path)) {
			free(list->other[i]);
			list->other[i] = list->other[--list->n_other];
			return;
		}
}

/* The files from which a case is read beside its own are not ignored. */
static void remove_parts(struct case_list *list)
{
	char *parts[PET_SOURCE_PARTS];

	for (size_t i = 0; list->n_other > 0 && i < list->n; i++) {
		const struct pet_source *source = pet_source_of_file(list->cases[i].paths[0]);
		int n = source && source->parts ? source->parts(list->cases[i].paths[0], parts) : 0;

		for (int k = 0; k < n; k++) {
			remove_other(list, parts[k]);
			free(parts[k]);
		}
	}
}

int case_list_create(char *const *paths, struct case_list **ret_list, struct err *err)
{
	struct case_list *list = calloc(1, sizeof(*list));
	FTS *fts = NULL;
	FTSENT *entry;
	int rc = 0;

	if (!list)
		return err_set(err, ENOMEM, "no memory for a list of cases");
	if (!paths[0]) { /* fts_open() refuses an empty list */
		*ret_list = list;
		return 0;
	}
	fts = folder_walk(paths);
	if (!fts) {
		rc = err_set(err, errno, "cannot read the folders: %s", strerror(errno));
		goto out;
	}
	while (!rc && (entry = fts_read(fts))) {
		if (entry->fts_info == FTS_F)
			rc = inspect_file(list, entry->fts_path, err);
		else if (entry->fts_info == FTS_NS || entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
			rc = err_set(err, entry->fts_errno == EACCES ? EPERM : ENOENT, "%s: %s", entry->fts_path,
				     strerror(entry->fts_errno));
	}
	if (rc < 0)
		goto out;
	remove_parts(list);
	*ret_list = list;
	list = NULL;
out:
	if (fts)
		fts_close(fts);
	case_list_free(list);
	return rc;
}

struct case_list *case_list_free(struct case_list *list)
{
	if (!list)
		return NULL;
	for (size_t i = 0; i < list->n; i++) {
		for (size_t k = 0; k < list->cases[i].n; k++)
			free(list->cases[i].paths[k]);
		free(list->cases[i].paths);
		free(list->cases[i].instances);
	}
	for (size_t i = 0; i < list->n_other; i++)
		free(list->other[i]);
	free(list->other);
	for (size_t i = 0; i < list->n_refused; i++)
		free(list->refused[i].path);
	for (size_t i = 0; i < list->n_ct; i++)
		free(list->ct[i].path);
	free(list->ct);
	free(list->cases);
	free(list->refused);
	free(list);
	return NULL;
}

const char **case_paths_with_ct(const struct case_list *list, const struct case_files *c, size_t *ret_n)
{
	const char **paths = calloc(c->n + list->n_ct, sizeof(*paths));
	size_t n = c->n;

	for (size_t i = 0; paths && i < c->n; i++)
		paths[i] = c->paths[i];
	for (size_t i = 0; paths && i < list->n_ct; i++)
		if (c->frame_of_reference[0] && !strcmp(list->ct[i].frame_of_reference, c->frame_of_reference))
			paths[n++] = list->ct[i].path;
	if (paths && n == c->n)
		for (size_t i = 0; i < list->n_ct; i++)
			if (list->n == 1 || !strcmp(list->ct[i].study, c->study))
				paths[n++] = list->ct[i].path;
	*ret_n = n;
	return paths;
}
