/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_write.c - write sinogram objects: one for each chunk of each role. The bytes of a role are hashed first and hashed
 * again while they are written; if the file has changed in between, writing fails. After an error the objects already written are
 * removed.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dicom/core/bulk.h"
#include "dicom/object/dicom_tags.h"
#include "node/base/folder.h"
#include "node/sinogram/hash_thread.h"
#include "node/sinogram/provenance.h"
#include "node/sinogram/sinogram_internal.h"

#define PIECE ((size_t)4 << 20)
#define PATH_SIZE 4096
#define BLOCK 0x10 /* block of the private elements */

/* ---- bytes of a stream, in order ---- */

struct reader {
	const struct sinogram_stream *stream;
	int fd; /* -1: in memory, or made */
	uint64_t at;
	float *plane;	     /* the plane that was made last */
	size_t plane_bytes;  /* its size */
	uint64_t plane_next; /* number of the next plane to make */
	struct hash_thread *hash;
	uint8_t *pieces; /* two, of PIECE bytes */
	bool second;	 /* the next one is the second */
};

static int open_planes(struct reader *r, struct err *err)
{
	size_t planes, values;

	interfile_shape(&r->stream->header, &planes, &values);
	r->plane_bytes = values * sizeof(float);
	r->plane = malloc(r->plane_bytes);
	return r->plane ? 0 : err_set(err, ENOMEM, "no memory for a plane of %zu bins", values);
}

static int reader_open(struct reader *r, const struct sinogram_stream *s, struct err *err)
{
	*r = (struct reader){.stream = s, .fd = -1, .hash = hash_thread_create(), .pieces = malloc(2 * PIECE)};
	if (!r->hash || !r->pieces)
		return err_set(err, ENOMEM, "no memory to read a sinogram");
	if (s->values || s->make)
		return open_planes(r, err);
	r->fd = open(s->path, O_RDONLY | O_CLOEXEC);
	return r->fd < 0 ? err_set(err, folder_input_code(errno), "cannot open %s: %s", s->path, strerror(errno)) : 0;
}

static void reader_close(struct reader *r)
{
	if (r->fd >= 0)
		close(r->fd);
	free(r->plane);
	hash_thread_free(r->hash); /* which may still read a piece */
	free(r->pieces);
}

/* Make one stored plane, or copy it from the array. */
static int make_plane(struct reader *r, size_t plane, struct err *err)
{
	const struct sinogram_stream *s = r->stream;
	size_t from = s->header.kind == INTERFILE_PROJECTIONS ? interfile_place(&s->header.m, plane) : plane;

	if (!s->values)
		return s->make(s->make_ctx, plane, r->plane, err);
	memcpy(r->plane, s->values + from * r->plane_bytes, r->plane_bytes);
	return 0;
}

/* Copy the next n bytes of the planes, making those that are needed. */
static int make_more(struct reader *r, uint8_t *to, size_t n, struct err *err)
{
	for (size_t done = 0; done < n;) {
		uint64_t plane = (r->at + done) / r->plane_bytes;
		size_t in = (size_t)((r->at + done) % r->plane_bytes), left = r->plane_bytes - in;
		int rc = plane < r->plane_next ? 0 : make_plane(r, (size_t)plane, err);

		if (rc < 0)
			return rc;
		r->plane_next = plane + 1;
		left = left < n - done ? left : n - done;
		memcpy(to + done, (const uint8_t *)r->plane + in, left);
		done += left;
	}
	return 0;
}

static int read_from_file(const struct reader *r, uint8_t *to, size_t n, struct err *err)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = pread(r->fd, to + done, n - done, (off_t)(r->at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(err, errno, "cannot read %s: %s", r->stream->path, strerror(errno));
		if (got == 0)
			return err_set(err, EBADMSG, "%s has become shorter than %llu bytes", r->stream->path,
				       (unsigned long long)r->stream->bytes);
		done += (size_t)got;
	}
	return 0;
}

/* Read the next n bytes, at most PIECE, to a piece of the reader. It is hashed while the next one is read. */
static int next_piece(struct reader *r, size_t n, const uint8_t **ret, struct err *err)
{
	uint8_t *to = r->pieces + (r->second ? PIECE : 0);
	int rc;

	hash_thread_leave(r->hash, to, n);
	rc = r->plane ? make_more(r, to, n, err) : read_from_file(r, to, n, err);
	if (rc < 0)
		return rc;
	hash_thread_add(r->hash, to, n);
	r->second = !r->second;
	r->at += n;
	*ret = to;
	return 0;
}

static int read_more(void *ctx, void *ret_bytes, size_t n, struct err *err)
{
	uint8_t *to = ret_bytes;
	int rc = 0;

	for (size_t done = 0, part; rc == 0 && done < n; done += part) {
		const uint8_t *piece;

		part = n - done < PIECE ? n - done : PIECE;
		rc = next_piece(ctx, part, &piece, err);
		if (rc == 0)
			memcpy(to + done, piece, part);
	}
	return rc;
}

int sinogram_stream_hash(struct sinogram_stream *s, struct err *err)
{
	const uint8_t *piece;
	struct reader r;
	int rc = reader_open(&r, s, err);

	while (rc == 0 && r.at < s->bytes)
		rc = next_piece(&r, s->bytes - r.at < PIECE ? (size_t)(s->bytes - r.at) : PIECE, &piece, err);
	if (rc == 0)
		hash_thread_hex(r.hash, s->sha256);
	reader_close(&r);
	return rc;
}

/* ---- one object ---- */

struct object {
	struct sinogram_source *s;
	enum sinogram_role role;
	int frame; /* time frame, gate or bed, from 1; 0: none */
	size_t chunk, n_chunks;
	size_t number, n_objects; /* index in the acquisition, from 0, and number of its objects */
};

static const struct sinogram_stream *stream_of(const struct object *o)
{
	return o->frame > 0 ? &o->s->own[o->frame - 1][o->role] : &o->s->stream[o->role];
}

/* Return what the frame of an object is. */
static const char *image_name(const struct sinogram_source *s)
{
	return s->images.of == PET_FRAMES ? "frame" : pet_division_name(s->images.of);
}

static void put_private(struct item_writer *w, enum sinogram_element element, const char *vr, const char *text)
{
	if (w->rc >= 0)
		w->rc = dicom_put_private(w->item, SINOGRAM_GROUP, SINOGRAM_CREATOR, (uint8_t)element, vr, text, w->err);
}

static void put_count(struct item_writer *w, enum sinogram_element element, const char *vr, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	put_private(w, element, vr, text);
}

static void fill_gate(const struct object *o, struct item_writer *w)
{
	const struct pet_gates *g = &o->s->images.gates;
	char signal[17];

	snprintf(signal, sizeof(signal), "%s", pet_signal_name(g->signal));
	for (char *c = signal; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	put_private(w, SINOGRAM_GATE_MARKS, "UT", o->s->marks);
	if (g->longest > 0) {
		put_count(w, SINOGRAM_GATE_SHORTEST, "UL", (uint64_t)g->shortest);
		put_count(w, SINOGRAM_GATE_LONGEST, "UL", (uint64_t)g->longest);
	}
	put_private(w, SINOGRAM_GATE_SIGNAL, "CS", signal);
}

static void fill_image(const struct object *o, struct item_writer *w)
{
	const struct pet_images *images = &o->s->images;
	const struct sinogram_image_elements *e = &sinogram_image_elements[images->of];
	const struct pet_frame *time = &images->image[o->frame - 1].time;

	put_count(w, e->number, "UL", (uint64_t)o->frame);
	put_count(w, e->count, "UL", (uint64_t)images->n);
	if (images->of == PET_GATES) {
		fill_gate(o, w);
	} else {
		put_count(w, e->start, "UL", (uint64_t)time->start);
		put_count(w, e->time, "UL", (uint64_t)(time->stop - time->start));
	}
}

/* Write the scanner's centre, of a bed at the height of the bed. */
static void fill_centre(const struct object *o, struct item_writer *w)
{
	const double *at = o->s->centre;
	bool known = isfinite(at[0]), bed = o->frame > 0 && o->s->images.of == PET_BEDS;
	double x = known ? at[0] : 0, y = known ? at[1] : 0, z = bed ? o->s->images.image[o->frame - 1].centre[2] : at[2];
	char centre[100];

	if (!known && !bed)
		return;
	snprintf(centre, sizeof(centre), "%.17g\\%.17g\\%.17g", x, y, z);
	put_private(w, SINOGRAM_CENTRE, "FD", centre);
}

static void fill_block(const struct object *o, struct item_writer *w)
{
	const struct sinogram_stream *stream = stream_of(o);

	put_private(w, SINOGRAM_FORMAT_ID, "LO", o->s->format->type->id);
	put_private(w, SINOGRAM_HEADER, "UT", stream->text);
	put_private(w, SINOGRAM_ROLE, "CS", sinogram_role_name(o->role));
	put_count(w, SINOGRAM_CHUNK_INDEX, "UL", o->chunk);
	put_count(w, SINOGRAM_CHUNK_COUNT, "UL", o->n_chunks);
	put_count(w, SINOGRAM_LENGTH, "UL", stream->bytes <= UINT32_MAX ? stream->bytes : 0);
	put_private(w, SINOGRAM_SHA256, "LO", stream->sha256);
	put_count(w, SINOGRAM_INSTANCES, "UL", o->n_objects);
	fill_centre(o, w);
	if (stream->sources)
		put_private(w, SINOGRAM_SOURCES, "UT", stream->sources);
	if (stream->bytes > UINT32_MAX)
		put_count(w, SINOGRAM_LENGTH_LARGE, "UV", stream->bytes);
	if (o->frame > 0)
		fill_image(o, w);
}

static void object_path(const struct object *o, char *ret, size_t size)
{
	char name[48], frame[24] = "";

	if (o->frame > 0)
		snprintf(frame, sizeof(frame), "-%s%03d", image_name(o->s), o->frame);
	snprintf(name, sizeof(name), "%s%s", sinogram_role_name(o->role), frame);
	for (char *c = name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	if (o->n_chunks == 1)
		snprintf(ret, size, "%s/%s.dcm", o->s->conf->folder, name);
	else
		snprintf(ret, size, "%s/%s-%04zu.dcm", o->s->conf->folder, name, o->chunk + 1);
}

static int make_object(const struct object *o, struct dicom_file **ret_file, struct err *err)
{
	char text[160], frame[24] = "", uid[DICOM_UID_SIZE];
	struct dicom_file *file = NULL;
	struct item_writer root = {.err = err};
	struct provenance_time now;

	if (o->frame > 0)
		snprintf(frame, sizeof(frame), "|%s %d", image_name(o->s), o->frame);
	snprintf(text, sizeof(text), "%s|%s|%zu%s", o->s->seed, sinogram_role_name(o->role), o->chunk, frame);
	dicom_uid_from_text(text, uid);
	root.rc = dicom_new(CLASS_RAW_DATA, uid, &file, err);
	if (root.rc < 0)
		return root.rc;
	root.item = dicom_root(file);
	sinogram_put_zone(o->s, &root);
	provenance_format_time(root.item, o->s->conf->now, &now);
	item_put_text(&root, TAG_CONTENT_DATE, now.date);
	item_put_text(&root, TAG_CONTENT_TIME, now.time);
	item_put_text(&root, TAG_INSTANCE_CREATION_DATE, now.date);
	item_put_text(&root, TAG_INSTANCE_CREATION_TIME, now.time);
	item_put_int(&root, TAG_INSTANCE_NUMBER, (long)o->number + 1);
	item_put_text(&root, DICOM_TAG(0x0008, 0x9123), SINOGRAM_CREATOR_VERSION);
	if (root.rc >= 0)
		root.rc = sinogram_fill_attributes(o->s, o->role, &root);
	fill_block(o, &root);
	if (root.rc < 0)
		dicom_close(file);
	else
		*ret_file = file;
	return root.rc < 0 ? root.rc : 0;
}

static uint64_t chunk_size(const struct sinogram_source *s)
{
	uint64_t size = s->conf->chunk ? s->conf->chunk : SINOGRAM_CHUNK_MAX;

	return size & ~(uint64_t)1; /* an even size: only the last chunk may be padded */
}

static size_t chunk_count(const struct object *o)
{
	uint64_t size = chunk_size(o->s);

	return (size_t)((stream_of(o)->bytes + size - 1) / size);
}

/* Return the number of frames, gates or beds of a role; 0: none. */
static int frames_of(const struct sinogram_source *s, int role)
{
	return s->own && s->own[0][role].present ? s->images.n : 0;
}

static int write_role(struct sinogram_source *s, struct object *o, struct err *err)
{
	const struct sinogram_stream *stream = stream_of(o);
	uint64_t size = chunk_size(s);
	char path[PATH_SIZE], found[65];
	struct reader r;
	int rc = reader_open(&r, stream, err);

	for (o->chunk = 0; rc == 0 && o->chunk < o->n_chunks; o->chunk++, o->number++) {
		struct dicom_file *file = NULL;
		uint64_t left = stream->bytes - r.at;

		rc = make_object(o, &file, err);
		if (rc < 0)
			break;
		object_path(o, path, sizeof(path));
		rc = dicom_write_bulk(path, file, sinogram_tag(BLOCK, SINOGRAM_CHUNK), left < size ? left : size, read_more, &r,
				      err);
		dicom_close(file);
		if (rc < 0)
			break;
	}
	if (rc == 0) {
		hash_thread_hex(r.hash, found);
		if (strcmp(found, stream->sha256) != 0)
			rc = err_set(err, EBADMSG, "%s has changed while it was read",
				     stream->values ? "the array"
				     : stream->make ? sinogram_role_name(o->role)
						    : stream->path);
	}
	reader_close(&r);
	return rc;
}

/* Go to the next role, time frame, gate or bed that has data; at first role is 0. False: there is none. */
static bool next_stream(struct object *o)
{
	do {
		if (o->role > 0 && o->frame < frames_of(o->s, o->role)) {
			o->frame++;
		} else if ((int)o->role < SINOGRAM_ROLES) {
			o->role = (enum sinogram_role)((int)o->role + 1);
			o->frame = frames_of(o->s, o->role) > 0;
		} else {
			return false;
		}
	} while (!stream_of(o)->present);
	o->n_chunks = chunk_count(o);
	return true;
}

/* Remove objects 0 to n - 1. */
static void remove_objects(struct sinogram_source *s, size_t n)
{
	struct object o = {.s = s};
	char path[PATH_SIZE];

	while (next_stream(&o))
		for (o.chunk = 0; o.chunk < o.n_chunks && o.number < n; o.chunk++, o.number++) {
			object_path(&o, path, sizeof(path));
			unlink(path);
		}
}

int sinogram_write_objects(struct sinogram_source *s, size_t *ret_n_objects, struct err *err)
{
	struct object o = {.s = s}, counted = o;
	int rc = 0;

	if (chunk_size(s) < 2 || chunk_size(s) > SINOGRAM_CHUNK_MAX)
		return err_set(err, EINVAL, "chunks of %llu bytes; allowed: 2 to %llu", (unsigned long long)s->conf->chunk,
			       (unsigned long long)SINOGRAM_CHUNK_MAX);
	if (strlen(s->conf->folder) + 40 > PATH_SIZE)
		return err_set(err, ENAMETOOLONG, "the name of the folder is too long");
	while (next_stream(&counted))
		o.n_objects += counted.n_chunks;
	if (o.n_objects > SINOGRAM_FILES_MAX)
		return err_set(err, EINVAL, "%zu objects; allowed: at most %d; use larger chunks", o.n_objects,
			       SINOGRAM_FILES_MAX);
	while (rc == 0 && next_stream(&o))
		rc = write_role(s, &o, err);
	if (rc < 0) {
		remove_objects(s, o.number);
		return rc;
	}
	*ret_n_objects = o.n_objects;
	return 0;
}
