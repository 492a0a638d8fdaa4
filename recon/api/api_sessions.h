/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the public library: the sessions of recon/ behind one interface. */
#ifndef TOMONODE_RECON_API_SESSIONS_H
#define TOMONODE_RECON_API_SESSIONS_H

#include "recon/api/api_internal.h"

struct api_session_ops {
	unsigned roles, required; /* bits 1 << enum tn_role */
	/* Plan and open; write r->grid and r->info. grid: of the caller, or NULL. */
	int (*open)(struct tn_recon *r, const struct grid *grid, struct err *err);
	int (*put)(struct tn_recon *r, enum tn_role role, const struct api_array *a, const struct api_order *o, struct err *err);
	int (*run)(struct tn_recon *r, const struct monitor *monitor, struct tn_report *ret, struct err *err);
	int (*read)(struct tn_recon *r, int first, int n, float *ret_slices, struct err *err);
};
extern const struct api_session_ops api_session_pet, api_session_lines, api_session_views, api_session_parallel;

struct tn_recon {
	struct tn_device *d;
	struct tn_scan *s;
	const struct api_session_ops *ops;
	struct api_protocol p;
	unsigned roles, put; /* announced; passed */
	bool ran, failed;
	atomic_bool cancelled;
	struct grid grid;
	struct tn_recon_info info;
	struct api_order volume;
	float *data, *valid, *image; /* host memory of the sessions that need it */
	struct pet_plan pet_plan;    /* also of lists */
	struct pet_session *pet;
	struct pet_list list;
	size_t at; /* next event of the list's reader */
	struct pet_list_session *events;
	struct pet_list_sensitivity_image sensitivity;
	struct dbt_plan dbt_plan;
	struct dbt_session *dbt;
	struct parallel_plan parallel_plan;
};

#endif
