/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_mmr_open.c - open an mMR acquisition: recognise its objects, read both headers, check that list mode and normalisation
 * belong together, and describe the roles that sinogram_mmr.c computes. Extracted files get the DICOM header that an object of them
 * would have. Nothing of an object's own statements about corrections and calibration is used: they are about images. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "dicom/object/dicom_tags.h"
#include "node/base/folder.h"
#include "node/sinogram/sinogram_mmr_internal.h"

static const struct {
	const char *name, *title; /* third value of Image Type; in sentences */
} types[SINOGRAM_MMR_NORM + 1] = {[SINOGRAM_MMR_LIST] = {"PET_LISTMODE", "list mode (PET_LISTMODE)"},
				  [SINOGRAM_MMR_NORM] = {"PET_NORM", "normalisation (PET_NORM)"}};

#define MMR_MODEL "Biograph_mMR"
#define FACTORS_ALIKE 1e-4 /* headers have six digits */

void sinogram_mmr_type(const struct dicom_item *root, char *ret_type, size_t size)
{
	snprintf(ret_type, size, "%s", "");
	dicom_get_text_at(root, TAG_IMAGE_TYPE, 2, ret_type, size, NULL);
	for (size_t used = strlen(ret_type); used > 0 && ret_type[used - 1] == ' '; used--)
		ret_type[used - 1] = '\0';
}

/* Return what an object contains, from class, model and Image Type. */
static enum sinogram_mmr_type type_of(const struct dicom_item *root)
{
	char sop_class[DICOM_UID_SIZE] = "", model[65] = "", type[65];

	dicom_get_text(root, TAG_SOP_CLASS_UID, sop_class, sizeof(sop_class), NULL);
	dicom_get_text(root, TAG_MANUFACTURER_MODEL_NAME, model, sizeof(model), NULL);
	sinogram_mmr_type(root, type, sizeof(type));
	if (strcmp(sop_class, SINOGRAM_SIEMENS_CLASS) != 0 || !strstr(model, "mMR"))
		return SINOGRAM_MMR_NONE;
	for (int i = SINOGRAM_MMR_LIST; i <= SINOGRAM_MMR_NORM; i++)
		if (!strcmp(type, types[i].name))
			return (enum sinogram_mmr_type)i;
	return SINOGRAM_MMR_NONE;
}

bool sinogram_mmr_is_object(const struct dicom_item *root)
{
	return type_of(root) != SINOGRAM_MMR_NONE;
}

/* List mode and normalisation may be in different series of their study. */
int sinogram_mmr_describe(const struct dicom_file *file, struct pet_object *ret, struct err *err)
{
	bool list = type_of(dicom_root((struct dicom_file *)file)) == SINOGRAM_MMR_LIST;

	(void)err;
	*ret = (struct pet_object){.header = INTERFILE_PROJECTIONS, .expected = 2, .whole_study = true};
	snprintf(ret->lacks, sizeof(ret->lacks), "the %s", types[list ? SINOGRAM_MMR_NORM : SINOGRAM_MMR_LIST].title);
	return 1;
}

/* Find the list mode and the normalisation among the files. */
static int find_types(struct sinogram *s, struct err *err)
{
	size_t count[SINOGRAM_MMR_NORM + 1] = {0};

	for (size_t i = 0; i < s->n_files; i++) {
		enum sinogram_mmr_type t = type_of(dicom_root(s->files[i]));

		if (t == SINOGRAM_MMR_NONE)
			return err_set(err, EBADMSG, "%s is not raw data of a Siemens mMR like the other objects",
				       file_name(s->paths[i]));
		if (count[t]++)
			return err_set(err, EBADMSG,
				       "%s and %s both contain a %s: one study with several acquisitions is not supported; "
				       "reconstruct each list mode with its normalisation in a folder of its own with `tomonode "
				       "recon`",
				       file_name(s->paths[mmr_of(s)->file[t]]), file_name(s->paths[i]), types[t].title);
		mmr_of(s)->file[t] = i;
	}
	for (int t = SINOGRAM_MMR_LIST; t <= SINOGRAM_MMR_NORM; t++)
		if (!count[t])
			return err_set(err, EBADMSG, "the %s of the acquisition is missing: send it", types[t].title);
	return 0;
}

static int check_study(const struct sinogram *s, struct err *err)
{
	char first[DICOM_UID_SIZE] = "", other[DICOM_UID_SIZE] = "";

	dicom_get_text(dicom_root(s->files[0]), TAG_STUDY_INSTANCE_UID, first, sizeof(first), NULL);
	for (size_t i = 1; i < s->n_files; i++) {
		dicom_get_text(dicom_root(s->files[i]), TAG_STUDY_INSTANCE_UID, other, sizeof(other), NULL);
		if (strcmp(first, other) != 0)
			return err_set(err, EBADMSG, "%s and %s belong to different studies (%s and %s)", file_name(s->paths[0]),
				       file_name(s->paths[i]), first, other);
	}
	return 0;
}

/* Check that the normalisation is of this scanner and energy window, as far as both say it. */
static int check_same_scanner(const struct sinogram *s, const struct mmr_header *list, const struct mmr_header *norm,
			      struct err *err)
{
	char serial[2][65] = {"", ""};

	for (int t = SINOGRAM_MMR_LIST; !mmr_of(s)->header[t] && t <= SINOGRAM_MMR_NORM; t++)
		dicom_get_text(dicom_root(s->files[mmr_of(s)->file[t]]), TAG_DEVICE_SERIAL_NUMBER, serial[t - SINOGRAM_MMR_LIST],
			       sizeof(serial[0]), NULL);
	if (serial[0][0] && serial[1][0] && strcmp(serial[0], serial[1]) != 0)
		return err_set(
			err, EBADMSG,
			"the list mode is of the scanner with the Device Serial Number (0018,1000) \"%s\", the normalisation "
			"of \"%s\"",
			serial[0], serial[1]);
	for (int i = 0; i < 2; i++)
		if (fabs(list->energy[i] - norm->energy[i]) > 0.5) /* false for NaN */
			return err_set(err, EBADMSG,
				       "the list mode has an energy window of %g to %g keV, the normalisation of %g to %g keV",
				       list->energy[0], list->energy[1], norm->energy[0], norm->energy[1]);
	return 0;
}

static int read_header(const struct sinogram *s, enum sinogram_mmr_type type, struct mmr_header *ret, struct err *err)
{
	char *text = NULL;
	size_t size = 0;
	int rc = sinogram_mmr_text(s, type, &text, &size, err);

	if (rc == 0 && type == SINOGRAM_MMR_LIST)
		rc = mmr_header_read_list(text, size, ret, err);
	else if (rc == 0)
		rc = mmr_header_read_norm(text, size, ret, err);
	free(text);
	return rc;
}

static int read_headers(struct sinogram *s, struct err *err)
{
	struct mmr_header header[SINOGRAM_MMR_NORM + 1];
	uint64_t needed[SINOGRAM_MMR_NORM + 1] = {[SINOGRAM_MMR_NORM] = MMR_NORM_BYTES};
	int rc = 0;

	for (enum sinogram_mmr_type t = SINOGRAM_MMR_LIST; rc == 0 && t <= SINOGRAM_MMR_NORM; t++) {
		rc = read_header(s, t, &header[t], err);
		if (rc < 0)
			err_prefix(err, "%s", sinogram_mmr_name(s, t));
	}
	if (rc < 0)
		return rc;
	mmr_of(s)->list = header[SINOGRAM_MMR_LIST];
	mmr_of(s)->norm = header[SINOGRAM_MMR_NORM];
	needed[SINOGRAM_MMR_LIST] = 4 * mmr_of(s)->list.words;
	rc = check_same_scanner(s, &mmr_of(s)->list, &header[SINOGRAM_MMR_NORM], err);
	for (enum sinogram_mmr_type t = SINOGRAM_MMR_LIST; rc == 0 && t <= SINOGRAM_MMR_NORM; t++)
		rc = sinogram_mmr_find(s, t, header[t].data_file, needed[t], err);
	return rc;
}

/* Describe the values of a role like those of an Interfile header. */
static int describe_role(struct sinogram *s, enum sinogram_role role, enum sinogram_mmr_type type, struct err *err)
{
	struct sinogram_part *part = &s->part[role];
	const struct scanner_conf *c = s->scanner;
	struct interfile *h = &part->header;
	int rc;

	*h = (struct interfile){.kind = INTERFILE_PROJECTIONS,
				.number = type == SINOGRAM_MMR_LIST ? INTERFILE_UNSIGNED : INTERFILE_FLOAT,
				.bytes = 4,
				.scale = 1,
				.order = INTERFILE_BY_PLANE,
				.duration = mmr_of(s)->list.duration,
				.energy_low = fmax(mmr_of(s)->list.energy[0], 0), /* NaN, unknown: 0 */
				.energy_high = fmax(mmr_of(s)->list.energy[1], 0),
				.start = NAN};
	h->m = (struct michelogram){.scanner = c->scanner,
				    .n_radial = c->n_radial,
				    .n_angles = c->n_angles,
				    .angle_offset = c->angle_offset,
				    .arc_corrected = c->arc_corrected};
	rc = mmr_check_michelogram(&h->m, err);
	if (rc == 0)
		rc = michelogram_segments(c->scanner.rings, c->span, c->max_difference, &h->m.segments, &h->m.n_segments, err);
	if (rc < 0) {
		err_prefix(err, "scanner '%s' of the configuration", c->name);
		return rc;
	}
	snprintf(h->data_file, sizeof(h->data_file), "%s.s", sinogram_role_name(role));
	snprintf(h->scanner, sizeof(h->scanner), "%s", c->name);
	rc = interfile_write(h, &part->text, err);
	if (rc < 0)
		return rc;
	part->file = calloc(1, sizeof(*part->file));
	part->block = calloc(1, sizeof(*part->block));
	if (!part->file || !part->block)
		return err_set(err, ENOMEM, "no memory for an acquisition");
	part->present = true;
	part->n_chunks = 1;
	part->file[0] = mmr_of(s)->file[type];
	part->bytes = interfile_bytes(h);
	return 0;
}

/* Write why the headers give no calibration; false: they do. */
static bool find_obstacle(const struct sinogram *s, double fraction, char *ret, size_t size)
{
	const struct mmr_header *list = &mmr_of(s)->list, *norm = &mmr_of(s)->norm;

	ret[0] = '\0';
	if (isnan(norm->quantification))
		snprintf(ret, size, "the header of the normalisation has no scanner quantification factor");
	else if (!(norm->quantification > 0))
		snprintf(ret, size, "the scanner quantification factor of the normalisation is not a number above 0");
	else if (!isnan(norm->cross_calibration) && !(norm->cross_calibration > 0))
		snprintf(ret, size, "the cross calibration factor of the normalisation is not a number above 0");
	else if (fabs(list->quantification / norm->quantification - 1) > FACTORS_ALIKE) /* false for NaN */
		snprintf(ret, size,
			 "the scanner quantification factor is %g in the header of the normalisation, and %g in that of the "
			 "list mode",
			 norm->quantification, list->quantification);
	else if (!(fraction > 0 && fraction <= 1))
		snprintf(ret, size, "no Radionuclide Positron Fraction (0018,1076) from 0 to 1 is known");
	return ret[0];
}

/* The calibration of the headers, if the configuration asks for it (docs/mmr.md). */
static void find_calibration(struct sinogram *s)
{
	const struct dicom_item *root = dicom_root(s->files[mmr_of(s)->file[SINOGRAM_MMR_LIST]]);
	const struct dicom_item *tracer = dicom_item_at(root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0);
	const struct mmr_header *norm = &mmr_of(s)->norm;
	double counts = s->scanner->ecat_counts, fraction = NAN;
	char cross[40] = "";

	if (tracer && dicom_get_double(tracer, TAG_RADIONUCLIDE_POSITRON_FRACTION, 0, &fraction, NULL) != 1)
		fraction = NAN;
	if (!(counts > 0) || find_obstacle(s, fraction, s->calibration_text, sizeof(s->calibration_text)))
		return;
	s->facts.calibration = counts * norm->quantification / fraction;
	snprintf(s->calibration_origin, sizeof(s->calibration_origin),
		 "configuration %g x header's quantification factor %g / positron fraction %g", counts, norm->quantification,
		 fraction);
	if (norm->cross_calibration > 0)
		snprintf(cross, sizeof(cross), ", %g,", norm->cross_calibration);
	snprintf(
		s->calibration_text, sizeof(s->calibration_text),
		"The calibration (ecat_counts) has the quantification factor of the header, not the cross calibration factor%s and was "
		"not compared with a scanner.",
		cross);
}

/* Read the standard attributes of the list mode; what it says about corrections is about images. */
static void read_facts(struct sinogram *s)
{
	pet_facts_read(dicom_root(s->files[mmr_of(s)->file[SINOGRAM_MMR_LIST]]), &s->facts);
	s->facts.corrected[0] = '\0';
	s->facts.calibration = NAN;
	find_calibration(s);
	if (!s->facts.patient_position[0])
		snprintf(s->facts.patient_position, sizeof(s->facts.patient_position), "%s", mmr_of(s)->list.position);
}

static int open_objects(struct sinogram *s, struct err *err)
{
	int rc = find_types(s, err);

	if (rc == 0)
		rc = check_study(s, err);
	return rc < 0 ? rc : read_headers(s, err);
}

/* Make the digest of the data of both, and the text that names them. */
static int describe_extracted(struct sinogram *s, char ret_hash[65], struct err *err)
{
	char hash[2 * 64 + 1] = "", *origin[2] = {NULL, NULL};
	int rc = 0;

	for (int t = SINOGRAM_MMR_LIST; rc == 0 && t <= SINOGRAM_MMR_NORM; t++) {
		const char *source = mmr_of(s)->source[t], *digest = source + strlen(source) - 64;
		uint64_t bytes = t == SINOGRAM_MMR_LIST ? 4 * mmr_of(s)->list.words : MMR_NORM_BYTES;

		snprintf(hash + strlen(hash), sizeof(hash) - strlen(hash), "%s", digest);
		rc = sinogram_origin(mmr_of(s)->data[t], bytes, digest, &origin[t - SINOGRAM_MMR_LIST], err);
	}
	if (rc == 0 && asprintf(&s->origin, "%s, %s", origin[0], origin[1]) < 0) {
		s->origin = NULL;
		rc = err_set(err, ENOMEM, "no memory for the names of two files");
	}
	dicom_sha256(hash, strlen(hash), ret_hash);
	free(origin[0]);
	free(origin[1]);
	return rc;
}

/* --like may be an image of another scanner. */
static int name_scanner(struct dicom_item *root, struct err *err)
{
	char maker[65] = "", model[65] = "";
	int rc;

	dicom_get_text(root, TAG_MANUFACTURER, maker, sizeof(maker), NULL);
	dicom_get_text(root, TAG_MANUFACTURER_MODEL_NAME, model, sizeof(model), NULL);
	if (strcasestr(maker, "siemens") && strstr(model, "mMR"))
		return 0;
	rc = dicom_put_text(root, TAG_MANUFACTURER, "SIEMENS", err);
	rc = rc < 0 ? rc : dicom_put_text(root, TAG_MANUFACTURER_MODEL_NAME, MMR_MODEL, err);
	return rc < 0 ? rc : dicom_put_empty(root, TAG_DEVICE_SERIAL_NUMBER, err);
}

/* Make the header that an object of these files would have. */
static int make_header(struct sinogram *s, const struct pet_opening *o, struct err *err)
{
	struct sinogram_import conf = o->file ? *o->file : (struct sinogram_import){.n_set = 0};
	struct interfile h;
	char *text = NULL, hash[65];
	size_t size = 0;
	int rc = sinogram_mmr_text(s, SINOGRAM_MMR_LIST, &text, &size, err);

	if (rc == 0)
		rc = interfile_parse_exam(text, size, &h, err);
	free(text);
	if (rc == 0)
		rc = describe_extracted(s, hash, err);
	if (rc < 0)
		return rc;
	h.kind = INTERFILE_PROJECTIONS;
	h.siemens = true;
	snprintf(h.scanner, sizeof(h.scanner), "%s", MMR_MODEL);
	snprintf(h.position, sizeof(h.position), "%s", mmr_of(s)->list.position);
	conf.now = (double)time(NULL);
	conf.as_measured = true;
	rc = sinogram_new_header(&conf, &h, hash, &s->files[0], s->centre, err);
	return rc < 0 ? rc : name_scanner(dicom_root(s->files[0]), err);
}

/* Open the files of a header of list mode. */
static int open_extracted(struct sinogram *s, const char *path, const struct pet_opening *o, struct err *err)
{
	struct sinogram_mmr *m = mmr_of(s);
	struct mmr_header list;
	int rc;

	s->files = calloc(1, sizeof(*s->files));
	s->paths = calloc(1, sizeof(*s->paths));
	m->header[SINOGRAM_MMR_LIST] = strdup(path);
	if (!s->files || !s->paths || !m->header[SINOGRAM_MMR_LIST] || !(s->paths[0] = strdup(path)))
		return err_set(err, ENOMEM, "no memory for an acquisition");
	s->n_files = 1;
	rc = read_header(s, SINOGRAM_MMR_LIST, &list, err); /* of another scanner its normalisation is not missed */
	rc = rc < 0 ? rc
		    : sinogram_mmr_find_norm(path, o->file ? o->file->header[SINOGRAM_NORMALISATION] : NULL,
					     &m->header[SINOGRAM_MMR_NORM], err);
	if (rc < 0)
		err_prefix(err, "%s", file_name(path));
	if (rc == 0)
		rc = read_headers(s, err);
	if (rc == 0)
		rc = make_header(s, o, err);
	return rc;
}

int sinogram_mmr_open(struct sinogram *s, const char *path, const struct pet_opening *o, struct err *err)
{
	int rc;

	s->format = sinogram_format_of(INTERFILE_PROJECTIONS);
	s->own = calloc(1, sizeof(struct sinogram_mmr));
	if (!s->own)
		return err_set(err, ENOMEM, "no memory for an acquisition");
	rc = s->n_files > 0 ? open_objects(s, err) : open_extracted(s, path, o, err);
	if (rc < 0)
		return rc;
	s->scanner = sinogram_find_scanner(s->files[mmr_of(s)->file[SINOGRAM_MMR_LIST]], o->config);
	if (!s->scanner)
		return err_set(err, ENOKEY, "no scanner of the configuration matches the list mode: add it to `scanners`");
	rc = describe_role(s, SINOGRAM_EMISSION, SINOGRAM_MMR_LIST, err);
	if (rc == 0)
		rc = describe_role(s, SINOGRAM_DELAYEDS, SINOGRAM_MMR_LIST, err);
	if (rc == 0)
		rc = describe_role(s, SINOGRAM_MULTIPLICATIVE, SINOGRAM_MMR_NORM, err);
	if (rc == 0)
		rc = sinogram_find_patient(s, o->patient, err);
	if (rc < 0)
		return rc;
	read_facts(s);
	return sinogram_find_axes(s, err);
}
