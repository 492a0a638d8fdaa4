/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_mmr.c - raw data of a Siemens mMR as another source of a PET acquisition: one object with the list mode, one with the
 * normalisation, of one study; or the files that Siemens' own extraction makes of them (sinogram_mmr_files.c).
 *
 * - EMISSION: the prompts, DELAYEDS: the delayed coincidences, counted when the role is read. MULTIPLICATIVE: the detection
 * efficiency of each bin, 0 in the gaps; it does not contain attenuation. Both are computed in the michelogram of the scanner's
 * configuration (span, largest ring difference), so that memory does not depend on the length of the list.
 * - The text header is in (0029,1010), or, if this is empty or a CSA header ("SV10"), in (0029,1110); the data in (7FE1,1010), or
 *   in a file with the same name and the ending .bf. Such a file cannot be sent with DICOM.
 * - Nothing of the object's own statements about corrections and calibration is used: they are about images. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "dicom/core/bulk.h"
#include "dicom/object/dicom_tags.h"
#include "node/base/folder.h"
#include "node/base/plural.h"
#include "node/base/sentence.h"
#include "node/base/text_file.h"
#include "node/format/mmr.h"
#include "node/sinogram/pet_source.h"
#include "node/sinogram/sinogram_internal.h"
#include "node/sinogram/sinogram_list_internal.h"
#include "recon/pet/michelogram_pairs.h"

enum sinogram_mmr_type { SINOGRAM_MMR_NONE, SINOGRAM_MMR_LIST, SINOGRAM_MMR_NORM };

static const struct {
	const char *name, *title; /* third value of Image Type; in sentences */
} types[SINOGRAM_MMR_NORM + 1] = {[SINOGRAM_MMR_LIST] = {"PET_LISTMODE", "list mode (PET_LISTMODE)"},
				  [SINOGRAM_MMR_NORM] = {"PET_NORM", "normalisation (PET_NORM)"}};

#define MMR_MODEL "Biograph_mMR"
#define BIG_ENDIAN_SYNTAX "1.2.840.10008.1.2.2"
#define TAG_DATA DICOM_TAG(0x7FE1, 0x1010)
#define PIECE ((size_t)1 << 20) /* bytes per read: whole words */

/* Events of one kind that are counted. */
struct counting {
	struct mmr_list list; /* of what was read: its report */
	uint64_t at;	      /* bytes of the list that were read */
	int next;	      /* frame that continues at `at` */
};

struct sinogram_mmr {
	size_t file[SINOGRAM_MMR_NORM + 1];  /* [type]: index into the files; of extracted files 0 */
	char *header[SINOGRAM_MMR_NORM + 1]; /* path of the text header; NULL: it is in the object */
	char *data[SINOGRAM_MMR_NORM + 1];   /* path of the data; NULL: they are in the object */
	int fd[SINOGRAM_MMR_NORM + 1];	     /* of this file */
	char *source[SINOGRAM_MMR_NORM + 1]; /* this file, for the provenance; NULL: the object */
	struct mmr_header list;
	struct counting prompts, delayeds;
	struct mmr_singles *singles; /* [time frame]: their rates, without frames of all of the list; NULL: not read */
};

static struct sinogram_mmr *mmr_of(const struct sinogram *s)
{
	return s->own;
}

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

static bool is_object(const struct dicom_item *root)
{
	return type_of(root) != SINOGRAM_MMR_NONE;
}

/* List mode and normalisation may be in different series of their study. */
static int describe_object(const struct dicom_file *file, struct pet_object *ret, struct err *err)
{
	bool list = type_of(dicom_root((struct dicom_file *)file)) == SINOGRAM_MMR_LIST;

	(void)err;
	*ret = (struct pet_object){.header = INTERFILE_PROJECTIONS, .expected = 2, .whole_study = true};
	snprintf(ret->lacks, sizeof(ret->lacks), "the %s", types[list ? SINOGRAM_MMR_NORM : SINOGRAM_MMR_LIST].title);
	return 1;
}

/* ---- the text header ---- */

/* Read an element of binary data or text. Returns its size; 0: missing or empty. */
static int64_t read_element(const struct dicom_file *file, uint32_t tag, char *ret, size_t size, struct err *err)
{
	uint64_t n = 0;
	int rc;

	if (!dicom_bulk_size(file, tag, &n)) {
		rc = dicom_get_text(dicom_root((struct dicom_file *)file), tag, ret, size, err);
		return rc > 0 ? (int64_t)strlen(ret) : rc;
	}
	rc = dicom_bulk_read(file, tag, 0, ret, n < size ? (size_t)n : size, err);
	return rc < 0 ? rc : (int64_t)n;
}

static int read_text(const struct dicom_file *file, char *ret, size_t *ret_size, struct err *err)
{
	static const uint32_t tags[] = {DICOM_TAG(0x0029, 0x1010), DICOM_TAG(0x0029, 0x1110)};

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		int64_t n = read_element(file, tags[i], ret, MMR_TEXT_MAX, err);

		if (n < 0)
			return (int)n;
		if (n == 0 || (n >= 4 && !memcmp(ret, "SV10", 4)))
			continue;
		if (n > MMR_TEXT_MAX)
			return err_set(err, EBADMSG, "the text header has %lld bytes; allowed: %d", (long long)n, MMR_TEXT_MAX);
		*ret_size = (size_t)n;
		return 0;
	}
	return err_set(err, EBADMSG, "neither (0029,1010) nor (0029,1110) contains the text header");
}

/* The caller frees *ret_text, also after an error. */
static int find_text(const struct sinogram *s, enum sinogram_mmr_type type, char **ret_text, size_t *ret_size, struct err *err)
{
	const struct dicom_file *file;

	if (mmr_of(s)->header[type])
		return text_file_read(mmr_of(s)->header[type], MMR_TEXT_MAX, "header", ret_text, ret_size, err);
	file = s->files[mmr_of(s)->file[type]];
	if (!strcmp(dicom_transfer_syntax(file), BIG_ENDIAN_SYNTAX)) /* swaps the bytes of OW, but not of OB */
		return err_set(err, ENOTSUP, "raw data in Explicit VR Big Endian; send them in a little-endian transfer syntax");
	*ret_text = malloc(MMR_TEXT_MAX);
	return *ret_text ? read_text(file, *ret_text, ret_size, err) : err_set(err, ENOMEM, "no memory for a header");
}

static int read_header(const struct sinogram *s, enum sinogram_mmr_type type, struct mmr_header *ret, struct err *err)
{
	char *text = NULL;
	size_t size = 0;
	int rc = find_text(s, type, &text, &size, err);

	if (rc == 0 && type == SINOGRAM_MMR_LIST)
		rc = mmr_header_read_list(text, size, ret, err);
	else if (rc == 0)
		rc = mmr_header_read_norm(text, size, ret, err);
	free(text);
	return rc;
}

/* ---- the data ---- */

/* Return the path with the ending .bf; NULL: no memory. */
static char *bf_path(const char *path)
{
	const char *dot = strrchr(file_name(path), '.');
	char *ret;

	return asprintf(&ret, "%.*s.bf", (int)(dot ? dot - path : (ptrdiff_t)strlen(path)), path) < 0 ? NULL : ret;
}

/* Use a file with the data if it has their size. Returns the size of what is there; 0: nothing. */
static uint64_t open_data(const struct sinogram *s, enum sinogram_mmr_type type, char *path, uint64_t needed)
{
	struct stat st = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not stop it */

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == needed) {
		mmr_of(s)->data[type] = path;
		mmr_of(s)->fd[type] = fd;
		return needed;
	}
	if (fd >= 0)
		close(fd);
	free(path);
	return fd >= 0 ? (uint64_t)st.st_size : 0;
}

/* The name of an object or of a header, for messages. */
static const char *name_of(const struct sinogram *s, enum sinogram_mmr_type type)
{
	return file_name(mmr_of(s)->header[type] ? mmr_of(s)->header[type] : s->paths[mmr_of(s)->file[type]]);
}

/* Find the data beside their header, and check their size. */
static int find_extracted(const struct sinogram *s, enum sinogram_mmr_type type, const struct mmr_header *h, uint64_t needed,
			  struct err *err)
{
	char *path = NULL, name[256];
	int rc = sinogram_mmr_find_data(mmr_of(s)->header[type], h->data_file, &path, err);
	uint64_t there;

	if (rc < 0) {
		err_prefix(err, "%s", name_of(s, type));
		return rc;
	}
	snprintf(name, sizeof(name), "%s", file_name(path));
	there = open_data(s, type, path, needed);
	if (there != needed)
		return err_set(err, EBADMSG, "%s: %s has %llu bytes, the header requires %llu", name_of(s, type), name,
			       (unsigned long long)there, (unsigned long long)needed);
	return sinogram_describe_file(mmr_of(s)->data[type], &mmr_of(s)->source[type], err);
}

/* Find where the data of an object are, and check their size. */
static int find_data(const struct sinogram *s, enum sinogram_mmr_type type, uint64_t needed, struct err *err)
{
	const char *path = s->paths[mmr_of(s)->file[type]];
	uint64_t inside = 0;
	char *bf;

	dicom_bulk_size(s->files[mmr_of(s)->file[type]], TAG_DATA, &inside);
	if (inside == needed)
		return 0;
	bf = bf_path(path);
	if (!bf)
		return err_set(err, ENOMEM, "no memory for a path");
	if (open_data(s, type, bf, needed) == needed)
		return sinogram_describe_file(mmr_of(s)->data[type], &mmr_of(s)->source[type], err);
	return err_set(err, EBADMSG, "%s: (7FE1,1010) has %llu bytes, its header requires %llu%s", file_name(path),
		       (unsigned long long)inside, (unsigned long long)needed,
		       inside < needed / 2 ? ": the data are in the file with the ending .bf that the scanner writes beside the "
					     "object, which cannot be sent with DICOM; use `tomonode recon` on a folder with both"
					   : "");
}

/* Read n bytes of the data from `offset` on. */
static int read_piece(const struct sinogram *s, enum sinogram_mmr_type type, uint64_t offset, uint8_t *ret, size_t n,
		      struct err *err)
{
	int fd = mmr_of(s)->fd[type];
	size_t done = 0;

	if (!mmr_of(s)->data[type])
		return dicom_bulk_read(s->files[mmr_of(s)->file[type]], TAG_DATA, offset, ret, n, err);
	while (done < n) {
		ssize_t got = pread(fd, ret + done, n - done, (off_t)(offset + done));

		if (got <= 0)
			return err_set(err, got < 0 ? errno : EBADMSG, "cannot read %s: %s", file_name(mmr_of(s)->data[type]),
				       got < 0 ? strerror(errno) : "the file ends early");
		done += (size_t)got;
	}
	return 0;
}

int sinogram_mmr_piece(const struct sinogram *s, uint64_t at, uint8_t *ret, size_t n, struct err *err)
{
	return read_piece(s, SINOGRAM_MMR_LIST, 4 * at, ret, 4 * n, err);
}

uint64_t sinogram_mmr_word_count(const struct sinogram *s)
{
	return mmr_of(s)->list.words;
}

struct mmr_list *sinogram_mmr_events(const struct sinogram *s)
{
	return &mmr_of(s)->prompts.list;
}

/* Prepare to count the events of a list into the planes of a file. */
static int begin_list(const struct michelogram *m, struct mmr_list *l, struct err *err)
{
	int rc = mmr_list_begin(m, l, err);

	for (int i = 0; rc == 0 && i < MMR_PLANES; i++)
		if (l->plane[i] >= 0)
			l->plane[i] = (int32_t)interfile_place(m, (size_t)l->plane[i]);
	return rc;
}

/* Prepare to count the events of the chosen frame, behind the preceding one, or from the beginning of the list; those of a gate
 * are in the whole list. */
static int begin_frame(const struct sinogram *s, struct counting *c, struct err *err)
{
	int frame = s->chosen, rc = 0;

	if (frame == 0 || frame != c->next || s->images.of == PET_GATES) {
		rc = begin_list(&s->part[SINOGRAM_EMISSION].header.m, &c->list, err);
		c->at = 0;
	}
	c->list.delayed = c == &mmr_of(s)->delayeds;
	if (rc == 0 && s->images.of == PET_GATES)
		mmr_list_choose_gate(&c->list, &s->images.gates, frame);
	if (s->images.of == PET_FRAMES)
		c->list.frame = s->images.image[frame].time;
	c->next = frame + 1;
	return rc;
}

/* Count the events up to the end of the frame; with the last frame read the rest of the list, too. */
static int count_events(const struct sinogram *s, struct counting *c, uint8_t *buffer, uint32_t *counts, struct err *err)
{
	uint64_t n = 4 * mmr_of(s)->list.words, *at = &c->at;
	bool to_end = s->images.of != PET_FRAMES || s->chosen + 1 >= s->images.n, stop = false;
	struct mmr_list *list = &c->list;
	int rc = begin_frame(s, c, err);

	while (rc == 0 && !stop && *at < n) {
		size_t piece = n - *at < PIECE ? (size_t)(n - *at) : PIECE, words = piece / 4;

		rc = read_piece(s, SINOGRAM_MMR_LIST, *at, buffer, piece, err);
		if (rc == 0 && !to_end)
			words = mmr_list_in_frame(list, buffer, piece / 4);
		if (rc == 0)
			rc = mmr_list_add(list, buffer, words, counts, err);
		*at += 4 * words;
		stop = words < piece / 4;
	}
	if (rc < 0)
		c->next = 0;
	return rc;
}

/* Read the words of the list, in pieces of n; an error of use() ends it. */
static int read_words(const struct sinogram *s, int (*use)(void *ctx, const uint8_t *words, size_t n, struct err *err), void *ctx,
		      struct err *err)
{
	uint64_t n = 4 * mmr_of(s)->list.words;
	uint8_t *buffer = malloc(PIECE);
	int rc = buffer ? 0 : err_set(err, ENOMEM, "no memory to read a list");

	for (uint64_t at = 0; rc == 0 && at < n; at += PIECE) {
		size_t piece = n - at < PIECE ? (size_t)(n - at) : PIECE;

		rc = read_piece(s, SINOGRAM_MMR_LIST, at, buffer, piece, err);
		if (rc == 0)
			rc = use(ctx, buffer, piece / 4, err);
	}
	free(buffer);
	return rc;
}

struct entries { /* of read_entries() */
	int (*use)(void *ctx, const struct pet_entry *e, struct err *err);
	void *ctx;
};

static int use_words(void *ctx, const uint8_t *words, size_t n, struct err *err)
{
	const struct entries *to = ctx;
	struct pet_entry e;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		rc = mmr_word_read(words, i, &e, err);
		if (rc == 0 && e.type != PET_ENTRY_OTHER)
			rc = to->use(to->ctx, &e, err);
	}
	return rc;
}

static int read_entries(const struct sinogram *s, int (*use)(void *ctx, const struct pet_entry *e, struct err *err), void *ctx,
			struct err *err)
{
	return read_words(s, use_words, &(struct entries){use, ctx}, err);
}

static const struct pet_recording recording = {mmr_is_gap, mmr_event_segments, read_entries};

static int add_marks(void *ctx, const uint8_t *words, size_t n, struct err *err)
{
	return mmr_marks_add(ctx, words, n, err);
}

static int find_marks(const struct sinogram *s, const struct pet_gates *g, struct pet_marks *ret, struct err *err)
{
	enum pet_signal signal = g->signal;
	struct mmr_marks m = {.signal = signal, .first = -1, .last = -1};
	int rc;

	if (signal == PET_SIGNAL_TABLE)
		return pet_marks_copy(&g->marks, ret, err);
	if (signal != PET_SIGNAL_ECG && signal != PET_SIGNAL_RESP)
		return err_set(err, ENOTSUP, "time marks: no words of an mMR are known for the signal \"%s\"; known: ecg, resp",
			       pet_signal_name(signal));
	rc = read_words(s, add_marks, &m, err);
	if (rc == 0 && m.marks.n == 0)
		rc = err_set(err, ENOTSUP,
			     "time marks: the list mode has no gating words of the signal \"%s\"; give a table of time "
			     "marks",
			     pet_signal_name(signal));
	if (rc < 0)
		pet_marks_clear(&m.marks);
	else
		*ret = m.marks;
	return rc;
}

static int read_norm(const struct sinogram *s, struct mmr_norm **ret, struct err *err)
{
	uint8_t *buffer = malloc(MMR_NORM_BYTES);
	int rc = buffer ? read_piece(s, SINOGRAM_MMR_NORM, 0, buffer, MMR_NORM_BYTES, err)
			: err_set(err, ENOMEM, "no memory for a normalisation");

	if (rc == 0)
		rc = mmr_norm_read(buffer, MMR_NORM_BYTES, ret, err);
	free(buffer);
	return rc;
}

/* Compute the efficiencies of all bins, in the order in memory or in that of a file. */
static int compute_efficiencies(const struct sinogram *s, bool of_file, float *values, struct err *err)
{
	const struct michelogram *m = &s->part[SINOGRAM_MULTIPLICATIVE].header.m;
	struct michelogram_index x;
	struct mmr_norm *norm = NULL;
	int rc = michelogram_index_init(m, &x, err);

	if (rc == 0)
		rc = read_norm(s, &norm, err);
	for (int plane = 0; rc == 0 && plane < x.n_planes; plane++) {
		size_t place = of_file ? interfile_place(m, (size_t)plane) : (size_t)plane;

		mmr_norm_plane(norm, &x, plane, values + place * MMR_PLANE_BINS);
	}
	mmr_norm_free(norm);
	return rc;
}

int sinogram_mmr_efficiencies(const struct sinogram *s, float **ret_values, struct err *err)
{
	uint64_t bytes = s->part[SINOGRAM_MULTIPLICATIVE].bytes;

	*ret_values = malloc(bytes);
	return *ret_values ? compute_efficiencies(s, false, *ret_values, err)
			   : err_set(err, ENOMEM, "no memory for %llu bytes of efficiencies", (unsigned long long)bytes);
}

static int read_role(const struct sinogram *s, enum sinogram_role role, uint8_t **ret_bytes, struct err *err)
{
	uint8_t *bytes = calloc(1, s->part[role].bytes), *buffer = malloc(PIECE);
	int rc;

	if (!bytes || !buffer)
		rc = err_set(err, ENOMEM, "no memory for %llu bytes of %s", (unsigned long long)s->part[role].bytes,
			     sinogram_role_name(role));
	else if (role == SINOGRAM_EMISSION)
		rc = count_events(s, &mmr_of(s)->prompts, buffer, (uint32_t *)(void *)bytes, err);
	else if (role == SINOGRAM_DELAYEDS)
		rc = count_events(s, &mmr_of(s)->delayeds, buffer, (uint32_t *)(void *)bytes, err);
	else
		rc = compute_efficiencies(s, true, (float *)(void *)bytes, err);
	free(buffer);
	if (rc < 0)
		free(bytes);
	else
		*ret_bytes = bytes;
	return rc;
}

/* ---- dead time ---- */

struct feed { /* of the words of the list, to the singles of each frame */
	struct mmr_singles *singles;
	int n;
};

static int add_singles(void *ctx, const uint8_t *words, size_t n, struct err *err)
{
	const struct feed *feed = ctx;

	(void)err;
	for (int i = 0; i < feed->n; i++)
		mmr_singles_add(&feed->singles[i], words, n);
	return 0;
}

/* Add up the rates of the singles of each time frame, once. */
static int read_singles(const struct sinogram *s, struct err *err)
{
	bool frames = s->images.of == PET_FRAMES;
	struct feed feed = {.n = frames ? s->images.n : 1};
	int rc;

	if (mmr_of(s)->singles)
		return 0;
	feed.singles = calloc((size_t)feed.n, sizeof(*feed.singles));
	if (!feed.singles)
		return err_set(err, ENOMEM, "no memory for singles");
	for (int i = 0; i < feed.n; i++)
		mmr_singles_begin(&feed.singles[i], frames ? &s->images.image[i].time : NULL);
	rc = read_words(s, add_singles, &feed, err);
	if (rc == 0)
		mmr_of(s)->singles = feed.singles;
	else
		free(feed.singles);
	return rc;
}

static int find_alive(const struct sinogram *s, int image, double *ret, struct err *err)
{
	struct mmr_norm *norm = NULL;
	int rc = read_singles(s, err);

	if (rc == 0)
		rc = read_norm(s, &norm, err);
	if (rc == 0)
		rc = mmr_norm_alive(norm, &mmr_of(s)->singles[s->images.of == PET_FRAMES ? image : 0], ret, err);
	mmr_norm_free(norm);
	return rc;
}

/* ---- opening ---- */

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

static int read_headers(struct sinogram *s, struct err *err)
{
	struct mmr_header header[SINOGRAM_MMR_NORM + 1];
	uint64_t needed[SINOGRAM_MMR_NORM + 1] = {[SINOGRAM_MMR_NORM] = MMR_NORM_BYTES};
	int rc = 0;

	for (enum sinogram_mmr_type t = SINOGRAM_MMR_LIST; rc == 0 && t <= SINOGRAM_MMR_NORM; t++) {
		rc = read_header(s, t, &header[t], err);
		if (rc < 0)
			err_prefix(err, "%s", name_of(s, t));
	}
	if (rc < 0)
		return rc;
	mmr_of(s)->list = header[SINOGRAM_MMR_LIST];
	needed[SINOGRAM_MMR_LIST] = 4 * mmr_of(s)->list.words;
	rc = check_same_scanner(s, &mmr_of(s)->list, &header[SINOGRAM_MMR_NORM], err);
	for (enum sinogram_mmr_type t = SINOGRAM_MMR_LIST; rc == 0 && t <= SINOGRAM_MMR_NORM; t++)
		rc = mmr_of(s)->header[t] ? find_extracted(s, t, &header[t], needed[t], err) : find_data(s, t, needed[t], err);
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

/* Read the standard attributes of the list mode; what it says about corrections is about images. */
static void read_facts(struct sinogram *s)
{
	pet_facts_read(dicom_root(s->files[mmr_of(s)->file[SINOGRAM_MMR_LIST]]), &s->facts);
	s->facts.corrected[0] = '\0';
	s->facts.calibration = NAN;
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

/* Make the header that an object of these files would have. */
static int make_header(struct sinogram *s, const struct pet_opening *o, struct err *err)
{
	struct sinogram_import conf = o->file ? *o->file : (struct sinogram_import){.n_set = 0};
	struct interfile h;
	char *text = NULL, hash[65];
	size_t size = 0;
	int rc = find_text(s, SINOGRAM_MMR_LIST, &text, &size, err);

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
	return sinogram_new_header(&conf, &h, hash, &s->files[0], s->centre, err);
}

/* Open the files of a header of list mode. */
static int open_extracted(struct sinogram *s, const char *path, const struct pet_opening *o, struct err *err)
{
	struct sinogram_mmr *m = mmr_of(s);
	int rc;

	s->files = calloc(1, sizeof(*s->files));
	s->paths = calloc(1, sizeof(*s->paths));
	m->header[SINOGRAM_MMR_LIST] = strdup(path);
	if (!s->files || !s->paths || !m->header[SINOGRAM_MMR_LIST] || !(s->paths[0] = strdup(path)))
		return err_set(err, ENOMEM, "no memory for an acquisition");
	s->n_files = 1;
	rc = sinogram_mmr_find_norm(path, o->file ? o->file->header[SINOGRAM_NORMALISATION] : NULL, &m->header[SINOGRAM_MMR_NORM],
				    err);
	if (rc < 0)
		err_prefix(err, "%s", file_name(path));
	if (rc == 0)
		rc = read_headers(s, err);
	if (rc == 0)
		rc = make_header(s, o, err);
	return rc;
}

static int open_mmr(struct sinogram *s, const char *path, const struct pet_opening *o, struct err *err)
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

static void close_mmr(struct sinogram *s)
{
	struct sinogram_mmr *m = s->own;

	for (int t = SINOGRAM_MMR_LIST; m && t <= SINOGRAM_MMR_NORM; t++) {
		if (m->data[t])
			close(m->fd[t]);
		free(m->data[t]);
		free(m->header[t]);
		free(m->source[t]);
	}
	if (m)
		free(m->singles);
	free(m);
}

static void name_files(const struct sinogram *s, char *ret, size_t size)
{
	for (int t = SINOGRAM_MMR_LIST; t <= SINOGRAM_MMR_NORM; t++)
		if (mmr_of(s)->source[t] && !mmr_of(s)->header[t]) /* else s->origin has it */
			snprintf(ret + strlen(ret), size - strlen(ret), "%s%s", *ret ? ", " : "", mmr_of(s)->source[t]);
}

static void write_mmr_note(const struct sinogram *s, char *ret, size_t size)
{
	const struct mmr_list_report *r = &mmr_of(s)->prompts.list.report;
	double seconds = r->marks > 1 ? (double)(r->last - r->first) / 1000 : 0;
	double said = isfinite(s->facts.duration) ? s->facts.duration : mmr_of(s)->list.duration;
	double frames = s->images.of == PET_FRAMES ? (double)s->images.image[s->images.n - 1].time.stop / 1000 : 0;
	bool randoms = s->made & PET_CORRECT_RANDOMS;
	char files[400] = "", missing[80], delayeds[60] = "";

	name_files(s, files, sizeof(files));
	list_missing(s->made, missing, sizeof(missing));
	if (!randoms)
		snprintf(delayeds, sizeof(delayeds), "; %llu delayed event%s not used", (unsigned long long)r->delayeds,
			 plural(r->delayeds));
	snprintf(ret, size, "%s%s%s%s%s%s%s.", s->list ? "Reconstructed event by event" : "Histogram of list mode",
		 files[0] ? " (data in " : "", files, files[0] ? ")" : "", missing[0] ? ": not corrected for " : "", missing,
		 delayeds);
	if (r->outside)
		sentence_add(ret, size, "Prompts beyond the largest ring difference of the scanner's configuration: %llu.",
			     (unsigned long long)r->outside);
	if (r->between)
		sentence_add(ret, size, "%llu prompts are in no %s.", (unsigned long long)r->between,
			     pet_division_name(s->images.of));
	if (seconds > 0 && fabs(seconds - said) > 1 + 0.01 * seconds)
		sentence_add(ret, size, "The time marks cover %.4g s, the header says %.4g s.", seconds, said);
	if (frames > seconds + 1 + 0.01 * seconds)
		sentence_add(ret, size, "The time marks cover %.4g s, the last time frame ends at %.4g s.", seconds, frames);
	sentence_add(ret, size, "%s", INTERFILE_SIEMENS_RINGS);
}

const struct pet_source pet_source_mmr = {
	.objects = "raw data",
	.sop_class = SINOGRAM_SIEMENS_CLASS,
	.is_object = is_object,
	.is_file = sinogram_mmr_is_list_header,
	.describe = describe_object,
	.open = open_mmr,
	.list_mode = true,
	.efficiencies = true,
	.of_images = true,
	.read = read_role,
	.marks = find_marks,
	.open_events = sinogram_mmr_open_events,
	.alive = find_alive,
	.note = write_mmr_note,
	.files = name_files,
	.recording = &recording,
	.close = close_mmr,
};
