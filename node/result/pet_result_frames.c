/* SPDX-License-Identifier: Apache-2.0 */
/* pet_result_frames.c - the time frames of a dynamic PET series, the gates of a gated one, the beds of a whole-body one (PS3.3
 * C.8.9.1, C.8.9.3, C.8.9.4).
 *
 * - All frames are corrected for decay to the same time, the start of the acquisition, which is that of the series. A frame from
 * t to t + T has the decay factor exp(lambda t) lambda T / (1 - exp(-lambda T)), and in Bq/ml value = x C / T times this factor.
 * - Frame Reference Time is the time of the mean activity in the frame: t + ln(lambda T / (1 - exp(-lambda T))) / lambda, t + T /
 * 2 for an unknown half-life.
 * - Image Index = (time slice - 1) Number of Slices + slice (C.8.9.4.1.9): the instances are in this order. With gates the time
 * slot is in the place of the time slice: there is one R-R interval.
 * - All beds are corrected for decay as frames are. Each image of a whole-body series has the times and the decay factor of its
 * bed, in an overlap of the bed with the largest weight; Image Index is the number of the slice.
 * - A gate has many parts: its duration and decay factor are in recon/pet/gates.h. All images of a gated series have the
 * Acquisition Time and the Actual Frame Duration of the whole acquisition (C.8.9.4.1.4, C.8.9.4.1.6); the time in which a gate
 * has counted is in Time Slot Time (0054,0073), which the standard has for NM: a Standard Extended attribute. Trigger Time and
 * Frame Time are nominal, for a cycle of mean length (C.8.9.4.1.3, framing type PCNT). */
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

static struct pet_frame_quantity gate_quantity(const struct sinogram *s, const struct pet_quantity *q, int gate, double lambda)
{
	struct pet_gate_sum sum = pet_gates_sum(&s->images.gates, gate, lambda);
	struct pet_frame_quantity ret = {
		.factor = 1, .decay_factor = 1, .reference_ms = sum.reference, .duration_ms = sum.duration};

	if (strcmp(q->decay, "NONE") != 0)
		ret.decay_factor = sum.decay_factor;
	if (q->calibrated)
		ret.factor = q->calibration / ((double)sum.duration / 1000) * ret.decay_factor;
	snprintf(ret.date, sizeof(ret.date), "%s", q->date);
	snprintf(ret.time, sizeof(ret.time), "%s", q->time);
	return ret;
}

static struct pet_frame_quantity frame_quantity(const struct pet_frame *f, const struct pet_quantity *q, double lambda)
{
	double start = (double)f->start / 1000, duration = (double)(f->stop - f->start) / 1000;
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

struct pet_frame_quantity pet_result_frame(const struct sinogram *s, const struct pet_quantity *q, int frame)
{
	double lambda = s->facts.half_life > 0 ? M_LN2 / s->facts.half_life : 0;

	struct pet_frame_quantity ret = s->images.of == PET_GATES ? gate_quantity(s, q, frame, lambda)
								  : frame_quantity(&s->images.image[frame].time, q, lambda);

	ret.dead_time = pet_result_dead_time(s, q, frame);
	return ret;
}

/* ---- attributes ---- */

void pet_result_fill_gating(const struct pet_result *r, struct item_writer *w)
{
	static const char *const sources[PET_SIGNALS] = {"", "EKG", "RESPIRATION", "MOTION", "EXTERNAL"};
	const struct pet_gates *g = &r->series.s->images.gates;
	const struct pet_marks *m = &g->marks;
	double minutes = (double)(m->ms[m->n - 1] - m->ms[0]) / 60000;

	item_put_int(w, TAG_NUMBER_OF_R_R_INTERVALS, 1);
	item_put_int(w, TAG_NUMBER_OF_TIME_SLOTS, g->n);
	item_put_text(w, TAG_BEAT_REJECTION_FLAG, g->longest > 0 ? "Y" : "N");
	item_put_text(w, TAG_CARDIAC_FRAMING_TYPE, "PCNT");
	if (g->signal != PET_SIGNAL_TABLE)
		item_put_text(w, TAG_TRIGGER_SOURCE_OR_TYPE, sources[g->signal]);
	if (g->signal == PET_SIGNAL_ECG)
		item_put_int(w, TAG_HEART_RATE, lround((double)(m->n - 1) / minutes));
	item_put_int(w, TAG_NOMINAL_INTERVAL, lround(r->cycles.mean));
	item_put_int(w, TAG_INTERVALS_ACQUIRED, r->cycles.used);
	item_put_int(w, TAG_INTERVALS_REJECTED, r->cycles.left_out);
	if (g->longest > 0) {
		item_put_int(w, TAG_LOW_R_R_VALUE, (long)g->shortest);
		item_put_int(w, TAG_HIGH_R_R_VALUE, (long)g->longest);
	}
}

static void fill_gate(const struct pet_result *r, int gate, struct item_writer *w)
{
	double time = r->cycles.mean / r->series.s->images.n;

	item_put_double(w, TAG_TRIGGER_TIME, gate * time);
	item_put_double(w, TAG_FRAME_TIME, time);
	item_put_int(w, TAG_TIME_SLOT_TIME, (long)r->frame[gate].duration_ms);
}

static void fill_frame(const struct pet_frame_quantity *f, struct item_writer *w)
{
	char moment[27];

	item_put_text(w, TAG_ACQUISITION_DATE, f->date);
	item_put_text(w, TAG_ACQUISITION_TIME, f->time);
	snprintf(moment, sizeof(moment), "%s%s", f->date, f->time);
	if (w->rc >= 0 && dicom_has(w->item, TAG_ACQUISITION_DATE_TIME))
		item_put_text(w, TAG_ACQUISITION_DATE_TIME, moment);
	item_put_int(w, TAG_ACTUAL_FRAME_DURATION, (long)f->duration_ms);
}

void pet_result_fill_frame(const struct pet_result *r, int frame, struct item_writer *w)
{
	const struct pet_frame_quantity *f = &r->frame[frame];

	if (r->series.s->images.of == PET_GATES)
		fill_gate(r, frame, w);
	else
		fill_frame(f, w);
	if (strcmp(r->quantity.decay, "NONE") != 0)
		item_put_double(w, TAG_DECAY_FACTOR, f->decay_factor);
	if (f->dead_time > 0)
		item_put_double(w, TAG_DEAD_TIME_FACTOR, f->dead_time);
	item_put_double(w, TAG_FRAME_REFERENCE_TIME, f->reference_ms);
}
