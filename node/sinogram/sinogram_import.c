/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_import.c - convert arrays, and streams with their headers, to sinogram objects. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dicom/core/bulk.h"
#include "dicom/object/dicom_tags.h"
#include "node/base/sentence.h"
#include "node/sinogram/sinogram_internal.h"

int sinogram_stream_describe(struct interfile *f, enum sinogram_role role, struct sinogram_stream *s, struct err *err)
{
	int rc;

	snprintf(f->data_file, sizeof(f->data_file), "%s.s", sinogram_role_name(role));
	rc = interfile_write(f, &s->text, err);
	if (rc == 0)
		rc = interfile_parse(s->text, strlen(s->text), &s->header, err);
	if (rc < 0)
		return rc;
	s->bytes = interfile_bytes(&s->header);
	rc = sinogram_stream_hash(s, err);
	s->present = rc == 0;
	return rc;
}

static int array_stream(const struct sinogram_arrays *a, int role, struct sinogram_stream *s, struct err *err)
{
	struct interfile f = {.kind = INTERFILE_PROJECTIONS,
			      .number = INTERFILE_FLOAT,
			      .bytes = sizeof(float),
			      .scale = 1,
			      .order = INTERFILE_BY_PLANE,
			      .duration = a->duration,
			      .start = NAN};
	int rc;

	if (role == SINOGRAM_LINES) {
		f.kind = INTERFILE_PARALLEL;
		f.parallel = *a->beams; /* the caller owns the angles */
		snprintf(f.unit, sizeof(f.unit), "%s", a->unit ? a->unit : "");
		rc = parallel_check(a->beams, err);
	} else {
		f.m = *a->m;
		rc = michelogram_check(a->m, err);
		if (role == SINOGRAM_DELAYEDS || (role != SINOGRAM_EMISSION && role != SINOGRAM_ADDITIVE && !a->tof_factors))
			f.m.tof.n = 0;
		interfile_tof_ascending(&f);
	}
	if (rc < 0)
		return rc;
	snprintf(f.scanner, sizeof(f.scanner), "%s", a->scanner ? a->scanner : "");
	if (role == SINOGRAM_EMISSION)
		snprintf(f.corrections, sizeof(f.corrections), "%s", a->corrections ? a->corrections : "");
	s->values = (const uint8_t *)a->values[role];
	return sinogram_stream_describe(&f, (enum sinogram_role)role, s, err);
}

/* Complete the header of a stream, and compare its bins with those of the first. ENOKEY: *open says what is missing. */
static int check_stream(struct sinogram_source *s, int bed, int role, const struct scanner_conf *known, struct err *open,
			struct err *err)
{
	struct sinogram_stream *stream = &s->stream[role];
	const char *header = s->conf->header[role];
	int rc;

	if (s->images.of == PET_BEDS && s->own[bed][role].present) {
		stream = &s->own[bed][role];
		header = s->conf->beds[bed].header[role];
	}
	if (!stream->present)
		return 0;
	rc = stream->header.kind == INTERFILE_PROJECTIONS ? interfile_complete(&stream->header, known, open) : 0;
	if (rc < 0)
		return rc == -ENOKEY ? rc
				     : err_set(err, open->code, "%s%s%s: %s", header ? header : "", header ? ", " : "",
					       sinogram_role_name((enum sinogram_role)role), open->msg);
	if (s->images.of == PET_BEDS && bed == 0 && stream == &s->own[0][role])
		s->stream[role].header = stream->header;
	if (role == (int)s->format->first && bed == 0)
		return 0;
	rc = sinogram_same_bins(&s->stream[s->format->first].header, &stream->header, (enum sinogram_role)role, err);
	if (rc < 0 && s->images.of == PET_BEDS)
		err_prefix(err, "bed %d", bed + 1);
	return rc;
}

/* Compare the header with the scanner of its name. Headers of STIR have manufacturer and model in one text, "Siemens mMR". */
static int check_scanner(const struct sinogram_source *s, struct err *err)
{
	const struct interfile *h = &s->stream[SINOGRAM_EMISSION].header;
	const char *header = s->conf->header[SINOGRAM_EMISSION];
	int rc;

	if (!s->conf->config || !h->scanner[0] || !header)
		return 0;
	rc = interfile_check_scanner(h, config_scanner(s->conf->config, h->scanner, h->scanner, ""), err);
	if (rc < 0)
		err_prefix(err, "%s", header);
	return rc;
}

/* Check that all roles have the same geometry, as far as their headers contain it; write a warning about missing values. */
static int check_geometry(struct sinogram_source *s, const struct scanner_conf *known, char *warning, size_t size,
			  struct err *err)
{
	struct err open = {0};

	if (s->format->header != INTERFILE_PROJECTIONS)
		return 0; /* headers of line integrals are complete */
	if (check_scanner(s, err) < 0)
		return -EBADMSG;
	for (int bed = 0; bed < (s->images.of == PET_BEDS ? s->images.n : 1); bed++)
		for (int role = 1; role <= SINOGRAM_ROLES; role++) {
			int rc = check_stream(s, bed, role, known, &open, err);

			if (rc == -ENOKEY) {
				snprintf(warning, size, "%s: %s; the node needs a scanner in its configuration that has it.",
					 sinogram_role_name((enum sinogram_role)role), open.msg);
				return 0; /* the configuration of the node may contain the missing values */
			}
			if (rc < 0)
				return rc;
		}
	return 0;
}

/* Hash what the data say outside of their header text. */
static void hash_said(struct dicom_digest *d, const struct sinogram_said *said)
{
	const struct interfile *h = &said->header;
	const struct interfile_tracer *t = &h->tracer;
	char text[500];

	snprintf(text, sizeof(text), "%s|%s|%s|%s|%.17g|%s|%.17g|%.17g|%s", said->study, said->frame_of_reference, h->date,
		 h->time, h->start, h->position, t->half_life, t->dose, t->injected);
	dicom_digest_add(d, text, strlen(text) + 1);
}

/* Hash how the acquisition is divided, and the data of each part. */
static void hash_images(struct dicom_digest *d, const struct sinogram_source *s)
{
	const struct pet_gates *g = &s->images.gates;
	const char *signal = pet_signal_name(g->signal);
	bool beds = s->images.of == PET_BEDS;

	for (int i = 0; i < s->images.n; i++) {
		const struct pet_image *image = &s->images.image[i];

		if (s->images.of != PET_GATES)
			dicom_digest_add(d, image, beds ? sizeof(*image) : sizeof(image->time));
		for (int role = 1; role <= SINOGRAM_ROLES; role++) {
			const struct sinogram_stream *own = &s->own[i][role];

			if (own->present && beds)
				dicom_digest_add(d, own->text, strlen(own->text) + 1);
			if (own->present)
				dicom_digest_add(d, own->sha256, sizeof(own->sha256));
		}
	}
	if (s->images.of != PET_GATES)
		return;
	dicom_digest_add(d, signal, strlen(signal) + 1);
	dicom_digest_add(d, s->marks, strlen(s->marks) + 1);
	dicom_digest_add(d, &g->shortest, sizeof(g->shortest));
	dicom_digest_add(d, &g->longest, sizeof(g->longest));
}

/* Hash everything that affects the objects, so that the same import gives the same UIDs. */
static int make_seed(struct sinogram_source *s, struct err *err)
{
	struct dicom_digest *d = dicom_digest_new();
	char uid[DICOM_UID_SIZE] = "", chunk[24];

	if (!d)
		return err_set(err, ENOMEM, "no memory for a digest");
	for (int role = 1; role <= SINOGRAM_ROLES; role++)
		if (s->stream[role].present) {
			const char *name = sinogram_role_name((enum sinogram_role)role);

			dicom_digest_add(d, name, strlen(name) + 1);
			dicom_digest_add(d, s->stream[role].text, strlen(s->stream[role].text) + 1);
			dicom_digest_add(d, s->stream[role].sha256, sizeof(s->stream[role].sha256));
		}
	hash_images(d, s);
	if (s->conf->said)
		hash_said(d, s->conf->said);
	if (s->like)
		dicom_get_text(dicom_root(s->like), TAG_SOP_INSTANCE_UID, uid, sizeof(uid), NULL);
	dicom_digest_add(d, uid, strlen(uid) + 1);
	for (size_t i = 0; i < s->conf->n_set; i++)
		dicom_digest_add(d, s->conf->set[i], strlen(s->conf->set[i]) + 1);
	snprintf(chunk, sizeof(chunk), "%llu", (unsigned long long)s->conf->chunk);
	dicom_digest_add(d, chunk, strlen(chunk) + 1);
	dicom_digest_hex(d, s->seed);
	dicom_digest_free(d);
	return 0;
}

/* Check the values of --set before any data are written. */
static int try_attributes(struct sinogram_source *s, const struct scanner_conf **ret_known, char *warnings, size_t size,
			  struct err *err)
{
	struct dicom_file *file;
	int rc = sinogram_try_attributes(s, &file, err);

	if (rc < 0)
		return rc;
	sinogram_warnings(dicom_root(file), s, warnings, size);
	*ret_known = sinogram_find_scanner(file, s->conf->config);
	dicom_close(file);
	return 0;
}

/* Say which order of TOF bins is assumed if the header does not state one: a reversed order gives a wrong image. */
static void note_order(struct sinogram_source *s)
{
	const struct sinogram_stream *y = &s->stream[SINOGRAM_EMISSION];
	char order[64];

	if (!y->present || y->header.m.tof.n < 2 || y->header.tof_listed)
		return;
	interfile_tof_text(&y->header, order, sizeof(order));
	sentence_add(s->notes, sizeof(s->notes), "The header has no \"TOF bin order\": %s is assumed, as STIR writes them.",
		     order);
}

static void note_corrections(struct sinogram_source *s)
{
	char note[300];

	sinogram_note_corrections(&s->stream[SINOGRAM_EMISSION].header, note, sizeof(note));
	if (note[0])
		sentence_add(s->notes, sizeof(s->notes), "%s", note);
}

static void note_headers(struct sinogram_source *s)
{
	for (int role = 1; role <= SINOGRAM_ROLES; role++)
		if (s->stream[role].present)
			sinogram_add_notes(&s->stream[role].header, (enum sinogram_role)role, &s->stream[s->format->first].header,
					   s->notes, sizeof(s->notes));
}

static int open_like(struct sinogram_source *s, struct err *err)
{
	int rc = s->conf->like ? dicom_open(s->conf->like, &s->like, err) : 0;

	if (rc < 0)
		err_prefix(err, "--like %s", s->conf->like);
	return rc;
}

int sinogram_new_header(const struct sinogram_import *conf, const struct interfile *header, const char *sha256,
			struct dicom_file **ret, double ret_centre[3], struct err *err)
{
	struct sinogram_source s = {.conf = conf, .centre = {NAN, NAN, NAN}, .format = sinogram_format_of(header->kind)};
	struct sinogram_stream *stream = &s.stream[s.format->first];
	struct item_writer root = {.err = err};
	struct dicom_file *file = NULL;
	char uid[DICOM_UID_SIZE], empty[1] = "";
	int rc;

	*stream = (struct sinogram_stream){.present = true, .text = empty, .header = *header};
	snprintf(stream->sha256, sizeof(stream->sha256), "%s", sha256);
	rc = open_like(&s, err);
	if (rc == 0)
		rc = make_seed(&s, err);
	if (rc == 0) {
		dicom_uid_from_text(s.seed, uid);
		rc = dicom_new(CLASS_RAW_DATA, uid, &file, err);
	}
	if (rc == 0) {
		root.item = dicom_root(file);
		rc = sinogram_fill_attributes(&s, s.format->first, &root);
	}
	if (rc == 0 && isfinite(s.centre[0]))
		memcpy(ret_centre, s.centre, sizeof(s.centre));
	if (rc == 0)
		*ret = file;
	else
		dicom_close(file);
	dicom_close(s.like);
	return rc;
}

/* Compute the digest of data and geometry: the header that this program would write, without name, place and times. */
static void identify_stream(const struct sinogram_stream *s, char ret[65])
{
	struct interfile h = s->header; /* its arrays are borrowed */
	char *text = NULL;

	h.date[0] = h.time[0] = h.position[0] = h.scanner[0] = '\0';
	h.duration = h.start = NAN;
	snprintf(h.data_file, sizeof(h.data_file), "%s", s->sha256);
	if (interfile_write(&h, &text, NULL) == 0)
		dicom_sha256(text, strlen(text), ret);
	free(text);
}

static int write_source(struct sinogram_source *s, size_t *ret_n_objects, struct err *err)
{
	const struct sinogram_import *conf = s->conf;
	char geometry[600] = "", attributes[800] = "";
	const struct scanner_conf *known = NULL;
	struct sinogram_assumption assumption = {.set = NULL};
	int rc = open_like(s, err);

	note_order(s);
	note_corrections(s);
	if (rc == 0)
		rc = make_seed(s, err);
	if (rc == 0 && conf->assumed)
		rc = sinogram_assume(s, &assumption, err);
	if (rc == 0 && conf->assumed)
		rc = make_seed(s, err);
	if (rc == 0)
		rc = try_attributes(s, &known, attributes, sizeof(attributes), err);
	if (rc == 0)
		rc = check_geometry(s, known, geometry, sizeof(geometry), err);
	if (rc == 0 && conf->assumed)
		identify_stream(&s->stream[s->format->first], conf->assumed->identity);
	if (rc == 0)
		rc = sinogram_write_objects(s, ret_n_objects, err);
	note_headers(s); /* completed, as far as they were */
	if (rc == 0 && conf->warnings && conf->warnings_size > 0)
		snprintf(conf->warnings, conf->warnings_size, "%s%s%s%s%s", s->notes,
			 s->notes[0] && (geometry[0] || attributes[0]) ? " " : "", geometry,
			 geometry[0] && attributes[0] ? " " : "", attributes);
	s->conf = conf;
	free(assumption.set);
	return rc;
}

void sinogram_stream_clear(struct sinogram_stream *s)
{
	interfile_clear(&s->header);
	free(s->text);
	free(s->path);
	free(s->sources);
	*s = (struct sinogram_stream){0};
}

void sinogram_source_clear(struct sinogram_source *s)
{
	sinogram_clear_images(s);
	for (int role = 1; role <= SINOGRAM_ROLES; role++)
		sinogram_stream_clear(&s->stream[role]);
	free(s->marks);
	dicom_close(s->like);
}

/* Check that SINGLES, and no other role, have a header of single events. */
static int check_kinds(const struct sinogram_stream streams[SINOGRAM_ROLES + 1], struct err *err)
{
	for (int role = 1; role <= SINOGRAM_ROLES; role++) {
		bool singles = streams[role].header.kind == INTERFILE_SINGLES;

		if (streams[role].present && singles != (role == SINOGRAM_SINGLES))
			return err_set(err, EBADMSG, "the header of %s describes %s%s",
				       sinogram_role_name((enum sinogram_role)role),
				       interfile_type(streams[role].header.kind)->title,
				       singles ? "" : "; allowed: PET data type := Singles");
	}
	return 0;
}

/* Determine the format from the headers. Data of a format with one role get that role; until their header is read they have the
 * role of the option. */
static int find_format(struct sinogram_source *s, struct err *err)
{
	const struct sinogram_format *format = NULL;
	size_t n = 0;
	int rc = check_kinds(s->stream, err);

	if (rc < 0)
		return rc;
	for (int role = 1; role <= SINOGRAM_ROLES; role++) {
		const struct sinogram_format *found =
			s->stream[role].present ? sinogram_format_of(s->stream[role].header.kind) : NULL;

		n += s->stream[role].present;
		format = !format || (found && found->first == found->last) ? found : format;
	}
	if (!format)
		return err_set(err, EBADMSG, "no sinograms");
	s->format = format;
	if (format->first != format->last)
		return 0;
	if (n > 1)
		return err_set(err, EBADMSG, "%s have one header with line integrals, but %zu headers are given",
			       format->type->title, n);
	if (s->stream[format->first].present)
		return 0;
	s->stream[format->first] = s->stream[SINOGRAM_EMISSION];
	s->stream[SINOGRAM_EMISSION] = (struct sinogram_stream){0};
	return 0;
}

int sinogram_import_source(struct sinogram_source *s, size_t *ret_n_objects, struct err *err)
{
	int rc = find_format(s, err);

	if (rc == 0)
		rc = sinogram_agree(s, err);
	return rc < 0 ? rc : write_source(s, ret_n_objects, err);
}

/* Divide a role into its frames or gates, which are one after the other in memory. */
static int divide_role(struct sinogram_source *s, enum sinogram_role role, struct err *err)
{
	const struct sinogram_stream *all = &s->stream[role];
	int rc = 0;

	for (int i = 0; rc == 0 && all->present && i < s->images.n; i++) {
		s->own[i][role] = *all;
		s->own[i][role].values += (size_t)i * all->bytes;
		rc = sinogram_stream_hash(&s->own[i][role], err);
	}
	return rc;
}

/* Divide EMISSION and DELAYEDS as the arrays are divided. */
static int divide_counts(struct sinogram_source *s, const struct sinogram_arrays *a, struct err *err)
{
	int rc = 0;

	if (!a->images || a->images->n == 0)
		return 0;
	s->images = *a->images;
	s->own = calloc((size_t)s->images.n, sizeof(*s->own));
	if (!s->own)
		return err_set(err, ENOMEM, "no memory for %d time frames or gates", s->images.n);
	if (s->images.of == PET_GATES)
		rc = pet_marks_format(&s->images.gates.marks, &s->marks, err);
	if (rc == 0)
		rc = divide_role(s, SINOGRAM_EMISSION, err);
	return rc < 0 ? rc : divide_role(s, SINOGRAM_DELAYEDS, err);
}

int sinogram_write(const struct sinogram_arrays *a, const struct sinogram_import *conf, size_t *ret_n_objects, struct err *err)
{
	struct sinogram_source s = {.conf = conf, .centre = {NAN, NAN, NAN}};
	int rc = 0;

	if (!a->values[SINOGRAM_EMISSION] && !a->values[SINOGRAM_LINES])
		return err_set(err, EINVAL, "neither emission data nor lines of parallel beams to write");
	if ((a->values[SINOGRAM_EMISSION] && !a->m) || (a->values[SINOGRAM_LINES] && !a->beams))
		return err_set(err, EINVAL, "the geometry of the data is missing");
	for (int role = 1; rc == 0 && role <= SINOGRAM_ROLES; role++)
		if (a->values[role])
			rc = array_stream(a, role, &s.stream[role], err);
	if (rc == 0)
		rc = divide_counts(&s, a, err);
	if (rc == 0)
		rc = sinogram_import_source(&s, ret_n_objects, err);
	sinogram_source_clear(&s);
	return rc;
}
