/* SPDX-License-Identifier: Apache-2.0 */
/* api_recon.c - reconstructions of the public library: plan, data, run, volume; the sessions are in api_sessions.c. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/api/api_sessions.h"

#define SLICES 16 /* read at a time */

static const struct api_session_ops *const sessions[API_KINDS] = {
	[API_PET] = &api_session_pet,
	[API_LINES] = &api_session_lines,
	[API_VIEWS] = &api_session_views,
	[API_PARALLEL] = &api_session_parallel,
};

static int check_roles(const struct tn_scan *s, unsigned roles, struct err *err)
{
	const struct api_session_ops *o = sessions[s->kind];

	if ((roles & ~o->roles) || (roles & o->required) != o->required)
		return err_set(err, EINVAL, "roles: 0x%x; allowed for this kind of scan: 0x%x, of which 0x%x are required", roles,
			       o->roles, o->required);
	return 0;
}

/* Compare the grid of the plan with that of the caller. */
static int check_grid(const struct grid *found, const struct grid *asked, struct err *err)
{
	for (int c = 0; c < 3; c++)
		if (found->n[c] != asked->n[c] || fabs(found->h[c] - asked->h[c]) > 1e-6 * found->h[c] ||
		    fabs(found->lo[c] - asked->lo[c]) > 1e-3 * found->h[c])
			return err_set(
				err, EINVAL,
				"grid: %d voxels of %g mm from %g mm along %c; a reconstruction of this scan has %d of %g mm from "
				"%g mm there",
				asked->n[c], asked->h[c], asked->lo[c], 'x' + c, found->n[c], found->h[c], found->lo[c]);
	return 0;
}

static int open_recon(struct tn_recon *r, const char *keys, const struct tn_grid *given, struct err *err)
{
	struct grid asked = {0};
	int rc = api_keys_parse(r->s->kind, keys, &r->p, err);

	if (rc == 0 && given)
		rc = api_grid(given, &asked, err);
	if (rc == 0)
		rc = r->ops->open(r, given ? &asked : NULL, err);
	if (rc == 0 && given)
		rc = check_grid(&r->grid, &asked, err);
	if (rc == 0)
		api_order_c(3, (int64_t[]){r->grid.n[2], r->grid.n[1], r->grid.n[0]}, &r->volume);
	return rc;
}

/* Free everything but the device and the scan, also of one that open() has not completed. */
static void release_recon(struct tn_recon *r)
{
	pet_close(r->pet);
	pet_list_close(r->events);
	dbt_close(r->dbt);
	free(r->data);
	free(r->valid);
	free(r->image);
	free(r->sensitivity.values);
	free(r);
}

int tn_recon_new(struct tn_device *d, struct tn_scan *s, const char *keys, unsigned roles, const struct tn_grid *grid,
		 struct tn_recon **ret, struct tn_err *e)
{
	struct err *err = api_err(e);
	struct api_call call;
	struct tn_recon *r;
	int rc = s && ret ? check_roles(s, roles, err)
			  : err_set(err, EINVAL, "reconstruction: %s", s ? "no place for the result" : "no scan");

	if (rc == 0)
		rc = api_enter(d, &call, err);
	if (rc < 0)
		return rc;
	r = calloc(1, sizeof(*r));
	if (r) {
		*r = (struct tn_recon){.d = d, .s = s, .ops = sessions[s->kind], .roles = roles};
		atomic_init(&r->cancelled, false);
	}
	rc = r ? open_recon(r, keys, grid, err) : err_set(err, ENOMEM, "reconstruction: out of memory");
	if (rc == 0) {
		api_device_keep(d);
		atomic_fetch_add(&s->users, 1);
		*ret = r;
	} else if (r) {
		release_recon(r);
	}
	api_leave(&call);
	return rc;
}

void tn_recon_free(struct tn_recon *r)
{
	struct api_call call;
	struct tn_scan *s;

	if (!r || api_enter(r->d, &call, NULL) < 0)
		return;
	s = r->s;
	release_recon(r);
	api_leave(&call);
	tn_scan_free(s);
	tn_device_close(call.device);
}

int tn_recon_info(const struct tn_recon *r, struct tn_recon_info *ret, struct tn_err *err)
{
	struct tn_recon_info info;

	if (!r)
		return err_set(api_err(err), EINVAL, "reconstruction: none given");
	info = r->info;
	for (int c = 0; c < 3; c++) {
		info.grid.n[c] = r->grid.n[c];
		info.grid.h[c] = r->grid.h[c];
		info.grid.lo[c] = r->grid.lo[c];
	}
	return api_give(&info, ret, sizeof(info), "tn_recon_info", api_err(err));
}

/* The order of the data of a role for the caller. */
static void role_order(const struct tn_recon *r, enum tn_role role, struct api_order *ret)
{
	int tof = role == TN_FACTORS && r->s->m.tof.n > 0; /* factors have no TOF bins */

	if (role == TN_SENSITIVITY)
		*ret = r->volume;
	else
		api_order_c(r->s->ndim - tof, r->s->shape + tof, ret);
}

static int put_role(struct tn_recon *r, enum tn_role role, const struct tn_array *a, struct err *err)
{
	static const char *const names[] = {"", "data", "factors", "background", "valid", "sensitivity"};
	struct api_array array;
	struct api_order order;
	int rc;

	if (role < TN_DATA || role > TN_SENSITIVITY || !(r->roles & 1u << role) || (r->put & 1u << role))
		return err_set(err, EINVAL, "role %d: %s", (int)role,
			       role >= TN_DATA && role <= TN_SENSITIVITY && (r->put & 1u << role)
				       ? "its data were passed already"
				       : "not among those of tn_recon_new()");
	role_order(r, role, &order);
	rc = api_array(r->d, a, &order, names[role], false, &array, err);
	if (rc < 0)
		return rc;
	rc = r->ops->put(r, role, &array, &order, err);
	r->failed = rc < 0;
	r->put |= rc < 0 ? 0 : 1u << role;
	return rc;
}

static int check_state(const struct tn_recon *r, bool ran, struct err *err)
{
	if (r->failed)
		return err_set(err, EINVAL, "reconstruction: an earlier call has failed; make a new one");
	if (r->ran != ran)
		return err_set(err, EINVAL, "reconstruction: tn_recon_run() was %s", ran ? "not called yet" : "called already");
	return 0;
}

int tn_recon_put(struct tn_recon *r, enum tn_role role, const struct tn_array *a, struct tn_err *err)
{
	struct api_call call;
	int rc = r ? api_enter(r->d, &call, api_err(err)) : err_set(api_err(err), EINVAL, "reconstruction: none given");

	if (rc < 0)
		return rc;
	rc = check_state(r, false, api_err(err));
	if (rc == 0)
		rc = put_role(r, role, a, api_err(err));
	api_leave(&call);
	return rc;
}

struct watch { /* of a run */
	struct tn_recon *r;
	void (*progress)(void *ctx, const char *stage, double fraction);
	void *ctx;
};

static void report_progress(void *ctx, const char *stage, double fraction)
{
	const struct watch *w = ctx;

	w->progress(w->ctx, stage, fraction);
}

static bool is_cancelled(void *ctx)
{
	return atomic_load(&((const struct watch *)ctx)->r->cancelled);
}

int tn_recon_run(struct tn_recon *r, void (*progress)(void *ctx, const char *stage, double fraction), void *ctx,
		 struct tn_report *ret, struct tn_err *e)
{
	struct watch watch = {r, progress, ctx};
	struct monitor monitor = {.ctx = &watch, .progress = progress ? report_progress : NULL, .cancelled = is_cancelled};
	struct tn_report report = {0};
	struct err *err = api_err(e);
	struct api_call call;
	int rc = r ? api_enter(r->d, &call, err) : err_set(err, EINVAL, "reconstruction: none given");

	if (rc < 0)
		return rc;
	rc = ret ? api_give(&report, ret, sizeof(report), "tn_report", err) : 0;
	if (rc == 0)
		rc = check_state(r, false, err);
	if (rc == 0 && r->put != r->roles)
		rc = err_set(err, EINVAL, "reconstruction: roles 0x%x were not passed", r->roles & ~r->put);
	if (rc == 0) {
		rc = r->ops->run(r, &monitor, &report, err);
		r->ran = true;
		r->failed = rc < 0;
	}
	api_leave(&call);
	return rc < 0 || !ret ? rc : api_give(&report, ret, sizeof(report), "tn_report", err);
}

void tn_recon_cancel(struct tn_recon *r)
{
	if (r)
		atomic_store(&r->cancelled, true);
}

static int read_volume(struct tn_recon *r, const struct api_array *a, struct err *err)
{
	size_t slice = (size_t)r->grid.n[0] * (size_t)r->grid.n[1];
	float *host = malloc(SLICES * slice * sizeof(*host));
	struct api_array part = *a;
	int rc = host ? 0 : err_set(err, ENOMEM, "volume: no memory for %d slices", SLICES);

	for (int k = 0; rc == 0 && k < r->grid.n[2]; k += SLICES) {
		struct api_order o = r->volume;

		o.shape[0] = r->grid.n[2] - k < SLICES ? r->grid.n[2] - k : SLICES;
		part.data = a->data + k * a->strides[0];
		rc = r->ops->read(r, k, (int)o.shape[0], host, err);
		if (rc == 0)
			rc = api_array_copy(r->d, &part, &o, NULL, host, true, err);
	}
	free(host);
	return rc;
}

int tn_recon_read(struct tn_recon *r, const struct tn_array *volume, struct tn_err *err)
{
	struct api_array array;
	struct api_call call;
	int rc = r ? api_enter(r->d, &call, api_err(err)) : err_set(api_err(err), EINVAL, "reconstruction: none given");

	if (rc < 0)
		return rc;
	rc = check_state(r, true, api_err(err));
	if (rc == 0)
		rc = api_array(r->d, volume, &r->volume, "volume", true, &array, api_err(err));
	if (rc == 0)
		rc = read_volume(r, &array, api_err(err));
	api_leave(&call);
	return rc;
}
