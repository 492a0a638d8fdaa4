/* dicom_from_volume.c - one reconstructed view to one Breast Tomosynthesis Image object. See node/result.h.
 *
 * The UIDs are pure functions of the sources, the recipe and the program's version: a retry gives the same object again, a
 * changed protocol or profile another one. The series is that of the case (source series, laterality, view, frame of reference)
 * and recipe. Where the source has no frame of reference, one is made from the case. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "node/result_parts.h"
#include "node/version.h"

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Texts that make up a UID, and their digest. `sources`: the instances too, in an order that does not depend on that of the
 * files. */
static void seed_uid(const char *what, const struct exam *exam, const struct protocol_conf *protocol, bool sources,
		     char ret_uid[DICOM_UID_SIZE])
{
	const struct dicom_item *root = dicom_root(exam->files[0]);
	char recipe[1024], geometry[1024], series[DICOM_UID_SIZE] = "", frame[DICOM_UID_SIZE] = "";
	size_t n = exam->n_files, at = 0, size = 4096 + n * DICOM_UID_SIZE;
	char *text = malloc(size), (*uids)[DICOM_UID_SIZE] = calloc(n, sizeof(*uids));
	const char **order = calloc(n, sizeof(*order));

	dicom_get_text(root, TAG_SERIES_INSTANCE_UID, series, sizeof(series), NULL);
	dicom_get_text(root, TAG_FRAME_OF_REFERENCE_UID, frame, sizeof(frame), NULL);
	config_describe_protocol(protocol, recipe, sizeof(recipe));
	config_describe_profile(exam->profile, geometry, sizeof(geometry));
	if (!text || !uids || !order) { /* a UID all the same, but not one that repeats */
		dicom_uid_random(ret_uid);
		goto out;
	}
	at += (size_t)snprintf(text, size, "tomonode %s|%s|%s|%c|%s|%s|%s|%s|%s|%g", what, TOMONODE_VERSION, series,
			       exam->laterality, exam->view, frame, protocol->name, recipe, geometry, RESULT_SCALE);
	for (size_t i = 0; i < n; i++) {
		dicom_get_text(dicom_root(exam->files[i]), TAG_SOP_INSTANCE_UID, uids[i], sizeof(uids[i]), NULL);
		order[i] = uids[i];
	}
	qsort(order, n, sizeof(*order), by_text);
	for (size_t i = 0; sources && i < n; i++)
		at += (size_t)snprintf(text + at, size - at, "|%s", order[i]);
	dicom_uid_from_text(text, ret_uid);
out:
	free(order);
	free(uids);
	free(text);
}

void result_uid(const struct exam *exam, const struct protocol_conf *protocol, char ret_uid[DICOM_UID_SIZE])
{
	seed_uid("instance", exam, protocol, true, ret_uid);
}

void result_series(const struct exam *exam, const struct protocol_conf *protocol, char ret_uid[DICOM_UID_SIZE])
{
	seed_uid("series", exam, protocol, false, ret_uid);
}

/* Dates of an object count in its Timezone Offset From UTC, "+0100", where it has one; else in the local time of the node. */
static void fill_time(struct result *r)
{
	time_t now = (time_t)r->info->now;
	int micro = (int)((r->info->now - floor(r->info->now)) * 1e6);
	char zone[17] = "", sign;
	struct tm tm;
	int hours, minutes;

	if (dicom_get_text(r->source, TAG_TIMEZONE_OFFSET_FROM_UTC, zone, sizeof(zone), NULL) == 1 &&
	    sscanf(zone, "%c%2d%2d", &sign, &hours, &minutes) == 3 && (sign == '+' || sign == '-')) {
		now += (sign == '-' ? -60 : 60) * (60 * hours + minutes);
		gmtime_r(&now, &tm);
	} else {
		localtime_r(&now, &tm);
	}
	strftime(r->date, sizeof(r->date), "%Y%m%d", &tm);
	snprintf(r->time, sizeof(r->time), "%02u%02u%02u.%06u", (unsigned)tm.tm_hour % 100, (unsigned)tm.tm_min % 100,
		 (unsigned)tm.tm_sec % 100, (unsigned)micro % 1000000);
	snprintf(r->date_time, sizeof(r->date_time), "%s%s", r->date, r->time);
}

static void fill_derivation(struct result *r)
{
	const struct exam *e = r->exam;
	const struct grid *g = &r->info->plan->grid;

	snprintf(r->derivation, sizeof(r->derivation),
		 "Tomosynthesis reconstruction of %d projections (%.2f to %.2f degrees), protocol %.63s: %d x %d x %d voxels of "
		 "%g x %g x %g mm, profile %.63s, device %.96s, %zu voxels clipped%s. Research use only.",
		 e->n_views, e->views[0].angle, e->views[e->n_views - 1].angle, r->info->protocol->name, g->n[0], g->n[1],
		 g->n[2], g->h[0], g->h[1], g->h[2], e->profile->name, r->info->device, r->summary.clipped,
		 e->gantry_recorded
			 ? ""
			 : "; the gantry angle is not recorded, 45 degrees were taken for the orientation in the patient");
}

static int begin(const struct exam *exam, const struct result_info *info, const float *volume, struct result *ret_r,
		 struct err *err)
{
	struct result r = {.exam = exam, .info = info, .source = dicom_root(exam->files[exam->views[0].file])};
	int rc = volume_summarise(volume, &info->plan->grid, &r.summary, err);

	if (rc < 0)
		return rc;
	result_uid(exam, info->protocol, r.sop_instance);
	result_series(exam, info->protocol, r.series);
	if (dicom_get_text(r.source, TAG_FRAME_OF_REFERENCE_UID, r.frame_of_reference, sizeof(r.frame_of_reference), NULL) != 1)
		seed_uid("frame of reference", exam, info->protocol, false, r.frame_of_reference);
	config_describe_protocol(info->protocol, r.protocol, sizeof(r.protocol));
	config_describe_profile(exam->profile, r.profile, sizeof(r.profile));
	fill_time(&r);
	fill_derivation(&r);
	*ret_r = r;
	return 0;
}

int result_write(const struct exam *exam, const struct result_info *info, const float *volume, const char *path, struct err *err)
{
	struct dicom_writer *writer = NULL;
	struct dicom_file *file = NULL;
	struct fill root = {.err = err};
	struct result r;
	int rc;

	rc = begin(exam, info, volume, &r, err);
	if (rc < 0)
		goto out;
	rc = dicom_new(RESULT_CLASS, r.sop_instance, &file, err);
	if (rc < 0)
		goto out;
	root.item = dicom_root(file);
	result_fill_header(&r, &root);
	result_fill_groups(&r, &root);
	result_fill_sources(&r, &root);
	result_fill_acquisition(&r, &root);
	rc = root.rc;
	if (rc < 0)
		goto out;
	rc = dicom_writer_open(path, file, &writer, err);
	if (rc < 0)
		goto out;
	rc = volume_store(exam, &info->plan->grid, volume, writer, err);
	if (rc < 0)
		goto out;
	rc = dicom_writer_close(writer, err);
	writer = NULL;
out:
	if (rc < 0)
		err_within(err, "result");
	dicom_writer_abort(writer);
	dicom_close(file);
	return rc < 0 ? rc : 0;
}
