/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram.c - combine the objects of an acquisition. Objects belong together if series, study and frame of reference are equal;
 * each object has the number of instances of the acquisition, so that a missing one is detected. All chunks of a role must have
 * the same header, hash and length, and every index once; the sizes of the chunks must add up to the length, and the length must
 * be the size that the header requires, before memory is allocated.
 */
#include "node/sinogram/sinogram.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "node/base/folder.h"
#include "node/base/plural.h"
#include "node/sinogram/pet_source.h"
#include "node/sinogram/sinogram_internal.h"
#include "node/sinogram/sinogram_list_internal.h"

/* ---- opening ---- */

struct opening {
	struct sinogram *s;
	struct sinogram_facts *facts; /* [file] */
	const struct pet_opening *how;
	struct err *err;
};

static int read_facts(struct opening *o)
{
	struct sinogram *s = o->s;

	o->facts = calloc(s->n_files, sizeof(*o->facts));
	if (!o->facts)
		return err_set(o->err, ENOMEM, "no memory for %zu files", s->n_files);
	for (size_t i = 0; i < s->n_files; i++) {
		int rc = sinogram_facts_of(s->files[i], &o->facts[i], o->err);

		if (rc <= 0) {
			err_prefix(o->err, "%s", file_name(s->paths[i]));
			return rc < 0 ? rc : -EBADMSG;
		}
	}
	return 0;
}

/* Check that the objects are one complete acquisition. */
static int check_together(const struct opening *o)
{
	const struct sinogram_facts *first = &o->facts[0];
	size_t n = o->s->n_files;

	o->s->format = first->format;
	for (size_t i = 1; i < n; i++) {
		const struct sinogram_facts *f = &o->facts[i];
		const char *name = file_name(o->s->paths[i]), *other = file_name(o->s->paths[0]);

		if (strcmp(f->series, first->series) != 0 || strcmp(f->study, first->study) != 0)
			return err_set(o->err, EBADMSG, "%s and %s belong to different acquisitions (series %s and %s)", other,
				       name, first->series, f->series);
		if (strcmp(f->frame_of_reference, first->frame_of_reference) != 0)
			return err_set(o->err, EBADMSG, "%s and %s have different frames of reference", other, name);
		if (f->format != first->format)
			return err_set(o->err, EBADMSG, "%s is of format %s, %s of %s", other, first->format->type->id, name,
				       f->format->type->id);
		if (f->instances != first->instances)
			return err_set(o->err, EBADMSG, "%s announces %ld instances of the acquisition, %s announces %ld", other,
				       first->instances, name, f->instances);
	}
	return 0;
}

/* Return the part of a role in a time frame, gate or bed, from 1; 0: that of all. */
static struct sinogram_part *part_of(struct sinogram *s, int role, int frame)
{
	return frame > 0 ? &s->frame_part[frame - 1][role] : &s->part[role];
}

/* Two objects say something else about one role, or are the same chunk of it. */
static int refuse_contradiction(const struct opening *o, const struct sinogram_part *part, size_t second, size_t first)
{
	const struct sinogram_facts *f = &o->facts[second];
	const char *name = file_name(o->s->paths[second]), *role = sinogram_role_name(f->role);
	char of[32] = "";

	if (f->image > 0)
		snprintf(of, sizeof(of), " of %s %ld", pet_division_name(o->s->images.of), f->image);
	if (first < o->s->n_files)
		return err_set(o->err, EBADMSG, "chunk %ld of role %s%s is in two objects: %s and %s", f->chunk + 1, role, of,
			       file_name(o->s->paths[first]), name);
	return err_set(o->err, EBADMSG, "%s: role %s%s has %ld chunks and %llu bytes, in other objects %zu and %llu%s", name,
		       role, of, f->n_chunks, (unsigned long long)f->bytes, part->n_chunks, (unsigned long long)part->bytes,
		       strcmp(f->sha256, part->sha256) ? ", with another SHA-256" : "");
}

/* Collect the files of a role in the order of their chunks. */
static int collect_chunks(struct opening *o, enum sinogram_role role, int frame)
{
	struct sinogram_part *part = part_of(o->s, role, frame);
	const struct sinogram_facts *first = NULL;
	size_t none = o->s->n_files;
	uint64_t sum = 0;

	for (size_t i = 0; i < o->s->n_files; i++) {
		const struct sinogram_facts *f = &o->facts[i];

		if (f->role != role || f->image != frame)
			continue;
		if (!first) {
			first = f;
			part->n_chunks = (size_t)f->n_chunks; /* at most SINOGRAM_FILES_MAX */
			part->file = malloc(part->n_chunks * sizeof(*part->file));
			part->block = malloc(part->n_chunks * sizeof(*part->block));
			if (!part->file || !part->block)
				return err_set(o->err, ENOMEM, "no memory for %zu chunks", part->n_chunks);
			for (size_t c = 0; c < part->n_chunks; c++)
				part->file[c] = none;
			part->bytes = f->bytes;
			snprintf(part->sha256, sizeof(part->sha256), "%s", f->sha256);
		}
		if (f->n_chunks != first->n_chunks || f->bytes != first->bytes || strcmp(f->sha256, first->sha256) != 0)
			return refuse_contradiction(o, part, i, none);
		if (part->file[f->chunk] != none)
			return refuse_contradiction(o, part, i, part->file[f->chunk]);
		part->file[f->chunk] = i;
		part->block[f->chunk] = f->block;
		sum += f->chunk_bytes;
	}
	if (!first)
		return 0;
	for (size_t c = 0; c < part->n_chunks; c++)
		if (part->file[c] == none)
			return err_set(o->err, EBADMSG, "%s: chunk %zu of %zu is missing", sinogram_role_name(role), c + 1,
				       part->n_chunks);
	if (sum != first->bytes + (first->bytes & 1)) /* the last chunk is padded to an even size */
		return err_set(o->err, EBADMSG, "%s: %llu bytes in %zu chunks, but %llu in the header", sinogram_role_name(role),
			       (unsigned long long)sum, part->n_chunks, (unsigned long long)first->bytes);
	part->present = true;
	return 0;
}

/* Collect all roles of all time frames, gates or beds. */
static int collect_roles(struct opening *o)
{
	int rc = sinogram_find_frames(o->s, o->facts, o->err);

	for (int role = 1; rc == 0 && role <= SINOGRAM_ROLES; role++)
		for (int frame = 0; rc == 0 && frame <= o->s->images.n; frame++)
			rc = collect_chunks(o, (enum sinogram_role)role, frame);
	return rc < 0 ? rc : sinogram_check_frames(o->s, o->err);
}

/* The result copies the patient from one header and the rest from another, in one Specific Character Set. */
static int check_charset(const struct sinogram *s, struct err *err)
{
	size_t source = s->part[s->format->first].file[0];
	char first[257] = "", chosen[257] = "";
	size_t patient = 0;

	if (!s->patient)
		return 0;
	dicom_get_text(dicom_root(s->files[source]), TAG_SPECIFIC_CHARACTER_SET, first, sizeof(first), NULL);
	dicom_get_text(dicom_root(s->patient), TAG_SPECIFIC_CHARACTER_SET, chosen, sizeof(chosen), NULL);
	if (!strcmp(first, chosen))
		return 0;
	while (s->files[patient] != s->patient)
		patient++;
	return err_set(err, ENOTSUP,
		       "%s cannot give the patient: its Specific Character Set (0008,0005) is \"%.64s\", that of %s is \"%.64s\"",
		       file_name(s->paths[patient]), chosen, file_name(s->paths[source]), first);
}

int sinogram_find_patient(struct sinogram *s, const struct patient_statement *patient, struct err *err)
{
	int rc = patient_check(s->files, s->paths, s->n_files, patient, &s->patient, err);

	return rc == 0 ? check_charset(s, err) : rc;
}

static int check_all_there(const struct opening *o)
{
	long there = (long)o->s->n_files, want = o->facts[0].instances;

	if (!o->s->part[o->s->format->first].present)
		return err_set(o->err, EBADMSG, "no object of role %s among the %ld objects",
			       sinogram_role_name(o->s->format->first), there);
	if (there != want)
		return err_set(o->err, EBADMSG, "the acquisition has %ld instance%s, but %ld %s present", want, plural(want),
			       there, there == 1 ? "is" : "are");
	return 0;
}

/* ---- headers ---- */

/* Complete a header from the scanner's configuration; ENOKEY names the scanner that has none. */
static int complete_header(const struct opening *o, struct interfile *h)
{
	const struct dicom_item *root = dicom_root(o->s->files[o->s->part[o->s->format->first].file[0]]);
	int rc = interfile_complete(h, o->s->scanner, o->err);
	char manufacturer[65] = "", model[65] = "";
	struct err cause;

	if (rc != -ENOKEY || o->s->scanner || !o->err)
		return rc;
	cause = *o->err;
	dicom_get_text(root, TAG_MANUFACTURER, manufacturer, sizeof(manufacturer), NULL);
	dicom_get_text(root, TAG_MANUFACTURER_MODEL_NAME, model, sizeof(model), NULL);
	if (!model[0] || !strcasecmp(model, "userdefined") || !strcasecmp(model, "unknown")) /* no name of a scanner */
		return rc;
	return err_set(o->err, ENOKEY,
		       "%s; no scanner of the configuration matches manufacturer \"%s\" and model \"%s\": add it to `scanners`",
		       cause.msg, manufacturer, model);
}

/* Parse the header, check that its kind fits the role, and complete it from the scanner's configuration. */
static int parse_header(const struct opening *o, enum sinogram_role role, const char *text, struct interfile *h)
{
	int rc = interfile_parse(text, strlen(text), h, o->err);

	if (rc < 0)
		return rc;
	if (h->kind == INTERFILE_IMAGE)
		return err_set(o->err, EBADMSG, "the header describes an image, not projection data");
	if (h->kind != sinogram_header_kind(o->s->format, role))
		return err_set(o->err, EBADMSG, "its header describes %s, which does not match the %s of the object",
			       interfile_type(h->kind)->title,
			       role == SINOGRAM_SINGLES || h->kind == INTERFILE_SINGLES ? "role" : "format");
	return h->kind == INTERFILE_PROJECTIONS ? complete_header(o, h) : 0;
}

static int wrong_size(const struct interfile *h, uint64_t bytes, struct err *err)
{
	char extent[100];

	interfile_extent(h, extent, sizeof(extent));
	return err_set(err, EBADMSG, "the header requires %llu bytes (%s) after an offset of %llu, the data have %llu in all",
		       (unsigned long long)interfile_bytes(h), extent, (unsigned long long)h->offset, (unsigned long long)bytes);
}

static int read_header(struct opening *o, enum sinogram_role role, struct sinogram_part *part)
{
	struct interfile *h = &part->header;
	int rc = 0;

	for (size_t c = 0; rc == 0 && c < part->n_chunks; c++) {
		size_t i = part->file[c];
		char *text = NULL;

		rc = sinogram_header_text(o->s->files[i], &o->facts[i], &text, o->err);
		if (rc == 0 && part->text && strcmp(text, part->text) != 0)
			rc = err_set(o->err, EBADMSG, "the Interfile header of %s differs from that of the preceding chunks",
				     file_name(o->s->paths[i]));
		if (c == 0)
			part->text = text;
		else
			free(text);
	}
	if (rc == 0 && o->how->raw)
		return 0;
	if (rc == 0)
		rc = parse_header(o, role, part->text, h);
	if (rc == 0 && (h->offset > part->bytes || interfile_bytes(h) != part->bytes - h->offset))
		rc = wrong_size(h, part->bytes, o->err);
	if (rc < 0)
		err_prefix(o->err, "%s", sinogram_role_name(role));
	return rc;
}

int sinogram_same_bins(const struct interfile *emission, const struct interfile *other, enum sinogram_role role, struct err *err)
{
	bool factors = role != SINOGRAM_EMISSION && role != SINOGRAM_ADDITIVE;
	int rc = role == SINOGRAM_SINGLES ? interfile_singles_check(other, &emission->m.scanner, err)
					  : interfile_same_rays(emission, other, err);

	if (rc == 0 && role == SINOGRAM_DELAYEDS && other->m.tof.n > 0)
		rc = err_set(err, EBADMSG, "%d TOF bins of delayed coincidences, which are the same in all; add them to one",
			     other->m.tof.n);
	else if (rc == 0 && role != SINOGRAM_SINGLES && (!factors || other->m.tof.n > 0))
		rc = interfile_same_tof(emission, other, err);
	if (rc < 0)
		err_prefix(err, "EMISSION and %s", sinogram_role_name(role));
	return rc;
}

/* Read the header of a part, and compare its bins with those of the first part. */
static int read_part(struct opening *o, enum sinogram_role role, struct sinogram_part *part, const struct sinogram_part *first)
{
	int rc = read_header(o, role, part);

	return rc < 0 || part == first || o->how->raw ? rc : sinogram_same_bins(&first->header, &part->header, role, o->err);
}

static int read_headers(struct opening *o)
{
	struct sinogram *s = o->s;
	const struct sinogram_part *first = part_of(s, (int)s->format->first, s->images.n > 0);

	for (int role = 1; role <= SINOGRAM_ROLES; role++)
		for (int frame = 0; frame <= s->images.n; frame++) {
			struct sinogram_part *part = part_of(s, role, frame);
			int rc = part->present && !part->of_frame ? read_part(o, (enum sinogram_role)role, part, first) : 0;

			if (rc < 0 && frame > 0)
				err_prefix(o->err, "%s %d", pet_division_name(s->images.of), frame);
			if (rc < 0)
				return rc;
		}
	sinogram_choose_frame(s, 0);
	return 0;
}

/* ---- scanner and patient ---- */

const struct scanner_conf *sinogram_find_scanner(struct dicom_file *file, const struct config *config)
{
	const struct dicom_item *root = dicom_root(file);
	char manufacturer[65] = "", model[65] = "", serial[65] = "";

	dicom_get_text(root, TAG_MANUFACTURER, manufacturer, sizeof(manufacturer), NULL);
	dicom_get_text(root, TAG_MANUFACTURER_MODEL_NAME, model, sizeof(model), NULL);
	dicom_get_text(root, TAG_DEVICE_SERIAL_NUMBER, serial, sizeof(serial), NULL);
	return config ? config_scanner(config, manufacturer, model, serial) : NULL;
}

int sinogram_find_axes(struct sinogram *s, struct err *err)
{
	if (!pet_facts_axes(s->facts.patient_position, s->axis))
		return err_set(
			err, EBADMSG,
			"the patient's position is \"%s\" in (0054,0410) and (0054,0414), or (0018,5100); supported: HFS, HFP, "
			"FFS, FFP, HFDL, HFDR, FFDL, FFDR",
			s->facts.patient_position);
	return 0;
}

static int read_place(struct opening *o)
{
	struct sinogram *s = o->s;
	size_t first = s->part[s->format->first].file[0];
	int rc;

	pet_facts_read(dicom_root(s->files[first]), &s->facts);
	rc = pet_facts_check(dicom_root(s->files[first]), o->err);
	if (rc < 0 || o->how->anonymous)
		return rc;
	rc = sinogram_find_axes(s, o->err);
	if (rc == 0 && s->images.of != PET_BEDS)
		rc = sinogram_centre(s->files[first], &o->facts[first], s->centre, o->err);
	s->has_centre = rc > 0 || s->images.of == PET_BEDS;
	if (rc >= 0)
		rc = sinogram_check_objects(s, o->facts, o->err);
	return rc < 0 ? rc : sinogram_check_gates(s, o->err);
}

static int open_roles(struct opening *o)
{
	struct sinogram *s = o->s;
	int rc = read_facts(o);

	if (rc == 0)
		rc = check_together(o);
	if (rc == 0)
		rc = collect_roles(o);
	if (rc == 0)
		rc = check_all_there(o);
	if (rc == 0 && !o->how->anonymous)
		rc = sinogram_find_patient(s, o->how->patient, o->err);
	if (rc < 0)
		return rc;
	if (s->format->header == INTERFILE_PROJECTIONS)
		s->scanner = sinogram_find_scanner(s->files[s->part[s->format->first].file[0]], o->how->config);
	rc = read_headers(o);
	return rc == 0 && !o->how->raw ? read_place(o) : rc;
}

static int open_objects(struct sinogram *s, const char *path, const struct pet_opening *how, struct err *err)
{
	struct opening o = {.s = s, .how = how, .err = err};
	int rc = open_roles(&o);

	(void)path;
	free(o.facts);
	return rc;
}

/* Return true for data that were corrected before. */
static bool is_attenuation_corrected(const struct dicom_item *root)
{
	char terms[200];

	return dicom_get_text(root, TAG_CORRECTED_IMAGE, terms, sizeof(terms), NULL) == 1 && strstr(terms, "ATTN");
}

static int describe_object(const struct dicom_file *file, struct pet_object *ret, struct err *err)
{
	const struct dicom_item *root = dicom_root((struct dicom_file *)file);
	char sop_class[DICOM_UID_SIZE] = "";
	struct sinogram_facts f;
	int rc;

	dicom_get_text(root, TAG_SOP_CLASS_UID, sop_class, sizeof(sop_class), NULL);
	rc = strcmp(sop_class, CLASS_RAW_DATA) ? 0 : sinogram_facts_of(file, &f, err);
	if (rc > 0)
		*ret = (struct pet_object){.header = f.format->header,
					   .expected = f.instances,
					   .attenuation = f.role == SINOGRAM_ATTENUATION || f.role == SINOGRAM_MULTIPLICATIVE ||
							  is_attenuation_corrected(root)};
	return rc;
}

const struct pet_source pet_source_objects = {
	.objects = "sinogram",
	.sop_class = CLASS_RAW_DATA,
	.describe = describe_object,
	.open = open_objects,
	.read = sinogram_read_objects,
	.no_gates = "the protocol divides list mode into gates, but the case has sinograms, which cannot be divided",
};

static void clear_part(struct sinogram_part *part)
{
	interfile_clear(&part->header);
	free(part->text);
	free(part->file);
	free(part->block);
}

struct sinogram *sinogram_close(struct sinogram *s)
{
	if (!s)
		return NULL;
	for (int role = 1; role <= SINOGRAM_ROLES; role++) {
		if (!s->part[role].of_frame)
			clear_part(&s->part[role]);
		for (int frame = 1; s->frame_part && frame <= s->images.n; frame++)
			clear_part(part_of(s, role, frame));
	}
	free(s->frame_part);
	pet_marks_clear(&s->images.gates.marks);
	for (size_t i = 0; i < s->n_files; i++) {
		dicom_close(s->files[i]);
		free(s->paths[i]);
	}
	list_free(s->list);
	if (s->source && s->source->close)
		s->source->close(s);
	free(s->paths);
	free(s->files);
	free(s->origin);
	free(s);
	return NULL;
}
