/* SPDX-License-Identifier: Apache-2.0 */
#include "node/command/interfile_cases.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/folder.h"

#define HEAD 256 /* bytes in which the first line of a header begins */

static bool has_ending(const char *path, const char *ending)
{
	size_t n = strlen(path), m = strlen(ending);

	return n > m && !strcasecmp(path + n - m, ending);
}

/* Return true for a regular file with an ending of projection data, or that begins with the keyword of Interfile. */
static bool is_header(const char *path)
{
	char head[HEAD + 1];
	const char *at = head;
	struct stat st;
	FILE *f;
	size_t n;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	if (has_ending(path, ".hs") || has_ending(path, ".s.hdr"))
		return true;
	f = fopen(path, "rb");
	n = f ? fread(head, 1, HEAD, f) : 0;
	if (f)
		fclose(f);
	head[n] = '\0';
	while (isspace((unsigned char)*at))
		at++;
	at += *at == '!';
	return !strncasecmp(at, "interfile", strlen("interfile"));
}

size_t interfile_cases_count(char *const *paths)
{
	size_t n = 0;

	for (; *paths; paths++)
		n += is_header(*paths);
	return n;
}

static int make_folder(struct interfile_case *c, const char *out_dir, struct err *err)
{
	if (snprintf(c->folder, sizeof(c->folder), "%s/.interfile-XXXXXX", out_dir) >= (int)sizeof(c->folder)) {
		c->folder[0] = '\0';
		return err_set(err, ENAMETOOLONG, "the path of folder %.60s... is too long", out_dir);
	}
	if (mkdtemp(c->folder))
		return 0;
	c->folder[0] = '\0';
	return err_set(err, errno, "cannot make a folder for the objects of an Interfile in %s: %s", out_dir, strerror(errno));
}

static int import_one(struct interfile_cases *c, struct interfile_case *to, const char *header, const char *out_dir,
		      struct err *err)
{
	struct sinogram_import conf = c->conf;
	size_t n;
	int rc = make_folder(to, out_dir, err);

	conf.header[SINOGRAM_EMISSION] = header;
	conf.folder = to->folder;
	conf.assumed = &to->assumed;
	return rc < 0 ? rc : sinogram_import(&conf, &n, err);
}

int interfile_cases_import(struct interfile_cases *c, char *const *paths, const char *out_dir,
			   void (*refuse)(void *ctx, const char *header, const struct err *err),
			   void (*note)(void *ctx, const char *header, const char *text), void *ctx, struct err *err)
{
	size_t n_paths = 0, n = 0, most = interfile_cases_count(paths);

	while (paths[n_paths])
		n_paths++;
	c->cases = calloc(most, sizeof(*c->cases));
	c->paths = calloc(n_paths + 1, sizeof(*c->paths));
	if (!c->cases || !c->paths)
		return err_set(err, ENOMEM, "no memory for a list of %zu files", n_paths);
	c->made_folder = access(out_dir, F_OK) < 0;
	if (folder_create(out_dir, err) < 0)
		return -err->code;
	for (size_t i = 0; i < n_paths; i++) {
		struct interfile_case *to = &c->cases[c->n];
		struct err why = {0};

		if (c->n == most || !is_header(paths[i])) {
			c->paths[n++] = paths[i];
			continue;
		}
		c->n++; /* its folder is removed in any case */
		if (import_one(c, to, paths[i], out_dir, &why) < 0) {
			refuse(ctx, paths[i], &why);
			continue;
		}
		if (to->assumed.text[0])
			note(ctx, paths[i], to->assumed.text);
		c->paths[n++] = to->folder;
	}
	return 0;
}

const struct sinogram_assumed *interfile_cases_assumed(const struct interfile_cases *c, const struct case_files *files)
{
	for (size_t i = 0; i < c->n; i++) {
		size_t n = strlen(c->cases[i].folder);

		if (n > 0 && !strncmp(files->paths[0], c->cases[i].folder, n) && files->paths[0][n] == '/')
			return c->cases[i].assumed.text[0] ? &c->cases[i].assumed : NULL;
	}
	return NULL;
}

void interfile_cases_clear(struct interfile_cases *c, const char *out_dir)
{
	struct err ignored = {0};

	for (size_t i = 0; i < c->n; i++)
		if (c->cases[i].folder[0])
			folder_remove(c->cases[i].folder, &ignored);
	if (c->made_folder)
		rmdir(out_dir); /* fails if it has results */
	free(c->cases);
	free(c->paths);
	*c = (struct interfile_cases){0};
}
