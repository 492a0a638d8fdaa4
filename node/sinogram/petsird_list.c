/* SPDX-License-Identifier: Apache-2.0 */
/* petsird_list.c - a PETSIRD file as an acquisition whose events are reconstructed one by one.
 *
 * - Detectors are where the file has them; the middle between the outermost ones along z is the centre of the scanner.
 * - LORs: the sensitivity of a regular cylinder is computed by sinograms of all ring differences; that of any other scanner by
 *   its pairs of detectors, all or a sample.
 * - A DICOM header is made in memory from the same attributes as those of `tomonode import`; it is not written. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/order.h"
#include "node/base/folder.h"
#include "node/base/sentence.h"
#include "node/base/thread_pool.h"
#include "node/sinogram/pet_source.h"
#include "node/sinogram/petsird_facts_internal.h"
#include "node/sinogram/sinogram_internal.h"
#include "node/sinogram/sinogram_list_internal.h"

#define MAGIC "yardl"
#define PIECE ((size_t)1 << 17) /* events */
#define SHARE ((size_t)1 << 12) /* of them, for a thread */
#define SHARES (PIECE / SHARE)
#define TOLERANCE 1.0  /* of a regular cylinder, mm */
#define SLICE 2.0      /* mm, if the detectors do not suggest any */
#define SAME_RING 0.05 /* mm */
#define SEED 20260601u

struct petsird_source {
	const struct pet_opening *o; /* only while the file is opened */
	struct petsird *file;
	const struct petsird_header *h;
	float (*position)[3];
	struct scan_tof tof; /* of the file */
	int mashing;
	bool regular;
	struct pet_cylinder cylinder;
	struct michelogram m;
	struct michelogram_index index;
	struct pet_list_pairs pairs;
	struct thread_pool *pool;
	struct petsird_event *piece;
	const struct pet_images *frames; /* of the acquisition */
	int64_t block;			 /* start of the last time block that was checked; -1: none */
	uint64_t dead;
	bool delayed; /* the delayed coincidences are read */
};

static bool is_petsird(const char *path)
{
	char head[sizeof(MAGIC)] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is = fd >= 0 && read(fd, head, strlen(MAGIC)) == (ssize_t)strlen(MAGIC) && !strcmp(head, MAGIC);

	if (fd >= 0)
		close(fd);
	return is;
}

/* ---- events ---- */

static int rewind_file(void *ctx, struct err *err)
{
	struct petsird_source *s = ctx;

	(void)err;
	s->dead = 0;
	s->block = -1;
	petsird_rewind(s->file);
	return 0;
}

static void choose_kind(void *ctx, bool delayed)
{
	struct petsird_source *s = ctx;

	s->delayed = delayed;
}

static bool is_alive(const struct petsird_source *s, const struct petsird_event *e)
{
	return e->detector[0] != e->detector[1] && (!s->h->has_efficiencies || petsird_is_alive(s->file, e->detector, e->energy));
}

/* Events of a piece that are converted, share by share. */
struct conversion {
	const struct petsird_source *s;
	size_t n;
	uint32_t start; /* of the acquisition, ms */
	struct event *events;
	uint32_t *ms;
	size_t used[SHARES], dead[SHARES];
};

/* Convert the events of a share that are used, to its place. TOF bins of the file ascend towards the second detector, those of a
 * list towards the first. */
static void convert_share(void *ctx, size_t share)
{
	struct conversion *c = ctx;
	const struct petsird_source *s = c->s;
	size_t first = share * SHARE, end = first + SHARE < c->n ? first + SHARE : c->n, used = first, dead = 0;

	for (size_t i = first; i < end; i++) {
		const struct petsird_event *e = &s->piece[i];
		int tof = s->tof.n > 0 ? s->tof.n - 1 - e->tof : 0;

		if (e->delayed != s->delayed)
			continue;
		if (!e->delayed && !is_alive(s, e)) {
			dead++;
			continue;
		}
		c->ms[used] = e->time - c->start;
		c->events[used++] = (struct event){
			{(int32_t)e->detector[0], (int32_t)e->detector[1]}, s->mashing > 1 ? tof / s->mashing : tof, 0};
	}
	c->used[share] = used - first;
	c->dead[share] = dead;
}

/* Convert the events of the piece that are used. Returns their number. */
static size_t convert_events(struct petsird_source *s, size_t n, struct event *ret, uint32_t *ret_ms)
{
	struct conversion c = {.s = s, .n = n, .start = petsird_counts(s->file)->start, .events = ret, .ms = ret_ms};
	size_t shares = (n + SHARE - 1) / SHARE, used = 0;

	if (shares > 1)
		thread_pool_run(s->pool, shares, convert_share, &c);
	else
		convert_share(&c, 0);
	for (size_t i = 0; i < shares; i++) {
		if (used < i * SHARE) {
			memmove(ret + used, ret + i * SHARE, c.used[i] * sizeof(*ret));
			memmove(ret_ms + used, ret_ms + i * SHARE, c.used[i] * sizeof(*ret_ms));
		}
		used += c.used[i];
		s->dead += c.dead[i];
	}
	return used;
}

static int read_file(void *ctx, struct event *ret, uint32_t *ret_ms, size_t most, size_t *ret_n, struct err *err)
{
	struct petsird_source *s = ctx;
	size_t n = 1;
	int rc = 0;

	*ret_n = 0;
	while (rc == 0 && n > 0 && *ret_n == 0) {
		rc = petsird_next(s->file, s->piece, most < PIECE ? most : PIECE, &n, err);
		if (rc == 0)
			rc = petsird_check_frames(s->file, s->frames, s->piece, n, &s->block, err);
		if (rc == 0)
			*ret_n = convert_events(s, n, ret, ret_ms);
	}
	return rc;
}

/* ---- the LORs by sinograms ---- */

static void factor_row(void *ctx, int plane, int angle, int first, int step, float *ret, size_t stride)
{
	const struct petsird_source *s = ctx;
	struct michelogram_rings r = michelogram_plane_rings(&s->index, plane);

	for (int i = first; i < s->m.n_radial; i += step, ret += stride)
		*ret = (float)petsird_bin_efficiency(s->file, &s->cylinder, &s->index, &r, angle, i);
}

/* Return the number of radial bins whose rays meet the field of view; of corrections that are computed at least the usual ones:
 * scatter is fitted to the data beside the patient. */
static int radial_bins(const struct petsird_source *s)
{
	const struct pet_scanner *c = &s->cylinder.scanner;
	double limit, most = pet_fov_radius(c->radius, 0, &limit), fov = s->o->protocol->fov_radius;
	int t = c->detectors / 2 - 1;

	fov = fov > 0 ? s->o->protocol->corrections ? fmax(fov, most) : fov : most;
	while (t > 1 && c->radius * sin((t - 1) * M_PI / c->detectors) > fov)
		t--;
	return 2 * t + 1;
}

/* Whether any pair of crystals in a radial bin or its mirror is in coincidence. */
static bool is_live(const struct petsird_source *s, int t)
{
	const struct michelogram_index *x = &s->index;

	for (int plane = 0; plane < x->n_planes; plane++) {
		struct michelogram_rings r = michelogram_plane_rings(x, plane);

		for (int angle = 0; angle < x->n_angles; angle++)
			for (int side = -t; side <= t; side += 2 * t)
				if (petsird_bin_efficiency(s->file, &s->cylinder, x, &r, angle, x->n_radial / 2 + side) > 0)
					return true;
	}
	return false;
}

/* Leave out outer radial bins that have no pair in coincidence. */
static int cut_radial_bins(struct petsird_source *s, struct err *err)
{
	int t = s->m.n_radial / 2;

	while (t > 1 && !is_live(s, t))
		t--;
	s->m.n_radial = 2 * t + 1;
	return michelogram_index_init(&s->m, &s->index, err);
}

static int make_michelogram(struct petsird_source *s, struct pet_list *data, struct err *err)
{
	const struct pet_scanner *c = &s->cylinder.scanner;
	int rc, span = petsird_span(c->rings);
	bool whole = s->cylinder.n == (size_t)c->rings * (size_t)c->detectors;

	s->m = (struct michelogram){.scanner = *c,
				    .angle_offset = s->cylinder.angle_offset,
				    .n_angles = c->detectors / 2,
				    .n_radial = radial_bins(s)};
	rc = michelogram_segments_all(c->rings, span, &s->m.segments, &s->m.n_segments, err);
	if (rc == 0)
		rc = michelogram_index_init(&s->m, &s->index, err);
	if (rc == 0 && s->h->has_efficiencies)
		rc = cut_radial_bins(s, err);
	if (rc < 0)
		return rc;
	s->m.scanner.bin = michelogram_radius(&s->m, s->m.n_radial / 2 + 1); /* as headers of such sinograms have it */
	data->michelogram = &s->m;
	data->slice = 0.5 * c->ring_spacing;
	if (span > 1 || !whole || s->h->has_efficiencies) {
		data->factor_row = factor_row;
		data->factor_ctx = s;
	}
	return 0;
}

/* ---- the LORs one by one ---- */

static float pair_factor(void *ctx, size_t first, size_t second)
{
	const struct petsird_source *s = ctx;

	return (float)petsird_pair_efficiency(s->file, (int32_t)first, (int32_t)second);
}

/* Return half of the median distance of neighbouring rings. */
static double default_slice(const struct petsird_source *s)
{
	size_t n = s->h->n_detectors, gaps = 0;
	float *z = malloc(n * sizeof(*z));
	double slice = SLICE;

	for (size_t i = 0; z && i < n; i++)
		z[i] = s->position[i][2];
	if (z)
		qsort(z, n, sizeof(*z), order_floats);
	for (size_t i = 1; z && i < n; i++)
		if ((double)z[i] - (double)z[i - 1] > SAME_RING)
			z[gaps++] = z[i] - z[i - 1];
	if (gaps > 0) {
		qsort(z, gaps, sizeof(*z), order_floats);
		slice = 0.5 * (double)z[gaps / 2];
	}
	free(z);
	return fmax(slice, 0.1);
}

static void use_pairs(struct petsird_source *s, struct pet_list *data)
{
	size_t n = s->h->n_detectors;
	double pairs = 0.5 * (double)n * (double)(n - 1);

	s->pairs = (struct pet_list_pairs){.n = n,
					   .stride = (size_t)ceil(pairs / (double)s->o->lors_most),
					   .seed = SEED,
					   .factor = s->h->has_efficiencies ? pair_factor : NULL,
					   .ctx = s};
	s->pairs.stride += s->pairs.stride == 0;
	data->lors = pet_list_pairs_reader(&s->pairs);
	data->lors_scale = (double)s->pairs.stride;
	data->n_lors = (size_t)(pairs / (double)s->pairs.stride);
	data->slice = default_slice(s);
}

/* ---- the scanner ---- */

/* Make the middle between the outermost detectors z = 0. */
static double centre_detectors(struct petsird_source *s)
{
	float low = INFINITY, high = -INFINITY;
	double middle;

	for (size_t i = 0; i < s->h->n_detectors; i++) {
		low = fminf(low, s->position[i][2]);
		high = fmaxf(high, s->position[i][2]);
	}
	middle = 0.5 * ((double)low + (double)high);
	for (size_t i = 0; i < s->h->n_detectors; i++)
		s->position[i][2] = (float)((double)s->position[i][2] - middle);
	return 0.5 * ((double)high - (double)low);
}

static void describe_scanner(const struct petsird_source *s, const struct sinogram_list *l, double half, char *ret, size_t size)
{
	double least = INFINITY, most = 0;
	size_t n = s->h->n_detectors;

	for (size_t i = 0; i < n; i++) {
		double radius = hypot((double)s->position[i][0], (double)s->position[i][1]);

		least = fmin(least, radius);
		most = fmax(most, radius);
	}
	snprintf(ret, size, "detectors=%zu types=%zu radius=%.6g..%.6g length=%.6g lors=%s stride=%zu%s", n, s->h->n_types, least,
		 most, 2 * half, s->regular ? "sinograms" : "pairs", s->regular ? 1 : s->pairs.stride,
		 l->data.tof.n > 0 ? " tof" : "");
	if (l->data.tof.n > 0)
		snprintf(ret + strlen(ret), size - strlen(ret), "=%d width=%g sigma=%g", l->data.tof.n, l->data.tof.width,
			 l->data.tof.sigma);
}

static int mash_tof(struct petsird_source *s, struct pet_list *data, struct err *err)
{
	struct michelogram m = {.tof = s->tof};
	int rc = michelogram_mash(&m, s->o->protocol->tof_mashing, &m, err);

	s->mashing = s->o->protocol->tof_mashing;
	data->tof = m.tof;
	return rc;
}

static int find_scanner(struct petsird_source *s, struct sinogram_list *l, struct err *err)
{
	const struct petsird_import *file = petsird_options(s->o->file);
	struct err irregular = {0};
	double half;
	int rc = petsird_positions(s->h, file->axes, &s->position, err);

	if (rc == 0)
		rc = petsird_find_tof(s->h, file->no_tof, &s->tof, err);
	if (rc == 0)
		rc = mash_tof(s, &l->data, err);
	if (rc < 0)
		return rc;
	half = centre_detectors(s);
	l->data.detectors = &s->position[0][0];
	l->data.n_detectors = s->h->n_detectors;
	rc = pet_cylinder_find((const float(*)[3])s->position, s->h->n_detectors, TOLERANCE, &s->cylinder, &irregular);
	if (rc == -ENOMEM)
		return err_set(err, ENOMEM, "%s", irregular.msg);
	s->regular = rc == 0;
	rc = 0;
	if (s->regular)
		rc = make_michelogram(s, &l->data, err);
	else
		use_pairs(s, &l->data);
	if (rc == 0 && s->regular)
		rc = list_set_bins(l, (const uint16_t(*)[2])s->cylinder.place, err);
	describe_scanner(s, l, half, l->geometry, sizeof(l->geometry));
	return rc;
}

static void free_source(void *ctx)
{
	struct petsird_source *s = ctx;

	free(s->m.segments);
	free(s->position);
	free(s->piece);
	pet_cylinder_clear(&s->cylinder);
	petsird_close(s->file);
	thread_pool_free(s->pool);
	free(s);
}

/* ---- the digest of the file, computed while the events are read ---- */

struct hashing {
	const char *path;
	pthread_t thread;
	uint64_t bytes;
	char hex[65];
	struct err err;
};

static void *hash_file(void *ctx)
{
	struct hashing *h = ctx;

	sinogram_hash_file(h->path, &h->bytes, h->hex, &h->err);
	return NULL;
}

/* Read all events, and the digest of the file. */
static int load_events(struct sinogram_list *l, struct hashing *h, struct err *err)
{
	bool apart = pthread_create(&h->thread, NULL, hash_file, h) == 0;
	int rc = list_load(l, list_memory(), err);

	if (apart)
		pthread_join(h->thread, NULL);
	else if (rc == 0)
		hash_file(h);
	if (rc == 0 && h->err.code) {
		rc = -h->err.code;
		if (err)
			*err = h->err;
	}
	return rc;
}

/* ---- the acquisition ---- */

static int check_counts(const struct petsird *p, const struct sinogram_list *l, struct err *err)
{
	const struct petsird_counts *n = petsird_counts(p);

	int rc = petsird_check_still(p, err);

	if (rc < 0)
		return rc;
	if (l->report.used == 0)
		return err_set(err, EBADMSG, "%llu prompts, none of which is used%s", (unsigned long long)n->prompts,
			       l->report.dead ? ": no efficiency of their detectors is above 0" : "");
	return pet_frames_check(l->frames, (double)(n->stop - n->start) / 1000, err);
}

static int make_header(struct sinogram *s, const struct petsird_source *p, const struct hashing *h, struct err *err)
{
	struct sinogram_import conf = p->o->file ? *p->o->file : (struct sinogram_import){.n_set = 0};
	struct petsird_said said;
	int rc = petsird_say(p->file, NULL, &said, &conf, err);

	conf.now = (double)time(NULL);
	if (rc == 0)
		rc = sinogram_new_header(&conf, &s->part[SINOGRAM_EMISSION].header, h->hex, &s->files[0], s->centre, err);
	free(said.set);
	return rc;
}

static bool uses_delayeds(const struct petsird_source *p)
{
	return p->regular && (p->o->protocol->corrections & PET_CORRECT_RANDOMS) && petsird_counts(p->file)->delayeds > 0;
}

/* Describe the acquisition like one of sinogram objects. */
static int fill_acquisition(struct sinogram *s, const struct petsird_source *p, const struct hashing *h, struct err *err)
{
	struct sinogram_part *part = &s->part[SINOGRAM_EMISSION];
	int rc;

	s->format = sinogram_format_of(INTERFILE_PROJECTIONS);
	s->files = calloc(1, sizeof(*s->files));
	s->paths = calloc(1, sizeof(*s->paths));
	part->file = calloc(1, sizeof(*part->file));
	if (!s->files || !s->paths || !part->file || !(s->paths[0] = strdup(h->path)))
		return err_set(err, ENOMEM, "no memory for an acquisition");
	part->present = true;
	part->n_chunks = 1;
	part->header = (struct interfile){
		.kind = INTERFILE_PROJECTIONS, .duration = (double)petsird_counts(p->file)->covered / 1000, .start = NAN};
	part->header.m.tof = p->tof;
	part->header.energy_low = p->h->energy_low;
	part->header.energy_high = p->h->energy_high;
	part->header.energy_resolution = 100 * p->h->energy_resolution;
	interfile_tof_ascending(&part->header);
	snprintf(part->header.scanner, sizeof(part->header.scanner), "%s", p->h->model);
	s->part[SINOGRAM_NORMALISATION].present = p->h->has_efficiencies;
	s->part[SINOGRAM_DELAYEDS].present = uses_delayeds(p);
	rc = make_header(s, p, h, err);
	if (rc < 0)
		return rc;
	s->n_files = 1;
	pet_facts_read(dicom_root(s->files[0]), &s->facts);
	s->scanner = sinogram_find_scanner(s->files[0], p->o->config);
	if (!s->facts.patient_position[0])
		return err_set(err, EBADMSG,
			       "the file does not have the patient's position (patientOrientation), which a reconstruction "
			       "requires: --attribute PatientPosition=HFS or another");
	return sinogram_find_axes(s, err);
}

static int open_petsird_file(struct petsird_source *p, struct sinogram *s, struct hashing *h, struct err *err)
{
	struct sinogram_list *l = s->list;
	int rc = petsird_open(h->path, &p->file, err);

	p->piece = malloc(PIECE * sizeof(*p->piece));
	if (rc == 0 && !p->piece)
		rc = err_set(err, ENOMEM, "no memory to read events");
	if (rc == 0)
		rc = thread_pool_create(0, &p->pool, err);
	if (rc < 0)
		return rc;
	petsird_use_threads(p->file, p->pool);
	p->h = petsird_header(p->file);
	rc = find_scanner(p, l, err);
	if (rc == 0)
		rc = load_events(l, h, err);
	if (rc == 0)
		rc = check_counts(p->file, l, err);
	if (rc == 0)
		rc = fill_acquisition(s, p, h, err);
	if (rc == 0)
		rc = sinogram_origin(h->path, h->bytes, h->hex, &s->origin, err);
	if (rc < 0)
		return rc;
	petsird_warn(p->file, uses_delayeds(p), l->note, sizeof(l->note));
	petsird_warn_gaps(p->file, l->frames, l->note, sizeof(l->note));
	if (!p->regular && p->pairs.stride > 1)
		sentence_add(l->note, sizeof(l->note), "The sensitivity is that of every %zu. pair of detectors.",
			     p->pairs.stride);
	return 0;
}

static void write_petsird_note(const struct sinogram *s, char *ret, size_t size)
{
	char missing[80];

	list_missing(s->made, missing, sizeof(missing));
	snprintf(ret, size, "Reconstructed event by event%s%s.%s%s", missing[0] ? ": not corrected for " : "", missing,
		 s->list->note[0] ? " " : "", s->list->note);
}

static int open_petsird_source(struct sinogram *s, const char *path, const struct pet_opening *o, struct err *err)
{
	struct hashing h = {.path = path};
	struct petsird_source *p;
	int rc = pet_frames_parse(o->protocol->frames, &s->images, err);

	if (rc < 0)
		return rc;
	p = calloc(1, sizeof(*p));
	s->list = p ? list_new(&s->images, err) : NULL;
	if (!s->list) {
		free(p);
		return err_set(err, ENOMEM, "no memory for an acquisition");
	}
	p->o = o;
	p->frames = &s->images;
	s->list->dead = &p->dead;
	s->list->source = (struct list_source){p, rewind_file, read_file, choose_kind, free_source};
	rc = open_petsird_file(p, s, &h, err);
	p->o = NULL;
	if (rc < 0)
		err_prefix(err, "%s", file_name(path));
	return rc;
}

const struct pet_source pet_source_petsird = {
	.name = "petsird",
	.is_file = is_petsird,
	.open = open_petsird_source,
	.import = petsird_import,
	.taken = petsird_axes_text,
	.list_mode = true,
	.no_gates = "gates of a PETSIRD file are not reconstructed event by event: use `tomonode import --petsird --gates`",
	.note = write_petsird_note,
};
