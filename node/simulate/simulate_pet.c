/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_pet.c - compute everything about a simulated PET acquisition from the options, before the first line integral. */
#include "node/simulate/simulate_pet.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/tof.h"
#include "node/simulate/simulate.h"
#include "recon/core/scan.h"
#include "recon/pet/beds.h"

#define FITS 0.9	      /* fraction of the largest radius to which a phantom is shrunk */
#define RING_SHARE (1 - 1e-6) /* rays end just inside the rings, where their slopes are finite */

/* Directions of the scanner's y (down) and z (into the gantry) in the patient. */
static const struct {
	const char *name;
	double y[3], z[3];
} positions[] = {
	{"HFS", {0, 1, 0}, {0, 0, 1}},	  {"HFP", {0, -1, 0}, {0, 0, 1}},  {"HFDR", {-1, 0, 0}, {0, 0, 1}},
	{"HFDL", {1, 0, 0}, {0, 0, 1}},	  {"FFS", {0, 1, 0}, {0, 0, -1}},  {"FFP", {0, -1, 0}, {0, 0, -1}},
	{"FFDR", {-1, 0, 0}, {0, 0, -1}}, {"FFDL", {1, 0, 0}, {0, 0, -1}},
};

static int plan_axes(struct simulate_pet *s, struct err *err)
{
	for (size_t i = 0; i < sizeof(positions) / sizeof(positions[0]); i++) {
		const double *y = positions[i].y, *z = positions[i].z;

		if (strcmp(positions[i].name, s->o.position) != 0)
			continue;
		for (int c = 0; c < 3; c++) {
			int a = (c + 1) % 3, b = (c + 2) % 3;

			s->axis[0][c] = y[a] * z[b] - y[b] * z[a]; /* x = y cross z */
			s->axis[1][c] = y[c];
			s->axis[2][c] = z[c];
		}
		return 0;
	}
	return err_set(err, EINVAL, "patient position '%s'; allowed: HFS, HFP, HFDR, HFDL, FFS, FFP, FFDR, FFDL", s->o.position);
}

/* Take the TOF bins of the scanner: with neighbours added until there are not too many. */
static void plan_tof(struct simulate_pet_options *o)
{
	int n = o->scanner->tof_bins, mash = 1;

	if (o->tof_bins != SIMULATE_PET_TOF)
		return;
	while (n > 0 && (n % mash || n / mash > SIMULATE_PET_TOF_MOST))
		mash++;
	o->tof_bins = n / mash;
	o->tof_width = o->scanner->tof_width * mash;
	o->tof_resolution = o->scanner->tof_resolution;
}

static int plan_scan(struct simulate_pet *s, struct err *err)
{
	const struct scanner_conf *c = s->o.scanner;
	int *number = NULL, rc;

	s->m = (struct michelogram){.scanner = c->scanner,
				    .n_radial = c->n_radial,
				    .n_angles = c->n_angles,
				    .angle_offset = c->angle_offset,
				    .arc_corrected = c->arc_corrected,
				    .tof = {.n = s->o.tof_bins,
					    .width = s->o.tof_width * TOF_MM_PER_PS,
					    .sigma = s->o.tof_resolution * TOF_MM_PER_PS / TOF_FWHM_PER_SIGMA}};
	if (s->o.petsird) {
		s->m.arc_corrected = false;
		s->m.n_angles = c->scanner.detectors / 2;
	}
	rc = michelogram_segments(c->scanner.rings, s->o.petsird ? 1 : c->span, c->max_difference, &s->m.segments,
				  &s->m.n_segments, err);
	if (rc == 0)
		rc = scan_create_michelogram(&s->m, RING_SHARE * (c->scanner.radius + c->scanner.interaction_depth), NULL,
					     &s->scan, &number, err);
	if (rc < 0)
		return rc;
	s->plane = malloc((size_t)s->scan->n_u * sizeof(*s->plane));
	if (!s->plane)
		rc = err_set(err, ENOMEM, "no memory for %d planes", s->scan->n_u);
	for (int u = 0; rc == 0 && u < s->scan->n_u; u++)
		s->plane[number[u]] = u;
	free(number);
	return rc;
}

static int plan_phantom(struct simulate_pet *s, struct err *err)
{
	const struct simulate_pet_options *o = &s->o;
	double ends = michelogram_radius(&s->m, s->m.n_radial - 1), reach;
	int rc = pet_phantom_create(o->phantom, o->radius, o->length, &s->phantom, err);

	if (rc < 0)
		return rc;
	reach = pet_phantom_reach(s->phantom);
	s->size = o->size > 0 ? o->size : fmin(1, FITS * ends / reach);
	if (!(s->size * reach < ends))
		return err_set(err, EINVAL,
			       "the phantom extends to %g mm from the axis, but the radial bins of scanner '%s' extend to %g mm",
			       s->size * reach, o->scanner->name, ends);
	pet_phantom_scale(s->phantom, s->size);
	return 0;
}

static void plan_dose(struct simulate_pet *s)
{
	double decay = log(2) / SIMULATE_PET_HALF_LIFE;

	s->becquerel = pet_phantom_becquerel(s->phantom);
	s->dose = s->becquerel * exp(decay * SIMULATE_PET_UPTAKE);
	s->weight = pet_phantom_grams(s->phantom) / 1000;
	s->mean_decay = -expm1(-decay * SIMULATE_PET_DURATION) / (decay * SIMULATE_PET_DURATION);
}

/* Choose header values that match the scanner's name and patterns. */
static void plan_equipment(struct simulate_pet *s)
{
	static const char *const known[][4] = {{"ge-discovery-ste", "GE MEDICAL SYSTEMS", "Discovery STE", "GE Discovery STE"},
					       {"siemens-mmr", "SIEMENS", "Biograph mMR", "Siemens mMR"}};
	const struct scanner_conf *c = s->o.scanner;

	simulate_matching_text(c->manufacturer, "SIMULATED", s->manufacturer, sizeof(s->manufacturer));
	simulate_matching_text(c->model, "SIMULATED", s->model, sizeof(s->model));
	snprintf(s->interfile_scanner, sizeof(s->interfile_scanner), "%s", s->model);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i][0], c->name) == 0) {
			snprintf(s->manufacturer, sizeof(s->manufacturer), "%s", known[i][1]);
			snprintf(s->model, sizeof(s->model), "%s", known[i][2]);
			snprintf(s->interfile_scanner, sizeof(s->interfile_scanner), "%s", known[i][3]);
		}
}

void simulate_pet_uid(const struct simulate_pet *s, const char *part, char ret_uid[DICOM_UID_SIZE])
{
	char text[sizeof(s->seed_text) + 100];

	snprintf(text, sizeof(text), "%s %s", s->seed_text, part);
	dicom_uid_from_text(text, ret_uid);
}

static void plan_uids(struct simulate_pet *s)
{
	const struct simulate_pet_options *o = &s->o;
	const struct scanner_conf *c = o->scanner;

	snprintf(s->seed_text, sizeof(s->seed_text),
		 "simulate pet %s %d %d %.17g %.17g %.17g %.17g %d %d %d %d %.17g %d %d %.17g %.17g %.17g %.17g %.17g %d %d %u "
		 "%s %s",
		 c->name, c->scanner.rings, c->scanner.detectors, c->scanner.ring_spacing, c->scanner.radius,
		 c->scanner.interaction_depth, c->scanner.bin, c->n_radial, c->n_angles, c->span, c->max_difference,
		 c->angle_offset, c->arc_corrected, (int)o->phantom, o->radius, o->length, s->size, o->counts, o->randoms,
		 o->noise, o->attenuation, o->seed, o->position, o->study ? o->study : "");
	if (o->tof_bins > 0) {
		size_t n = strlen(s->seed_text);

		snprintf(s->seed_text + n, sizeof(s->seed_text) - n, " %d %.17g %.17g", o->tof_bins, o->tof_width,
			 o->tof_resolution);
	}
	if (o->beds > 0)
		snprintf(s->seed_text + strlen(s->seed_text), sizeof(s->seed_text) - strlen(s->seed_text), " beds %d %.17g",
			 o->beds, o->bed_step);
	if (o->petsird)
		snprintf(s->seed_text + strlen(s->seed_text), sizeof(s->seed_text) - strlen(s->seed_text), " list mode");
	if (o->singles)
		snprintf(s->seed_text + strlen(s->seed_text), sizeof(s->seed_text) - strlen(s->seed_text), " singles");
	if (o->delayeds)
		snprintf(s->seed_text + strlen(s->seed_text), sizeof(s->seed_text) - strlen(s->seed_text), " delayeds");
	if (o->study)
		snprintf(s->study, sizeof(s->study), "%s", o->study);
	else
		simulate_pet_uid(s, "study", s->study);
	simulate_pet_uid(s, "frame of reference", s->frame_of_reference);
}

int simulate_pet_scans(const struct simulate_pet *s)
{
	return s->o.beds > 0 ? s->o.beds : 1;
}

double simulate_pet_bed_at(const struct simulate_pet *s, int bed)
{
	return s->o.beds > 0 ? (bed - (s->o.beds - 1) / 2.0) * s->o.bed_step : 0;
}

double simulate_pet_bed_decay(int bed)
{
	return exp(-log(2) / SIMULATE_PET_HALF_LIFE * SIMULATE_PET_BED * bed);
}

int simulate_pet_plan(const struct simulate_pet_options *o, struct simulate_pet **ret_simulation, struct err *err)
{
	struct simulate_pet *s;
	int rc;

	if (!(o->counts >= 1 && o->counts <= 1e12))
		return err_set(err, EINVAL, "%g counts; allowed: 1 to 1e12", o->counts);
	if (!(o->randoms >= 0 && o->randoms <= 100))
		return err_set(err, EINVAL, "randoms of %g times the counts; allowed: 0 to 100", o->randoms);
	if (!(o->size >= 0 && o->size <= 10))
		return err_set(err, EINVAL, "a phantom of %g times its normal size; allowed: above 0, at most 10", o->size);
	if (!(o->beds >= 0 && o->beds <= PET_BEDS_MAX && fabs(o->bed_step) <= 5000))
		return err_set(err, EINVAL, "%d beds, %g mm apart; allowed: 1 to %d, up to 5000 mm", o->beds, o->bed_step,
			       PET_BEDS_MAX);
	if (o->petsird && o->beds > 0)
		return err_set(err, EINVAL, "list mode of several beds");
	if ((o->delayeds || o->singles) && !(o->randoms > 0))
		return err_set(err, EINVAL, "%s without randoms", o->delayeds ? "delayed coincidences" : "singles");
	if (o->singles && o->petsird)
		return err_set(err, EINVAL, "list mode and singles");
	if (o->delayeds && o->petsird)
		return err_set(err, EINVAL, "list mode has delayed coincidences of its own");
	if (o->petsird && !o->noise)
		return err_set(err, EINVAL, "list mode without noise: expected values are not a number of events");
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, ENOMEM, "no memory for a simulation");
	s->o = *o;
	plan_tof(&s->o);
	rc = plan_axes(s, err);
	if (rc == 0)
		rc = plan_scan(s, err);
	if (rc == 0)
		rc = plan_phantom(s, err);
	if (rc < 0) {
		simulate_pet_free(s);
		return rc;
	}
	plan_dose(s);
	plan_equipment(s);
	plan_uids(s);
	*ret_simulation = s;
	return 0;
}

struct simulate_pet *simulate_pet_free(struct simulate_pet *s)
{
	if (!s)
		return NULL;
	free(s->m.segments);
	scan_free(s->scan);
	free(s->plane);
	pet_phantom_free(s->phantom);
	free(s);
	return NULL;
}
