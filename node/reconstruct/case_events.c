/* SPDX-License-Identifier: Apache-2.0 */
/* case_events.c - see case_events.h. */
#include "node/reconstruct/case_events.h"

#include <errno.h>
#include <stdlib.h>

static int plan_frame(struct case_events *e, struct err *err)
{
	return pet_list_plan(e->protocol, case_event_terms_list(&e->terms, e->s), e->dev, &e->plan, err);
}

/* Return the bytes of the host's memory, with the volume of the sensitivity. */
static size_t bytes_of(const struct case_events *e)
{
	size_t sensitivity = pet_images_count(&e->s->images) > 1 ? grid_size(&e->plan.grid) * sizeof(float) : 0;

	return e->plan.bytes.host + sinogram_list_report(e->s)->bytes + sensitivity;
}

int case_events_plan(struct case_events *e, struct sinogram *s, const struct pet_protocol *p, struct device *dev,
		     struct pet_plan *ret_plan, struct err *err)
{
	size_t most = 0;
	int largest = 0, rc;

	for (int f = 0; f < pet_images_count(&s->images); f++) {
		sinogram_choose_frame(s, f);
		if (sinogram_list_data(s)->n_events > most) {
			most = sinogram_list_data(s)->n_events;
			largest = f;
		}
	}
	sinogram_choose_frame(s, largest);
	*e = (struct case_events){.s = s, .protocol = p, .dev = dev};
	rc = plan_frame(e, err);
	sinogram_choose_frame(s, 0);
	if (rc < 0)
		return rc;
	*ret_plan = (struct pet_plan){.grid = e->plan.grid,
				      .fov_radius = e->plan.fov_radius,
				      .subsets = e->plan.subsets,
				      .iterations = e->plan.iterations,
				      .bytes = {.total = e->plan.bytes.total, .host = bytes_of(e)}};
	return 0;
}

static void add_report(struct pet_list_report *sum, const struct pet_list_report *r)
{
	sum->seconds_sensitivity += r->seconds_sensitivity;
	sum->seconds_read += r->seconds_read;
	sum->seconds_iterate += r->seconds_iterate;
	sum->seconds_filter += r->seconds_filter;
	sum->events += r->events;
	sum->lors = r->lors > sum->lors ? r->lors : sum->lors;
}

/* Have memory for the sensitivity if there are further frames. */
static int keep_sensitivity(struct case_events *e, struct err *err)
{
	if (pet_images_count(&e->s->images) == 1 || e->own_sensitivity || e->sensitivity.values)
		return 0;
	e->sensitivity.values = malloc(grid_size(&e->plan.grid) * sizeof(float));
	return e->sensitivity.values ? 0 : err_set(err, ENOMEM, "no memory for the sensitivity");
}

int case_events_run(struct case_events *e, const struct monitor *monitor, struct err *err)
{
	const struct pet_list *list = case_event_terms_list(&e->terms, e->s);
	struct pet_list_report report = {0};
	int rc = plan_frame(e, err);

	if (rc == 0)
		rc = keep_sensitivity(e, err);
	if (rc == 0)
		rc = pet_list_open(e->protocol, &e->plan, list, e->dev, &e->session, err);
	if (rc == 0 && e->sensitivity.values)
		pet_list_share_sensitivity(e->session, &e->sensitivity);
	if (rc == 0)
		rc = pet_list_run(e->session, monitor, &report, err);
	add_report(&e->report, &report);
	return rc;
}

void case_events_close_session(struct case_events *e)
{
	e->session = pet_list_close(e->session);
}

void case_events_clear(struct case_events *e)
{
	case_events_close_session(e);
	case_event_terms_clear(&e->terms);
	free(e->sensitivity.values);
	e->sensitivity.values = NULL;
}
