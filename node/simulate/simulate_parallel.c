/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_parallel.c - simulate a scan with parallel beams: line integrals of a phantom or a picture, noise, objects,
 * truth.json. truth.json describes what was simulated; shapes in mm in the axes of recon/parallel/parallel.h (x right, y down),
 * mu in 1/mm.
 */
#include "node/simulate/simulate_parallel.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "kernels/device.h"
#include "node/base/device_names.h"
#include "node/base/json_file.h"
#include "node/config/kind.h"
#include "node/format/picture.h"
#include "node/simulate/simulate.h"
#include "node/sinogram/sinogram.h"

#define SIZE 256 /* default number of radial bins of a phantom */
#define SETS 24

struct run {
	const struct simulate_parallel_options *o;
	struct parallel_scan scan;
	struct parallel_phantom *phantom; /* NULL: a picture is used */
	struct picture picture;
	float *lines;
	struct simulate_parallel_report report;
};

/* ---- line integrals ---- */

static int plan_scan(struct run *r, struct err *err)
{
	const struct simulate_parallel_options *o = r->o;
	int side = 0, rc;

	if (o->picture) {
		rc = picture_read(o->picture, &r->picture, err);
		if (rc < 0)
			return rc;
		side = r->picture.width > r->picture.height ? r->picture.width : r->picture.height;
	}
	r->report.radial = o->size ? o->size : side ? (int)ceil(side * M_SQRT2) : SIZE;
	if (side && !o->size && (r->report.radial - side) % 2) /* the centre of the bins is then that of the pixels */
		r->report.radial++;
	r->report.matrix = side ? side : r->report.radial;
	r->scan = (struct parallel_scan){.n_slices = o->slices,
					 .n_angles = o->angles,
					 .n_radial = r->report.radial,
					 .bin = o->bin,
					 .offset = o->offset,
					 .slice = o->slice > 0 ? o->slice : o->bin,
					 .first_angle = o->first_angle,
					 .arc = o->arc};
	rc = parallel_check(&r->scan, err);
	if (rc == 0 && !o->picture)
		rc = parallel_phantom_create(o->phantom, r->report.radial * o->bin, &r->phantom, err);
	return rc;
}

/* Return a square of the picture's longer side with the picture in its centre. Each pixel is fine x fine elements. */
static float *square_of(const struct picture *p, int side, int fine)
{
	size_t n = (size_t)side * (size_t)fine;
	float *square = calloc(n * n, sizeof(*square));
	int left = (side - p->width) * fine / 2, top = (side - p->height) * fine / 2;

	for (int i = 0; square && i < p->height * fine; i++)
		for (int j = 0; j < p->width * fine; j++)
			square[(size_t)(i + top) * n + (size_t)(j + left)] =
				(float)PARALLEL_WATER * p->value[(size_t)(i / fine) * (size_t)p->width + (size_t)(j / fine)];
	return square;
}

/* Scan one slice and copy it to the others. If width and height differ by an odd number, pixels are halved, so that the centre is
 * that of an element. */
static int scan_picture(struct run *r, struct err *err)
{
	int fine = (r->picture.width - r->picture.height) % 2 ? 2 : 1;
	struct parallel_protocol p = {.algorithm = ALGORITHM_ART,
				      .iterations = 1,
				      .subsets = 1,
				      .relaxation = 1,
				      .matrix = r->report.matrix * fine,
				      .pixel = r->o->bin / fine,
				      .projector = PROJECTION_PATHS};
	size_t slice = (size_t)r->scan.n_angles * (size_t)r->scan.n_radial;
	float *square = square_of(&r->picture, r->report.matrix, fine);
	struct parallel_scan one = r->scan;
	struct parallel_plan made;
	struct device *dev = NULL;
	int rc = square ? device_names_open("cpu", &dev, err) : err_set(err, ENOMEM, "no memory for a picture");

	one.n_slices = 1;
	if (rc == 0)
		rc = parallel_plan(&p, &one, dev, &made, err);
	if (rc == 0)
		rc = parallel_radon(&p, &made, &one, dev, square, r->lines, err);
	for (int k = 1; rc == 0 && k < r->scan.n_slices; k++)
		memcpy(r->lines + (size_t)k * slice, r->lines, slice * sizeof(*r->lines));
	if (dev)
		device_close(dev);
	free(square);
	return rc;
}

static int make_lines(struct run *r, struct err *err)
{
	size_t n = parallel_size(&r->scan);
	int rc;

	r->lines = malloc(n * sizeof(*r->lines));
	if (!r->lines)
		return err_set(err, ENOMEM, "no memory for %zu line integrals", n);
	rc = r->phantom ? parallel_phantom_project(r->phantom, &r->scan, r->o->taper, r->lines, err) : scan_picture(r, err);
	if (rc == 0 && r->o->counts > 0)
		rc = parallel_phantom_noise(r->lines, n, 0, r->o->counts, r->o->seed, err);
	return rc;
}

/* ---- output ---- */

static int write_objects(struct run *r, const char *folder, struct err *err)
{
	char position[40], study[DICOM_UID_SIZE + 24],
		*set[SETS] = {
			"PatientName=TOMONODE^PHANTOM",
			"PatientID=TOMONODE-PHANTOM",
			"PatientBirthDate=19601130",
			"PatientSex=O",
			"StudyDate=" SIMULATE_PARALLEL_DATE,
			"StudyTime=110000",
			"SeriesDate=" SIMULATE_PARALLEL_DATE,
			"SeriesTime=" SIMULATE_PARALLEL_START,
			"AcquisitionDate=" SIMULATE_PARALLEL_DATE,
			"AcquisitionTime=" SIMULATE_PARALLEL_START,
			"AccessionNumber=SIM3",
			"StudyID=3",
			"InstitutionName=SIMULATED",
			"StationName=SIMULATOR",
			"Manufacturer=SIMULATED",
			"ManufacturerModelName=PARALLEL BEAMS",
			"DeviceSerialNumber=SIMULATED",
			"SeriesDescription=simulated parallel beams",
			"BodyPartExamined=HEAD",
			position,
		};
	struct sinogram_arrays a = {.duration = NAN, .beams = &r->scan};
	struct sinogram_import conf = {.set = set, .n_set = 20, .folder = folder, .now = SIMULATE_PARALLEL_NOW};
	size_t n = 0;
	int rc;

	a.values[SINOGRAM_LINES] = r->lines;
	snprintf(position, sizeof(position), "PatientPosition=%s", r->o->position);
	if (r->o->study) {
		snprintf(study, sizeof(study), "StudyInstanceUID=%s", r->o->study);
		set[conf.n_set++] = study;
	}
	rc = sinogram_write(&a, &conf, &n, err);
	r->report.files = (int)n;
	return rc;
}

static json_t *shapes_json(const struct parallel_phantom *p)
{
	json_t *list = json_array();

	for (size_t i = 0; p && i < p->n; i++) {
		const struct parallel_shape *s = &p->shapes[i];
		json_t *corners = json_array();

		for (int c = 0; c < s->n_corners; c++)
			json_array_append_new(corners, json_pack("[f,f]", s->corner[c][0], s->corner[c][1]));
		json_array_append_new(list, json_pack("{s:s, s:[f,f], s:[f,f], s:f, s:o, s:f}", "kind",
						      s->n_corners ? "polygon" : "ellipse", "center_mm", s->c[0], s->c[1],
						      "half_axes_mm", s->r[0], s->r[1], "turn_degrees", s->turn, "corners_mm",
						      corners, "mu_per_mm", s->mu));
	}
	return list;
}

static int write_truth(const struct run *r, const char *folder, struct err *err)
{
	const struct simulate_parallel_options *o = r->o;
	const struct parallel_scan *s = &r->scan;
	json_t *root = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:s, s:f, s:o}", "kind",
				 kind_parallel.name, "phantom", o->picture ? "picture" : parallel_phantom_name(o->phantom),
				 "slices", s->n_slices, "angles", s->n_angles, "radial", s->n_radial, "matrix", r->report.matrix,
				 "bin_mm", s->bin, "slice_mm", s->slice, "offset_mm", s->offset, "first_angle", s->first_angle,
				 "arc", s->arc, "taper", o->taper, "counts", o->counts, "seed", (json_int_t)o->seed, "position",
				 o->position, "mu_water", PARALLEL_WATER, "shapes", shapes_json(r->phantom));

	return json_file_write(root, folder, "truth.json", err);
}

static int check_options(const struct simulate_parallel_options *o, struct err *err)
{
	double axis[3][3];

	if (o->picture && o->taper > 0)
		return err_set(err, EINVAL, "taper %g; allowed with a picture: 0, because all slices are equal", o->taper);
	if (!(o->taper >= 0 && o->taper < 1))
		return err_set(err, EINVAL, "taper %g; allowed: 0 to below 1", o->taper);
	if (!(o->counts == 0 || (o->counts >= 1 && o->counts <= 1e12)))
		return err_set(err, EINVAL, "%g counts; allowed: 1 to 1e12", o->counts);
	if (!pet_facts_axes(o->position, axis))
		return err_set(err, EINVAL, "patient position '%s'; allowed: HFS, HFP, HFDR, HFDL, FFS, FFP, FFDR, FFDL",
			       o->position);
	return 0;
}

int simulate_parallel_run(const struct simulate_parallel_options *o, const char *folder, const struct monitor *monitor,
			  struct simulate_parallel_report *ret_report, struct err *err)
{
	struct run r = {.o = o};
	double begun = clock_seconds();
	int rc = check_options(o, err);

	if (rc == 0)
		rc = plan_scan(&r, err);
	if (rc == 0)
		rc = simulate_folder(folder, err);
	if (rc < 0)
		goto out;
	monitor_progress(monitor, "rays", 0);
	rc = make_lines(&r, err);
	if (rc == 0 && monitor_cancelled(monitor))
		rc = err_set(err, ECANCELED, "simulation cancelled before writing");
	if (rc == 0)
		rc = write_objects(&r, folder, err);
	if (rc == 0)
		rc = write_truth(&r, folder, err);
	if (rc == 0) {
		r.report.seconds = clock_seconds() - begun;
		*ret_report = r.report;
	}
out:
	free(r.lines);
	picture_clear(&r.picture);
	parallel_phantom_free(r.phantom);
	return rc;
}
