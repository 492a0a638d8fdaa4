/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_object.c - read the header of one sinogram object. In Explicit VR the private elements have their own value
 * representations. If a sender rewrote the object in Implicit VR, or did not know the elements, their bytes are in little endian;
 * these are read, too.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dicom/core/bulk.h"
#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "node/sinogram/sinogram_internal.h"

static const char *const role_names[SINOGRAM_ROLES + 1] = {
	"", "EMISSION", "MULTIPLICATIVE", "ADDITIVE", "ATTENUATION", "NORMALISATION", "DELAYEDS", "SINGLES", "LINES"};

const char *sinogram_role_name(enum sinogram_role role)
{
	return (unsigned)role <= SINOGRAM_ROLES ? role_names[role] : "";
}

#define SINOGRAM_GE_CLASS "1.2.840.113619.4.30"
#define CONVERT "convert the sinograms to Interfile and use `tomonode import`"

/* Write what the raw data of a Siemens system are, and what to send instead. */
static void siemens_reason(const struct dicom_item *root, const char *model, char *ret_reason, size_t size)
{
	char type[65];

	sinogram_mmr_type(root, type, sizeof(type));
	if (!strstr(model, "mMR"))
		snprintf(ret_reason, size,
			 "Siemens raw data of %.40s, type %.20s (private class " SINOGRAM_SIEMENS_CLASS
			 "): a closed format; " CONVERT,
			 model[0] ? model : "an unknown model", type[0] ? type : "unknown");
	else if (!strcmp(type, "PET_EM_SINO"))
		snprintf(ret_reason, size,
			 "Siemens mMR sinograms (PET_EM_SINO): compressed by the scanner; send the list mode (PET_LISTMODE) and "
			 "the normalisation (PET_NORM), or " CONVERT);
	else
		snprintf(ret_reason, size,
			 "Siemens mMR raw data of type %.20s (private class " SINOGRAM_SIEMENS_CLASS
			 "); a reconstruction uses PET_LISTMODE and PET_NORM",
			 type[0] ? type : "unknown");
}

bool sinogram_unsupported(const struct dicom_item *root, char *ret_reason, size_t size)
{
	char sop_class[DICOM_UID_SIZE] = "", maker[65] = "", model[65] = "";
	bool known = true;

	dicom_get_text(root, TAG_SOP_CLASS_UID, sop_class, sizeof(sop_class), NULL);
	dicom_get_text(root, TAG_MANUFACTURER, maker, sizeof(maker), NULL);
	dicom_get_text(root, TAG_MANUFACTURER_MODEL_NAME, model, sizeof(model), NULL);
	if (!strcmp(sop_class, SINOGRAM_SIEMENS_CLASS))
		siemens_reason(root, model, ret_reason, size);
	else if (!strcmp(sop_class, SINOGRAM_GE_CLASS))
		snprintf(ret_reason, size,
			 "GE raw data (private class " SINOGRAM_GE_CLASS
			 "): RDF, that is HDF5 in a private element, often compressed; STIR reads RDF9: " CONVERT);
	else if (!strcmp(sop_class, CLASS_RAW_DATA))
		snprintf(ret_reason, size,
			 "Raw Data Storage of %s%s%s without the private block of sinogram objects: an unknown format",
			 maker[0] ? maker : "an unknown manufacturer", model[0] ? " " : "", model);
	else
		known = false;
	return known;
}

uint32_t sinogram_tag(unsigned block, enum sinogram_element element)
{
	return DICOM_TAG(SINOGRAM_GROUP, block << 8 | (unsigned)element);
}

/* Read an element without value representation as a little-endian number. */
static bool raw_number(const struct dicom_file *file, uint32_t tag, size_t size, uint64_t *ret)
{
	uint8_t bytes[8];
	uint64_t there;

	if (!dicom_bulk_size(file, tag, &there) || there != size || dicom_bulk_read(file, tag, 0, bytes, size, NULL) < 0)
		return false;
	*ret = 0;
	for (size_t i = size; i-- > 0;)
		*ret = *ret << 8 | bytes[i];
	return true;
}

/* Read a number. Returns 1, 0 (missing) or a negative error. */
static int get_number(const struct dicom_file *file, uint32_t tag, size_t size, long *ret, struct err *err)
{
	uint64_t raw;

	if (raw_number(file, tag, size, &raw)) {
		if (raw > INT64_MAX)
			return err_set(err, EBADMSG, "(%04X,%04X): %llu is too large", tag >> 16, tag & 0xffff,
				       (unsigned long long)raw);
		*ret = (long)raw;
		return 1;
	}
	return dicom_get_int(dicom_root((struct dicom_file *)file), tag, 0, ret, err);
}

static int need_number(const struct dicom_file *file, unsigned block, enum sinogram_element element, const char *name, long lo,
		       long hi, long *ret, struct err *err)
{
	uint32_t tag = sinogram_tag(block, element);
	int rc = get_number(file, tag, 4, ret, err);

	if (rc < 0)
		return rc;
	if (rc == 0)
		return err_set(err, EBADMSG, "%s (%04X,%04X) is missing", name, tag >> 16, tag & 0xffff);
	if (*ret < lo || *ret > hi)
		return err_set(err, EBADMSG, "%s (%04X,%04X) is %ld; allowed: %ld to %ld", name, tag >> 16, tag & 0xffff, *ret,
			       lo, hi);
	return 0;
}

static int need_text(const struct dicom_item *root, uint32_t tag, const char *name, char *ret, size_t size, struct err *err)
{
	int rc = dicom_get_text(root, tag, ret, size, err);

	if (rc < 0)
		return rc;
	return rc ? 0 : err_set(err, EBADMSG, "%s (%04X,%04X) is missing", name, tag >> 16, tag & 0xffff);
}

static int read_identity(const struct dicom_item *root, struct sinogram_facts *f, struct err *err)
{
	const struct {
		uint32_t tag;
		const char *name;
		char *uid;
	} uids[] = {
		{TAG_SOP_INSTANCE_UID, "SOP Instance UID", f->sop_instance},
		{TAG_STUDY_INSTANCE_UID, "Study Instance UID", f->study},
		{TAG_SERIES_INSTANCE_UID, "Series Instance UID", f->series},
	};

	for (size_t i = 0; i < sizeof(uids) / sizeof(uids[0]); i++) {
		int rc = need_text(root, uids[i].tag, uids[i].name, uids[i].uid, DICOM_UID_SIZE, err);

		if (rc < 0)
			return rc;
	}
	return dicom_get_text(root, TAG_FRAME_OF_REFERENCE_UID, f->frame_of_reference, DICOM_UID_SIZE, err);
}

static int refuse_role(const struct sinogram_format *format, const char *role, struct err *err)
{
	char allowed[120] = "";
	size_t n = 0;

	for (int i = (int)format->first; i <= (int)format->last && n < sizeof(allowed); i++)
		n += (size_t)snprintf(allowed + n, sizeof(allowed) - n, "%s%s", n ? ", " : "", role_names[i]);
	return err_set(err, EBADMSG, "role \"%s\"; allowed: %s", role, allowed);
}

static int read_role(const struct dicom_item *root, struct sinogram_facts *f, struct err *err)
{
	char id[65], role[17], known[200];
	int rc = need_text(root, sinogram_tag(f->block, SINOGRAM_FORMAT_ID), "format", id, sizeof(id), err);

	if (rc < 0)
		return rc;
	f->format = sinogram_format_named(id);
	if (!f->format) {
		sinogram_format_list(known, sizeof(known));
		return err_set(err, ENOTSUP, "format \"%s\"; supported: %s", id, known);
	}
	rc = need_text(root, sinogram_tag(f->block, SINOGRAM_ROLE), "role", role, sizeof(role), err);
	if (rc < 0)
		return rc;
	for (int i = (int)f->format->first; i <= (int)f->format->last; i++)
		if (!strcmp(role, role_names[i]))
			f->role = (enum sinogram_role)i;
	return f->role ? 0 : refuse_role(f->format, role, err);
}

static int read_counts(const struct dicom_file *file, struct sinogram_facts *f, struct err *err)
{
	uint32_t large = sinogram_tag(f->block, SINOGRAM_LENGTH_LARGE);
	long bytes = 0;
	int rc;

	if ((rc = need_number(file, f->block, SINOGRAM_CHUNK_COUNT, "count of chunks", 1, SINOGRAM_FILES_MAX, &f->n_chunks,
			      err)) < 0 ||
	    (rc = need_number(file, f->block, SINOGRAM_CHUNK_INDEX, "index of the chunk", 0, f->n_chunks - 1, &f->chunk, err)) <
		    0 ||
	    (rc = need_number(file, f->block, SINOGRAM_INSTANCES, "instances of the acquisition", f->n_chunks, SINOGRAM_FILES_MAX,
			      &f->instances, err)) < 0 ||
	    (rc = need_number(file, f->block, SINOGRAM_LENGTH, "length of the data", 0, UINT32_MAX, &bytes, err)) < 0)
		return rc;
	if (bytes == 0) {
		rc = get_number(file, large, 8, &bytes, err);
		if (rc < 0)
			return rc;
	}
	if (bytes <= 0)
		return err_set(err, EBADMSG, "length of the data is %ld", bytes);
	f->bytes = (uint64_t)bytes;
	if (!dicom_bulk_size(file, sinogram_tag(f->block, SINOGRAM_CHUNK), &f->chunk_bytes))
		return err_set(err, EBADMSG, "the chunk of data (%04X,%02X%02X) is missing", SINOGRAM_GROUP, f->block,
			       SINOGRAM_CHUNK);
	return 0;
}

/* Read the limits of cycles; without them all are used. */
static int read_cycles(const struct dicom_file *file, struct sinogram_facts *f, struct err *err)
{
	int rc;

	if (!dicom_has(dicom_root((struct dicom_file *)file), sinogram_tag(f->block, SINOGRAM_GATE_LONGEST)))
		return 0;
	rc = need_number(file, f->block, SINOGRAM_GATE_LONGEST, "longest cycle", 1, PET_MARKS_END, &f->longest, err);
	return rc < 0 ? rc
		      : need_number(file, f->block, SINOGRAM_GATE_SHORTEST, "shortest cycle", 0, f->longest, &f->shortest, err);
}

static int read_signal(const struct dicom_item *root, struct sinogram_facts *f, struct err *err)
{
	uint32_t tag = sinogram_tag(f->block, SINOGRAM_GATE_SIGNAL);
	char text[17];
	int rc = need_text(root, tag, "signal of the gates", text, sizeof(text), err);

	if (rc < 0)
		return rc;
	for (char *c = text; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	if (!pet_signal_named(text, &f->signal))
		return err_set(err, EBADMSG, "signal of the gates (%04X,%04X) is \"%s\"; allowed: TABLE, ECG, RESP, MOTION, SYNC",
			       tag >> 16, tag & 0xffff, text);
	return 0;
}

const struct sinogram_image_elements sinogram_image_elements[] = {
	[PET_FRAMES] = {SINOGRAM_FRAME, SINOGRAM_FRAME_COUNT, SINOGRAM_FRAME_START, SINOGRAM_FRAME_TIME, PET_FRAMES_MAX},
	[PET_GATES] = {SINOGRAM_GATE, SINOGRAM_GATE_COUNT, 0, 0, PET_GATES_MAX},
	[PET_BEDS] = {SINOGRAM_BED, SINOGRAM_BED_COUNT, SINOGRAM_BED_START, SINOGRAM_BED_TIME, PET_BEDS_MAX},
};

/* Read the time frame, gate or bed, if the object has one. The position of a bed is read by sinogram_find_frames(). */
static int read_image(const struct dicom_file *file, enum pet_division of, struct sinogram_facts *f, struct err *err)
{
	const struct dicom_item *root = dicom_root((struct dicom_file *)file);
	const struct sinogram_image_elements *e = &sinogram_image_elements[of];
	const char *what = pet_division_name(of), *before = pet_division_name(f->of);
	char count[32], start[32], time[32];
	int rc;

	if (!dicom_has(root, sinogram_tag(f->block, e->number)))
		return 0;
	if (f->format->header != INTERFILE_PROJECTIONS)
		return err_set(err, EBADMSG, "a %s (%04X,%02X%02X) in an object of format %s; only PET has %ss", what,
			       SINOGRAM_GROUP, f->block, (unsigned)e->number, f->format->type->id, what);
	if (f->image > 0)
		return err_set(err, ENOTSUP, "an object with a %s and a %s; %ss of %ss are not supported",
			       of == PET_BEDS ? what : before, of == PET_BEDS ? before : what, of == PET_BEDS ? before : what,
			       of == PET_BEDS ? what : before);
	snprintf(count, sizeof(count), "number of %ss", what);
	snprintf(start, sizeof(start), "start of the %s", what);
	snprintf(time, sizeof(time), "duration of the %s", what);
	f->of = of;
	if ((rc = need_number(file, f->block, e->count, count, 1, e->most, &f->n_images, err)) < 0 ||
	    (rc = need_number(file, f->block, e->number, what, 1, f->n_images, &f->image, err)) < 0)
		return rc;
	if (of == PET_GATES)
		return (rc = read_cycles(file, f, err)) < 0 ? rc : read_signal(root, f, err);
	rc = need_number(file, f->block, e->start, start, 0, PET_FRAMES_END - 1, &f->start, err);
	return rc < 0 ? rc : need_number(file, f->block, e->time, time, 1, PET_FRAMES_END - f->start, &f->time, err);
}

static int read_hash(const struct dicom_item *root, struct sinogram_facts *f, struct err *err)
{
	int rc = need_text(root, sinogram_tag(f->block, SINOGRAM_SHA256), "SHA-256", f->sha256, sizeof(f->sha256), err);

	if (rc < 0)
		return rc;
	for (char *c = f->sha256; *c; c++)
		if (*c >= 'A' && *c <= 'F')
			*c = (char)(*c - 'A' + 'a');
	if (strlen(f->sha256) != 64 || f->sha256[strspn(f->sha256, "0123456789abcdef")])
		return err_set(err, EBADMSG, "SHA-256 \"%s\" does not have 64 hexadecimal digits", f->sha256);
	return 0;
}

int sinogram_facts_of(const struct dicom_file *file, struct sinogram_facts *ret_facts, struct err *err)
{
	const struct dicom_item *root = dicom_root((struct dicom_file *)file);
	struct sinogram_facts f = {0};
	char sop_class[DICOM_UID_SIZE] = "", creator[DICOM_UID_SIZE] = "";
	int rc;

	dicom_get_text(root, TAG_SOP_CLASS_UID, sop_class, sizeof(sop_class), NULL);
	dicom_get_text(root, DICOM_TAG(0x0008, 0x9123), creator, sizeof(creator), NULL);
	f.block = private_block(root, SINOGRAM_GROUP, SINOGRAM_CREATOR);
	if (strcmp(sop_class, CLASS_RAW_DATA) != 0) {
		err_set(err, EBADMSG, "%.64s, not Raw Data Storage", dicom_uid_name(sop_class));
		return 0;
	}
	if (strcmp(creator, SINOGRAM_CREATOR_VERSION) != 0 || !f.block) {
		err_set(err, EBADMSG, "Raw Data Storage of another program: Creator-Version UID \"%s\", %s " SINOGRAM_CREATOR,
			creator, f.block ? "with" : "without");
		return 0;
	}
	if ((rc = read_identity(root, &f, err)) < 0 || (rc = read_role(root, &f, err)) < 0 ||
	    (rc = read_counts(file, &f, err)) < 0 || (rc = read_hash(root, &f, err)) < 0 ||
	    (rc = read_image(file, PET_FRAMES, &f, err)) < 0 || (rc = read_image(file, PET_GATES, &f, err)) < 0 ||
	    (rc = read_image(file, PET_BEDS, &f, err)) < 0) {
		err_prefix(err, "sinogram object");
		if (rc != -ENOTSUP && err) /* name the attribute in any error of dicom_get_*() */
			err->code = EBADMSG;
		return rc == -ENOTSUP ? rc : -EBADMSG;
	}
	*ret_facts = f;
	return 1;
}

/* Read a text of at most `most` characters; the caller frees *ret_text. */
static int long_text(struct dicom_file *file, const struct sinogram_facts *f, enum sinogram_element element, const char *name,
		     size_t most, char **ret_text, struct err *err)
{
	char *text = malloc(most + 1);
	int rc;

	if (!text)
		return err_set(err, ENOMEM, "no memory for %s", name);
	rc = dicom_get_text(dicom_root(file), sinogram_tag(f->block, element), text, most + 1, err);
	if (rc > 0) {
		*ret_text = text;
		return 0;
	}
	free(text);
	if (rc == 0)
		return err_set(err, EBADMSG, "sinogram object: %s (%04X,%02X%02X) is missing", name, SINOGRAM_GROUP, f->block,
			       (unsigned)element);
	if (err)
		err->code = EBADMSG;
	return -EBADMSG;
}

int sinogram_header_text(struct dicom_file *file, const struct sinogram_facts *f, char **ret_text, struct err *err)
{
	return long_text(file, f, SINOGRAM_HEADER, "the Interfile header", INTERFILE_TEXT_MAX, ret_text, err);
}

int sinogram_marks_text(struct dicom_file *file, const struct sinogram_facts *f, char **ret_text, struct err *err)
{
	return long_text(file, f, SINOGRAM_GATE_MARKS, "the table of time marks", PET_MARKS_BYTES, ret_text, err);
}

int sinogram_centre(struct dicom_file *file, const struct sinogram_facts *f, double ret_centre[3], struct err *err)
{
	uint32_t tag = sinogram_tag(f->block, SINOGRAM_CENTRE);
	uint64_t size;
	double v[3];

	if (!dicom_has(dicom_root(file), tag))
		return 0;
	if (dicom_bulk_size(file, tag, &size)) {
		if (size != sizeof(v) || dicom_bulk_read(file, tag, 0, v, sizeof(v), err) < 0)
			return err_set(err, EBADMSG, "sinogram object: the scanner's centre has %llu bytes, not %zu",
				       (unsigned long long)size, sizeof(v));
	} else {
		for (unsigned c = 0; c < 3; c++)
			if (dicom_get_double(dicom_root(file), tag, c, &v[c], err) != 1)
				return err_set(err, EBADMSG, "sinogram object: the scanner's centre is not three numbers");
	}
	for (int c = 0; c < 3; c++)
		if (!(v[c] >= -1e5 && v[c] <= 1e5)) /* also refuses NaN */
			return err_set(err, EBADMSG, "sinogram object: the scanner's centre is %g, %g, %g mm", v[0], v[1], v[2]);
	memcpy(ret_centre, v, sizeof(v));
	return 1;
}
