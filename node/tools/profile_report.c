/* SPDX-License-Identifier: Apache-2.0 */
/* profile_report.c - the files of node/tools/profile_report.h, except the page (profile_page.c). */
#include "node/tools/profile_report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/atomic_file.h"
#include "node/base/json_file.h"
#include "node/tools/profile_page.h"

#define TEXT_MAX 8192

/* A number of a report: JSON has no infinity. */
static json_t *number_json(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *parameters_json(const struct profile_result *r)
{
	json_t *list = json_array();

	for (int i = 0; i < SYSTEM_PARAMETERS; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:f, s:o, s:o, s:b}", "name", system_parameter_names[i], "unit",
						      system_parameter_units[i], "start", r->input.start[i], "value",
						      number_json(r->fit.value[i]), "sd", number_json(r->fit.sd[i]), "fitted",
						      r->fit.sd[i] != 0));
	return list;
}

static json_t *conventions_json(const struct bead_conventions *c)
{
	json_t *list = json_array();

	for (int i = 0; i < c->n; i++) {
		const struct bead_trial *t = &c->trials[i];

		json_array_append_new(list, json_pack("{s:i, s:s, s:b, s:o, s:o, s:b}", "sign", t->sign, "angle_about",
						      t->definition == ANGLE_ABOUT_AXIS ? "axis" : "detector", "mirrored",
						      t->mirrored, "rms_bins", number_json(t->rms), "axis_height",
						      number_json(t->axis_height), "chosen", i == c->best));
	}
	return list;
}

static json_t *views_json(const struct profile_result *r)
{
	json_t *list = json_array();

	for (int i = 0; i < r->input.views.n_views; i++)
		json_array_append_new(list, json_pack("{s:f, s:i, s:f, s:f, s:f}", "angle_degrees", r->angle[i], "beads",
						      r->views[i].n, "mean_u_bins", r->views[i].mean[0], "mean_v_bins",
						      r->views[i].mean[1], "rms_bins", r->views[i].rms));
	return list;
}

static json_t *beads_json(const struct profile_result *r)
{
	json_t *list = json_array();

	for (int i = 0; i < r->input.phantom.n_beads; i++) {
		const double *at = r->fit.bead[i];

		json_array_append_new(list,
				      json_pack("{s:i, s:[f,f,f]}", "number", r->number[i] + 1, "at_mm", at[0], at[1], at[2]));
	}
	return list;
}

static json_t *changes_json(const struct profile_constancy *check)
{
	json_t *list = json_array();

	for (int i = 0; i < SYSTEM_PARAMETERS; i++) {
		const struct profile_change *c = &check->change[i];

		if (c->compared)
			json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:b}", "name", system_parameter_names[i], "change",
							      c->change, "allowed", isfinite(c->allowed) ? c->allowed : 1e9,
							      "passed", c->passed));
	}
	return list;
}

json_t *profile_report_json(const struct exam *exam, const struct profile_result *r, const struct profile_constancy *check)
{
	json_t *root =
		json_pack("{s:b, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "usable", !r->refused[0], "refused",
			  r->refused, "profile", exam->profile->name, "views", r->input.views.n_views, "beads_found", r->n_found,
			  "beads_not_in_phantom", r->n_unmatched, "positions", r->input.n_points, "positions_left_out",
			  r->n_dropped, "noise_bins", number_json(r->fit.noise), "rms_bins", number_json(r->fit.rms),
			  "rms_before_bins", number_json(r->rms_before), "trend_over_views", number_json(r->trend));

	if (!root)
		return NULL;
	json_object_set_new(root, "parameters", parameters_json(r));
	json_object_set_new(root, "conventions", conventions_json(&r->conventions));
	json_object_set_new(root, "by_view", views_json(r));
	json_object_set_new(root, "beads", beads_json(r));
	if (check)
		json_object_set_new(root, "changes", changes_json(check));
	return root;
}

static int put_file(const char *folder, const char *name, const char *text, struct err *err)
{
	char path[4200];

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return err_set(err, ENAMETOOLONG, "the path of folder %.60s... is too long", folder);
	return atomic_file_put(path, text, strlen(text), err);
}

static int put_profile(const struct exam *exam, const struct profile_result *r, const char *folder, struct err *err)
{
	static const char head[] =
		"# Geometry fitted to an exam of a bead phantom with `tomonode profile fit`; report.html has the "
		"uncertainties.\n";
	char text[TEXT_MAX];
	size_t n = (size_t)snprintf(text, sizeof(text), "%s# %d views, %d beads, residuals %.3f bins; start: profile %s\n", head,
				    r->input.views.n_views, r->input.phantom.n_beads, r->fit.rms, exam->profile->name);

	config_write_profile(&r->profile, text + n, sizeof(text) - n);
	return put_file(folder, "profile.conf", text, err);
}

int profile_report_write(const struct exam *exam, const struct profile_result *r, const struct profile_constancy *check,
			 const char *folder, struct err *err)
{
	char path[4200];
	int size[2], central = 0, rc;
	char *page;

	for (int i = 1; i < exam->n_views; i++)
		if (fabs(exam->views[i].angle) < fabs(exam->views[central].angle))
			central = i;
	if (snprintf(path, sizeof(path), "%s/view.png", folder) >= (int)sizeof(path))
		return err_set(err, ENAMETOOLONG, "the path of folder %.60s... is too long", folder);
	rc = profile_views_picture(exam, central, PROFILE_PAGE_SIDE, path, size, err);
	if (rc == 0)
		rc = json_file_write(profile_report_json(exam, r, check), folder, "report.json", err);
	if (rc == 0) {
		page = profile_page(exam, r, check, central, size);
		rc = page ? put_file(folder, "report.html", page, err) : err_set(err, ENOMEM, "no memory for the report");
		free(page);
	}
	if (rc == 0 && !check && !r->refused[0])
		rc = put_profile(exam, r, folder, err);
	return rc;
}
