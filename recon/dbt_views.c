/* dbt_views.c - views on their way into a session, from several threads.
 *
 * Resident: a view is filled in one of a few rooms of host memory that transfers at full speed, and goes to the device from
 * there. Streamed: it is filled in its final place. Checking and filtering happen in the caller's thread, transfers one at a
 * time.
 */
#include <errno.h>
#include <math.h>

#include "recon/dbt_parts.h"
#include "recon/fbp_filter.h"

static int check_view(const struct dbt_session *s, int view, struct err *err)
{
	if (view < 0 || view >= s->plan->n_views || s->done)
		return err_set(err, EINVAL, "reconstruction: projection %d of %d%s", view, s->plan->n_views,
			       s->done ? " after the run" : "");
	return 0;
}

static struct dbt_room *room_of(struct dbt_session *s, int view)
{
	for (int i = 0; i < DBT_ROOMS && i < s->plan->n_views; i++)
		if (s->room[i].view == view)
			return &s->room[i];
	return NULL;
}

int dbt_view_begin(struct dbt_session *s, int view, float **ret_line, float **ret_valid, struct err *err)
{
	struct dbt_room *room = NULL;
	int r = check_view(s, view, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&s->lock);
	if (s->ended[view] || (!s->streamed && room_of(s, view)))
		r = err_set(err, EINVAL, "reconstruction: projection %d is here already", view);
	while (r == 0 && !s->streamed && !(room = room_of(s, -1)))
		pthread_cond_wait(&s->changed, &s->lock);
	if (room)
		room->view = view;
	pthread_mutex_unlock(&s->lock);
	if (r < 0)
		return r;
	if (room) {
		*ret_line = room->line;
		*ret_valid = room->valid;
	} else {
		*ret_line = s->host_y + (size_t)s->layout.place[view] * s->view_bins;
		*ret_valid = s->host_valid + (size_t)s->layout.place[view] * s->view_bins;
	}
	return 0;
}

/* Bins that do not count become 0, valid one of 1, 0 and -1, whatever they held. */
static int settle(const struct dbt_session *s, int view, float *line, float *valid, double sums[2], struct err *err)
{
	bool filtered = s->p->algorithm == DBT_FBP;

	for (size_t b = 0; b < s->view_bins; b++) {
		if (!(valid[b] > 0)) {
			valid[b] = valid[b] < 0 ? -1 : 0;
			if (!filtered || !isfinite(line[b])) /* the filter uses what air there is */
				line[b] = 0;
			continue;
		}
		valid[b] = 1;
		if (!(line[b] >= 0) || !isfinite(line[b]))
			return err_set(err, EINVAL, "projection %d, bin (%zu, %zu): line integral %g", view,
				       b % (size_t)s->plan->n_u, b / (size_t)s->plan->n_u, (double)line[b]);
		sums[0] += line[b];
		sums[1] += (double)line[b] * line[b];
	}
	return filtered ? fbp_filter_view(s->layout.scan, s->layout.place[view], s->p->filter, s->p->filter_cut, line, valid, err)
			: 0;
}

static int send(struct dbt_session *s, int view, const float *line, const float *valid, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	size_t at = (size_t)s->layout.place[view] * s->view_bins;
	struct buf y = buf_part(&s->y, at, s->view_bins), mask = buf_part(&s->mask, at, s->view_bins);
	int r = v->upload_begin(&y, line, err);

	if (r == 0)
		r = v->upload_begin(&mask, valid, err);
	if (r == 0)
		r = v->order(s->dev, QUEUE_UP, QUEUE_WORK, err);
	return r < 0 ? r : v->wait(s->dev, QUEUE_UP, err);
}

int dbt_view_end(struct dbt_session *s, int view, struct err *err)
{
	struct dbt_room *room = NULL;
	float *line, *valid;
	double sums[2] = {0, 0};
	int r = check_view(s, view, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&s->lock);
	if (!s->streamed && !(room = room_of(s, view)))
		r = err_set(err, EINVAL, "reconstruction: projection %d was not begun", view);
	pthread_mutex_unlock(&s->lock);
	if (r < 0)
		return r;
	line = room ? room->line : s->host_y + (size_t)s->layout.place[view] * s->view_bins;
	valid = room ? room->valid : s->host_valid + (size_t)s->layout.place[view] * s->view_bins;
	r = settle(s, view, line, valid, sums, err);
	pthread_mutex_lock(&s->lock);
	if (r == 0 && room)
		r = send(s, view, line, valid, err);
	if (room)
		room->view = -1;
	if (r == 0) {
		s->ended[view] = true;
		s->n_ended++;
		s->sums[0] += sums[0];
		s->sums[1] += sums[1];
	}
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return r;
}
