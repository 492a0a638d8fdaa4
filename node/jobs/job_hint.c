/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/job_hint.h"

#include "node/jobs/patients.h"

bool job_waits_for_destination(const struct job_view *v, bool *ret_alarm)
{
	if (v->state != JOB_RECONSTRUCTED && v->state != JOB_STORED)
		return false;
	for (size_t i = 0; i < v->n_sends; i++) {
		const struct job_send *s = &v->sends[i];
		bool late = v->state == JOB_STORED && s->state == SEND_STORED && s->commit_tries > 0;

		if (job_send_is_active(s) && (s->alarm || s->since > 0 || s->blocked_by || late)) {
			*ret_alarm = s->alarm || (s->blocked_by && s->blocked_by->alarm);
			return true;
		}
	}
	return false;
}

bool job_is_incomplete(const struct job_view *v)
{
	return v->state == JOB_HELD && !v->patients_differ && v->members.expected > 0 &&
	       v->members.instances < v->members.expected;
}

bool job_is_unanswered(const struct job_view *v)
{
	bool any = false, refused = false;

	for (size_t i = 0; i < v->n_sends; i++)
		if (job_send_is_active(&v->sends[i]) && v->sends[i].state == SEND_REFUSED) {
			any = any || job_send_is_unanswered(&v->sends[i]);
			refused = refused || !job_send_is_unanswered(&v->sends[i]);
		}
	return v->state == JOB_DEAD_LETTER && any && !refused;
}

const char *job_hint(const struct job_view *v, int sweeps)
{
	bool alarm;

	if (sweeps > 0 && v->state != JOB_CANCELLED)
		return "Choose the sweep that counts. The others are kept, and can be chosen later.";
	if (v->lacks_companion)
		return "Send the CT series from the scanner or the archive: the case then continues automatically. Without it "
		       "the result is not corrected for attenuation, and says so.";
	if (job_is_incomplete(v) && v->members.as_is)
		return "The received images are not enough. Send the missing ones from the modality: the case then continues "
		       "automatically.";
	if (job_is_incomplete(v) && job_view_as_is_obstacle(v))
		return "Send the missing images from the modality: the case then continues automatically. It needs all of them.";
	if (job_is_incomplete(v))
		return "Send the missing images from the modality: the case then continues automatically. If there are no more, "
		       "reconstruct the received ones: the result has less detail, and says how many images there were.";
	if (!patients_no_statement(v))
		return "Nothing was reconstructed. Compare the headers of the named images, or of both cases, at the modality. "
		       "If they are of one patient, say so: the result then has patient and study of the image received last. "
		       "Otherwise correct the patient at the modality, and send the exam again: then the newer images can be used.";
	if (v->state == JOB_HELD && v->damaged > 0)
		return "Send the exam again from the modality: the case then continues automatically. Files were changed "
		       "on disk: have the disk checked.";
	switch (v->state) {
	case JOB_HELD:
		return "Nothing is lost: the images are kept. Tell your administrator what is wrong; when it is corrected, try "
		       "again.";
	case JOB_FAILED:
		return "Nothing is lost: the images are kept. Tell your administrator, then try again.";
	case JOB_DEAD_LETTER:
		if (job_is_unanswered(v))
			return "Nothing is lost: the archive took the result, but never confirmed that it keeps it. Tell your "
			       "administrator; when it confirms, try again.";
		return "Nothing is lost: the result is kept. Tell your administrator; when the destination accepts it, try "
		       "again: only the missing objects are sent.";
	case JOB_RECONSTRUCTED:
		return job_waits_for_destination(v, &alarm)
			       ? "Nothing is lost: the result is kept, and sent automatically when the destination accepts it."
			       : "";
	case JOB_IMPOSSIBLE:
		return "Send the exam again from the modality. Other cases are not affected.";
	default:
		return "";
	}
}

/* ---- buttons ---- */

const char *job_hint_retry(const struct job_view *v)
{
	bool waits = false;

	if (job_next(v->state, EVENT_RETRY) == JOB_IMPOSSIBLE || job_is_incomplete(v) || v->lacks_companion ||
	    !patients_no_statement(v)) /* it continues by itself, or has another button */
		return NULL;
	for (size_t i = 0; i < v->n_sends; i++)
		waits = waits || (v->sends[i].state == SEND_DUE && v->sends[i].failures > 0);
	if (v->state == JOB_READY)
		return v->reason[0] ? "Try now" : NULL;
	if (v->state == JOB_RECONSTRUCTED)
		return waits ? "Try now" : NULL;
	if (v->state == JOB_STORED)
		return "Request commitment now";
	if (v->state == JOB_CANCELLED)
		return "Resume the case";
	return "Try again";
}

const char *job_hint_as_is(const struct job_view *v)
{
	if (v->lacks_companion || (v->state == JOB_HELD && v->companions > 0)) /* none has come, or it cannot be used */
		return "Reconstruct without CT";
	return job_is_incomplete(v) && !v->members.as_is && !job_view_as_is_obstacle(v) ? "Reconstruct the received images"
											: NULL;
}

const char *job_hint_same_patient(const struct job_view *v)
{
	return patients_no_statement(v) ? NULL : "It is the same patient";
}

const char *job_hint_cancel(const struct job_view *v)
{
	return job_next(v->state, EVENT_CANCEL) == JOB_IMPOSSIBLE ? NULL : "Cancel";
}

json_t *job_hint_commands(const struct job_view *v, int sweeps)
{
	const struct {
		const char *label, *options;
	} ways[] = {{job_hint_as_is(v), "retry --as-is"},
		    {job_hint_same_patient(v), "retry --same-patient"},
		    {job_hint_retry(v), "retry"}};
	json_t *list = json_array();

	for (size_t i = 0; sweeps <= 0 && i < sizeof(ways) / sizeof(ways[0]); i++)
		if (job_hint(v, 0)[0] && ways[i].label)
			json_array_append_new(list, json_sprintf("tomonode %s %lld", ways[i].options, (long long)v->id));
	return list;
}
