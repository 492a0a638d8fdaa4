/* SPDX-License-Identifier: Apache-2.0 */
#include "node/command/imported_cases.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/base/folder.h"
#include "node/sinogram/pet_source.h"

/* Return how a path becomes sinogram objects first; NULL: it does not. */
static const struct pet_source *source_of(const char *path)
{
	return pet_source_of_file(path) ? NULL : pet_source_to_import(path);
}

size_t imported_cases_count(char *const *paths, size_t *ret_roles)
{
	size_t n = 0;

	for (*ret_roles = 0; *paths; paths++) {
		const struct pet_source *source = source_of(*paths);

		n += source != NULL;
		*ret_roles += source && source->roles;
	}
	return n;
}

size_t imported_cases_beneath(char *const *paths)
{
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *entry;
	size_t n = 0;

	if (!fts)
		return 0;
	while ((entry = fts_read(fts)))
		n += entry->fts_info == FTS_F && source_of(entry->fts_path);
	fts_close(fts);
	return n;
}

const char *imported_cases_not_emission(char *const *paths, const char **ret_option)
{
	static const struct {
		const char *word, *option;
	} words[] = {{"atten", "--attenuation"}, {"acf", "--attenuation"},  {"norm", "--normalisation"},
		     {"additive", "--additive"}, {"delayed", "--delayeds"}, {"multiplicative", "--multiplicative"},
		     {"randoms", "--additive"}};

	for (; *paths; paths++)
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (strcasestr(file_name(*paths), words[i].word) && source_of(*paths)) {
				*ret_option = words[i].option;
				return *paths;
			}
	return NULL;
}

static void remove_folders(const struct imported_cases *c, const char *out_dir)
{
	struct err ignored = {0};

	for (size_t i = 0; i < c->most; i++)
		if (c->cases[i].folder[0])
			folder_remove(c->cases[i].folder, &ignored);
	if (c->made_folder)
		rmdir(out_dir); /* fails if it has results */
}

/* Start the process that removes the folders when this one ends, however it does. It has no open file of this process, so that
 * nobody waits for it, and gets no signal of this process's terminal or group. */
static int start_guard(struct imported_cases *c, const char *out_dir, struct err *err)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP};
	int fd[2];
	char byte;

	if (pipe2(fd, O_CLOEXEC) < 0)
		return err_set(err, errno, "cannot make a pipe: %s", strerror(errno));
	c->guard = fork();
	if (c->guard == 0) {
		setsid();
		for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
			signal(ignored[i], SIG_IGN);
		dup2(fd[0], 0);
		close_range(1, ~0u, 0);
		while (read(0, &byte, 1) < 0 && errno == EINTR)
			;
		remove_folders(c, out_dir);
		_exit(0);
	}
	close(fd[0]);
	c->guard_fd = fd[1];
	if (c->guard > 0)
		return 0;
	c->guard = 0;
	close(fd[1]);
	return err_set(err, errno, "cannot start a process: %s", strerror(errno));
}

static int make_folder(struct imported_case *c, const char *out_dir, struct err *err)
{
	if (snprintf(c->folder, sizeof(c->folder), "%s/.import-XXXXXX", out_dir) >= (int)sizeof(c->folder)) {
		c->folder[0] = '\0';
		return err_set(err, ENAMETOOLONG, "the path of folder %.60s... is too long", out_dir);
	}
	if (mkdtemp(c->folder))
		return 0;
	c->folder[0] = '\0';
	return err_set(err, folder_output_code(errno), "cannot make a folder for the objects of an import in %s: %s", out_dir,
		       strerror(errno));
}

static int import_one(struct imported_case *to, const struct sinogram_import *conf, const char *path, const char *out_dir,
		      struct err *err)
{
	struct sinogram_import own = *conf;
	struct import_report report = {0};
	int rc = make_folder(to, out_dir, err);

	own.folder = to->folder;
	own.assumed = &to->assumed;
	if (rc == 0)
		rc = source_of(path)->import(path, &own, &report, err);
	json_decref(report.details);
	return rc;
}

/* Check that no earlier case would make the same image as the last one. */
static int check_same(const struct imported_cases *c, struct err *err)
{
	const struct imported_case *last = &c->cases[c->n - 1];

	for (size_t i = 0; i + 1 < c->n; i++)
		if (last->assumed.identity[0] && !strcmp(c->cases[i].assumed.identity, last->assumed.identity))
			return err_set(err, EBADMSG,
				       "%s: the same data with the same geometry as %s: two headers of one scan; name only one",
				       last->from, c->cases[i].from);
	return 0;
}

int imported_cases_create(struct imported_cases *c, const struct sinogram_import *conf, char *const *paths, const char *out_dir,
			  void (*refuse)(void *ctx, const char *path, const struct err *err), void *ctx, struct err *err)
{
	size_t n_paths = 0, n = 0, ignored, most = imported_cases_count(paths, &ignored);
	void *cases = mmap(NULL, most * sizeof(*c->cases), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	while (paths[n_paths])
		n_paths++;
	if (cases != MAP_FAILED) {
		c->cases = cases;
		c->most = most;
	}
	c->paths = calloc(n_paths + 1, sizeof(*c->paths));
	if (!c->cases || !c->paths)
		return err_set(err, ENOMEM, "no memory for a list of %zu files", n_paths);
	c->made_folder = access(out_dir, F_OK) < 0;
	if (start_guard(c, out_dir, err) < 0 || folder_create(out_dir, err) < 0)
		return -err->code;
	for (size_t i = 0; i < n_paths; i++) {
		struct imported_case *to = &c->cases[c->n];
		struct err why = {0};

		if (c->n == most || !source_of(paths[i])) {
			c->paths[n++] = paths[i];
			continue;
		}
		c->n++; /* its folder is removed in any case */
		to->from = paths[i];
		if (import_one(to, conf, paths[i], out_dir, &why) < 0) {
			refuse(ctx, paths[i], &why);
			continue;
		}
		if (check_same(c, err) < 0)
			return -err->code;
		c->paths[n++] = to->folder;
	}
	return 0;
}

const struct imported_case *imported_cases_of(const struct imported_cases *c, const struct case_files *files)
{
	for (size_t i = 0; i < c->n; i++) {
		size_t n = strlen(c->cases[i].folder);

		if (n > 0 && !strncmp(files->paths[0], c->cases[i].folder, n) && files->paths[0][n] == '/')
			return &c->cases[i];
	}
	return NULL;
}

void imported_cases_clear(struct imported_cases *c, const char *out_dir)
{
	if (c->cases) {
		remove_folders(c, out_dir);
		munmap(c->cases, c->most * sizeof(*c->cases));
	}
	if (c->guard) {
		close(c->guard_fd);
		while (waitpid(c->guard, NULL, 0) < 0 && errno == EINTR)
			;
	}
	free(c->paths);
	*c = (struct imported_cases){0};
}
