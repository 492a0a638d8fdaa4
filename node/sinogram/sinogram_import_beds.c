/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_import_beds.c - open the Interfile headers of several beds as one acquisition. Start and duration of a bed that are
 * not given are those of its header; the acquisition starts with bed 1. */
#include <errno.h>
#include <math.h>

#include "node/base/folder.h"
#include "node/sinogram/sinogram_internal.h"

/* Find when a bed was measured, in ms after the start of bed 1, whose header is `first`. */
static int find_time(const struct sinogram_import_bed *given, const struct interfile *h, const struct interfile *first,
		     struct pet_frame *ret, struct err *err)
{
	double start = given->start, duration = given->duration > 0 ? given->duration : h->duration, begun, first_begun;
	bool dated = sinogram_begin(h, &begun) && sinogram_begin(first, &first_begun);

	if (isnan(start) && h == first)
		start = 0;
	else if (isnan(start))
		start = dated ? begun - first_begun : h->start - first->start; /* NaN: one is not known */
	if (isnan(start))
		return err_set(err, EBADMSG,
			       "its start is not known: no study date and time, and no image relative start time, in its header "
			       "or in that of bed 1; give start=SECONDS");
	if (!(duration > 0))
		return err_set(err, EBADMSG, "its duration is not known: no image duration in its header; give duration=SECONDS");
	if (!(start >= 0 && 1000 * (start + duration) < PET_FRAMES_END))
		return err_set(err, EBADMSG, "it begins %g s after bed 1 and lasts %g s; allowed: 0 to 2147483 s", start,
			       duration);
	*ret = (struct pet_frame){llround(1000 * start), llround(1000 * (start + duration))};
	return 0;
}

static int open_bed(struct sinogram_source *s, int b, struct err *err)
{
	const struct sinogram_import_bed *given = &s->conf->beds[b];
	struct sinogram_stream *streams = s->own[b];
	int rc = 0;

	for (int role = 1; rc == 0 && role <= SINOGRAM_ROLES; role++) {
		if (!given->header[role] != !s->conf->beds[0].header[role])
			return err_set(err, EBADMSG, "%s is given for bed %d, and not for bed %d",
				       sinogram_role_name((enum sinogram_role)role), given->header[role] ? b + 1 : 1,
				       given->header[role] ? 1 : b + 1);
		if (given->header[role])
			rc = sinogram_stream_open(given->header[role], &streams[role], err);
		if (rc == 0 && streams[role].present &&
		    (streams[role].header.kind == INTERFILE_SINGLES) != (role == SINOGRAM_SINGLES))
			rc = err_set(err, EBADMSG, "%s describes %s", file_name(given->header[role]),
				     interfile_type(streams[role].header.kind)->title);
		else if (rc == 0 && streams[role].present && role != SINOGRAM_SINGLES &&
			 streams[role].header.kind != INTERFILE_PROJECTIONS)
			rc = err_set(err, EBADMSG, "%s: line integrals of parallel beams have no beds",
				     file_name(given->header[role]));
	}
	if (rc < 0)
		return rc;
	s->images.image[b].centre[2] = given->z;
	rc = find_time(given, &streams[SINOGRAM_EMISSION].header, &s->own[0][SINOGRAM_EMISSION].header, &s->images.image[b].time,
		       err);
	if (rc < 0)
		err_prefix(err, "bed %d (%s)", b + 1, file_name(given->header[SINOGRAM_EMISSION]));
	return rc;
}

/* Roles of the first bed stand for those of all in s->stream. */
static int share_roles(struct sinogram_source *s, struct err *err)
{
	for (int role = 1; role <= SINOGRAM_ROLES; role++) {
		const char *name = sinogram_role_name((enum sinogram_role)role);

		if (s->own[0][role].present && s->stream[role].present)
			return err_set(err, EBADMSG, "%s is given for each bed and for all beds", name);
		if (s->stream[role].present &&
		    (role == SINOGRAM_ADDITIVE || role == SINOGRAM_DELAYEDS || role == SINOGRAM_SINGLES))
			return err_set(err, EBADMSG, "%s is given for all beds; counts are those of one bed: --bed ...,%s=F.hs",
				       name,
				       role == SINOGRAM_ADDITIVE   ? "additive"
				       : role == SINOGRAM_DELAYEDS ? "delayeds"
								   : "singles");
	}
	for (int role = 1; role <= SINOGRAM_ROLES; role++)
		if (s->own[0][role].present)
			s->stream[role] = s->own[0][role];
	return 0;
}

int sinogram_open_beds(struct sinogram_source *s, struct err *err)
{
	int n = s->conf->n_beds, rc = 0;

	if (n > PET_BEDS_MAX)
		return err_set(err, EINVAL, "%d beds; allowed: 1 to %d", n, PET_BEDS_MAX);
	s->own = calloc((size_t)n, sizeof(*s->own));
	if (!s->own)
		return err_set(err, ENOMEM, "no memory for %d beds", n);
	s->images.of = PET_BEDS;
	s->images.n = n;
	for (int b = 0; rc == 0 && b < n; b++)
		rc = open_bed(s, b, err);
	if (rc == 0)
		rc = pet_images_check_order(&s->images, err);
	return rc < 0 ? rc : share_roles(s, err);
}

void sinogram_clear_images(struct sinogram_source *s)
{
	bool beds = s->own && s->images.of == PET_BEDS;

	for (int role = 1; beds && role <= SINOGRAM_ROLES; role++)
		if (s->stream[role].text == s->own[0][role].text) /* borrowed, or neither is there */
			s->stream[role] = (struct sinogram_stream){0};
	for (int b = 0; beds && b < s->images.n; b++)
		for (int role = 1; role <= SINOGRAM_ROLES; role++)
			sinogram_stream_clear(&s->own[b][role]);
	free(s->own);
	s->own = NULL;
}
