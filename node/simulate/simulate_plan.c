/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_plan.c - compute everything about a simulated exam from the options, before the first line integral. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/simulate/simulate.h"
#include "node/simulate/simulate_voxels.h"

#define JITTER 0.06	 /* fraction of the step between two angles: angles of real systems are not even */
#define EXPOSURE_SWING 5 /* percent: variation of exposure if the profile scales by it, so that the scaling has an effect */
#define BEAD_BINS 1.5	 /* smallest radius of a bead, in bins: smaller ones could be between the rays */
#define DETAIL_RAYS 0.75 /* smallest radius of a detail of the breast, in distances of rays: each detail meets a ray */
#define MAX_VALUE 65535

/* The systems that can be simulated: their header values. Positions of their parts are in the geometry profiles. Serial numbers
 * show that they are not real systems. */
static const struct simulate_system systems[] = {
	{"siemens-inspiration", "SIEMENS", "MAMMOMAT Inspiration", "SIMULATED", "TUNGSTEN", "RHODIUM", 2816, 3584, 25, 50},
	{"siemens-revelation", "SIEMENS", "MAMMOMAT Revelation", "SIMULATED", "TUNGSTEN", "RHODIUM", 2816, 3584, 25, 50},
	{"ge-essential", "GE MEDICAL SYSTEMS", "Senographe Essential", "SIMULATED", "RHODIUM", "RHODIUM", 2394, 2850, 9, 25},
	{"ge-senoclaire", "GE MEDICAL SYSTEMS", "SenoClaire", "SIMULATED", "RHODIUM", "RHODIUM", 2394, 3062, 9, 25},
	{"ge-pristina", "GE MEDICAL SYSTEMS", "Senographe Pristina", "SIMULATED", "RHODIUM", "SILVER", 2394, 2850, 9, 25},
	{"hologic-dimensions", "HOLOGIC, Inc.", "Selenia Dimensions", "SIMULATED", "TUNGSTEN", "ALUMINUM", 3328, 4096, 15, 15},
	{"hologic-3dimensions", "HOLOGIC, Inc.", "Selenia 3Dimensions", "SIMULATED", "TUNGSTEN", "ALUMINUM", 3328, 4096, 15, 15},
	{"victre", "VICTRE", "VICTRE DBT", "SIMULATED", "TUNGSTEN", "RHODIUM", 1500, 3000, 25, 50},
};

void simulate_matching_text(const char *pattern, const char *other, char *ret_text, size_t size)
{
	size_t n = 0;

	for (const char *c = pattern; *c && n + 1 < size; c++)
		if (*c != '*')
			ret_text[n++] = *c == '?' ? 'X' : *c;
	ret_text[n] = '\0';
	if (n == 0)
		snprintf(ret_text, size, "%s", other);
}

void simulate_system_find(const struct profile_conf *profile, struct simulate_system *ret_system)
{
	for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++)
		if (strcmp(systems[i].profile, profile->name) == 0) {
			*ret_system = systems[i];
			return;
		}
	*ret_system = systems[0];
	snprintf(ret_system->profile, sizeof(ret_system->profile), "%s", profile->name);
	simulate_matching_text(profile->manufacturer, "SIMULATED", ret_system->manufacturer, sizeof(ret_system->manufacturer));
	simulate_matching_text(profile->model, "SIMULATED", ret_system->model, sizeof(ret_system->model));
	simulate_matching_text(profile->serial, "SIMULATED", ret_system->serial, sizeof(ret_system->serial));
}

/* Return a number in -1..1 that depends only on seed and index (a step of splitmix64, Steele et al. 2014). */
static double view_jitter(unsigned seed, int index)
{
	uint64_t z = ((uint64_t)seed << 32) + (uint64_t)index * 0x9E3779B97F4A7C15u + 0x9E3779B97F4A7C15u;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	z ^= z >> 31;
	return (double)(z >> 11) * 0x1p-52 - 1;
}

/* Set the angles: increasing for a left breast, decreasing for a right one. */
static void plan_angles(struct simulation *s)
{
	const struct simulate_options *o = &s->o;
	double step = o->arc / (o->views - 1);

	for (int i = 0; i < o->views; i++) {
		int at = o->side == 'L' ? i : o->views - 1 - i;
		double angle = -o->arc / 2 + at * step + JITTER * step * view_jitter(o->seed, at);

		s->angle[i] = round(angle * 1e4) / 1e4;
	}
}

static void plan_exposures(struct simulation *s)
{
	const struct simulate_options *o = &s->o;
	double sum = 0, swing = o->exposure_swing >= 0 ? o->exposure_swing : o->profile->scale_by_exposure ? EXPOSURE_SWING : 0;

	for (int i = 0; i < o->views; i++) {
		int at = o->side == 'L' ? i : o->views - 1 - i;

		s->exposure[i] = 1 + swing / 100 * view_jitter(~o->seed, at);
		sum += s->exposure[i];
	}
	for (int i = 0; i < o->views; i++)
		s->exposure[i] *= o->views / sum;
}

static int check_options(const struct simulate_options *o, struct err *err)
{
	double room = o->profile->source_axis * cos(o->arc / 2 * M_PI / 180) + o->profile->axis_height;

	if (!(o->profile->pitch > 0))
		return err_set(err, EINVAL, "the geometry profile '%s' has no detector pitch", o->profile->name);
	if (o->views < 2 || o->views > SIMULATE_VIEWS_MAX)
		return err_set(err, EINVAL, "%d views; allowed: 2 to %d", o->views, SIMULATE_VIEWS_MAX);
	if (!(o->arc >= 0.1 && o->arc <= 120))
		return err_set(err, EINVAL, "an arc of %g degrees; allowed: 0.1 to 120", o->arc);
	if (!(o->i0 >= 10))
		return err_set(err, EINVAL, "an unattenuated intensity of %g counts; allowed: 10 or more", o->i0);
	if (o->binning < 1 || o->columns / o->binning < 16 || o->rows / o->binning < 16)
		return err_set(err, EINVAL,
			       "a detector of %d x %d bins, binned by %d; allowed: at least 16 x 16 bins after binning",
			       o->columns, o->rows, o->binning);
	if (!(o->thickness >= 5 && o->profile->support + o->thickness < 0.9 * room))
		return err_set(err, EINVAL, "a thickness of %g mm; allowed: 5 mm to %.0f mm, below the source", o->thickness,
			       0.9 * room - o->profile->support);
	if ((o->volume || o->breast) && o->air >= 0)
		return err_set(err, EINVAL, "a share of air of %g percent; not allowed for %s, which is not stretched", o->air,
			       o->volume ? "a volume" : "a breast of tissue");
	if (o->collimate < 0 || 2 * ceil(o->collimate / (o->profile->pitch * o->binning)) >= o->rows / o->binning)
		return err_set(err, EINVAL,
			       "padding of %d mm at both ends of a detector of %g mm; allowed: less than half of it at each end",
			       o->collimate, o->rows * o->profile->pitch);
	return 0;
}

void simulate_uid(const struct simulation *s, const char *part, char ret_uid[DICOM_UID_SIZE])
{
	char text[sizeof(s->seed_text) + 100];

	snprintf(text, sizeof(text), "%s %s", s->seed_text, part);
	dicom_uid_from_text(text, ret_uid);
}

/* Check that the images are inside the detector. */
static int check_window(const struct simulate_options *o, struct err *err)
{
	const struct profile_conf *p = o->profile;
	double free_x = (p->elements_x - o->columns) * p->pitch, free_y = (p->elements_y - o->rows) * p->pitch;

	if ((p->elements_x > 0 && o->columns > p->elements_x) || (p->elements_y > 0 && o->rows > p->elements_y))
		return err_set(err, EINVAL, "a detector of %d x %d bins; the profile '%s' allows %d x %d", o->columns, o->rows,
			       p->name, p->elements_x, p->elements_y);
	if (o->window[0] != 0 && !(o->window[0] >= 0 && o->window[0] <= free_x))
		return err_set(err, EINVAL, "images at x = %g mm; allowed for a detector of %g mm: 0 to %g", o->window[0],
			       p->elements_x * p->pitch, fmax(free_x, 0));
	if (o->window[1] != 0 && !(fabs(o->window[1]) <= free_y / 2))
		return err_set(err, EINVAL, "images at y = %g mm; allowed for a detector of %g mm: at most %g", o->window[1],
			       p->elements_y * p->pitch, fmax(free_y / 2, 0));
	return 0;
}

static void plan_uids(struct simulation *s, const char *digest)
{
	const struct simulate_options *o = &s->o;
	const struct profile_conf *p = o->profile;

	snprintf(s->seed_text, sizeof(s->seed_text),
		 "simulate dbt %s %.17g %.17g %.17g %.17g %.17g %.17g %d %x %d %.17g "
		 "%d %.17g %d %d %c %s %.17g %u %.17g %d %d %d %d %.17g %d %d %s",
		 p->name, p->pitch, p->axis_height, p->source_axis, p->source_x, p->support, p->offset, p->scale_by_exposure,
		 (unsigned)p->angle_tag, p->angle_sign, p->angle_offset, (int)o->phantom, o->i0, o->binning, o->multi, o->side,
		 o->view, o->gantry, o->seed, o->thickness, o->noise, o->inverted, o->collimate, o->views, o->arc, o->columns,
		 o->rows, o->study ? o->study : "");
	if (p->source_y != 0 || p->angle_at_detector)
		snprintf(s->seed_text + strlen(s->seed_text), sizeof(s->seed_text) - strlen(s->seed_text), " %.17g %d",
			 p->source_y, p->angle_at_detector);
	if (p->detector_ratio != 0)
		snprintf(s->seed_text + strlen(s->seed_text), sizeof(s->seed_text) - strlen(s->seed_text), " %.17g %.17g %.17g",
			 p->detector_ratio, p->detector_axis_y, p->detector_axis_height);
	if (o->window[0] != 0 || o->window[1] != 0)
		snprintf(s->seed_text + strlen(s->seed_text), sizeof(s->seed_text) - strlen(s->seed_text), " window %.17g %.17g",
			 o->window[0], o->window[1]);
	if (o->open_distance || o->heel > 0 || o->exposure_swing >= 0 || o->over_range > 0 || o->air >= 0)
		snprintf(s->seed_text + strlen(s->seed_text), sizeof(s->seed_text) - strlen(s->seed_text),
			 " field %d %.17g %.17g %.17g %.17g", o->open_distance, o->heel, o->exposure_swing, o->over_range,
			 o->air);
	if (o->scatter > 0)
		snprintf(s->seed_text + strlen(s->seed_text), sizeof(s->seed_text) - strlen(s->seed_text), " scatter %.17g",
			 o->scatter);
	if (o->breast)
		snprintf(s->seed_text + strlen(s->seed_text), sizeof(s->seed_text) - strlen(s->seed_text), " breast %.17g %d",
			 o->glandular, o->clips);
	if (s->voxels)
		snprintf(s->seed_text + strlen(s->seed_text), sizeof(s->seed_text) - strlen(s->seed_text), " %s", digest);
	if (o->study)
		snprintf(s->study, sizeof(s->study), "%s", o->study);
	else
		simulate_uid(s, "study", s->study);
	simulate_uid(s, "series", s->series);
	simulate_uid(s, "frame of reference", s->frame_of_reference);
}

/* Choose an intensity that is below the largest stored value, with a margin for noise and offset. */
static int plan_intensity(struct simulation *s, struct err *err)
{
	double merged = (double)s->o.binning * s->o.binning, largest = simulate_open_largest(s), most;

	s->max_value = MAX_VALUE;
	most = fmax(MAX_VALUE - s->o.profile->offset, 0) / largest;
	most -= 8 * sqrt(most);
	s->i0 = fmin(s->o.i0 * merged,
		     most); /* a merged bin counts more photons; a real detector divides them to prevent overflow */
	if (!(s->i0 >= 10))
		return err_set(err, EINVAL,
			       "the detector offset %g is too close to the largest stored value, %d, to store at least 10 counts",
			       s->o.profile->offset, MAX_VALUE);
	return 0;
}

/* Return the number of rays per bin and axis for a phantom of such voxels. */
static int rays_of(const struct simulation *s, double voxel)
{
	return (int)fmin(fmax(ceil(s->pitch / voxel), 1), VOXEL_RAYS_MAX);
}

static int plan_scan(struct simulation *s, struct err *err)
{
	const struct profile_conf *p = s->o.profile;
	struct dbt_geometry g = {.n_u = s->n_u,
				 .n_v = s->n_v,
				 .pitch = s->pitch,
				 .axis_height = p->axis_height,
				 .source_axis = p->source_axis,
				 .source_x = p->source_x,
				 .source_y = p->source_y,
				 .window_x = s->o.window[0],
				 .window_y = s->o.window[1],
				 .detector_ratio = p->detector_ratio,
				 .detector_axis_y = p->detector_axis_y,
				 .detector_axis_height = p->detector_axis_height,
				 .n_views = s->o.views,
				 .angle = s->angle};

	const double rest[2] = {0, 1};
	int rc = scan_create_dbt(&g, &s->scan, err);

	if (rc == 0 && s->o.breast) {
		s->rays = rays_of(s, BREAST_VOXEL);
		g.n_u *= s->rays;
		g.n_v *= s->rays;
		g.pitch /= s->rays;
		rc = scan_create_dbt(&g, &s->fine, err);
		g.n_u = s->n_u;
		g.n_v = s->n_v;
		g.pitch = s->pitch;
	}
	g.n_views = 2;
	g.angle = rest;
	return rc < 0 ? rc : scan_create_dbt(&g, &s->rest, err);
}

/* Load the volume; its thickness becomes that of the breast. */
static int plan_voxels(struct simulation *s, char ret_digest[65], struct err *err)
{
	int rc = simulate_voxels_load(s->o.volume, s->o.materials, &s->voxels, ret_digest, err);

	if (rc < 0)
		return rc;
	s->o.thickness = s->voxels->grid.n[2] * s->voxels->grid.h[2];
	for (int c = 0; c < 2; c++)
		s->voxels->grid.lo[c] += s->o.window[c];
	s->voxels->grid.lo[2] = s->o.profile->support;
	return 0;
}

/* Make the breast, and the list of its masses and details for the truth. A detail that rays could miss becomes larger, with the
 * same integral. */
static int plan_breast(struct simulation *s, const double size[2], struct err *err)
{
	struct breast_options o = {.room = {size[0], size[1]},
				   .thickness = s->o.thickness,
				   .glandular = s->o.glandular,
				   .muscle = strcmp(s->o.view, "MLO") == 0,
				   .mirrored = s->o.side == 'R',
				   .clips = s->o.clips,
				   .seed = s->o.seed};
	const double at[3] = {s->o.window[0], s->o.window[1], s->o.profile->support};
	double least = DETAIL_RAYS * s->pitch / s->rays;
	struct shape *shapes;
	int rc = breast_phantom_create(&o, &s->voxels, &s->details, &s->truth, err);

	if (rc < 0)
		return rc;
	for (int c = 0; c < 3; c++)
		s->voxels->grid.lo[c] += at[c];
	rc = voxel_phantom_shapes(s->voxels, &s->phantom, err);
	if (rc < 0)
		return rc;
	shapes = realloc(s->phantom->shapes, (s->phantom->n + s->details->n) * sizeof(*shapes));
	if (!shapes)
		return err_set(err, ENOMEM, "no memory for %zu shapes", s->phantom->n + s->details->n);
	s->phantom->shapes = shapes;
	snprintf(s->phantom->name, sizeof(s->phantom->name), "breast");
	for (size_t i = 0; i < s->details->n; i++) {
		struct shape *d = &s->details->shapes[i];

		for (int c = 0; c < 3; c++)
			d->c[c] += at[c];
		shapes[s->phantom->n++] = *d;
		for (int c = 0; c < 3; c++) {
			d->mu *= fmin(d->r[c] / least, 1);
			d->r[c] = fmax(d->r[c], least);
		}
	}
	return 0;
}

/* Make the phantom in the beam, on the breast support. */
static int plan_phantom(struct simulation *s, struct err *err)
{
	double size[2] = {s->n_u * s->pitch, s->n_v * s->pitch};
	int rc;

	if (s->o.breast)
		return plan_breast(s, size, err);

	if (s->voxels) {
		s->rays = rays_of(s, fmin(s->voxels->grid.h[0], s->voxels->grid.h[1]));
		return voxel_phantom_shapes(s->voxels, &s->phantom, err);
	}
	rc = phantom_create(s->o.phantom, size, s->o.profile->support, s->o.thickness, s->o.seed, &s->phantom, err);
	if (rc < 0)
		return rc;
	phantom_grow_beads(s->phantom, BEAD_BINS * s->pitch);
	for (size_t i = 0; i < s->phantom->n; i++)
		for (int c = 0; c < 2; c++)
			s->phantom->shapes[i].c[c] += s->o.window[c];
	return simulate_stretch(s, err);
}

int simulate_plan(const struct simulate_options *o, struct simulation **ret_simulation, struct err *err)
{
	struct simulation *s = calloc(1, sizeof(*s));
	char digest[65] = "";
	int rc = 0;

	if (!s)
		return err_set(err, ENOMEM, "no memory for a simulation");
	s->o = *o;
	if (o->volume)
		rc = plan_voxels(s, digest, err);
	if (rc == 0)
		rc = check_options(&s->o, err);
	if (rc == 0)
		rc = check_window(&s->o, err);
	if (rc < 0) {
		simulate_free(s);
		return rc;
	}
	s->pitch = o->profile->pitch * o->binning;
	s->n_u = o->columns / o->binning;
	s->n_v = o->rows / o->binning;
	s->columns_toward_chest = o->side == 'R';
	s->rows_toward_minus_y = o->side == 'L';
	plan_angles(s);
	plan_exposures(s);
	plan_uids(s, digest);
	if ((rc = plan_scan(s, err)) < 0 || (rc = plan_intensity(s, err)) < 0 || (rc = plan_phantom(s, err)) < 0) {
		simulate_free(s);
		return rc;
	}
	*ret_simulation = s;
	return 0;
}

struct simulation *simulate_free(struct simulation *s)
{
	if (!s)
		return NULL;
	scan_free(s->scan);
	scan_free(s->rest);
	phantom_free(s->phantom);
	phantom_free(s->details);
	scan_free(s->fine);
	voxel_phantom_free(s->voxels);
	free(s);
	return NULL;
}

void simulate_axes(const struct simulation *s, double ret_axes[3][3])
{
	double g = strcmp(s->o.view, "MLO") == 0 ? s->o.gantry * M_PI / 180 : 0, medial = s->o.side == 'L' ? -1 : 1;
	double x[3] = {0, -1, 0}, z[3] = {medial * sin(g), 0, cos(g)};

	for (int c = 0; c < 3; c++) {
		ret_axes[0][c] = x[c];
		ret_axes[1][c] = z[(c + 1) % 3] * x[(c + 2) % 3] - z[(c + 2) % 3] * x[(c + 1) % 3]; /* y = z cross x */
		ret_axes[2][c] = z[c];
	}
}
