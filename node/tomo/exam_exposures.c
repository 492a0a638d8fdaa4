/* SPDX-License-Identifier: Apache-2.0 */
/* exam_exposures.c - refuse projections of more than one sweep by their headers (dicom/object/exposure.h): images of a series
 * and frames of an object alike. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dicom/object/exposure.h"
#include "node/tomo/exam_internal.h"

/* The facts of all projections. */
struct facts {
	size_t n;
	struct exposure_facts *list;
};

static int read_facts(const struct exam *exam, struct facts *ret, struct err *err)
{
	struct facts f = {.n = exam->frames_in_file ? (size_t)exam->pixels.frames : exam->n_files};

	f.list = calloc(f.n, sizeof(*f.list));
	if (!f.list)
		return err_set(err, ENOMEM, "no memory for %zu headers", f.n);
	for (size_t i = 0; i < f.n; i++) {
		bool frames = exam->frames_in_file;
		struct header h = {.root = dicom_root(exam->files[frames ? 0 : i]), .frame = frames ? (long)i : -1};

		exposure_read(&h, &f.list[i]);
	}
	*ret = f;
	return 0;
}

void exam_name_exposures(const struct exam *exam, char *ret_text, size_t size)
{
	struct exposures found;
	struct facts f;

	ret_text[0] = '\0';
	if (read_facts(exam, &f, NULL) < 0)
		return;
	if (exposures_find(f.list, f.n, &found, NULL) > 0)
		exposures_text(&found, ret_text, size);
	free(f.list);
}

static int warn_pause(struct exam *exam, const struct facts *f, struct err *err)
{
	struct exposure_pause p;
	int rc = exposures_pause(f->list, f->n, &p, err);

	if (rc > 0)
		exam_warn(
			exam,
			"%s %s has a pause of %.0f s, after %ld of %ld projections (from %s to %s), which no known system makes: "
			"are they of one sweep?",
			p.name, tag_text(p.tag), p.seconds, p.before, p.of, p.from, p.to);
	return rc < 0 ? rc : 0;
}

static int warn_doubt(struct exam *exam, const struct facts *f, struct err *err)
{
	struct exposures found;
	char text[480];
	int rc = exposures_doubt(f->list, f->n, &found, err);

	if (rc <= 0)
		return rc;
	exposures_text(&found, text, sizeof(text));
	exam_warn(exam,
		  "%s; no projection has a value between these, so two sweeps may have been put together: are all projections of "
		  "one sweep?",
		  text);
	return 0;
}

int exam_check_exposures(struct exam *exam, struct err *err)
{
	struct exposures found;
	struct facts f;
	char text[600];
	int rc = read_facts(exam, &f, err);

	if (rc < 0)
		return rc;
	rc = exposures_prove(f.list, f.n, &found, err);
	if (rc > 0) {
		exposures_refusal(&found, exam->frames_in_file, text, sizeof(text));
		rc = err_set(err, EBADMSG, "%s", text);
	} else if (rc == 0) {
		rc = warn_pause(exam, &f, err);
		if (rc == 0)
			rc = warn_doubt(exam, &f, err);
	}
	free(f.list);
	return rc;
}
