/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_dead_time.c - what the data of an acquisition say about counts that were lost to dead time: Dead Time Factor of its
 * objects, or, of a Siemens mMR, parameters of the normalisation for the rates of singles in the list mode. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "node/format/mmr.h"
#include "node/sinogram/sinogram_internal.h"

#define FACTOR_MOST 100.0

int sinogram_dead_time_factor(const struct sinogram *s, int image, double *ret, struct err *err)
{
	const struct sinogram_part *part = &s->part[SINOGRAM_EMISSION];
	int rc;

	if (s->mmr || s->list) /* what their objects state is not about these counts */
		return 0;
	if (s->frame_part)
		part = &s->frame_part[image][SINOGRAM_EMISSION];
	rc = dicom_get_double(dicom_root(s->files[part->file[0]]), TAG_DEAD_TIME_FACTOR, 0, ret, err);
	if (rc < 0 || (rc > 0 && !(*ret >= 1 && *ret <= FACTOR_MOST)))
		return err_set(err, EBADMSG, "Dead Time Factor (0054,1324) is not a number from 1 to %g", FACTOR_MOST);
	return rc;
}

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

int sinogram_mmr_singles(const struct sinogram *s, struct mmr_singles **ret, struct err *err)
{
	struct feed feed = {.n = s->images.of == PET_FRAMES ? s->images.n : 1};
	int rc;

	feed.singles = calloc((size_t)feed.n, sizeof(*feed.singles));
	if (!feed.singles)
		return err_set(err, ENOMEM, "no memory for singles");
	for (int i = 0; i < feed.n; i++)
		mmr_singles_begin(&feed.singles[i], s->images.of == PET_FRAMES ? &s->images.image[i].time : NULL);
	rc = sinogram_mmr_words(s, add_singles, &feed, err);
	if (rc == 0)
		*ret = feed.singles;
	else
		free(feed.singles);
	return rc;
}

int sinogram_mmr_alive(const struct sinogram *s, const struct mmr_singles *singles, double *ret, struct err *err)
{
	struct mmr_norm *norm = NULL;
	int rc = sinogram_mmr_norm(s, &norm, err);

	if (rc == 0)
		rc = mmr_norm_alive(norm, singles, ret, err);
	mmr_norm_free(norm);
	return rc;
}
