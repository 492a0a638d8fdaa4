/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_beds.c - the beds of an acquisition: each has its time and position, which all its objects repeat. */
#include <errno.h>
#include <math.h>

#include "node/base/folder.h"
#include "node/sinogram/sinogram_internal.h"

#define SAME_PLACE 1e-3 /* mm */

int sinogram_take_bed(struct sinogram *s, size_t file, const struct sinogram_facts *f, struct err *err)
{
	struct pet_bed *bed = &s->beds.bed[f->bed - 1];
	struct pet_bed found = {.time = {f->bed_start, f->bed_start + f->bed_time}};
	const char *name = file_name(s->paths[file]);
	int rc = sinogram_centre(s->files[file], f, found.centre, err);

	if (rc == 0)
		return err_set(err, EBADMSG, "%s: the position of bed %ld is missing, the scanner's centre (%04X,%02X%02X)", name,
			       f->bed, SINOGRAM_GROUP, f->block, SINOGRAM_CENTRE);
	if (rc < 0) {
		err_prefix(err, "%s", name);
		return rc;
	}
	if (s->beds.n != 0 && f->n_beds != s->beds.n)
		return err_set(err, EBADMSG, "%s announces %ld beds, other objects %d", name, f->n_beds, s->beds.n);
	if (bed->time.stop > 0 && (bed->time.start != found.time.start || bed->time.stop != found.time.stop))
		return err_set(err, EBADMSG, "%s: bed %ld is %ld to %ld ms, in other objects %ld to %ld ms", name, f->bed,
			       (long)found.time.start, (long)found.time.stop, (long)bed->time.start, (long)bed->time.stop);
	for (int c = 0; c < 3; c++)
		if (bed->time.stop > 0 && fabs(found.centre[c] - bed->centre[c]) > SAME_PLACE)
			return err_set(err, EBADMSG, "%s: bed %ld is at %g, %g, %g mm, in other objects at %g, %g, %g mm", name,
				       f->bed, found.centre[0], found.centre[1], found.centre[2], bed->centre[0], bed->centre[1],
				       bed->centre[2]);
	s->beds.n = (int)f->n_beds;
	*bed = found;
	return 0;
}

int sinogram_check_bed_times(const struct pet_beds *beds, struct err *err)
{
	for (int i = 1; i < beds->n; i++) {
		const struct pet_frame *before = &beds->bed[i - 1].time, *time = &beds->bed[i].time;

		if (time->stop > 0 && time->start < before->stop)
			return err_set(err, EBADMSG, "bed %d begins at %ld ms, before the end of bed %d at %ld ms", i + 1,
				       (long)time->start, i, (long)before->stop);
	}
	return 0;
}
