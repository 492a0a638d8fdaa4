/* SPDX-License-Identifier: Apache-2.0 */
#include "node/command/recon_report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/report/report_files.h"

static void paths_free(char **paths)
{
	for (size_t i = 0; paths && paths[i]; i++)
		free(paths[i]);
	free(paths);
}

/* Return the paths of the objects, ended by NULL; NULL: no memory. */
static char **paths_of(const struct reconstruct_report *result, const char *folder)
{
	char **paths = calloc(result->n_objects + 1, sizeof(*paths));

	for (size_t i = 0; paths && i < result->n_objects; i++)
		if (asprintf(&paths[i], "%s/%s", folder, result->objects[i].file) < 0) {
			paths[i] = NULL;
			paths_free(paths);
			return NULL;
		}
	return paths;
}

int recon_report(const struct config *config, const struct reconstruct_report *result, const char *objects, const char *folder,
		 json_t **ret_files, struct err *err)
{
	struct report_conf conf = {.config = config};
	struct series_files groups = {0};
	char **paths = paths_of(result, objects);
	int rc = paths ? series_files_find(paths, false, &groups, err) : err_set(err, ENOMEM, "no memory for the names of files");

	*ret_files = json_array();
	for (size_t i = 0; rc == 0 && i < groups.n; i++) {
		char *path = NULL;

		rc = report_volume_write(&groups.list[i], &conf, folder, &path, err);
		if (rc == 0)
			json_array_append_new(*ret_files, json_string(path));
		free(path);
	}
	series_files_clear(&groups);
	paths_free(paths);
	return rc;
}
