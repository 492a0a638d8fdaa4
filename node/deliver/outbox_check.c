/* SPDX-License-Identifier: Apache-2.0 */
#include "node/deliver/outbox_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/digest.h"

#define THREADS 4 /* few, because workers compute at the same time */

struct outbox {
	const struct job_object **objects;
	char (*names)[500];
	const char **paths;
	char (*hex)[DIGEST_SIZE];
	int *codes;
	size_t n;
};

static int list_due(struct outbox *o, const char *spool, const struct job_view *v, const struct job_send *send, struct err *err)
{
	for (size_t i = 0; i < v->n_objects; i++) {
		const struct job_object *object = &v->objects[i];
		char *name = o->names[o->n];

		if (send->objects[i] != SEND_DUE || !object->digest[0])
			continue;
		if (snprintf(name, sizeof(o->names[0]), "%s/%s", spool, object->file) >= (int)sizeof(o->names[0]))
			return err_set(err, ENAMETOOLONG, "the path of %s in the spool is too long", object->file);
		o->objects[o->n] = object;
		o->paths[o->n++] = name;
	}
	return 0;
}

static int compare_objects(const struct outbox *o, struct err *err)
{
	for (size_t i = 0; i < o->n; i++) {
		const struct job_object *object = o->objects[i];
		int code = o->codes[i];

		if (code && digest_error_is_transient(code))
			return err_set(err, code, "%s cannot be read: %s", object->file, strerror(code));
		if (code)
			return err_set(err, EBADMSG, "%s can no longer be read (%s): the case is reconstructed again",
				       object->file, strerror(code));
		if (strcmp(o->hex[i], object->digest) != 0)
			return err_set(err, EBADMSG,
				       "the bytes of %s differ from those that were written: the case is reconstructed again",
				       object->file);
	}
	return 0;
}

int outbox_verify(const char *spool, const struct job_view *v, const struct job_send *send, struct err *err)
{
	size_t n = v->n_objects ? v->n_objects : 1;
	struct outbox o = {.objects = calloc(n, sizeof(o.objects[0])),
			   .names = calloc(n, sizeof(o.names[0])),
			   .paths = calloc(n, sizeof(o.paths[0])),
			   .hex = calloc(n, sizeof(o.hex[0])),
			   .codes = calloc(n, sizeof(o.codes[0]))};
	int ret;

	if (!o.objects || !o.names || !o.paths || !o.hex || !o.codes)
		ret = err_set(err, ENOMEM, "no memory for digests of %zu objects", n);
	else
		ret = list_due(&o, spool, v, send, err);
	if (ret == 0 && o.n > 0)
		ret = digest_files(o.paths, o.n, THREADS, o.hex, o.codes, err);
	if (ret == 0)
		ret = compare_objects(&o, err);
	free(o.objects);
	free(o.names);
	free(o.paths);
	free(o.hex);
	free(o.codes);
	return ret;
}
