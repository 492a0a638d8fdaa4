/* SPDX-License-Identifier: Apache-2.0 */
/* petsird_import.c - from list mode data to sinograms. The sinograms are in memory, one float per bin; events are read in pieces.
 */
#include "node/sinogram/petsird_import.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/tof.h"
#include "node/base/device_names.h"
#include "recon/pet/michelogram_pairs.h"

#define PIECE 65536	/* events */
#define FEW_RINGS 24	/* up to here every ring pair has its own plane */
#define SPAN 11		/* beyond */
#define EDGE_ERROR 1e-3 /* of the width of a TOF bin: single precision numbers of the file */
#define SET_SIZE 64
#define SET_MAX 10
#define MEMORY_PART 0.8 /* of the machine's memory */

struct import {
	const struct petsird_import *o;
	struct petsird *file;
	const struct petsird_header *h;
	struct pet_cylinder cylinder;
	struct michelogram m;
	struct michelogram_index index;
	size_t bins;	  /* of one TOF bin */
	int frame;	  /* of the last event */
	uint32_t *counts; /* [time frame][TOF bin][plane][angle][radial]; floats once all events are read, see to_floats() */
	float *inverse;	  /* NORMALISATION */
	float *live;	  /* MULTIPLICATIVE */
	struct petsird_import_report *report;
};

/* ---- geometry ---- */

/* Read which axis of the file is x, y or z of the scanner; ret_sign: its direction. */
static bool parse_axes(const char *text, int ret_axis[3], float ret_sign[3])
{
	int parity;

	for (int i = 0; i < 3; i++) {
		ret_sign[i] = *text == '-' ? -1 : 1;
		text += *text == '-' || *text == '+';
		if (*text < 'x' || *text > 'z')
			return false;
		ret_axis[i] = *text++ - 'x';
		if (*text++ != (i < 2 ? ',' : '\0'))
			return false;
	}
	if (ret_axis[0] == ret_axis[1] || ret_axis[1] == ret_axis[2] || ret_axis[0] == ret_axis[2])
		return false;
	parity = (ret_axis[1] - ret_axis[0] + 3) % 3 == 1 ? 1 : -1;
	return (float)parity * ret_sign[0] * ret_sign[1] * ret_sign[2] > 0; /* not a mirror image */
}

static int find_cylinder(struct import *s, struct err *err)
{
	int axis[3], rc;
	float sign[3], (*position)[3];

	if (!parse_axes(s->o->axes, axis, sign))
		return err_set(err, EINVAL,
			       "axes %.20s; allowed: x, y and z in an order and with signs that make a rotation, such as x,y,z",
			       s->o->axes);
	position = malloc(s->h->n_detectors * sizeof(*position));
	if (!position)
		return err_set(err, ENOMEM, "no memory for %zu detectors", s->h->n_detectors);
	for (size_t i = 0; i < s->h->n_detectors; i++)
		for (int k = 0; k < 3; k++)
			position[i][k] = sign[k] * s->h->position[i][axis[k]];
	rc = pet_cylinder_find((const float(*)[3])position, s->h->n_detectors, s->o->tolerance, &s->cylinder, err);
	free(position);
	return rc;
}

static int segments_of(struct import *s, struct err *err)
{
	int rings = s->cylinder.scanner.rings, span = s->o->span, most = s->o->max_difference;

	if (span == 0)
		span = rings <= FEW_RINGS ? 1 : SPAN;
	return michelogram_segments(rings, span, most < 0 ? rings - 1 : most, &s->m.segments, &s->m.n_segments, err);
}

/* The TOF bins of all pairs of types must be the same, and equidistant about 0. */
static int check_tof(const struct import *s, struct err *err)
{
	const struct petsird_tof *first = &s->h->tof[0][0];
	double width = (double)(first->edges[first->n] - first->edges[0]) / (double)first->n;

	if (!(first->resolution > 0))
		return err_set(err, EBADMSG, "a TOF resolution of %g mm; use --no-tof", (double)first->resolution);
	for (size_t i = 0; i < s->h->n_types; i++)
		for (size_t j = 0; j <= i; j++) {
			const struct petsird_tof *tof = &s->h->tof[i][j];

			if (tof->n != first->n || tof->resolution != first->resolution)
				return err_set(err, ENOTSUP,
					       "module types %zu and %zu have %zu TOF bins, and a resolution of %g mm; types 0 "
					       "and 0 have %zu "
					       "and %g mm",
					       i, j, tof->n, tof->resolution, first->n, first->resolution);
			for (size_t k = 0; k <= tof->n; k++)
				if (!(fabs((double)tof->edges[k] - ((double)k - 0.5 * (double)tof->n) * width) <=
				      EDGE_ERROR * width))
					return err_set(err, ENOTSUP,
						       "TOF bins are not equidistant about 0: edge %zu of module types %zu and "
						       "%zu is at %g mm "
						       "instead of %g mm",
						       k, i, j, (double)tof->edges[k],
						       ((double)k - 0.5 * (double)tof->n) * width);
		}
	return 0;
}

static int find_tof(struct import *s, struct err *err)
{
	const struct petsird_tof *tof = &s->h->tof[0][0];
	bool none = s->o->no_tof;
	int rc;

	for (size_t i = 0; !none && i < s->h->n_types; i++)
		none = s->h->tof[i][i].n <= 1;
	if (none)
		return 0;
	rc = check_tof(s, err);
	if (rc == 0)
		s->m.tof = (struct scan_tof){.n = (int)tof->n,
					     .width = (double)(tof->edges[tof->n] - tof->edges[0]) / (double)tof->n,
					     .sigma = tof->resolution / TOF_FWHM_PER_SIGMA};
	return rc;
}

/* Return the number of bins of one time frame; histogram_bins(): of all. */
static size_t frame_bins(const struct import *s)
{
	return s->bins * (size_t)(s->m.tof.n > 0 ? s->m.tof.n : 1);
}

static size_t histogram_bins(const struct import *s)
{
	return frame_bins(s) * (size_t)(s->o->frames.n > 0 ? s->o->frames.n : 1);
}

static int check_memory(const struct import *s, struct err *err)
{
	double bytes = ((double)histogram_bins(s) + 2 * (double)s->bins) * sizeof(float);
	double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	size_t allowed = device_names_allowed();

	if (allowed > 0 && (double)allowed < memory)
		memory = (double)allowed;
	if (bytes <= MEMORY_PART * memory)
		return 0;
	return err_set(err, ENOMEM,
		       "sinograms of %zu bins, %d TOF bins and %d time frames need %.1f GB of memory, %.1f GB may be used; use a "
		       "larger span, fewer radial bins, fewer frames, or no TOF bins",
		       s->bins, s->m.tof.n, s->o->frames.n, bytes / 1e9, memory / 1e9);
}

static int make_michelogram(struct import *s, struct err *err)
{
	int rc = find_cylinder(s, err);

	if (rc < 0)
		return rc;
	s->m.scanner = s->cylinder.scanner;
	s->m.angle_offset = s->cylinder.angle_offset;
	s->m.n_angles = s->m.scanner.detectors / 2;
	s->m.n_radial = s->o->n_radial ? s->o->n_radial : s->m.scanner.detectors * 2 / 3;
	rc = segments_of(s, err);
	if (rc == 0)
		rc = find_tof(s, err);
	if (rc == 0)
		rc = michelogram_index_init(&s->m, &s->index, err);
	if (rc < 0)
		return rc;
	s->bins = michelogram_planes(&s->m) * (size_t)s->m.n_angles * (size_t)s->m.n_radial;
	return check_memory(s, err);
}

static size_t bin_number(const struct import *s, int plane, int angle, int radial)
{
	return ((size_t)plane * (size_t)s->m.n_angles + (size_t)angle) * (size_t)s->m.n_radial + (size_t)radial;
}

/* ---- events ---- */

/* Find the time frame of an event and make it s->frame; false: it is in none. */
static bool find_frame(struct import *s, const struct petsird_event *e)
{
	const struct pet_frames *frames = &s->o->frames;
	int64_t t = (int64_t)e->time - (int64_t)petsird_counts(s->file)->start;

	if (frames->n == 0 || pet_frame_has(&frames->frame[s->frame], t))
		return true;
	for (int i = 0; i < frames->n; i++)
		if (pet_frame_has(&frames->frame[i], t)) {
			s->frame = i;
			return true;
		}
	return false;
}

/* Add a prompt to its bin. TOF bins of the file ascend towards the event's second detector, those of a sinogram towards the first
 * end of the bin. */
static void add_event(struct import *s, const struct petsird_event *e)
{
	const uint16_t *a = s->cylinder.place[e->detector[0]], *b = s->cylinder.place[e->detector[1]];
	struct michelogram_ends ends = {{a[0], b[0]}, {a[1], b[1]}};
	struct michelogram_bin bin;
	int k = 0;

	if (!michelogram_bin_of(&s->index, &ends, &bin)) {
		s->report->outside++;
		return;
	}
	if (!find_frame(s, e)) {
		s->report->between++;
		return;
	}
	if (s->m.tof.n > 0)
		k = bin.exchanged ? e->tof : s->m.tof.n - 1 - e->tof;
	s->counts[(size_t)s->frame * frame_bins(s) + (size_t)k * s->bins + bin_number(s, bin.plane, bin.angle, bin.radial)]++;
	s->report->stored++;
}

/* A float cannot count beyond 16777216: convert at the end, in place. */
static void to_floats(uint32_t *counts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float value = (float)counts[i];

		memcpy(&counts[i], &value, sizeof(value));
	}
}

static int read_events(struct import *s, struct err *err)
{
	struct petsird_event *events = malloc(PIECE * sizeof(*events));
	size_t n = 1, bins = histogram_bins(s);
	int rc = events ? 0 : err_set(err, ENOMEM, "no memory to read events");

	s->counts = calloc(bins, sizeof(*s->counts));
	if (!s->counts)
		rc = err_set(err, ENOMEM, "no memory for %zu bins", s->bins);
	while (rc == 0 && n > 0) {
		n = 0;
		rc = petsird_next(s->file, events, PIECE, &n, err);
		for (size_t i = 0; rc == 0 && i < n; i++)
			if (!events[i].delayed)
				add_event(s, &events[i]);
	}
	free(events);
	if (rc < 0)
		return rc;
	to_floats(s->counts, bins);
	s->report->counts = *petsird_counts(s->file);
	if (s->report->counts.bed_movements > 0 || s->report->counts.gantry_movements > 0)
		return err_set(err, ENOTSUP, "the bed moves %llu times and the gantry %llu times between events",
			       (unsigned long long)s->report->counts.bed_movements,
			       (unsigned long long)s->report->counts.gantry_movements);
	rc = pet_frames_check(&s->o->frames, (double)(s->report->counts.stop - s->report->counts.start) / 1000, err);
	if (rc < 0)
		return rc;
	if (s->report->stored == 0)
		return err_set(err, EBADMSG, "%llu prompts, none of which is in a bin of the sinograms",
			       (unsigned long long)s->report->counts.prompts);
	return 0;
}

/* ---- factors ---- */

static double pair_efficiency(const struct import *s, int32_t first, int32_t second)
{
	const uint32_t detector[2] = {(uint32_t)first, (uint32_t)second};
	size_t energies[2];
	double sum = 0;

	if (first < 0 || second < 0)
		return 0;
	if (!s->h->has_efficiencies)
		return 1;
	for (int i = 0; i < 2; i++)
		energies[i] = s->h->type[petsird_type_of(s->h, detector[i])].energies;
	for (size_t i = 0; i < energies[0]; i++)
		for (size_t j = 0; j < energies[1]; j++)
			sum += petsird_efficiency(s->file, detector, (uint16_t[]){(uint16_t)i, (uint16_t)j});
	return sum;
}

/* The sum over the ring pairs of a plane. */
static double bin_efficiency(const struct import *s, const struct michelogram_rings *r, int angle, int radial)
{
	size_t detectors = (size_t)s->m.scanner.detectors;
	double sum = 0;
	int crystal[2];

	michelogram_crystals(&s->index, angle, radial, 0, crystal);
	for (int i = 0; i < r->n; i++) {
		int difference = r->difference + 2 * i, first = (r->sum + difference) / 2, second = (r->sum - difference) / 2;

		sum += pair_efficiency(s, s->cylinder.detector[(size_t)first * detectors + (size_t)crystal[0]],
				       s->cylinder.detector[(size_t)second * detectors + (size_t)crystal[1]]);
	}
	return sum;
}

static int make_factors(struct import *s, struct err *err)
{
	bool all_one = true, all_live = true;

	s->inverse = malloc(s->bins * sizeof(*s->inverse));
	s->live = malloc(s->bins * sizeof(*s->live));
	if (!s->inverse || !s->live)
		return err_set(err, ENOMEM, "no memory for the factors of %zu bins", s->bins);
	for (int plane = 0; plane < s->index.n_planes; plane++) {
		struct michelogram_rings r = michelogram_plane_rings(&s->index, plane);

		for (int i = 0; i < s->m.n_angles * s->m.n_radial; i++) {
			int angle = i / s->m.n_radial, radial = i % s->m.n_radial;
			size_t bin = bin_number(s, plane, angle, radial);
			double e = bin_efficiency(s, &r, angle, radial);

			s->inverse[bin] = e > 0 ? (float)(1 / e) : 1;
			s->live[bin] = e > 0;
			all_one = all_one && s->inverse[bin] == 1;
			all_live = all_live && e > 0;
		}
	}
	if (all_live) {
		free(s->live);
		s->live = NULL;
	}
	if (all_one) {
		free(s->inverse);
		s->inverse = NULL;
	}
	return 0;
}

/* ---- objects ---- */

static void warn(const struct sinogram_import *conf, const char *sentence)
{
	size_t used = conf->warnings ? strlen(conf->warnings) : 0;

	if (conf->warnings && used < conf->warnings_size)
		snprintf(conf->warnings + used, conf->warnings_size - used, "%s%s", used ? " " : "", sentence);
}

/* Warn of n things if there are any; what: the rest of the sentence. */
static void warn_count(const struct sinogram_import *conf, uint64_t n, const char *what)
{
	char text[200];

	snprintf(text, sizeof(text), "%llu %s", (unsigned long long)n, what);
	if (n > 0)
		warn(conf, text);
}

static void add_warnings(const struct import *s, const struct sinogram_import *conf)
{
	const struct petsird_counts *n = &s->report->counts;
	char text[200];

	warn_count(conf, n->surplus, "events of pairs of module types that do not exist are not used.");
	warn_count(conf, n->delayeds, "delayed coincidences are not used: randoms are not corrected.");
	warn_count(conf, n->alive_fractions, "blocks of alive time fractions are not used: dead time is not corrected.");
	if (!conf->like && s->h->exam.n_radiopharmaceuticals > 1)
		warn_count(conf, s->h->exam.n_radiopharmaceuticals, "radiopharmaceuticals: the first one is used.");
	if (s->h->calibration != 1) {
		snprintf(text, sizeof(text),
			 "The calibration factor %g of the file is not used: set DoseCalibrationFactor for values in Bq/ml.",
			 s->h->calibration);
		warn(conf, text);
	}
	if (s->h->aligned)
		warn(conf, "The alignment of the gantry is not used: positions are relative to the PET gantry.");
}

/* SNOMED CT codes of nuclides, and those of SNOMED RT that they replaced (PS3.16, CID 4020). */
static const struct {
	const char *code, *before, *name;
} nuclides[] = {
	{"40565003", "C-105A1", "C11"},	 {"21576001", "C-107A1", "N13"},  {"129504001", "C-B1038", "O15"},
	{"77004003", "C-111A1", "F18"},	 {"3932008", "C-127A2", "Cu64"},  {"35337001", "C-131A3", "Ga68"},
	{"79197006", "C-159A2", "Rb82"}, {"63360001", "C-168A4", "Zr89"}, {"40937006", "C-114A5", "I124"},
};

struct set { /* attributes of the file, as --set has them */
	char text[SET_MAX][SET_SIZE];
	size_t n;
};

static void add_number(struct set *s, const char *name, double value)
{
	if (value > 0 && value < 1e15)
		snprintf(s->text[s->n++], SET_SIZE, "%s=%.9g", name, value);
}

/* Write a moment (s since 1970, UTC) as YYYYMMDDHHMMSS; false: none. */
static bool format_moment(double seconds, char ret[15])
{
	time_t when;
	struct tm tm;

	if (!(fabs(seconds) < 1e11))
		return false;
	when = (time_t)floor(seconds);
	return gmtime_r(&when, &tm) && strftime(ret, 15, "%Y%m%d%H%M%S", &tm) == 14;
}

/* Collect what the file says: the duration always, the rest if there is no header to copy from. */
static void collect_set(const struct import *s, bool like, struct set *ret)
{
	const struct petsird_exam *e = &s->h->exam;
	char when[15];

	add_number(ret, "ActualFrameDuration", (double)s->report->counts.covered);
	if (like)
		return;
	if (format_moment(e->start + s->report->counts.start / 1000.0, when)) {
		snprintf(ret->text[ret->n++], SET_SIZE, "AcquisitionDate=%.8s", when);
		snprintf(ret->text[ret->n++], SET_SIZE, "AcquisitionTime=%s", when + 8);
	}
	add_number(ret, "PatientWeight", e->weight);
	add_number(ret, "PatientSize", e->size);
	for (size_t i = 0; i < sizeof(nuclides) / sizeof(nuclides[0]); i++)
		if (!strcmp(e->nuclide, nuclides[i].code) || !strcmp(e->nuclide, nuclides[i].before))
			snprintf(ret->text[ret->n++], SET_SIZE, "Radionuclide=%s", nuclides[i].name);
	if (!(e->dose > 0))
		return; /* a time of injection of 0 is 1970 */
	add_number(ret, "RadionuclideTotalDose", e->dose);
	if (format_moment(e->injected, when))
		snprintf(ret->text[ret->n++], SET_SIZE, "RadiopharmaceuticalStartDateTime=%s", when);
}

static int write_objects(struct import *s, const struct sinogram_import *conf, struct err *err)
{
	struct sinogram_arrays a = {.m = &s->m, .duration = (double)s->report->counts.covered / 1000, .scanner = s->h->model};
	struct sinogram_import with = *conf;
	struct set known = {0};
	char **set = calloc(conf->n_set + SET_MAX, sizeof(*set));
	int rc;

	if (!set)
		return err_set(err, ENOMEM, "no memory for attributes");
	collect_set(s, conf->like != NULL, &known);
	for (size_t i = 0; i < known.n; i++)
		set[i] = known.text[i];
	for (size_t i = 0; i < conf->n_set; i++) /* behind them: values of the caller replace those of the file */
		set[known.n + i] = conf->set[i];
	with.set = set;
	with.n_set = known.n + conf->n_set;
	a.frames = &s->o->frames;
	a.values[SINOGRAM_EMISSION] = (const float *)s->counts;
	a.values[SINOGRAM_NORMALISATION] = s->inverse;
	a.values[SINOGRAM_MULTIPLICATIVE] = s->live;
	rc = sinogram_write(&a, &with, &s->report->objects, err);
	free(set);
	return rc;
}

static void make_report(struct import *s)
{
	struct petsird_import_report *r = s->report;

	snprintf(r->model, sizeof(r->model), "%s", s->h->model);
	r->m = s->m;
	r->m.segments = NULL;
	r->planes = michelogram_planes(&s->m);
	r->missing = (size_t)s->m.scanner.rings * (size_t)s->m.scanner.detectors - s->cylinder.n;
	r->deviation = s->cylinder.deviation;
	r->calibration = s->h->calibration;
	r->normalisation = s->inverse != NULL;
}

int petsird_import(const struct petsird_import *o, const struct sinogram_import *conf, struct petsird_import_report *ret,
		   struct err *err)
{
	struct petsird_import_report report = {0};
	struct import s = {.o = o, .report = &report};
	int rc = petsird_open(o->path, &s.file, err);

	if (rc == 0) {
		s.h = petsird_header(s.file);
		rc = make_michelogram(&s, err);
	}
	if (rc == 0)
		rc = read_events(&s, err);
	if (rc == 0)
		rc = make_factors(&s, err);
	if (rc == 0)
		rc = write_objects(&s, conf, err);
	if (rc == 0) {
		make_report(&s);
		add_warnings(&s, conf);
		*ret = report;
	}
	free(s.counts);
	free(s.inverse);
	free(s.live);
	free(s.m.segments);
	pet_cylinder_clear(&s.cylinder);
	petsird_close(s.file);
	return rc;
}
