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
#include <time.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/format/interfile.h"
#include "node/simulate/simulate.h"
#include "node/simulate/simulate_pet.h"
#include "node/sinogram/sinogram.h"

#define BATCH 16		 /* number of planes processed together */
#define PATH_SIZE 4200		 /* 4080 for a folder, plus a file name */
#define DELAYED_SEED 0x64656c61u /* the streams of delayed coincidences are not those of the noise */

struct run {
	const struct simulate_pet *s;
	char folder[PATH_SIZE]; /* folder of the Interfile files */
	size_t per_plane;	/* number of bins */
	float *data;		/* the whole emission data, [bed] */
	int bed;		/* that is computed */
	int n_beds;		/* at least 1 */
	float *batch;		/* a batch of planes of another role */
	float *singles;		/* of the current bed, counts of each detector, [ring][detector]; NULL: none */
	float *randoms;		/* of all TOF bins together, [plane][angle][radial]; NULL: the same in each bin */
	FILE *file[SINOGRAM_ROLES + 1];
	size_t next[SINOGRAM_ROLES + 1]; /* [role]: the next plane that is put, in the order in memory */
	struct simulate_pet_report report;
};

static const char *const role_file[SINOGRAM_ROLES + 1] = {[SINOGRAM_EMISSION] = "emission",
							  [SINOGRAM_ADDITIVE] = "additive",
							  [SINOGRAM_ATTENUATION] = "attenuation",
							  [SINOGRAM_DELAYEDS] = "delayeds",
							  [SINOGRAM_SINGLES] = "singles"};

/* Randoms follow the singles of the detectors. */
static bool has_singles(const struct simulate_pet *s)
{
	return s->o.delayeds || s->o.singles;
}

static bool has_role(const struct simulate_pet *s, int role)
{
	return role == SINOGRAM_EMISSION || (role == SINOGRAM_ADDITIVE && s->o.randoms > 0 && !has_singles(s)) ||
	       (role == SINOGRAM_ATTENUATION && s->o.attenuation) || (role == SINOGRAM_DELAYEDS && s->o.delayeds) ||
	       (role == SINOGRAM_SINGLES && s->o.singles);
}

/* Write the name of a file of the current bed, without its ending. */
static void file_base(const struct run *r, int role, char ret_name[32])
{
	if (r->s->o.beds > 0)
		snprintf(ret_name, 32, "%s-bed%03d", role_file[role], r->bed + 1);
	else
		snprintf(ret_name, 32, "%s", role_file[role]);
}

static void file_path(const struct run *r, int role, const char *ending, char ret_path[PATH_SIZE + 64])
{
	char name[32];

	file_base(r, role, name);
	snprintf(ret_path, PATH_SIZE + 64, "%s/%s%s", r->folder, name, ending);
}

/* Return the emission data of the current bed. */
static float *bed_data(const struct run *r)
{
	return r->data + (size_t)r->bed * michelogram_size(&r->s->m);
}

/* Move the phantom along the axis. */
static void move_phantom(const struct simulate_pet *s, double along)
{
	for (size_t i = 0; i < s->phantom->activity->n; i++)
		s->phantom->activity->shapes[i].c[2] += along;
	for (size_t i = 0; i < s->phantom->attenuation->n; i++)
		s->phantom->attenuation->shapes[i].c[2] += along;
}

/* Open the file of a role, if the scan has this role. */
static int open_file(struct run *r, int role, struct err *err)
{
	char path[PATH_SIZE + 64];

	if (!has_role(r->s, role))
		return 0;
	file_path(r, role, ".s", path);
	r->file[role] = fopen(path, "wb");
	r->next[role] = 0;
	return r->file[role] ? 0 : err_set(err, EIO, "cannot write %s: %s", path, strerror(errno));
}

/* Return the geometry of a role: attenuation and delayed coincidences are the same in all TOF bins. */
static struct michelogram geometry_of(const struct run *r, int role)
{
	struct michelogram m = r->s->m;

	if (role == SINOGRAM_ATTENUATION || role == SINOGRAM_DELAYEDS)
		m.tof = (struct scan_tof){0};
	return m;
}

/* Write the next planes of a role. */
static int put_planes(struct run *r, int role, const float *values, int planes, struct err *err)
{
	struct michelogram m = geometry_of(r, role);
	size_t size = r->per_plane * sizeof(*values);
	char path[PATH_SIZE + 64];
	bool ok = true;

	for (int i = 0; ok && i < planes; i++) {
		size_t place = interfile_place(&m, r->next[role]++);

		ok = fseeko(r->file[role], (off_t)(place * size), SEEK_SET) == 0 &&
		     fwrite(values + (size_t)i * r->per_plane, size, 1, r->file[role]) == 1;
	}
	if (ok)
		return 0;
	file_path(r, role, ".s", path);
	return err_set(err, EIO, "cannot write %s: %s", path, strerror(errno));
}

static int close_files(struct run *r, struct err *err)
{
	int rc = 0;

	for (int role = 1; role <= SINOGRAM_ROLES; role++) {
		char path[PATH_SIZE + 64];

		if (!r->file[role])
			continue;
		file_path(r, role, ".s", path);
		if (fclose(r->file[role]) != 0 && rc == 0)
			rc = err_set(err, EIO, "cannot write %s: %s", path, strerror(errno));
		r->file[role] = NULL;
	}
	return rc;
}

static int report_step(const struct monitor *monitor, const char *stage, int plane, int n, struct err *err)
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
static int emit_batch(struct run *r, int plane, int n, bool divide, double *sum, struct err *err)
{
	const struct simulate_pet *s = r->s;
	size_t bins = (size_t)n * r->per_plane;
	int rc = 0;

	for (int k = 0; rc == 0 && k < scan_ray_bins(s->scan); k++) {
		float *line = bed_data(r) + ((size_t)k * (size_t)s->scan->n_u + (size_t)plane) * r->per_plane;

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
		int rc = report_step(monitor, "rays", plane, s->scan->n_u, err);

		if (rc == 0 && s->o.attenuation) {
			rc = pet_phantom_project(s->phantom->attenuation, s->scan, s->plane + plane, n, PET_PHANTOM_ALL_BINS,
						 r->batch, err);
			for (size_t i = 0; rc == 0 && i < bins; i++)
				r->batch[i] = expf(r->batch[i]);
			if (rc == 0)
				rc = put_planes(r, SINOGRAM_ATTENUATION, r->batch, n, err);
		}
		if (rc == 0)
			rc = emit_batch(r, plane, n, s->o.attenuation, &sum, err);
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

/* Write the singles of a bed with these prompts. EINVAL: fewer than its prompts are made of, which no scanner counts and `recon`
 * refuses: they grow with the root of the randoms. */
static int put_singles(const struct run *r, double prompts, struct err *err)
{
	const struct pet_scanner *c = &r->s->m.scanner;
	size_t n = (size_t)c->rings * (size_t)c->detectors;
	char path[PATH_SIZE + 64];
	bool ok = true;
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)r->singles[i];
	if (sum < 2 * prompts)
		return err_set(
			err, EINVAL,
			"%.0f singles make randoms of %g times the counts, but the %.0f prompts are two singles each: give "
			"more randoms, or fewer counts",
			sum, r->s->o.randoms, prompts);
	for (int ring = c->rings - 1; ok && ring >= 0; ring--) { /* rings in STIR's order */
		const float *row = r->singles + (size_t)ring * (size_t)c->detectors;

		ok = fwrite(row, sizeof(*row), (size_t)c->detectors, r->file[SINOGRAM_SINGLES]) == (size_t)c->detectors;
	}
	if (ok)
		return 0;
	file_path(r, SINOGRAM_SINGLES, ".s", path);
	return err_set(err, EIO, "cannot write %s: %s", path, strerror(errno));
}

/* Copy the randoms of a plane in one of its TOF bins. */
static void share_randoms(const struct run *r, int plane, float *to)
{
	const float *from = r->randoms + (size_t)(plane % r->s->scan->n_u) * r->per_plane;
	float share = 1.0f / (float)scan_ray_bins(r->s->scan);

	for (size_t i = 0; i < r->per_plane; i++)
		to[i] = from[i] * share;
}

/* Write the delayed coincidences: of the randoms, which they replace. */
static int put_delayeds(struct run *r, struct err *err)
{
	size_t planes = michelogram_planes(&r->s->m), n = planes * r->per_plane;
	int rc = r->s->o.noise ? pet_phantom_noise(r->randoms, n, (size_t)r->bed * n, r->s->o.seed ^ DELAYED_SEED, err) : 0;

	return rc < 0 ? rc : put_planes(r, SINOGRAM_DELAYEDS, r->randoms, (int)planes, err);
}

static int second_pass(struct run *r, const struct monitor *monitor, struct err *err)
{
	const struct simulate_pet *s = r->s;
	int n_planes = (int)michelogram_data_planes(&s->m);
	size_t n_v = (size_t)s->scan->n_v, before = (size_t)r->bed * michelogram_size(&s->m);
	float *ray = malloc(n_v * sizeof(*ray)), scale = (float)(r->report.scale * simulate_pet_bed_decay(r->bed));
	double counts = r->report.counts; /* of the beds before */
	int rc = ray ? 0 : err_set(err, ENOMEM, "no memory for %zu radial bins", n_v);

	if (rc == 0) {
		r->report.rays = (size_t)r->n_beds * count_rays(r, ray);
		r->report.background = s->o.randoms * s->o.counts / (double)r->report.rays;
	}
	for (size_t i = 0; rc == 0 && i < BATCH * r->per_plane; i++)
		r->batch[i] = ray[i % n_v] * (float)r->report.background;
	if (rc == 0 && has_singles(s))
		rc = simulate_pet_randoms(s, r->bed, ray, &r->randoms, &r->singles, err);
	free(ray);
	for (int plane = 0, n; rc == 0 && plane < n_planes; plane += n) {
		size_t first = (size_t)plane * r->per_plane, bins = (size_t)(n = batch_of(plane, n_planes)) * r->per_plane;
		float *y = bed_data(r) + first;

		rc = report_step(monitor, "counts", plane, n_planes, err);
		for (int i = 0; r->randoms && i < n; i++)
			share_randoms(r, plane + i, r->batch + (size_t)i * r->per_plane);
		for (size_t i = 0; i < bins; i++)
			y[i] = y[i] * scale + r->batch[i];
		if (rc == 0 && s->o.noise)
			rc = pet_phantom_noise(y, bins, before + first, s->o.seed, err);
		if (rc == 0)
			rc = put_planes(r, SINOGRAM_EMISSION, y, n, err);
		if (rc == 0 && r->file[SINOGRAM_ADDITIVE])
			rc = put_planes(r, SINOGRAM_ADDITIVE, r->batch, n, err);
		for (size_t i = 0; i < bins; i++)
			r->report.counts += y[i];
	}
	if (rc == 0 && r->singles)
		rc = put_singles(r, r->report.counts - counts, err);
	return rc == 0 && s->o.delayeds ? put_delayeds(r, err) : rc;
}

static int write_header(const struct run *r, int role, struct err *err)
{
	struct interfile f = {.kind = INTERFILE_PROJECTIONS,
			      .number = INTERFILE_FLOAT,
			      .bytes = sizeof(float),
			      .scale = 1,
			      .order = INTERFILE_BY_PLANE,
			      .m = geometry_of(r, role),
			      .duration = SIMULATE_PET_DURATION,
			      .start = 0,
			      .date = SIMULATE_PET_DATE,
			      .time = SIMULATE_PET_START};
	time_t begun = (time_t)(SIMULATE_PET_BEGIN + SIMULATE_PET_BED * r->bed);
	struct tm tm;
	char path[PATH_SIZE + 64], name[32], *text = NULL;
	FILE *to = NULL;
	int rc;

	strftime(f.time, sizeof(f.time), "%H%M%S", gmtime_r(&begun, &tm));

	if (role == SINOGRAM_SINGLES) {
		f.kind = INTERFILE_SINGLES;
		f.singles = (struct interfile_singles){.blocks = {f.m.scanner.detectors, f.m.scanner.rings},
						       .block = {1, 1},
						       .window = simulate_pet_window(r->s)};
	}
	if (role != SINOGRAM_SINGLES)
		interfile_tof_ascending(&f);
	snprintf(f.scanner, sizeof(f.scanner), "%s", r->s->interfile_scanner);
	snprintf(f.position, sizeof(f.position), "%s", r->s->o.position);
	file_base(r, role, name);
	snprintf(f.data_file, sizeof(f.data_file), "%s.s", name);
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

/* Compute the first pass of all beds, and the scale. */
static int scale_data(struct run *r, const struct monitor *monitor, struct err *err)
{
	const struct simulate_pet *s = r->s;
	double all = 0;
	int rc = 0, closed;

	for (r->bed = 0; rc == 0 && r->bed < r->n_beds; r->bed++) {
		double sum = 0, at = simulate_pet_bed_at(s, r->bed);

		rc = open_file(r, SINOGRAM_ATTENUATION, err);
		move_phantom(s, -at);
		if (rc == 0)
			rc = first_pass(r, monitor, &sum, err);
		move_phantom(s, at);
		closed = close_files(r, rc == 0 ? err : NULL);
		rc = rc == 0 ? closed : rc;
		all += sum * simulate_pet_bed_decay(r->bed);
	}
	if (rc == 0 && !(all > 0))
		rc = err_set(err, EINVAL, "no ray of scanner '%s' passes through the phantom", s->o.scanner->name);
	r->report.scale = s->o.counts / all;
	r->report.calibration = s->mean_decay * SIMULATE_PET_DURATION / r->report.scale;
	return rc;
}

/* Write the counts and the headers of the current bed. */
static int make_bed(struct run *r, const struct monitor *monitor, struct err *err)
{
	const struct simulate_pet *s = r->s;
	int rc = open_file(r, SINOGRAM_EMISSION, err), closed;

	if (rc == 0)
		rc = open_file(r, SINOGRAM_ADDITIVE, err);
	if (rc == 0)
		rc = open_file(r, SINOGRAM_DELAYEDS, err);
	if (rc == 0)
		rc = open_file(r, SINOGRAM_SINGLES, err);
	if (rc == 0)
		rc = second_pass(r, monitor, err);
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

static int make_data(struct run *r, const struct monitor *monitor, struct err *err)
{
	int rc = scale_data(r, monitor, err);

	for (r->bed = 0; rc == 0 && r->bed < r->n_beds; r->bed++)
		rc = make_bed(r, monitor, err);
	r->bed = 0;
	return rc;
}

static int write_list(const struct run *r, const char *folder, struct err *err)
{
	char path[PATH_SIZE + 64];

	snprintf(path, sizeof(path), "%s/" SIMULATE_PET_LIST, folder);
	return simulate_pet_list(r->s, r->data, r->report.background, path, err);
}

/* Describe the files of the beds to the import; the paths are in `path`. */
static void list_beds(struct run *r, struct sinogram_import_bed *bed, char (*path)[SINOGRAM_ROLES + 1][PATH_SIZE + 64])
{
	const struct simulate_pet *s = r->s;

	for (r->bed = 0; r->bed < r->n_beds; r->bed++) {
		bed[r->bed] = (struct sinogram_import_bed){.z = simulate_pet_bed_at(s, r->bed) * s->axis[2][2],
							   .start = SIMULATE_PET_BED * r->bed,
							   .duration = SIMULATE_PET_DURATION};
		for (int role = 1; role <= SINOGRAM_ROLES; role++)
			if (has_role(s, role)) {
				file_path(r, role, ".hs", path[r->bed][role]);
				bed[r->bed].header[role] = path[r->bed][role];
			}
	}
	r->bed = 0;
}

/* Make the objects from the files. */
static int make_objects(struct run *r, const char *folder, struct err *err)
{
	char(*path)[SINOGRAM_ROLES + 1][PATH_SIZE + 64] = malloc((size_t)r->n_beds * sizeof(*path)), like[PATH_SIZE + 64];
	struct sinogram_import_bed bed[PET_BEDS_MAX] = {{.z = 0}};
	struct sinogram_import import = {
		.like = like, .simulated = true, .folder = folder, .now = SIMULATE_PET_NOW, .beds = bed, .n_beds = r->s->o.beds};
	size_t n = 0;
	int rc;

	if (!path)
		return err_set(err, ENOMEM, "no memory for the paths of %d beds", r->n_beds);
	snprintf(like, sizeof(like), "%s/like.dcm", r->folder);
	list_beds(r, bed, path);
	if (r->s->o.beds == 0)
		memcpy(import.header, bed[0].header, sizeof(import.header));
	rc = simulate_pet_header(r->s, &r->report, like, err);
	if (rc == 0)
		rc = sinogram_import(&import, &n, err);
	unlink(like);
	free(path);
	if (rc == 0)
		r->report.files = (int)n;
	return rc;
}

static void remove_files(struct run *r)
{
	char path[PATH_SIZE + 64];

	for (r->bed = 0; r->bed < r->n_beds; r->bed++)
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
	struct run r = {.s = s, .per_plane = (size_t)s->m.n_angles * (size_t)s->m.n_radial, .n_beds = simulate_pet_scans(s)};
	double begun = clock_seconds();
	int rc = simulate_folder(folder, err);

	if (rc < 0)
		return rc;
	snprintf(r.folder, sizeof(r.folder), "%s%s", folder, s->o.interfile ? "" : "/interfile.part");
	if (!s->o.interfile && mkdir(r.folder, 0777) < 0 && errno != EEXIST)
		return err_set(err, EIO, "cannot make folder %s: %s", r.folder, strerror(errno));
	r.data = malloc((size_t)r.n_beds * michelogram_size(&s->m) * sizeof(*r.data));
	r.batch = malloc(BATCH * r.per_plane * sizeof(*r.batch));
	if (!r.data || !r.batch)
		rc = err_set(err, ENOMEM, "no memory for %zu bins of %zu bytes%s", (size_t)r.n_beds * michelogram_size(&s->m),
			     sizeof(*r.data), s->m.tof.n > 0 ? "; fewer TOF bins need less, see --tof" : "");
	if (rc == 0)
		rc = make_data(&r, monitor, err);
	if (rc == 0 && s->o.petsird)
		rc = write_list(&r, folder, err);
	free(r.data); /* free it before the objects are made, which also need memory */
	free(r.batch);
	free(r.randoms);
	free(r.singles);
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
