/* cuda_projection.cu - a system matrix on the CUDA device: what it keeps there, and which kernels serve it.
 *
 * A projection keeps its views and, for SLICES, a map per view and slice. Larger working memory is the device's scratch, one for
 * all projections: the weighted bins of the back pass, or the 64-bit sums of the bitwise repeatable scatter. Tiles do not change
 * what a kernel computes: each bin and each voxel is gathered by one thread.
 */
#include "kernels/cuda.cuh"

#include <errno.h>
#include <stdlib.h>

static size_t bins(const struct projection_spec *spec)
{
	return (size_t)spec->n_views * scan_view_size(spec->scan);
}

size_t cuda_projection_bytes(struct device *dev, const struct projection_spec *spec)
{
	size_t bytes = (size_t)spec->n_views * sizeof(struct scan_view);

	(void)dev;
	if (spec->model == PROJECTION_SLICES)
		bytes += (size_t)spec->n_views * (size_t)spec->grid->n[2] * sizeof(struct slice_map);
	return bytes;
}

size_t cuda_scratch_bytes(struct device *dev, const struct projection_spec *spec)
{
	(void)dev;
	if (spec->model == PROJECTION_SLICES)
		return bins(spec) * sizeof(float2);
	return spec->deterministic ? grid_size(spec->grid) * sizeof(long long) + sizeof(float) : 0;
}

static int scratch_reserve(struct device *dev, size_t bytes, struct err *err)
{
	struct cuda_state *state = cuda_state(dev);
	void *mem = NULL;
	int r;

	if (bytes <= state->scratch_bytes)
		return 0;
	if ((r = cuda_check(cudaStreamSynchronize(state->stream), dev, "working memory", err)) < 0 ||
	    (r = cuda_check(cudaFree(state->scratch), dev, "working memory", err)) < 0)
		return r;
	state->scratch = NULL;
	state->scratch_bytes = 0;
	if ((r = cuda_check(cudaMalloc(&mem, bytes), dev, "working memory", err)) < 0)
		return r;
	state->scratch = mem;
	state->scratch_bytes = bytes;
	return 0;
}

static int upload_views(struct projection *a, const struct projection_spec *spec, struct err *err)
{
	size_t bytes = (size_t)spec->n_views * sizeof(struct scan_view);
	int r = cuda_check(cudaMalloc((void **)&a->views, bytes), a->dev, "views", err);

	return r < 0 ? r
		     : cuda_check(cudaMemcpy(a->views, spec->scan->views + spec->first, bytes, cudaMemcpyHostToDevice), a->dev,
				  "views", err);
}

static int upload_maps(struct projection *a, const struct projection_spec *spec, struct err *err)
{
	int nz = spec->grid->n[2];
	size_t n = (size_t)spec->n_views * (size_t)nz;
	struct slice_map *maps = (struct slice_map *)malloc(n * sizeof(*maps));
	int r;

	if (!maps)
		return err_set(err, ENOMEM, "%s: out of memory for %zu slice maps", a->dev->name, n);
	for (int s = 0; s < spec->n_views; s++)
		for (int k = 0; k < nz; k++)
			maps[(size_t)s * nz + k] = slice_map_make(spec->scan, spec->scan->views + spec->first + s, spec->grid, k);
	r = cuda_check(cudaMalloc((void **)&a->maps, n * sizeof(*maps)), a->dev, "slice maps", err);
	if (r == 0)
		r = cuda_check(cudaMemcpy(a->maps, maps, n * sizeof(*maps), cudaMemcpyHostToDevice), a->dev, "slice maps", err);
	free(maps);
	return r;
}

int cuda_projection_create(struct device *dev, const struct projection_spec *spec, struct projection **ret, struct err *err)
{
	struct projection *a = NULL;
	int r;

	if (spec->first < 0 || spec->n_views < 1 || spec->first + spec->n_views > spec->scan->n_views)
		return err_set(err, EINVAL, "%s: views %d..%d of a scan with %d", dev->name, spec->first,
			       spec->first + spec->n_views - 1, spec->scan->n_views);
	if (spec->mask && spec->mask->n != bins(spec))
		return err_set(err, EINVAL, "%s: the mask has %zu bins, the views have %zu", dev->name, spec->mask->n,
			       bins(spec));
	if (spec->model == PROJECTION_SLICES)
		for (int s = 0; s < spec->n_views; s++)
			if (spec->scan->kind != SCAN_DBT || !slice_map_valid(spec->scan->views + spec->first + s, spec->grid))
				return err_set(err, EINVAL, "%s: view %d: the slices do not all lie between detector and source",
					       dev->name, spec->first + s);
	a = (struct projection *)calloc(1, sizeof(*a));
	if (!a)
		return err_set(err, ENOMEM, "%s: out of memory", dev->name);
	a->dev = dev;
	a->model = spec->model;
	a->scan = *spec->scan;
	a->scan.views = NULL;
	a->grid = *spec->grid;
	a->n_views = spec->n_views;
	a->mask = spec->mask ? spec->mask->mem : NULL;
	a->deterministic = spec->deterministic;
	if ((r = cuda_check(cudaSetDevice(dev->index), dev, "cudaSetDevice", err)) < 0 || (r = upload_views(a, spec, err)) < 0)
		goto out;
	if (spec->model == PROJECTION_SLICES && (r = upload_maps(a, spec, err)) < 0)
		goto out;
	if ((r = scratch_reserve(dev, cuda_scratch_bytes(dev, spec), err)) < 0)
		goto out;
	*ret = a;
	return 0;
out:
	cuda_projection_free(a);
	return r;
}

void cuda_projection_free(struct projection *a)
{
	if (!a)
		return;
	cudaSetDevice(a->dev->index);
	cudaStreamSynchronize(cuda_state(a->dev)->stream);
	cudaFree(a->views);
	cudaFree(a->maps);
	free(a);
}

static int check_sizes(const struct projection *a, const struct buf *x, const struct buf *y, struct err *err)
{
	size_t n_bins = (size_t)a->n_views * scan_view_size(&a->scan);

	if (x->n != grid_size(&a->grid) || y->n != n_bins)
		return err_set(err, EINVAL, "%s: projection of %zu voxels to %zu bins got vectors of %zu and %zu", a->dev->name,
			       grid_size(&a->grid), n_bins, x->n, y->n);
	return cuda_check(cudaSetDevice(a->dev->index), a->dev, "cudaSetDevice", err);
}

int cuda_forward(struct projection *a, const struct buf *x, struct buf *ret_y, struct err *err)
{
	int r = check_sizes(a, x, ret_y, err);

	if (r < 0)
		return r;
	return a->model == PROJECTION_EXACT ? cuda_exact_forward(a, x->mem, ret_y->mem, err)
					    : cuda_slices_forward(a, x->mem, NULL, 0, ret_y->mem, err);
}

int cuda_adjoint(struct projection *a, const struct buf *y, struct buf *ret_x, struct err *err)
{
	void *scratch = cuda_state(a->dev)->scratch;
	int r = check_sizes(a, ret_x, y, err);

	if (r < 0)
		return r;
	return a->model == PROJECTION_EXACT ? cuda_exact_adjoint(a, y->mem, ret_x->mem, a->deterministic ? scratch : NULL, err)
					    : cuda_slices_back(a, y->mem, 0, false, ret_x->mem, (float2 *)scratch, err);
}

bool cuda_fused(const struct projection *a)
{
	return a->model == PROJECTION_SLICES;
}

/* The fused passes are those of the slices; y: data that go with the bins p. */
static int check_fused(const struct projection *a, const struct buf *x, const struct buf *p, const struct buf *y, struct err *err)
{
	if (!cuda_fused(a))
		return err_set(err, ENOTSUP, "%s: the exact operator has no fused passes", a->dev->name);
	if (y->n != p->n)
		return err_set(err, EINVAL, "%s: %zu data for %zu bins", a->dev->name, y->n, p->n);
	return check_sizes(a, x, p, err);
}

int cuda_forward_ratio(struct projection *a, const struct buf *x, const struct buf *y, float floor, struct buf *ret_p,
		       struct err *err)
{
	int r = check_fused(a, x, ret_p, y, err);

	return r < 0 ? r : cuda_slices_forward(a, x->mem, y->mem, floor, ret_p->mem, err);
}

int cuda_back_update(struct projection *a, const struct buf *p, float floor, struct buf *x, struct err *err)
{
	int r = check_fused(a, x, p, p, err);

	return r < 0 ? r : cuda_slices_back(a, p->mem, floor, true, x->mem, (float2 *)cuda_state(a->dev)->scratch, err);
}
