/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_assume.c - assume the values that a reconstruction requires and that nobody gave, as if `set` had them: UIDs contain
 * them, and `tomonode import --set` with the same values makes the same objects. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "dicom/object/dicom_tags.h"
#include "node/base/sentence.h"
#include "node/sinogram/sinogram_internal.h"

#define VALUES_MOST 4 /* position, date, time, duration */

/* Read the facts of an object that these data would have. */
static int read_facts(struct sinogram_source *s, struct pet_facts *ret, struct err *err)
{
	struct dicom_file *file;
	int rc = sinogram_try_attributes(s, &file, err);

	if (rc < 0)
		return rc;
	pet_facts_read(dicom_root(file), ret);
	dicom_close(file);
	return 0;
}

/* Say that the start is that of an image, which does not prove that it is of the same data. */
static void say_start(const struct pet_facts *f, struct sinogram_assumption *a)
{
	bool acquisition = f->acquisition_date[0] && f->acquisition_time[0];
	struct sinogram_assumed *to = a->conf.assumed;

	sentence_add(to->text, sizeof(to->text),
		     "The start of the acquisition is not in the header: that of --like, %s %s, is taken.",
		     acquisition ? f->acquisition_date : f->series_date, acquisition ? f->acquisition_time : f->series_time);
}

static int assume_start(const struct pet_facts *f, struct sinogram_assumption *a, struct err *err)
{
	const char *header = a->conf.header[SINOGRAM_EMISSION];
	struct stat st;
	time_t when = header && stat(header, &st) == 0 ? st.st_mtime : (time_t)a->conf.now;
	struct sinogram_assumed *to = a->conf.assumed;
	char moment[32];
	struct tm tm;

	if (f->injected[0])
		return err_set(err, EBADMSG,
			       "the start of the acquisition is not in the data; with a time of injection it cannot be assumed: "
			       "set AcquisitionDate and AcquisitionTime");
	localtime_r(&when, &tm);
	strftime(a->date, sizeof(a->date), "AcquisitionDate=%Y%m%d", &tm);
	strftime(a->time, sizeof(a->time), "AcquisitionTime=%H%M%S", &tm);
	strftime(moment, sizeof(moment), "%Y-%m-%d %H:%M:%S", &tm);
	a->set[a->conf.n_set++] = a->date;
	if (f->acquisition_time[0]) { /* without its day */
		sentence_add(to->text, sizeof(to->text),
			     "The day of the acquisition is not in the data: %.10s, that of the header file, is assumed.",
			     moment);
	} else {
		a->set[a->conf.n_set++] = a->time;
		sentence_add(to->text, sizeof(to->text),
			     "The start of the acquisition is not in the data: %s, the time of the header file, is assumed.",
			     moment);
	}
	to->start = true;
	return 0;
}

/* Assume head first and supine, as far as the header does not say otherwise. */
static int assume_position(const struct interfile *h, struct sinogram_assumption *a, struct err *err)
{
	const char *enters = h->enters[0] ? h->enters : "HF", *lies = h->lies[0] ? h->lies : "S";
	struct sinogram_assumed *to = a->conf.assumed;

	if (h->other_position)
		return err_set(
			err, EBADMSG,
			"the patient's position is \"other\" in the header (patient orientation, patient rotation): none can be "
			"assumed: set PatientPosition to HFS, HFP, FFS, FFP, HFDL, HFDR, FFDL or FFDR");
	snprintf(a->position, sizeof(a->position), "PatientPosition=%s%s", enters, lies);
	a->set[a->conf.n_set++] = a->position;
	to->position = true;
	sentence_add(to->text, sizeof(to->text),
		     SINOGRAM_NO_POSITION
		     "%s: %s%s (%s first, %s) is assumed; in another one, left, right, front, back, head and "
		     "feet of the image are wrong.",
		     h->enters[0] ? ", only the orientation"
		     : h->lies[0] ? ", only the rotation"
				  : "",
		     enters, lies, enters[0] == 'H' ? "head" : "feet",
		     !strcmp(lies, "S")	   ? "supine"
		     : !strcmp(lies, "P")  ? "prone"
		     : !strcmp(lies, "DR") ? "on the right side"
					   : "on the left side");
	return 0;
}

int sinogram_assume(struct sinogram_source *s, struct sinogram_assumption *a, struct err *err)
{
	static char duration[] = "ActualFrameDuration=1000";
	const bool pet = s->format->header == INTERFILE_PROJECTIONS;
	struct sinogram_assumed *to = s->conf->assumed;
	struct pet_facts f;
	char note[300];
	int rc = read_facts(s, &f, err);

	if (rc < 0)
		return rc;
	*to = (struct sinogram_assumed){0};
	a->conf = *s->conf;
	a->set = malloc((s->conf->n_set + VALUES_MOST) * sizeof(*a->set));
	if (!a->set)
		return err_set(err, ENOMEM, "no memory for attributes");
	if (s->conf->n_set > 0)
		memcpy(a->set, s->conf->set, s->conf->n_set * sizeof(*a->set));
	a->conf.set = a->set;
	if (!f.patient_position[0] && (rc = assume_position(&s->stream[s->format->first].header, a, err)) < 0)
		return rc; /* a position that is given and not supported is refused later */
	if (pet && (!f.acquisition_date[0] || !f.acquisition_time[0]) && (!f.series_date[0] || !f.series_time[0]))
		rc = assume_start(&f, a, err);
	else if (pet && sinogram_start_is_likes(s))
		say_start(&f, a);
	if (rc < 0)
		return rc;
	if (pet && !(f.duration > 0) && !(s->stream[SINOGRAM_EMISSION].header.duration > 0)) {
		a->set[a->conf.n_set++] = duration;
		to->duration = true;
		sentence_add(to->text, sizeof(to->text),
			     "The duration of the acquisition is not in the data: 1 s is assumed, and the values are "
			     "counts.");
	}
	sinogram_note_corrections(&s->stream[SINOGRAM_EMISSION].header, note, sizeof(note));
	if (note[0])
		sentence_add(to->text, sizeof(to->text), "%s", note);
	s->conf = &a->conf;
	return 0;
}
