/* SPDX-License-Identifier: Apache-2.0 */
#include "recon/core/session.h"

#include <errno.h>
#include <stdlib.h>

#include "recon/core/projector.h"

struct session_item {
	struct session_item *before;
	struct buf buf;
	void *host, *array;
	struct linop *op;
};

static struct session_item *add_item(struct session_memory *m, struct err *err)
{
	struct session_item *i = m->rc < 0 ? NULL : calloc(1, sizeof(*i));

	if (i) {
		i->before = m->last;
		m->last = i;
	} else if (m->rc == 0) {
		m->rc = err_set(err, ENOMEM, "reconstruction: out of memory");
	}
	return i;
}

int session_alloc(struct session_memory *m, size_t n, struct buf *ret_buf, struct err *err)
{
	struct session_item *i = add_item(m, err);

	if (i && (m->rc = m->dev->ops->alloc(m->dev, n, &i->buf, err)) == 0)
		*ret_buf = i->buf;
	return m->rc;
}

int session_host(struct session_memory *m, size_t bytes, void **ret, struct err *err)
{
	struct session_item *i = add_item(m, err);

	if (i && (m->rc = m->dev->ops->host_alloc(m->dev, bytes, &i->host, err)) == 0)
		*ret = i->host;
	return m->rc;
}

int session_array(struct session_memory *m, size_t n, size_t size, void **ret, struct err *err)
{
	struct session_item *i = add_item(m, err);

	if (i && (*ret = i->array = calloc(n, size)) == NULL)
		m->rc = err_set(err, ENOMEM, "reconstruction: cannot allocate %zu elements of %zu bytes", n, size);
	return m->rc;
}

int session_projector(struct session_memory *m, const struct projection_spec *spec, struct linop **ret_op, struct err *err)
{
	struct session_item *i = add_item(m, err);

	if (i && (m->rc = projector_create(m->dev, spec, &i->op, err)) == 0)
		*ret_op = i->op;
	return m->rc;
}

void session_drain(struct device *dev)
{
	for (enum device_queue queue = QUEUE_WORK; queue <= QUEUE_DOWN; queue++)
		dev->ops->wait(dev, queue, NULL);
}

void session_release(struct session_memory *m)
{
	while (m->last) {
		struct session_item *i = m->last;

		m->last = i->before;
		linop_free(i->op);
		buf_release(&i->buf);
		m->dev->ops->host_free(m->dev, i->host);
		free(i->array);
		free(i);
	}
	m->rc = 0;
}
