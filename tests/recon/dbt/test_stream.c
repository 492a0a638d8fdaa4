/* SPDX-License-Identifier: Apache-2.0 */
/* A volume that is copied through the device in slabs equals one that stays there: every algorithm, both models, every plan that
 * a memory limit leads to; and a plan's bytes are those that are allocated. */
#include "recon/dbt/dbt_internal.h"
#include "tests/recon/dbt/case_fixture.h"
#include "tests/test.h"

/* Relative to the largest voxel, after two iterations. Line integrals are summed slab by slab, in a different order: an error of
 * some 1e-7, which the updates average. */
#define STREAM_TOL 1e-6

static int groups_of(const struct dbt_plan *plan)
{
	int n = 0;

	for (int s = 0; s < plan->subsets; s++) {
		int views = plan->n_views / plan->subsets + (s < plan->n_views % plan->subsets);

		n += plan->group_views > 0 ? (views + plan->group_views - 1) / plan->group_views : 1;
	}
	return n;
}

/* Counts of the kinds of plans that descend() has tested. */
struct covered {
	int plans, one_group, odd, even, shorter, grouped;
};

static void compare(const struct test_case *c, const struct dbt_protocol *p, const struct dbt_plan *plan, int which,
		    const float *whole, const char *name, struct covered *covered)
{
	struct device *dev = fixture_device(which, 1);
	float *volume = case_run(c, p, plan, dev);
	double d = fixture_difference(volume, whole, grid_size(&plan->grid));
	int groups = groups_of(plan);

	if (!(d <= STREAM_TOL))
		fail_msg("%s, model %d: %g with slabs of %d slices and groups of %d views", name, (int)p->projector, d,
			 plan->slab_slices, plan->group_views);
	covered->plans++;
	covered->one_group += groups == 1;
	covered->odd += groups > 1 && groups % 2;
	covered->even += groups % 2 == 0;
	covered->shorter += plan->slab_slices < CASE_SLICES && CASE_SLICES % plan->slab_slices > 0;
	covered->grouped += groups > plan->subsets;
}

/* Check that no numbers of slices and views fit into the limit. */
static void nothing_fits(const struct test_case *c, const struct dbt_protocol *p, const struct dbt_plan *plan, struct device *dev)
{
	struct dbt_layout layout;
	struct plan_bytes bytes;

	assert_int_equal(dbt_layout_make(p, plan, c->scan, &layout, NULL), 0);
	for (int slices = 1; slices <= CASE_SLICES; slices++)
		for (int views = 1; views <= CASE_VIEWS; views++) {
			assert_int_equal(dbt_streamed_count(p, plan, &layout, dev, slices, views, 0, &bytes, NULL), 0);
			assert_true(bytes.total > p->memory_limit);
		}
	dbt_layout_release(&layout);
}

/* Test all plans from the whole volume down to the smallest slabs and groups: each limit is one byte less than the last plan
 * used. */
static void descend(const struct test_case *c, const struct case_algorithm *a, enum projection_model model, int which,
		    struct covered *covered)
{
	struct dbt_protocol p = case_with(a, model);
	struct device *dev = fixture_device(which, 1);
	struct dbt_plan plan = case_plan(c, &p, dev);
	float *whole = case_run(c, &p, &plan, dev), most = 0;

	assert_int_equal(plan.slab_slices, CASE_SLICES);
	assert_int_equal(plan.group_views, 0);
	for (size_t i = 0; whole && i < grid_size(&plan.grid); i++)
		most = fmaxf(most, whole[i]);
	assert_true(!whole || (most > 0.01f && most < 1)); /* the image is not empty */
	for (int steps = 0; whole; steps++) {
		int r;

		assert_true(steps < 200);
		p.memory_limit = plan.bytes.total - 1;
		r = dbt_plan(&p, c->scan, CASE_SUPPORT, 2 * CASE_SLICES, dev, &plan, NULL);
		if (r < 0) {
			assert_int_equal(r, -ENOMEM);
			nothing_fits(c, &p, &plan, dev);
			break;
		}
		assert_true(plan.bytes.total <= p.memory_limit);
		if (plan.group_views > 0)
			compare(c, &p, &plan, which, whole, a->name, covered);
	}
}

TEST(limits)
{
	struct test_case c = case_open();
	struct covered covered = {0};

	for (size_t k = 0; k < CASE_ALGORITHMS; k++)
		for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++)
			for (int which = 0; which < FIXTURE_DEVICES; which++)
				if (test_tier() == 2 ||
				    (model == PROJECTION_SLICES ? which == FIXTURE_POISON : k % 6 == (size_t)which))
					descend(&c, &case_algorithms[k], model, which, &covered);
	print_message(
		"%d plans: %d of one group, %d of an odd and %d of an even number of groups, %d with sums that are transferred, "
		"%d with a shorter last slab\n",
		covered.plans, covered.one_group, covered.odd, covered.even, covered.grouped, covered.shorter);
	assert_true(covered.one_group > 0 && covered.odd > 0 && covered.even > 0 && covered.grouped > 0 && covered.shorter > 0);
}

/* The same for a detector that turns, with the fast operator. */
TEST(turning)
{
	struct test_case c = case_open_turning(0.285);
	struct covered covered = {0};

	for (size_t k = 0; k < test_count(CASE_ALGORITHMS, 4); k++)
		descend(&c, &case_algorithms[test_nth(k, CASE_ALGORITHMS, 4)], PROJECTION_SLICES, FIXTURE_CPU, &covered);
	print_message("%d plans\n", covered.plans);
	assert_true(covered.plans > 2 * (int)test_count(CASE_ALGORITHMS, 4));
}

/* Also execute plans that no limit results in: each number of slices with each number of views. */
TEST(slabs_and_groups)
{
	struct test_case c = case_open();
	struct covered covered = {0};

	for (size_t k = 0; k < CASE_ALGORITHMS; k++) {
		struct dbt_protocol p = case_with(&case_algorithms[k], PROJECTION_SLICES);
		struct device *dev = fixture_device(FIXTURE_CPU, 2);
		struct dbt_plan plan = case_plan(&c, &p, dev);
		float *whole = case_run(&c, &p, &plan, dev);

		for (plan.slab_slices = 1; whole && plan.slab_slices <= CASE_SLICES; plan.slab_slices += 3)
			for (size_t views = 0; views < test_count(CASE_VIEWS, 3); views++) {
				plan.group_views = 1 + (int)test_nth(views, CASE_VIEWS, 3);
				compare(&c, &p, &plan, FIXTURE_CPU, whole, case_algorithms[k].name, &covered);
			}
	}
}

/* The device's function table, with counts of the allocated memory. */
static struct {
	const struct device_ops *ops;
	size_t floats, tables, scratch;
	int live;
} book;

static int count_alloc(struct device *dev, size_t n, struct buf *ret_buf, struct err *err)
{
	int r = book.ops->alloc(dev, n, ret_buf, err);

	if (r == 0) {
		book.floats += n;
		book.live++;
	}
	return r;
}

static void count_release(struct buf *b)
{
	book.floats -= b->n;
	book.live--;
	book.ops->release(b);
}

static int count_projection(struct device *dev, const struct projection_spec *spec, struct projection **ret, struct err *err)
{
	size_t scratch = book.ops->scratch_bytes(dev, spec);

	book.tables += book.ops->projection_bytes(dev, spec);
	book.scratch = scratch > book.scratch ? scratch : book.scratch;
	book.live++;
	return book.ops->projection_create(dev, spec, ret, err);
}

static void count_projection_free(struct projection *a)
{
	book.live--;
	book.ops->projection_free(a);
}

static void check_bytes(const struct test_case *c, const struct dbt_protocol *p, const struct dbt_plan *plan, struct device *dev)
{
	struct dbt_session *s = NULL;
	size_t opened;

	book.floats = book.tables = book.scratch = 0;
	assert_int_equal(dbt_open(p, plan, c->scan, dev, &s, NULL), 0);
	opened = book.floats * sizeof(float) + book.tables + book.scratch;
	if (opened != plan->bytes.total)
		print_error("algorithm %d, model %d, slabs of %d, groups of %d: %zu bytes for %zu planned\n", (int)p->algorithm,
			    (int)p->projector, plan->slab_slices, plan->group_views, opened, plan->bytes.total);
	assert_true(opened == plan->bytes.total);
	assert_true(plan->bytes.total == plan->bytes.volumes + plan->bytes.data + plan->bytes.tables);
	for (int i = 0; i < CASE_VIEWS; i++) {
		float *line, *valid;
		int r;

		assert_int_equal(dbt_view_begin(s, i, &line, &valid, NULL), 0);
		memcpy(line, c->line + (size_t)i * c->view_bins, c->view_bins * sizeof(float));
		memcpy(valid, c->valid + (size_t)i * c->view_bins, c->view_bins * sizeof(float));
		r = dbt_view_end(s, i, NULL);
		if (!TOMONODE_FFT && r == -ENOTSUP)
			break;
		assert_int_equal(r, 0);
		if (i == CASE_VIEWS - 1)
			assert_int_equal(dbt_run(s, NULL, NULL, NULL), 0);
	}
	assert_true(book.floats * sizeof(float) + book.tables + book.scratch ==
		    opened); /* no further allocation during the run */
	dbt_close(s);
	assert_true(book.floats == 0 && book.live == 0);
}

TEST(bytes_are_those_taken)
{
	struct test_case c = case_open();

	for (size_t k = 0; k < 2 * CASE_ALGORITHMS; k++) {
		struct dbt_protocol p = case_with(&case_algorithms[k / 2], k % 2 ? PROJECTION_EXACT : PROJECTION_SLICES);

		if (test_tier() < 2 && k % 2 && k / 2 % 4) /* a few with the slow projector */
			continue;
		struct device *dev = fixture_device(FIXTURE_CPU, 2);
		struct device_ops counting = *dev->ops;
		struct dbt_plan plan;

		p.iterations = 1;
		book.ops = dev->ops;
		counting.alloc = count_alloc;
		counting.release = count_release;
		counting.projection_create = count_projection;
		counting.projection_free = count_projection_free;
		dev->ops = &counting;
		plan = case_plan(&c, &p, dev);
		check_bytes(&c, &p, &plan, dev);
		for (;;) {
			p.memory_limit = plan.bytes.total - 1;
			if (dbt_plan(&p, c.scan, CASE_SUPPORT, 2 * CASE_SLICES, dev, &plan, NULL) < 0)
				break;
			check_bytes(&c, &p, &plan, dev);
		}
		dev->ops = book.ops;
	}
}

/* The plan, and every bit of the image, are the same for any number of threads, whatever the limit. */
TEST(threads_do_not_matter)
{
	static const int threads[] = {1, 2, 3, 8};
	struct test_case c = case_open();
	int slabs = 0;

	for (size_t i = 0; i < CASE_ALGORITHMS * 2 * 6; i++) {
		struct dbt_protocol p = case_with(&case_algorithms[i / 12], i / 6 % 2 ? PROJECTION_EXACT : PROJECTION_SLICES);

		if (test_tier() < 2 && i / 6 % 2 && i / 12 % 4)
			continue;
		struct device *dev = fixture_device(FIXTURE_CPU, 1);
		float *images[4] = {0};
		struct dbt_plan plans[4];

		p.iterations = 1;
		plans[0] = case_plan(&c, &p, dev);
		p.memory_limit = plans[0].bytes.total - plans[0].bytes.total * (i % 6) / 8;
		for (int k = 0; k < 4; k++) {
			dev = fixture_device(FIXTURE_CPU, threads[k]);
			if (dbt_plan(&p, c.scan, CASE_SUPPORT, 2 * CASE_SLICES, dev, &plans[k], NULL) < 0) {
				assert_null(images[0]); /* one of them would fit */
				continue;
			}
			assert_int_equal(plans[k].slab_slices, plans[0].slab_slices);
			assert_int_equal(plans[k].group_views, plans[0].group_views);
			images[k] = k == 0 || threads[k] == 3 ? case_run(&c, &p, &plans[k], dev) : NULL;
			if (images[k])
				assert_memory_equal(images[k], images[0], grid_size(&plans[0].grid) * sizeof(float));
		}
		slabs += images[0] && plans[0].slab_slices < CASE_SLICES;
	}
	assert_true(slabs > 6);
}
