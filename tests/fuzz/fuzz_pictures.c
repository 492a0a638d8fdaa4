/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz the pictures of corrections: arbitrary bytes give pictures or an error with a reason. Pictures that are accepted are
 * within their limits, and come back from what is written of them. Run: fuzz_pictures -max_len=16384 WORK_FOLDER
 * tests/fuzz/corpus/pictures */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "node/format/correction_pictures.h"
#include "tests/fuzz/fuzz.h"

static void check_map(const struct correction_map *m)
{
	must(!m->value || (m->width >= 1 && m->width <= CORRECTION_SIDE && m->height >= 1 && m->height <= CORRECTION_SIDE),
	     "a map of another size");
	must(!m->value || (m->size[0] > 0 && m->size[1] > 0 && m->lowest <= m->highest && isfinite(m->highest - m->lowest)),
	     "a map without size or range");
	must(!m->value || m->value[0] + m->value[m->width * m->height - 1] >= 0, "pixels");
}

static void check_curve(const double *v, int n)
{
	for (int i = 0; v && i < n; i++)
		must(isfinite(v[i]), "a number that is not finite");
}

static void check(const struct correction_pictures *p)
{
	must(p->n_profiles >= 0 && p->n_profiles <= CORRECTION_PLANES && p->n_radial >= 0 && p->n_radial <= CORRECTION_BINS,
	     "numbers of profiles");
	must(strlen(p->series) > 0 && p->number <= p->n_images && (p->n_images > 0) == (p->image[0] != '\0'), "names");
	must(p->acf_plane >= 0 && (p->acf_plane < p->n_planes || p->acf_plane == 0), "a plane that does not exist");
	for (int i = 0; i < CORRECTION_PLANES; i++)
		check_map(&p->mu[i]);
	check_map(&p->acf);
	check_curve(p->radius, p->n_radial);
	for (int i = 0; i < p->n_profiles; i++) {
		const struct correction_profile *one = &p->profile[i];

		must(one->plane >= 0 && one->plane < p->n_planes && isfinite(one->position), "a profile of no plane");
		check_curve(one->prompts, p->n_radial);
		check_curve(one->randoms, p->n_radial);
		check_curve(one->scatter, p->n_radial);
	}
}

/* What is written is read again, and written the same. */
static void check_again(const struct correction_pictures *p)
{
	struct correction_pictures again = {0};
	json_t *first = correction_pictures_encode(p), *second;

	must(first && correction_pictures_decode(first, &again, NULL) == 0, "not read again");
	second = correction_pictures_encode(&again);
	must(second && json_equal(first, second), "other pictures");
	json_decref(first);
	json_decref(second);
	correction_pictures_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *all = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	struct correction_pictures p = {0};
	struct err err = {0};

	if (all && correction_pictures_decode(all, &p, &err) < 0) {
		must(err.code == EBADMSG && err.msg[0], "refused without a reason");
		must(!p.radius && !p.acf.value && !p.mu[0].value, "a part is left");
	} else if (all) {
		check(&p);
		check_again(&p);
		correction_pictures_clear(&p);
	}
	json_decref(all);
	return 0;
}
