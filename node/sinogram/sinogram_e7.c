/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_e7.c - import what the e7tools of Siemens export (`-d ./Debug`, `--os scatter_520_2D.mhdr`), after the scripts of STIR
 * (Vision_files_preprocess.py, Quadra_files_preprocess.py); no data of a scanner were available. Prompts, normalisation,
 * attenuation, randoms and scatter become EMISSION, NORMALISATION, ATTENUATION and ADDITIVE (docs/import.md). Missing
 * files are named in conf->warnings. conf->header[SINOGRAM_EMISSION]: the header of the prompts, NULL: the only one in the folder.
 *
 * Only the header of the prompts is complete. Every other file must have exactly the size that the prompts require for it; if it
 * has a header of its own, this must agree. The randoms begin with a block without TOF bins, the smoothed delayed coincidences,
 * which is not read. Memory holds a few planes at a time.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/folder.h"
#include "node/base/sentence.h"
#include "node/base/text_file.h"
#include "node/sinogram/pet_source.h"
#include "node/sinogram/sinogram_e7_internal.h"

#define CANDIDATES_MAX 64
#define ENDING ".s.hdr"

static const struct {
	const char *name[2]; /* of the data file; NULL: only one */
	const char *title;
} files[E7_FILES] = {
	[E7_NORM] = {{"norm3d_00.a"}, "normalisation"},
	[E7_ATTENUATION] = {{"acf_00.a"}, "attenuation correction factors"},
	[E7_RANDOMS] = {{"smoothed_rand_00.s"}, "smoothed randoms"},
	[E7_SCATTER] = {{"scat_00_00.s", "scatter_520_2D_00_00.s"}, "scatter"},
};

/* ---- find the files ---- */

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Find a file of the folder or of its sub-folder Debug. ENOTUNIQ: there are two. */
static int find_file(const char *folder, enum e7_file file, char ret_path[E7_PATH_SIZE], struct err *err)
{
	static const char *const places[] = {"", "Debug/"};

	for (int i = 0; i < 4; i++) {
		const char *name = files[file].name[i / 2];
		char path[E7_PATH_SIZE];

		if (!name || snprintf(path, sizeof(path), "%s/%s%s", folder, places[i % 2], name) >= (int)sizeof(path) ||
		    !is_file(path))
			continue;
		if (ret_path[0])
			return err_set(err, ENOTUNIQ, "two files with the %s: %s and %s%s; leave only one of them",
				       files[file].title, file_name(ret_path), places[i % 2], name);
		memcpy(ret_path, path, sizeof(path));
	}
	return 0;
}

static bool is_candidate(const char *name)
{
	static const char *const others[] = {"scat", "smoothed_rand", "norm3d", "acf", "umap"};
	size_t n = strlen(name), end = strlen(ENDING);

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strncmp(name, others[i], strlen(others[i])))
			return false;
	return n > end && !strcmp(name + n - end, ENDING);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* List the headers that may be those of the prompts, in the order of their names. ENOTUNIQ: too many to try each. */
static int list_candidates(const char *folder, char (*ret_name)[256], int *ret_n, struct err *err)
{
	DIR *d = opendir(folder);
	struct dirent *entry;
	int n = 0;

	if (!d)
		return err_set(err, folder_input_code(errno), "cannot open folder %s: %s", folder, strerror(errno));
	while ((entry = readdir(d)) && n <= CANDIDATES_MAX)
		if (is_candidate(entry->d_name) && n++ < CANDIDATES_MAX)
			snprintf(ret_name[n - 1], sizeof(ret_name[0]), "%s", entry->d_name);
	closedir(d);
	if (n > CANDIDATES_MAX)
		return err_set(err, ENOTUNIQ,
			       "more than %d headers (*%s) in the folder; name that of the prompts: import FILE --e7 DIR",
			       CANDIDATES_MAX, ENDING);
	qsort(ret_name, (size_t)n, sizeof(ret_name[0]), by_name);
	*ret_n = n;
	return 0;
}

/* Can the header be read as one of Siemens sinograms? */
static int try_header(const char *path, struct err *err)
{
	struct interfile f;
	char *text = NULL;
	size_t size;
	int rc = text_file_read(path, INTERFILE_TEXT_MAX, "Interfile header", &text, &size, err);

	if (rc == 0)
		rc = interfile_parse(text, size, &f, err);
	free(text);
	if (rc < 0) {
		err_prefix(err, "%s", file_name(path));
		return rc;
	}
	rc = f.siemens ? 0 : err_set(err, EBADMSG, "%s is not a header of Siemens sinograms", file_name(path));
	interfile_clear(&f);
	return rc;
}

/* Find the only header that can be read; if none can, return the error of the first. */
static int find_prompts(const char *folder, char ret_path[E7_PATH_SIZE], struct err *err)
{
	char name[CANDIDATES_MAX][256], path[E7_PATH_SIZE];
	struct err first = {0}, problem = {0};
	int n = 0, found = -1, rc = list_candidates(folder, name, &n, err);

	if (rc < 0)
		return rc;
	for (int i = 0; i < n; i++) {
		if (snprintf(path, sizeof(path), "%s/%s", folder, name[i]) >= E7_PATH_SIZE)
			return err_set(err, ENAMETOOLONG, "the name of the folder is too long");
		rc = try_header(path, first.code ? &problem : &first);
		if (rc == 0 && found >= 0)
			return err_set(err, ENOTUNIQ,
				       "%s and %s are both headers of sinograms; name that of the prompts: import FILE --e7 DIR",
				       name[found], name[i]);
		if (rc == 0)
			memcpy(ret_path, path, E7_PATH_SIZE);
		if (rc == 0)
			found = i;
	}
	if (found >= 0)
		return 0;
	if (n > 0)
		return err_set(err, first.code, "%s", first.msg);
	return err_set(err, EBADMSG, "no header of prompts (*%s) in the folder", ENDING);
}

/* ---- check them ---- */

/* Open a file and check its size: `planes` in each TOF bin, with TOF bins or (if optional) without. */
static int open_data(struct e7 *e, enum e7_file file, size_t planes, bool tof, bool optional, struct err *err)
{
	struct e7_data *d = &e->data[file];
	uint64_t one = (uint64_t)planes * e->angles * e->radial * sizeof(float), size;
	struct stat st;

	d->fd = open(d->path, O_RDONLY | O_CLOEXEC);
	if (d->fd < 0 || fstat(d->fd, &st) < 0)
		return err_set(err, folder_input_code(errno), "cannot open %s: %s", file_name(d->path), strerror(errno));
	d->planes = planes;
	d->tof = tof && !(optional && (uint64_t)st.st_size == d->skip + one);
	size = d->skip + (d->tof ? e->tof : 1) * one;
	if ((uint64_t)st.st_size == size)
		return 0;
	return err_set(
		err, EBADMSG,
		"%s has %llu bytes; the prompts require %llu (%zu TOF bins, %zu planes, %zu angles, %zu radial bins of 4 bytes"
		"%s)",
		file_name(d->path), (unsigned long long)st.st_size, (unsigned long long)size, d->tof ? e->tof : 1, planes,
		e->angles, e->radial, d->skip ? ", after the delayed coincidences without TOF bins" : "");
}

/* Check the header of a data file, NAME.hdr or NAME with the ending .h33, if there is one. */
static int check_header(struct e7 *e, enum e7_file file, struct err *err)
{
	struct e7_data *d = &e->data[file];
	int side[4] = {(int)e->radial, (int)e->angles, (int)d->planes, d->tof && file != E7_RANDOMS ? (int)e->tof : 0}, rc;
	char path[E7_PATH_SIZE + 8], *text = NULL;
	size_t size;

	snprintf(path, sizeof(path), "%s.hdr", d->path);
	if (!is_file(path))
		snprintf(path, sizeof(path), "%.*s.h33", (int)(strrchr(d->path, '.') - d->path), d->path);
	if (!is_file(path))
		return 0;
	rc = text_file_read(path, INTERFILE_TEXT_MAX, "Interfile header", &text, &size, err);
	if (rc == 0)
		rc = interfile_companion(text, size, side, &d->big_endian, err);
	free(text);
	if (rc < 0)
		err_prefix(err, "%s", file_name(path));
	return rc;
}

static int open_files(struct e7 *e, const struct michelogram *m, const char *folder, struct err *err)
{
	const size_t planes[E7_FILES] = {e->planes, e->planes, e->planes, (size_t)m->segments[0].n_planes};

	for (int i = 0; i < E7_FILES; i++) {
		int rc = find_file(folder, (enum e7_file)i, e->data[i].path, err);

		if (rc < 0)
			return rc;
		if (!e->data[i].path[0]) {
			sentence_add(e->source.notes, sizeof(e->source.notes), "%s with the %s is missing.", files[i].name[0],
				     files[i].title);
			continue;
		}
		if (i == E7_RANDOMS)
			e->data[i].skip = (uint64_t)e->planes * e->angles * e->radial * sizeof(float);
		rc = open_data(e, (enum e7_file)i, planes[i], i != E7_ATTENUATION && m->tof.n > 0, i == E7_NORM, err);
		if (rc == 0)
			rc = check_header(e, (enum e7_file)i, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* What can be computed without the files that are missing. */
static void plan_roles(struct e7 *e)
{
	if (e->data[E7_SCATTER].fd >= 0 && e->data[E7_RANDOMS].fd < 0)
		sentence_add(e->source.notes, sizeof(e->source.notes), "Without randoms there is no ADDITIVE.");
	else if (e->data[E7_SCATTER].fd >= 0 && e->data[E7_NORM].fd < 0) {
		sentence_add(e->source.notes, sizeof(e->source.notes),
			     "Without the normalisation the scatter cannot be used; ADDITIVE contains only the randoms.");
		close(e->data[E7_SCATTER].fd);
		e->data[E7_SCATTER].fd = -1;
	}
}

/* ---- the roles ---- */

/* Add a line about a file to the sources of a stream. */
static int add_source(struct sinogram_stream *s, const char *path, struct err *err)
{
	char *line = NULL, *list = NULL;
	int rc = sinogram_describe_file(path, &line, err);

	if (rc == 0 && asprintf(&list, "%s%s\n", s->sources ? s->sources : "", line) < 0)
		rc = err_set(err, ENOMEM, "no memory for the names of files");
	free(line);
	if (rc < 0)
		return rc;
	free(s->sources);
	s->sources = list;
	return 0;
}

static int make_stream(struct e7 *e, enum sinogram_role role, const enum e7_file *from, int n,
		       int (*make)(void *, size_t, float *, struct err *), struct err *err)
{
	struct sinogram_stream *s = &e->source.stream[role];
	struct interfile f = e->source.stream[SINOGRAM_EMISSION].header; /* borrows the segments */
	int rc = 0;

	f.number = INTERFILE_FLOAT;
	f.bytes = sizeof(float);
	f.big_endian = f.siemens = f.more_data = false;
	f.offset = 0;
	f.scale = 1;
	if (!e->data[from[0]].tof) {
		f.m.tof.n = 0;
		f.tof_listed = false;
	}
	for (int i = 0; rc == 0 && i < n; i++)
		if (e->data[from[i]].fd >= 0)
			rc = add_source(s, e->data[from[i]].path, err);
	s->make = make;
	s->make_ctx = e;
	return rc < 0 ? rc : sinogram_stream_describe(&f, role, s, err);
}

static int make_streams(struct e7 *e, struct err *err)
{
	static const enum e7_file norm = E7_NORM, attenuation = E7_ATTENUATION, additive[] = {E7_RANDOMS, E7_SCATTER, E7_NORM};
	bool scatter = e->data[E7_SCATTER].fd >= 0;
	int rc = 0;

	if (e->data[E7_NORM].fd >= 0)
		rc = make_stream(e, SINOGRAM_NORMALISATION, &norm, 1, e7_make_norm, err);
	if (rc == 0 && e->data[E7_ATTENUATION].fd >= 0)
		rc = make_stream(e, SINOGRAM_ATTENUATION, &attenuation, 1, e7_make_attenuation, err);
	if (rc == 0 && e->data[E7_RANDOMS].fd >= 0)
		rc = make_stream(e, SINOGRAM_ADDITIVE, additive, scatter ? 3 : 1, e7_make_additive, err);
	return rc;
}

static int open_prompts(struct e7 *e, const char *given, const char *folder, struct err *err)
{
	struct sinogram_stream *s = &e->source.stream[SINOGRAM_EMISSION];
	char path[E7_PATH_SIZE] = "";
	int rc = given ? 0 : find_prompts(folder, path, err);

	if (rc == 0)
		rc = sinogram_stream_open(given ? given : path, s, err);
	if (rc < 0)
		return rc;
	if (!s->header.siemens)
		return err_set(err, EBADMSG, "%s is not a header of Siemens sinograms", file_name(given));
	if (s->header.precorrected)
		return err_set(err, EBADMSG, "the prompts are already corrected (applied corrections: %s)",
			       s->header.corrections);
	rc = add_source(s, given ? given : path, err);
	if (rc == 0)
		rc = add_source(s, s->path, err);
	return rc;
}

/* The names of files end in the number of the bed position: refuse those of a second one. */
static int check_beds(const char *folder, struct err *err)
{
	static const char *const others[] = {"norm3d_01.a", "Debug/norm3d_01.a", "acf_01.a", "Debug/acf_01.a"};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		char path[E7_PATH_SIZE];

		if (snprintf(path, sizeof(path), "%s/%s", folder, others[i]) < (int)sizeof(path) && is_file(path))
			return err_set(err, ENOTSUP, "%s: several bed positions; supported: a folder for each", others[i]);
	}
	return 0;
}

static int import_e7(struct e7 *e, const char *folder, size_t *ret_n_objects, struct err *err)
{
	const struct sinogram_import *conf = e->source.conf;
	const struct michelogram *m = &e->source.stream[SINOGRAM_EMISSION].header.m;
	size_t values;
	int rc = open_prompts(e, conf->header[SINOGRAM_EMISSION], folder, err);

	if (rc == 0)
		rc = check_beds(folder, err);
	if (rc < 0)
		return rc;
	e->planes = michelogram_planes(m);
	e->angles = (size_t)m->n_angles;
	e->radial = (size_t)m->n_radial;
	e->tof = m->tof.n > 0 ? (size_t)m->tof.n : 1;
	values = e->angles * e->radial;
	e->norm = malloc(values * sizeof(float));
	e->scatter[0] = malloc(values * sizeof(float));
	e->scatter[1] = malloc(values * sizeof(float));
	if (!e->norm || !e->scatter[0] || !e->scatter[1])
		return err_set(err, ENOMEM, "no memory for planes of %zu bins", values);
	rc = e7_find_direct(e, m, err);
	if (rc == 0)
		rc = open_files(e, m, folder, err);
	if (rc < 0)
		return rc;
	plan_roles(e);
	if (e->data[E7_NORM].tof)
		rc = e7_share_norm(e, err);
	if (rc == 0)
		rc = make_streams(e, err);
	return rc < 0 ? rc : sinogram_import_source(&e->source, ret_n_objects, err);
}

static int import_folder(const char *folder, const struct sinogram_import *conf, struct import_report *ret, struct err *err)
{
	struct e7 *e = calloc(1, sizeof(*e));
	int rc;

	if (!e)
		return err_set(err, ENOMEM, "no memory for an acquisition");
	e->source = (struct sinogram_source){.conf = conf, .centre = {NAN, NAN, NAN}};
	for (int i = 0; i < E7_FILES; i++)
		e->data[i].fd = -1;
	rc = import_e7(e, folder, &ret->objects, err);
	for (int i = 0; i < E7_FILES; i++)
		if (e->data[i].fd >= 0)
			close(e->data[i].fd);
	sinogram_source_clear(&e->source);
	free(e->direct);
	free(e->norm);
	free(e->scatter[0]);
	free(e->scatter[1]);
	free(e);
	return rc;
}

/* Has a folder a header and one of the data files? If it has objects, too, they are meant. */
static bool is_folder(const char *path)
{
	bool header = false, objects = false, data = false;
	char found[E7_PATH_SIZE] = "";
	struct dirent *entry;
	DIR *d = opendir(path);

	while (d && (entry = readdir(d))) {
		header = header || is_candidate(entry->d_name);
		objects = objects || !fnmatch("*.dcm", entry->d_name, 0);
	}
	if (d)
		closedir(d);
	for (int i = 0; i < E7_FILES && header && !objects && !data; i++)
		data = find_file(path, (enum e7_file)i, found, NULL) < 0 || found[0];
	return data;
}

const struct pet_source pet_source_e7 = {.is_file = is_folder, .import = import_folder};
