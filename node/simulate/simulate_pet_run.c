/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_pet_run.c - simulate the acquisition plane by plane: line integrals, counts, Interfile, objects. It needs two passes,
 * because the scale depends on all line integrals. The first pass keeps the emission data in memory, one float per bin, and
 * writes attenuation to its file. Noise depends only on seed and bin. Objects are made from Interfile files in a temporary
 * folder.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/format/interfile.h"
#include "node/simulate/simulate.h"
#include "node/simulate/simulate_pet.h"
#include "node/sinogram/sinogram.h"

#define BATCH 16       /* number of planes processed together */
#define PATH_SIZE 4200 /* 4080 for a folder, plus a file name */

struct run {
	const struct simulate_pet *s;
	char folder[PATH_SIZE]; /* folder of the Interfile files */
	size_t per_plane;	/* number of bins */
	float *data;		/* the whole emission data */
	float *batch;		/* a batch of planes of another role */
	FILE *file[SINOGRAM_ROLES + 1];
	struct simulate_pet_report report;
};

static const char *const role_file[SINOGRAM_ROLES + 1] = {
	[SINOGRAM_EMISSION] = "emission", [SINOGRAM_ADDITIVE] = "additive", [SINOGRAM_ATTENUATION] = "attenuation"};

static bool has_role(const struct simulate_pet *s, int role)
{
	return role == SINOGRAM_EMISSION || (role == SINOGRAM_ADDITIVE && s->o.randoms > 0) ||
	       (role == SINOGRAM_ATTENUATION && s->o.attenuation);
}

static void file_path(const struct run *r, int role, const char *ending, char ret_path[PATH_SIZE + 32])
{
	snprintf(ret_path, PATH_SIZE + 32, "%s/%s%s", r->folder, role_file[role], ending);
}

static int open_files(struct run *r, struct err *err)
{
	char path[PATH_SIZE + 32];

	for (int role = 1; role <= SINOGRAM_ROLES; role++) {
		if (!has_role(r->s, role))
			continue;
		file_path(r, role, ".s", path);
		r->file[role] = fopen(path, "wb");
		if (!r->file[role])
			return err_set(err, EIO, "cannot write %s: %s", path, strerror(errno));
	}
	return 0;
}

static int put(struct run *r, int role, const float *values, int planes, struct err *err)
{
	char path[PATH_SIZE + 32];
	size_t n = (size_t)planes * r->per_plane;

	if (fwrite(values, sizeof(*values), n, r->file[role]) == n)
		return 0;
	file_path(r, role, ".s", path);
	return err_set(err, EIO, "cannot write %s: %s", path, strerror(errno));
}

static int close_files(struct run *r, struct err *err)
{
	int rc = 0;

	for (int role = 1; role <= SINOGRAM_ROLES; role++) {
		char path[PATH_SIZE + 32];

		if (!r->file[role])
			continue;
		file_path(r, role, ".s", path);
		if (fclose(r->file[role]) != 0 && rc == 0)
			rc = err_set(err, EIO, "cannot write %s: %s", path, strerror(errno));
		r->file[role] = NULL;
	}
	return rc;
}

static int step(const struct monitor *monitor, const char *stage, int plane, int n, struct err *err)
{
	monitor_progress(monitor, stage, (double)plane / n);
	if (monitor_cancelled(monitor))
		return err_set(err, ECANCELED, "simulation cancelled at plane %d of %d", plane + 1, n);
	return 0;
}

/* Return the number of planes in the batch that begins with this one of n. */
static int batch_of(int plane, int n)
{
	return n - plane < BATCH ? n - plane : BATCH;
}

/* Compute the emission data of a batch, before scaling, in every TOF bin; divide: by the attenuation in r->batch. Add them to
 * *sum. */
static int emit(struct run *r, int plane, int n, bool divide, double *sum, struct err *err)
{
	const struct simulate_pet *s = r->s;
	size_t bins = (size_t)n * r->per_plane;
	int rc = 0;

	for (int k = 0; rc == 0 && k < scan_ray_bins(s->scan); k++) {
		float *line = r->data + ((size_t)k * (size_t)s->scan->n_u + (size_t)plane) * r->per_plane;

		rc = pet_phantom_project(s->phantom->activity, s->scan, s->plane + plane, n,
					 s->scan->tof.n > 0 ? k : PET_PHANTOM_ALL_BINS, line, err);
		for (size_t i = 0; rc == 0 && i < bins; i++) {
			if (divide)
				line[i] /= r->batch[i];
			*sum += line[i];
		}
	}
	return rc;
}

/* Compute the emission data before scaling, and their sum; write the attenuation. */
static int first_pass(struct run *r, const struct monitor *monitor, double *ret_sum, struct err *err)
{
	const struct simulate_pet *s = r->s;
	double sum = 0;

	for (int plane = 0, n; plane < s->scan->n_u; plane += n) {
		size_t bins = (size_t)(n = batch_of(plane, s->scan->n_u)) * r->per_plane;
		int rc = step(monitor, "rays", plane, s->scan->n_u, err);

		if (rc == 0 && s->o.attenuation) {
			rc = pet_phantom_project(s->phantom->attenuation, s->scan, s->plane + plane, n, PET_PHANTOM_ALL_BINS,
						 r->batch, err);
			for (size_t i = 0; rc == 0 && i < bins; i++)
				r->batch[i] = expf(r->batch[i]);
			if (rc == 0)
				rc = put(r, SINOGRAM_ATTENUATION, r->batch, n, err);
		}
		if (rc == 0)
			rc = emit(r, plane, n, s->o.attenuation, &sum, err);
		if (rc < 0)
			return rc;
	}
	*ret_sum = sum;
	return 0;
}

/* Count the bins that have a ray: all of them have the same randoms. Only the radius determines whether a bin has a ray. */
static size_t count_rays(const struct run *r, float *ret_ray)
{
	const struct scan *scan = r->s->scan;
	size_t n = 0;

	for (int v = 0; v < scan->n_v; v++) {
		ret_ray[v] = scan_reach(scan, v) > 0;
		n += ret_ray[v] > 0;
	}
	return n * (size_t)scan->n_u * (size_t)scan->n_views * (size_t)scan_ray_bins(scan);
}

static int second_pass(struct run *r, const struct monitor *monitor, struct err *err)
{
	const struct simulate_pet *s = r->s;
	int n_planes = (int)michelogram_data_planes(&s->m);
	size_t n_v = (size_t)s->scan->n_v;
	float *ray = malloc(n_v * sizeof(*ray)), scale = (float)r->report.scale;
	int rc = ray ? 0 : err_set(err, ENOMEM, "no memory for %zu radial bins", n_v);

	if (rc == 0) {
		r->report.rays = count_rays(r, ray);
		r->report.background = s->o.randoms * s->o.counts / (double)r->report.rays;
	}
	for (size_t i = 0; rc == 0 && i < BATCH * r->per_plane; i++)
		r->batch[i] = ray[i % n_v] * (float)r->report.background;
	free(ray);
	for (int plane = 0, n; rc == 0 && plane < n_planes; plane += n) {
		size_t first = (size_t)plane * r->per_plane, bins = (size_t)(n = batch_of(plane, n_planes)) * r->per_plane;
		float *y = r->data + first;

		rc = step(monitor, "counts", plane, n_planes, err);
		for (size_t i = 0; i < bins; i++)
			y[i] = y[i] * scale + r->batch[i];
		if (rc == 0 && s->o.noise)
			rc = pet_phantom_noise(y, bins, first, s->o.seed, err);
		if (rc == 0)
			rc = put(r, SINOGRAM_EMISSION, y, n, err);
		if (rc == 0 && r->file[SINOGRAM_ADDITIVE])
			rc = put(r, SINOGRAM_ADDITIVE, r->batch, n, err);
		for (size_t i = 0; i < bins; i++)
			r->report.counts += y[i];
	}
	return rc;
}

static int write_header(const struct run *r, int role, struct err *err)
{
	struct interfile f = {.kind = INTERFILE_PROJECTIONS,
			      .number = INTERFILE_FLOAT,
			      .bytes = sizeof(float),
			      .scale = 1,
			      .order = INTERFILE_BY_PLANE,
			      .m = r->s->m,
			      .duration = SIMULATE_PET_DURATION,
			      .start = 0,
			      .date = SIMULATE_PET_DATE,
			      .time = SIMULATE_PET_START};
	char path[PATH_SIZE + 32], *text = NULL;
	FILE *to = NULL;
	int rc;

	if (role == SINOGRAM_ATTENUATION) /* the same in all TOF bins */
		f.m.tof = (struct scan_tof){0};
	interfile_tof_in_memory_order(&f);
	snprintf(f.scanner, sizeof(f.scanner), "%s", r->s->interfile_scanner);
	snprintf(f.position, sizeof(f.position), "%s", r->s->o.position);
	snprintf(f.data_file, sizeof(f.data_file), "%s.s", role_file[role]);
	file_path(r, role, ".hs", path);
	rc = interfile_write(&f, &text, err);
	if (rc < 0)
		return rc;
	to = fopen(path, "w");
	if (!to || fputs(text, to) < 0)
		rc = err_set(err, EIO, "cannot write %s: %s", path, strerror(errno));
	if (to && fclose(to) != 0 && rc == 0)
		rc = err_set(err, EIO, "cannot write %s: %s", path, strerror(errno));
	free(text);
	return rc;
}

static int make_data(struct run *r, const struct monitor *monitor, struct err *err)
{
	const struct simulate_pet *s = r->s;
	double sum = 0;
	int rc = open_files(r, err), closed;

	if (rc == 0)
		rc = first_pass(r, monitor, &sum, err);
	if (rc == 0 && !(sum > 0))
		rc = err_set(err, EINVAL, "no ray of scanner '%s' passes through the phantom", s->o.scanner->name);
	if (rc == 0) {
		r->report.scale = s->o.counts / sum;
		r->report.calibration = s->mean_decay * SIMULATE_PET_DURATION / r->report.scale;
		rc = second_pass(r, monitor, err);
	}
	closed = close_files(r, rc == 0 ? err : NULL);
	if (rc == 0)
		rc = closed;
	for (int role = 1; rc == 0 && role <= SINOGRAM_ROLES; role++)
		if (has_role(s, role)) {
			rc = write_header(r, role, err);
			r->report.files++;
		}
	return rc;
}

static int write_list(const struct run *r, const char *folder, struct err *err)
{
	char path[PATH_SIZE + 32];

	snprintf(path, sizeof(path), "%s/" SIMULATE_PET_LIST, folder);
	return simulate_pet_list(r->s, r->data, r->report.background, path, err);
}

/* Make the objects from the files. */
static int make_objects(struct run *r, const char *folder, struct err *err)
{
	char path[SINOGRAM_ROLES + 1][PATH_SIZE + 32], like[PATH_SIZE + 32];
	struct sinogram_import import = {.like = like, .folder = folder, .now = SIMULATE_PET_NOW};
	size_t n = 0;
	int rc;

	snprintf(like, sizeof(like), "%s/like.dcm", r->folder);
	for (int role = 1; role <= SINOGRAM_ROLES; role++)
		if (has_role(r->s, role)) {
			file_path(r, role, ".hs", path[role]);
			import.header[role] = path[role];
		}
	rc = simulate_pet_header(r->s, &r->report, like, err);
	if (rc == 0)
		rc = sinogram_import(&import, &n, err);
	unlink(like);
	if (rc == 0)
		r->report.files = (int)n;
	return rc;
}

static void remove_files(const struct run *r)
{
	char path[PATH_SIZE + 32];

	for (int role = 1; role <= SINOGRAM_ROLES; role++) {
		if (!has_role(r->s, role))
			continue;
		file_path(r, role, ".s", path);
		unlink(path);
		file_path(r, role, ".hs", path);
		unlink(path);
	}
}

int simulate_pet_run(const struct simulate_pet *s, const char *folder, const struct monitor *monitor,
		     struct simulate_pet_report *ret_report, struct err *err)
{
	struct run r = {.s = s, .per_plane = (size_t)s->m.n_angles * (size_t)s->m.n_radial};
	double begun = clock_seconds();
	int rc = simulate_folder(folder, err);

	if (rc < 0)
		return rc;
	snprintf(r.folder, sizeof(r.folder), "%s%s", folder, s->o.interfile ? "" : "/interfile.part");
	if (!s->o.interfile && mkdir(r.folder, 0777) < 0 && errno != EEXIST)
		return err_set(err, EIO, "cannot make folder %s: %s", r.folder, strerror(errno));
	r.data = malloc(michelogram_size(&s->m) * sizeof(*r.data));
	r.batch = malloc(BATCH * r.per_plane * sizeof(*r.batch));
	if (!r.data || !r.batch)
		rc = err_set(err, ENOMEM, "no memory for %zu bins of %zu bytes%s", michelogram_size(&s->m), sizeof(*r.data),
			     s->m.tof.n > 0 ? "; fewer TOF bins need less, see --tof" : "");
	if (rc == 0)
		rc = make_data(&r, monitor, err);
	if (rc == 0 && s->o.petsird)
		rc = write_list(&r, folder, err);
	free(r.data); /* free it before the objects are made, which also need memory */
	free(r.batch);
	if (rc == 0 && !s->o.interfile)
		rc = make_objects(&r, folder, err);
	if (rc < 0 || !s->o.interfile)
		remove_files(&r);
	if (!s->o.interfile)
		rmdir(r.folder);
	r.report.seconds = clock_seconds() - begun;
	if (rc == 0)
		rc = simulate_pet_truth(s, &r.report, folder, err);
	if (rc == 0 && ret_report)
		*ret_report = r.report;
	return rc;
}
