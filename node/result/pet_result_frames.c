/* SPDX-License-Identifier: Apache-2.0 */
/* pet_result_frames.c - the time frames of a dynamic PET series (PS3.3 C.8.9.1, C.8.9.4).
 *
 * - All frames are corrected for decay to the same time, the start of the acquisition, which is that of the series. A frame from
 * t to t + T has the decay factor exp(lambda t) lambda T / (1 - exp(-lambda T)), and in Bq/ml value = x C / T times this factor.
 * - Frame Reference Time is the time of the mean activity in the frame: t + ln(lambda T / (1 - exp(-lambda T))) / lambda, t + T /
 * 2 for an unknown half-life.
 * - Image Index = (time slice - 1) Number of Slices + slice (C.8.9.4.1.9): the instances are in this order. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "node/result/pet_result_internal.h"

/* Add ms to a date and time. The text has the fraction's digits that are needed. */
static void add_time(const char *date, const char *time, int64_t ms, char ret_date[9], char ret_time[17])
{
	const char *point = strchr(time, '.');
	int64_t micro = 0, whole;
	double start;
	time_t seconds;
	struct tm tm;

	if (ms == 0 || !pet_facts_moment(date, time, &start)) {
		snprintf(ret_date, 9, "%s", date);
		snprintf(ret_time, 17, "%s", time);
		return;
	}
	for (int64_t digit = 100000; point && *++point && digit > 0; digit /= 10)
		micro += digit * (*point - '0');
	micro += 1000 * (ms % 1000);
	whole = (int64_t)start + ms / 1000 + micro / 1000000;
	micro %= 1000000;
	seconds = (time_t)whole;
	gmtime_r(&seconds, &tm);
	strftime(ret_date, 9, "%Y%m%d", &tm);
	strftime(ret_time, 17, "%H%M%S", &tm);
	if (micro > 0)
		snprintf(ret_time + 6, 11, ".%06d", (int)micro);
}

struct pet_frame_quantity pet_result_frame(const struct sinogram *s, const struct pet_quantity *q, int frame)
{
	const struct pet_frame *f = &s->frames.frame[frame];
	double start = (double)f->start / 1000, duration = (double)(f->stop - f->start) / 1000;
	double lambda = s->facts.half_life > 0 ? M_LN2 / s->facts.half_life : 0;
	double d = lambda > 0 ? lambda * duration / -expm1(-lambda * duration) : 1;
	struct pet_frame_quantity ret = {.factor = 1, .decay_factor = 1, .duration_ms = f->stop - f->start};

	ret.reference_ms = 1000 * (start + (lambda > 0 ? log(d) / lambda : duration / 2));
	if (strcmp(q->decay, "NONE") != 0)
		ret.decay_factor = exp(lambda * start) * d;
	if (q->calibrated)
		ret.factor = q->calibration / duration * ret.decay_factor;
	add_time(q->date, q->time, f->start, ret.date, ret.time);
	return ret;
}

void pet_result_fill_frame(const struct pet_result *r, int frame, struct item_writer *w)
{
	struct pet_frame_quantity f = pet_result_frame(r->series.s, &r->quantity, frame);
	char moment[27];

	item_put_text(w, TAG_ACQUISITION_DATE, f.date);
	item_put_text(w, TAG_ACQUISITION_TIME, f.time);
	snprintf(moment, sizeof(moment), "%s%s", f.date, f.time);
	if (w->rc >= 0 && dicom_has(w->item, TAG_ACQUISITION_DATE_TIME))
		item_put_text(w, TAG_ACQUISITION_DATE_TIME, moment);
	if (strcmp(r->quantity.decay, "NONE") != 0)
		item_put_double(w, TAG_DECAY_FACTOR, f.decay_factor);
	item_put_double(w, TAG_FRAME_REFERENCE_TIME, f.reference_ms);
	item_put_int(w, TAG_ACTUAL_FRAME_DURATION, (long)f.duration_ms);
}
