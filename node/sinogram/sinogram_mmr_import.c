/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_mmr_import.c - what belongs to extracted sinograms of a Siemens mMR (NAME.s.hdr), when they become objects: the factors of
 * their normalisation (NAME.n.hdr), as NORMALISATION, and the delayed coincidences behind the prompts in the same file ("randoms"),
 * as DELAYEDS. Both are made plane by plane, in the order of the prompts' file, as floats. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/folder.h"
#include "node/base/sentence.h"
#include "node/base/text_file.h"
#include "node/sinogram/sinogram_mmr_internal.h"

struct sinogram_mmr_import {
	struct michelogram m; /* of the prompts, with this scanner; borrows the segments */
	struct michelogram_index index;
	struct mmr_norm *norm;
	struct interfile delayeds; /* borrows the segments */
	int fd;			   /* of the prompts' file; -1: not open */
	uint8_t *buffer;	   /* of a plane */
};

/* Make a plane of the normalisation; a gap cannot be corrected. */
static int make_norm(void *ctx, size_t plane, float *ret, struct err *err)
{
	const struct sinogram_mmr_import *x = ctx;

	(void)err;
	mmr_norm_plane(x->norm, &x->index, (int)interfile_place(&x->m, plane), ret);
	for (size_t i = 0; i < MMR_PLANE_BINS; i++)
		ret[i] = ret[i] > 0 ? 1 / ret[i] : INFINITY;
	return 0;
}

static int make_delayeds(void *ctx, size_t plane, float *ret, struct err *err)
{
	struct sinogram_mmr_import *x = ctx;
	size_t n = MMR_PLANE_BINS * (size_t)x->delayeds.bytes;
	struct interfile one = x->delayeds; /* a plane alone */
	struct michelogram_segment segment = {0, 0, 1};
	ssize_t got = pread(x->fd, x->buffer, n, (off_t)(x->delayeds.offset + plane * n));

	if (got != (ssize_t)n)
		return err_set(err, got < 0 ? errno : EBADMSG, "cannot read the randoms behind the prompts: %s",
			       got < 0 ? strerror(errno) : "the file ends early");
	one.offset = 0;
	one.m.segments = &segment;
	one.m.n_segments = 1;
	interfile_plane(&one, x->buffer, 0, ret);
	return 0;
}

/* Describe a role that is made: floats with the bins of the prompts. */
static int describe_role(struct sinogram_source *s, enum sinogram_role role, struct sinogram_mmr_import *x,
			 int (*make)(void *, size_t, float *, struct err *), struct err *err)
{
	struct sinogram_stream *stream = &s->stream[role];
	struct interfile f = s->stream[SINOGRAM_EMISSION].header; /* borrows the segments */

	f.number = INTERFILE_FLOAT;
	f.bytes = sizeof(float);
	f.big_endian = f.siemens = f.more_data = false;
	f.offset = f.randoms = 0;
	f.scale = 1;
	stream->make = make;
	stream->make_ctx = x;
	return sinogram_stream_describe(&f, role, stream, err);
}

static int read_norm_header(const char *path, struct mmr_header *ret, struct err *err)
{
	char *text = NULL;
	size_t size;
	int rc = text_file_read(path, MMR_TEXT_MAX, "header", &text, &size, err);

	if (rc == 0)
		rc = mmr_header_read_norm(text, size, ret, err);
	free(text);
	return rc;
}

/* Read the data of a header of a normalisation, and name both files as sources. */
static int read_norm(const char *path, struct sinogram_stream *stream, struct mmr_norm **ret, struct err *err)
{
	uint8_t *bytes = malloc(MMR_NORM_BYTES + 1);
	char *data = NULL, *of[2] = {NULL, NULL};
	struct mmr_header h;
	ssize_t got = -1;
	int fd = -1, rc = bytes ? read_norm_header(path, &h, err) : err_set(err, ENOMEM, "no memory for a normalisation");

	if (rc == 0)
		rc = sinogram_mmr_find_data(path, h.data_file, &data, err);
	if (rc == 0) {
		fd = open(data, O_RDONLY | O_CLOEXEC);
		got = fd < 0 ? -1 : read(fd, bytes, MMR_NORM_BYTES + 1);
		rc = got < 0 ? err_set(err, errno, "cannot read %s: %s", file_name(data), strerror(errno)) : 0;
	}
	if (fd >= 0)
		close(fd);
	if (rc == 0)
		rc = mmr_norm_read(bytes, (size_t)got, ret, err);
	if (rc == 0)
		rc = sinogram_describe_file(path, &of[0], err);
	if (rc == 0)
		rc = sinogram_describe_file(data, &of[1], err);
	if (rc == 0 && asprintf(&stream->sources, "%s\n%s\n", of[0], of[1]) < 0) {
		stream->sources = NULL;
		rc = err_set(err, ENOMEM, "no memory for the names of files");
	}
	free(of[0]);
	free(of[1]);
	free(data);
	free(bytes);
	return rc;
}

/* Find the header of the normalisation: a given one, or one beside the prompts that fits. *ret NULL: there is none. */
static int find_norm(struct sinogram_source *s, const struct michelogram *m, char **ret, struct err *err)
{
	const char *given = s->conf->header[SINOGRAM_NORMALISATION];
	struct err why = {0};
	int rc;

	if (s->stream[SINOGRAM_NORMALISATION].present || s->stream[SINOGRAM_MULTIPLICATIVE].present)
		return 0;
	rc = sinogram_mmr_find_norm(s->conf->header[SINOGRAM_EMISSION], given, ret, &why);
	if (rc == 0)
		rc = mmr_check_michelogram(m, &why);
	if (rc == 0 || rc == -ENOENT)
		return 0;
	free(*ret);
	*ret = NULL;
	if (given || rc == -ENOMEM)
		return err_set(err, why.code, "%s", why.msg);
	sentence_add(s->notes, sizeof(s->notes), "No normalisation is used: %s.", why.msg);
	return 0;
}

static int add_norm(struct sinogram_source *s, struct sinogram_mmr_import *x, struct err *err)
{
	char *path = NULL;
	int rc = find_norm(s, &x->m, &path, err);

	if (rc < 0 || !path)
		return rc;
	rc = michelogram_index_init(&x->m, &x->index, err);
	if (rc == 0)
		rc = read_norm(path, &s->stream[SINOGRAM_NORMALISATION], &x->norm, err);
	if (rc < 0)
		err_prefix(err, "%s", file_name(path));
	free(path);
	return rc < 0 ? rc : describe_role(s, SINOGRAM_NORMALISATION, x, make_norm, err);
}

static int add_delayeds(struct sinogram_source *s, struct sinogram_mmr_import *x, struct err *err)
{
	const struct sinogram_stream *prompts = &s->stream[SINOGRAM_EMISSION];
	struct stat st;

	if (prompts->header.randoms == 0 || s->stream[SINOGRAM_DELAYEDS].present)
		return 0;
	if (prompts->header.number == INTERFILE_FLOAT || mmr_check_michelogram(&x->m, NULL) < 0) {
		sentence_add(s->notes, sizeof(s->notes), "The randoms behind the prompts are not counts, and not used.");
		return 0;
	}
	x->delayeds = prompts->header;
	x->delayeds.offset = prompts->header.randoms;
	x->buffer = malloc(MMR_PLANE_BINS * (size_t)x->delayeds.bytes);
	x->fd = open(prompts->path, O_RDONLY | O_CLOEXEC);
	if (!x->buffer)
		return err_set(err, ENOMEM, "no memory for a plane");
	if (x->fd < 0 || fstat(x->fd, &st) < 0)
		return err_set(err, errno, "cannot open %s: %s", file_name(prompts->path), strerror(errno));
	if ((uint64_t)st.st_size != x->delayeds.offset + interfile_bytes(&x->delayeds))
		return err_set(err, EBADMSG, "%s has %lld bytes; prompts and randoms end at %llu", file_name(prompts->path),
			       (long long)st.st_size, (unsigned long long)(x->delayeds.offset + interfile_bytes(&x->delayeds)));
	return describe_role(s, SINOGRAM_DELAYEDS, x, make_delayeds, err);
}

int sinogram_mmr_complete(struct sinogram_source *s, struct sinogram_mmr_import **ret, struct err *err)
{
	const struct interfile *h = &s->stream[SINOGRAM_EMISSION].header;
	const char *norm = s->conf->header[SINOGRAM_NORMALISATION];
	struct sinogram_mmr_import *x;
	int rc;

	if (!h->siemens || strcmp(h->scanner, INTERFILE_MMR) != 0)
		return norm && sinogram_mmr_is_norm_header(norm)
			       ? err_set(err, EBADMSG, "%s is of a Biograph mMR, the sinograms are not", file_name(norm))
			       : 0;
	x = calloc(1, sizeof(*x));
	if (!x)
		return err_set(err, ENOMEM, "no memory for an acquisition");
	*ret = x;
	x->fd = -1;
	x->m = h->m;
	x->m.scanner =
		(struct pet_scanner){h->m.scanner.rings, MMR_DETECTORS, 4, 300, 0, 2}; /* lengths and angles have no effect */
	x->m.angle_offset = 0;
	rc = add_norm(s, x, err);
	return rc < 0 ? rc : add_delayeds(s, x, err);
}

void sinogram_mmr_import_free(struct sinogram_mmr_import *x)
{
	if (!x)
		return;
	if (x->fd >= 0)
		close(x->fd);
	mmr_norm_free(x->norm);
	free(x->buffer);
	free(x);
}
