/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_interfile.c - Interfile headers of projection data, of PET or parallel beams, which become sinogram objects. The stream
 * of an object is the whole data file, and the header text is stored unchanged, but for a path of the data file.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/utf8.h"
#include "node/base/text_file.h"
#include "node/sinogram/pet_source.h"
#include "node/sinogram/sinogram_internal.h"

#define HEAD 256 /* bytes in which the first line of a header begins */

/* An object stores the header as text of its character set. Check that it is UTF-8, up to the first byte 0. */
static int check_encoding(const char *text, struct err *err)
{
	int line = 1;
	uint32_t code;

	for (size_t n; *text; text += n) {
		n = utf8_decode(text, &code);
		if (n == 0)
			return err_set(err, EBADMSG, "line %d: byte 0x%02X is not UTF-8; objects store headers in UTF-8", line,
				       (unsigned)(unsigned char)*text);
		line += *text == '\n';
	}
	return 0;
}

/* A path of the data file can contain the name of the patient: objects store only its last part. */
static int remove_path(struct sinogram_stream *s, struct err *err)
{
	const char *name = strpbrk(s->header.data_file, "/\\");
	char *text = NULL;
	int rc;

	for (const char *next = name; next; next = strpbrk(next + 1, "/\\"))
		name = next;
	rc = name ? interfile_rename_data(s->text, name + 1, &text, err) : 0;

	if (text) {
		free(s->text);
		s->text = text;
	}
	return rc;
}

int sinogram_stream_open(const char *header, struct sinogram_stream *s, struct err *err)
{
	size_t size;
	int rc = sinogram_vendor_check(header, err);

	if (rc < 0) {
		err_prefix(err, "%s", header);
		return rc;
	}
	rc = text_file_read(header, INTERFILE_TEXT_MAX, "Interfile header", &s->text, &size, err);
	if (rc < 0)
		return rc;
	rc = check_encoding(s->text, err);
	if (rc == 0)
		rc = interfile_parse(s->text, size, &s->header, err);
	if (rc == 0 && s->header.kind == INTERFILE_IMAGE)
		rc = err_set(err, EBADMSG,
			     "PET data type := Image: the header of an image, not of sinograms: name that of the sinograms "
			     "(.hs); an attenuation map is given with --map");
	if (rc == 0)
		rc = interfile_find_data(&s->header, header, &s->path, &s->bytes, err);
	if (rc == 0)
		rc = remove_path(s, err);
	if (rc == 0)
		rc = sinogram_stream_hash(s, err);
	s->present = rc == 0;
	if (rc < 0)
		err_prefix(err, "%s", header);
	return rc;
}

int sinogram_import(const struct sinogram_import *conf, size_t *ret_n_objects, struct err *err)
{
	struct sinogram_source s = {.conf = conf, .centre = {NAN, NAN, NAN}};
	struct sinogram_mmr_import *mmr = NULL;
	int rc = 0;

	if (!conf->header[SINOGRAM_EMISSION] && conf->n_beds == 0)
		return err_set(err, EINVAL, "no header of emission data to import");
	rc = sinogram_check_roles(conf->header, err);
	for (int role = 1; rc == 0 && role <= SINOGRAM_ROLES; role++)
		if (conf->header[role] && !(role == SINOGRAM_NORMALISATION && sinogram_mmr_is_norm_header(conf->header[role])))
			rc = sinogram_stream_open(conf->header[role], &s.stream[role], err);
	if (rc == 0)
		rc = sinogram_mmr_complete(&s, &mmr, err);
	if (rc == 0)
		rc = sinogram_check_data(&s, err);
	if (rc == 0 && conf->header[SINOGRAM_EMISSION])
		rc = sinogram_check_emission(conf->header[SINOGRAM_EMISSION], &s.stream[SINOGRAM_EMISSION], err);
	if (rc == 0 && conf->n_beds > 0)
		rc = sinogram_open_beds(&s, err);
	if (rc == 0)
		rc = sinogram_import_source(&s, ret_n_objects, err);
	if (rc == 0)
		rc = sinogram_say_factors(&s, err);
	sinogram_source_clear(&s);
	sinogram_mmr_import_free(mmr);
	return rc;
}

/* ---- the row ---- */

static bool has_ending(const char *path, const char *ending)
{
	size_t n = strlen(path), m = strlen(ending);

	return n > m && !strcasecmp(path + n - m, ending);
}

/* Return true for a regular file with an ending of projection data, or that begins with the keyword of Interfile. */
static bool is_header(const char *path)
{
	char head[HEAD + 1];
	const char *at = head;
	struct stat st;
	FILE *f;
	size_t n;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	if (has_ending(path, ".hs") || has_ending(path, ".s.hdr"))
		return true;
	f = fopen(path, "rb");
	n = f ? fread(head, 1, HEAD, f) : 0;
	if (f)
		fclose(f);
	head[n] = '\0';
	while (isspace((unsigned char)*at))
		at++;
	at += *at == '!';
	return !strncasecmp(at, "interfile", strlen("interfile"));
}

static int import_header(const char *path, const struct sinogram_import *conf, struct import_report *ret, struct err *err)
{
	struct sinogram_import with = *conf;

	with.header[SINOGRAM_EMISSION] = path;
	return sinogram_import(&with, &ret->objects, err);
}

const struct pet_source pet_source_interfile = {.is_file = is_header, .import = import_header, .roles = true};
