/* SPDX-License-Identifier: Apache-2.0 */
/* frames.c - read tables of time frames. Seconds are read digit by digit into whole milliseconds: no rounding. */
#include "recon/pet/frames.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define GRAMMAR "allowed: SECONDS or COUNTxSECONDS, in parentheses for a gap, such as 6x10,(5),4x30"

struct entry {
	int64_t count, ms;
	bool gap;
};

/* Read digits. false: none, or a number above PET_FRAMES_END. */
static bool read_whole(const char **at, int64_t *ret)
{
	int64_t v = 0;
	const char *begin = *at;

	for (; isdigit((unsigned char)**at); ++*at) {
		v = 10 * v + (**at - '0');
		if (v > PET_FRAMES_END)
			return false;
	}
	*ret = v;
	return *at > begin;
}

/* Read seconds with up to three decimals into ms. */
static bool read_seconds(const char **at, int64_t *ret_ms)
{
	int64_t ms, digit = 100;

	if (!read_whole(at, &ms))
		return false;
	ms *= 1000;
	if (**at == '.') {
		++*at;
		if (!isdigit((unsigned char)**at))
			return false;
		for (; isdigit((unsigned char)**at); ++*at, digit /= 10) {
			if (digit == 0)
				return false;
			ms += digit * (**at - '0');
		}
	}
	*ret_ms = ms;
	return true;
}

/* Read the entry from *at to its end, a comma or the end of the text. */
static bool read_entry(const char **at, struct entry *ret)
{
	const char *again;

	*at += strspn(*at, " ");
	ret->gap = **at == '(';
	*at += ret->gap;
	again = *at;
	ret->count = 1;
	if (!read_whole(at, &ret->count) || **at != 'x') {
		ret->count = 1;
		*at = again;
	} else {
		++*at;
	}
	if (!read_seconds(at, &ret->ms))
		return false;
	if (ret->gap && *(*at)++ != ')')
		return false;
	*at += strspn(*at, " ");
	return **at == ',' || **at == '\0';
}

/* Add the frames of an entry, of which the first begins at *end. Return why not, or NULL. */
static const char *add_entry(const struct entry *e, struct pet_images *f, int64_t *end)
{
	if (e->count < 1 || e->ms < 1)
		return "counts and seconds must be above 0";
	if (e->ms > PET_FRAMES_END || e->count > (PET_FRAMES_END - *end) / e->ms)
		return "the table may end after at most 2147483.647 s";
	if (!e->gap && e->count > PET_FRAMES_MAX - f->n)
		return "a table has at most 512 frames";
	for (int64_t i = 0; !e->gap && i < e->count; i++, *end += e->ms)
		f->image[f->n++].time = (struct pet_frame){*end, *end + e->ms};
	if (e->gap)
		*end += e->count * e->ms;
	return NULL;
}

int pet_frames_parse(const char *text, struct pet_images *ret, struct err *err)
{
	struct pet_images f = {.of = *text ? PET_FRAMES : PET_WHOLE};
	const char *at = text;
	int64_t end = 0;

	for (int number = 1; *text; number++) {
		const char *begin = at, *why = GRAMMAR;
		struct entry e = {0};

		if (read_entry(&at, &e))
			why = add_entry(&e, &f, &end);
		if (why)
			return err_set(err, EINVAL, "frames: entry %d is \"%.*s\"; %s", number, (int)strcspn(begin, ","), begin,
				       why);
		if (*at++ == '\0')
			break;
	}
	if (*text && f.n == 0)
		return err_set(err, EINVAL, "frames: \"%s\" has gaps only; at least one frame is needed", text);
	*ret = f;
	return 0;
}

int pet_frames_check(const struct pet_images *f, double duration, struct err *err)
{
	int64_t stop = f->n > 0 ? f->image[f->n - 1].time.stop : 0;

	if ((double)stop <= 1000 * duration + 0.5)
		return 0;
	return err_set(err, ENOTSUP, "frames: frame %d ends after %.10g s, but the acquisition has %.10g s", f->n,
		       (double)stop / 1000, duration);
}
