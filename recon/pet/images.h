/* SPDX-License-Identifier: Apache-2.0 */
/* The images of a PET acquisition: the time frames, gates or beds that it is divided into. Times are whole milliseconds since the
 * start of the acquisition; those of frames and beds are in order and do not overlap. */
#ifndef TOMONODE_RECON_PET_IMAGES_H
#define TOMONODE_RECON_PET_IMAGES_H

#include "recon/pet/gates.h"

#define PET_FRAMES_MAX 512
#define PET_BEDS_MAX 64

enum pet_division { PET_WHOLE, PET_FRAMES, PET_GATES, PET_BEDS };

struct pet_frame {
	int64_t start, stop; /* ms; contains the times t with start <= t < stop */
};

struct pet_image {
	struct pet_frame time; /* of frames and beds */
	double centre[3];      /* of beds: that of the scanner, mm, in the frame of reference */
};

struct pet_images {
	enum pet_division of;
	int n; /* 0: not divided */
	struct pet_image image[PET_FRAMES_MAX];
	struct pet_gates gates; /* of gates: the cycles that they are parts of; n as above */
};

const char *pet_division_name(enum pet_division of); /* "time frame", also of all; "gate", "bed" */

/* Divide into gates; n = 0: not at all. The marks are borrowed. */
void pet_images_set_gates(struct pet_images *m, const struct pet_gates *gates);

/* The number of results: 1 if it is not divided. */
static inline int pet_images_count(const struct pet_images *m)
{
	return m->n > 0 ? m->n : 1;
}

/* The duration of an image, from 0, ms. */
int64_t pet_images_duration(const struct pet_images *m, int image);

/* Check that images follow each other in time. One that ends at 0 is not known yet. EBADMSG. */
int pet_images_check_order(const struct pet_images *m, struct err *err);

/* Near what was found last; zero at the beginning. Times in ascending order are found at once. */
struct pet_images_near {
	int image;
	size_t cycle;
};
/* Return the frame or gate of a time, ms, from 0; 0 if it is not divided; -1: it is in none. */
int pet_images_find(const struct pet_images *m, int64_t t, struct pet_images_near *near);

/* Whether a frame contains the time t, ms. */
static inline bool pet_frame_has(const struct pet_frame *f, int64_t t)
{
	return t >= f->start && t < f->stop;
}

#endif
