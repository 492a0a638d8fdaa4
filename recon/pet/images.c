/* SPDX-License-Identifier: Apache-2.0 */
/* images.c - see recon/pet/images.h. */
#include "recon/pet/images.h"

#include <errno.h>

const char *pet_division_name(enum pet_division of)
{
	return of == PET_GATES ? "gate" : of == PET_BEDS ? "bed" : "time frame";
}

void pet_images_set_gates(struct pet_images *m, const struct pet_gates *gates)
{
	*m = (struct pet_images){.of = gates->n > 0 ? PET_GATES : PET_WHOLE, .n = gates->n, .gates = *gates};
}

int64_t pet_images_duration(const struct pet_images *m, int image)
{
	const struct pet_frame *time = &m->image[image].time;

	return m->of == PET_GATES ? pet_gates_sum(&m->gates, image, 0).duration : time->stop - time->start;
}

int pet_images_find(const struct pet_images *m, int64_t t, struct pet_images_near *near)
{
	int i = near->image;

	if (m->of == PET_GATES)
		return pet_gates_find(&m->gates, t, &near->cycle);
	if (m->n == 0)
		return 0;
	while (i > 0 && t < m->image[i].time.start)
		i--;
	while (i + 1 < m->n && t >= m->image[i].time.stop)
		i++;
	near->image = i;
	return pet_frame_has(&m->image[i].time, t) ? i : -1;
}

int pet_images_check_order(const struct pet_images *m, struct err *err)
{
	const char *name = pet_division_name(m->of);

	for (int i = 1; i < m->n; i++) {
		const struct pet_frame *before = &m->image[i - 1].time, *time = &m->image[i].time;

		if (time->stop > 0 && time->start < before->stop)
			return err_set(err, EBADMSG, "%s %d begins at %ld ms, before the end of %s %d at %ld ms", name, i + 1,
				       (long)time->start, name, i, (long)before->stop);
	}
	return 0;
}
