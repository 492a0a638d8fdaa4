/* SPDX-License-Identifier: Apache-2.0 */
/* pet_result_sources.c - write the provenance of a PET series: how the values were computed, and the whole recipe.
 *
 * - The sources are raw data, not images: Source Instance Sequence (0042,0013) and Common Instance Reference name every one of
 * them.
 * - The recipe (node/sinogram/provenance.h) begins with units=UNITS factor=FACTOR calibration=C, ends with scanner="...", and
 * its digest includes the factor.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/tof.h"
#include "node/base/plural.h"
#include "node/result/algorithm_terms.h"
#include "node/result/pet_result_internal.h"
#include "node/sinogram/pet_source.h"
#include "node/sinogram/sinogram_list.h"

#define BEDS_LISTED 12 /* beds whose position is in the derivation description */

/* Return the name. Single-slice rebinning precedes filtered backprojection. */
static const char *algorithm_name(enum algorithm a)
{
	return algorithm_info(a)->filtered ? "SSRB FBP" : algorithm_info(a)->name;
}

static const char *projector_name(const struct pet_result *r)
{
	if (r->series.s->list)
		return "joseph"; /* of events */
	switch (r->info->protocol->pet.projector) {
	case PROJECTION_JOSEPH:
		return "joseph";
	case PROJECTION_EXACT:
		return "exact";
	default:
		return "siddon";
	}
}

/* ---- methods ---- */

/* Write the reconstruction method. VR LO: at most 64 characters. */
static void fill_method(const struct pet_result *r, struct item_writer *w)
{
	const struct protocol_conf *p = r->info->protocol;
	const char *name = algorithm_name(p->pet.algorithm);
	bool iterates = algorithm_iterates(p->pet.algorithm);
	char text[65], kernel[32] = "", psf[24] = "";

	if (r->series.s->place.outside) {
		item_put_text(w, TAG_RECONSTRUCTION_METHOD, "outside tomonode");
		return;
	}
	if (p->pet.psf > 0 && iterates)
		snprintf(psf, sizeof(psf), ", PSF %.4g mm", p->pet.psf);
	if (iterates)
		snprintf(text, sizeof(text), "%s %di%ds%s, %s", name, r->info->plan->iterations, r->info->plan->subsets, psf,
			 projector_name(r));
	else
		snprintf(text, sizeof(text), "%s", name);
	item_put_text(w, TAG_RECONSTRUCTION_METHOD, text);
	if (p->pet.postfilter > 0)
		snprintf(kernel, sizeof(kernel), "Gauss %.3g mm", p->pet.postfilter);
	else if (!iterates)
		snprintf(kernel, sizeof(kernel), "Hann %.3g", p->pet.filter_cut);
	kernel[16] = '\0'; /* VR SH: at most 16 characters */
	if (kernel[0])
		item_put_text(w, TAG_CONVOLUTION_KERNEL, kernel);
}

/* Write the method of a correction: the source's if its data were already corrected, this program's if the model corrects,
 * nothing if no correction was made. */
static void fill_correction(const struct pet_result *r, struct item_writer *w, uint32_t tag, bool corrected, bool in_model,
			    const char *model)
{
	if (!corrected)
		return;
	if (in_model)
		item_put_text(w, tag, model);
	else
		item_copy(w, tag, r->series.source);
}

static void fill_corrections(const struct pet_result *r, struct item_writer *w)
{
	const struct sinogram_part *part = r->series.s->part;
	const struct pet_quantity *q = &r->quantity;
	bool additive = part[SINOGRAM_ADDITIVE].present;
	bool factors = part[SINOGRAM_ATTENUATION].present || part[SINOGRAM_MULTIPLICATIVE].present;

	fill_correction(r, w, TAG_ATTENUATION_CORRECTION_METHOD, q->has_attn, factors, "factors in the system model");
	if (r->series.s->made & PET_CORRECT_ATTENUATION)
		item_put_text(w, TAG_ATTENUATION_CORRECTION_METHOD, r->series.s->made_method);
	fill_correction(r, w, TAG_SCATTER_CORRECTION_METHOD, q->has_scat, additive, "background in the system model");
	if (r->series.s->made & PET_CORRECT_SCATTER)
		item_put_text(w, TAG_SCATTER_CORRECTION_METHOD, "single scatter simulation, in the system model");
	/* only the source knows how randoms were estimated: DLYD, SING */
	if (r->series.s->made & PET_CORRECT_RANDOMS)
		item_put_text(w, TAG_RANDOMS_CORRECTION_METHOD, r->series.s->made_randoms);
	else if (q->has_ran)
		item_copy(w, TAG_RANDOMS_CORRECTION_METHOD, r->series.source);
	else
		item_put_text(w, TAG_RANDOMS_CORRECTION_METHOD, "NONE");
}

/* ---- descriptions ---- */

void pet_result_describe_scanner(const struct sinogram *s, char *ret_text, size_t size)
{
	const struct michelogram *m = &s->part[SINOGRAM_EMISSION].header.m;
	const struct pet_scanner *c = &m->scanner;
	char tof[80] = "";

	if (m->tof.n > 0)
		snprintf(tof, sizeof(tof), " tof=%d width=%g sigma=%g", m->tof.n, m->tof.width, m->tof.sigma);
	if (s->list && sinogram_list_geometry(s)[0]) {
		snprintf(ret_text, size, "%.63s: %s", s->scanner ? s->scanner->name : "as the data say",
			 sinogram_list_geometry(s));
		return;
	}
	snprintf(ret_text, size,
		 "%.63s: rings=%d spacing=%g radius=%g depth=%g detectors=%d bin=%g radial=%d angles=%d planes=%zu segments=%d "
		 "offset=%g arc=%d%s",
		 s->scanner ? s->scanner->name : "as the data say", c->rings, c->ring_spacing, c->radius, c->interaction_depth,
		 c->detectors, c->bin, m->n_radial, m->n_angles, michelogram_planes(m), m->n_segments, m->angle_offset,
		 m->arc_corrected, tof);
}

bool pet_result_uses_tof(const struct sinogram *s, const struct protocol_conf *p)
{
	struct michelogram m;

	return algorithm_iterates(p->pet.algorithm) &&
	       michelogram_mash(&s->part[SINOGRAM_EMISSION].header.m, p->pet.tof_mashing, &m, NULL) == 0 && m.tof.n > 1;
}

/* Describe the TOF bins that were reconstructed, and the order in which the data have them; "" without time of flight. */
static void describe_tof(const struct pet_result *r, char *ret_text, size_t size)
{
	const struct interfile *h = &r->series.s->part[SINOGRAM_EMISSION].header;
	struct michelogram m;
	char order[64];
	int n;

	ret_text[0] = '\0';
	if (michelogram_mash(&h->m, r->info->protocol->pet.tof_mashing, &m, NULL) < 0 || m.tof.n == 0)
		return;
	n = snprintf(ret_text, size, ", %d TOF bin%s of %.6g ps (%.5g mm), resolution %.5g ps FWHM", m.tof.n, plural(m.tof.n),
		     m.tof.width / TOF_MM_PER_PS, m.tof.width, m.tof.sigma * TOF_FWHM_PER_SIGMA / TOF_MM_PER_PS);
	if (r->series.s->list || n < 0 || (size_t)n >= size)
		return; /* the format of events defines their order */
	interfile_tof_text(h, order, sizeof(order));
	snprintf(ret_text + n, size - (size_t)n, ", stored in the order %s (%s)", order,
		 h->tof_listed ? "as the header states" : "assumed");
}

/* Describe what was reconstructed. */
static void describe_data(const struct sinogram *s, char *ret_text, size_t size)
{
	const char *events = s->list ? "the events of " : "";

	if (s->origin)
		snprintf(ret_text, size, "%s%s", events, s->origin);
	else
		snprintf(ret_text, size, "%s%zu %s object%s", events, s->n_files, s->source->objects, plural(s->n_files));
}

/* Name the beds that were joined, in the order of time, or the number of frames or gates; "": none. */
static void describe_images(const struct pet_result *r, char *ret_text, size_t size)
{
	const struct sinogram *s = r->series.s;
	int images = s->images.n, n;

	ret_text[0] = '\0';
	if (images == 0)
		return;
	n = snprintf(ret_text, size, ", %d %s%s", images, pet_division_name(s->images.of), plural(images));
	if (s->images.of != PET_BEDS)
		return;
	for (int b = 0; b < images && b < BEDS_LISTED && n > 0 && (size_t)n < size; b++) {
		const double *at = s->images.image[b].centre;

		n += snprintf(ret_text + n, size - (size_t)n, "%s%.6g", b ? ", " : " joined, centres of the scanner at ",
			      at[0] * s->axis[2][0] + at[1] * s->axis[2][1] + at[2] * s->axis[2][2] + 0.0);
	}
	if (n > 0 && (size_t)n < size)
		snprintf(ret_text + n, size - (size_t)n, "%s mm along the axis, weighted by counts",
			 images > BEDS_LISTED ? " ..." : "");
}

/* Describe the derivation. VR ST: at most 1024 characters. */
static void describe_derivation(const struct pet_result *r, char *ret_text, size_t size)
{
	static const char research[] = " Research use only.";
	const struct protocol_conf *p = r->info->protocol;
	const char *name = algorithm_name(p->pet.algorithm);
	bool iterates = algorithm_iterates(p->pet.algorithm);
	const struct sinogram *s = r->series.s;
	const struct grid *g = r->series.grid;
	char passes[96] = "", tof[200], frames[300], model[96], filter[64] = "none", patient[900], data[330], ct[300] = "";
	char outside[PROVENANCE_OUTSIDE_SIZE];
	size_t n;

	describe_data(s, data, sizeof(data));
	if (r->info->counts > 0 && !s->list)
		snprintf(data + strlen(data), sizeof(data) - strlen(data), " with %.*f counts", r->info->counts < 10 ? 3 : 0,
			 r->info->counts);
	if (iterates)
		snprintf(passes, sizeof(passes), " with %d iteration%s of %d subset%s, projector %s", r->info->plan->iterations,
			 plural(r->info->plan->iterations), r->info->plan->subsets, plural(r->info->plan->subsets),
			 projector_name(r));
	describe_tof(r, tof, sizeof(tof));
	describe_images(r, frames, sizeof(frames));
	if (iterates && p->pet.psf > 0)
		snprintf(model, sizeof(model), "resolution model %g mm", p->pet.psf);
	else
		snprintf(model, sizeof(model), "no resolution model");
	if (p->pet.postfilter > 0)
		snprintf(filter, sizeof(filter), "Gauss %g mm", p->pet.postfilter);
	if (s->made_maps)
		snprintf(ct, sizeof(ct), ", attenuation from %.159s%s%.95s", s->made_maps,
			 s->made_scatter && s->made_scatter[0] ? ", " : "", s->made_scatter ? s->made_scatter : "");
	n = (size_t)snprintf(ret_text, size,
			     "PET reconstruction of %s, protocol %.63s: %s%s%s%s, %s, filter %s%s, %d x %d x %d voxels of "
			     "%.6g x %.6g x %.6g mm, field of view %.6g mm, scanner %.63s, device %.95s.",
			     data, p->name, name, passes, tof, frames, model, filter, ct, g->n[0], g->n[1], g->n[2], g->h[0],
			     g->h[1], g->h[2], 2 * r->info->plan->fov_radius, s->scanner ? s->scanner->name : "as the data say",
			     r->info->device);
	provenance_outside_text(&s->place, outside);
	if (outside[0])
		n = (size_t)snprintf(ret_text, size,
				     "%sOf %s%s%s%s; %d x %d x %d voxels of %.6g x %.6g x %.6g mm, scanner %.63s.", outside, data,
				     tof, frames, ct, g->n[0], g->n[1], g->n[2], g->h[0], g->h[1], g->h[2],
				     s->scanner ? s->scanner->name : "as the data say");
	provenance_patient_text(s->patient, patient, sizeof(patient));
	provenance_place_text(&s->place, patient + strlen(patient), sizeof(patient) - strlen(patient));
	if (n < size)
		snprintf(ret_text + n, size - n, "%s%.*s%s%s", r->quantity.warnings[0] ? " " : "",
			 provenance_fitting(r->quantity.warnings,
					    (int)(size - n) - 2 - (int)strlen(patient) - (int)strlen(research)),
			 r->quantity.warnings, patient, research);
}

static void fill_recipe(const struct pet_result *r, struct item_writer *root)
{
	const struct pet_quantity *q = &r->quantity;
	char calibration[32], values[256], factor[32];

	if (r->n_frames > 0)
		snprintf(factor, sizeof(factor), "per-%s", r->series.s->images.of == PET_GATES ? "gate" : "frame");
	else
		snprintf(factor, sizeof(factor), "%.9g", q->factor);
	snprintf(calibration, sizeof(calibration), isfinite(q->calibration) ? "%.9g" : "none", q->calibration);
	snprintf(values, sizeof(values), "units=%s factor=%s calibration=%s%s%s", q->calibrated ? "BQML" : "CNTS", factor,
		 calibration, r->series.s->made_from ? " " : "", r->series.s->made_from ? r->series.s->made_from : "");
	result_series_fill_recipe(&r->series, values, factor, root);
}

void pet_result_fill_sources(const struct pet_result *r, struct item_writer *root)
{
	struct algorithm_terms terms = algorithm_terms(&r->series.s->place, r->info->protocol->pet.algorithm);
	char text[1025];

	describe_derivation(r, text, sizeof(text));
	item_put_text(root, TAG_DERIVATION_DESCRIPTION, text);
	if (terms.code)
		item_put_code(root, TAG_DERIVATION_CODE_SEQUENCE, terms.code, "DCM", terms.meaning);
	fill_method(r, root);
	fill_corrections(r, root);
	fill_recipe(r, root);
}
