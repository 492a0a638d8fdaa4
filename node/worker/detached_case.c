/* SPDX-License-Identifier: Apache-2.0 */
#include "node/worker/detached_case.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "node/base/folder.h"
#include "node/base/text_file.h"
#include "node/cluster/pilot_case.h"
#include "node/cluster/wire.h"
#include "node/worker/case_run.h"

static int read_order(const char *path, int64_t job, int64_t attempt, struct pilot_case *ret_case, struct err *err)
{
	char *text = NULL;
	size_t n;
	json_t *body;
	int ret = text_file_read(path, WIRE_CASE_MAX, "order", &text, &n, err);

	if (ret < 0)
		return ret;
	body = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	free(text);
	ret = pilot_case_decode(body, job, attempt, ret_case, err);
	json_decref(body);
	return ret;
}

/* Load the configuration of the node, with the places of this machine. */
static int load_config(const char *root, const struct pilot_case *c, struct config **ret_config, struct err *err)
{
	struct config *config = NULL;
	int ret = c->config ? config_parse(c->config, "node.conf", NULL, NULL, &config, err)
			    : config_load(NULL, NULL, NULL, &config, err);

	if (ret < 0)
		return ret;
	snprintf(config->node.spool, sizeof(config->node.spool), "%s", root);
	for (size_t i = 0; i < c->n_flatfields; i++)
		for (size_t k = 0; k < config->n_profiles; k++) {
			const char *file = c->flatfields[i].file, *slash = strrchr(file, '/');
			struct profile_conf *p = &config->profiles[k];

			if (!strcmp(p->name, c->flatfields[i].profile))
				snprintf(p->flatfield_copy, sizeof(p->flatfield_copy), "%.100s/%.*s", root, (int)(slash - file),
					 file);
		}
	*ret_config = config;
	return 0;
}

/* Add the sizes of the objects that the detail lacks: the node fetches so many bytes. */
static int add_sizes(const char *folder, json_t *detail, struct err *err)
{
	json_t *objects = json_object_get(detail, "objects");

	for (size_t i = 0; i < json_array_size(objects); i++) {
		json_t *object = json_array_get(objects, i);
		const char *file = file_name(json_string_value(json_object_get(object, "file")));
		char path[600];
		struct stat st;

		if (json_object_get(object, "bytes"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, file);
		if (stat(path, &st) < 0)
			return err_set(err, errno, "the result %s cannot be read: %s", file, strerror(errno));
		json_object_set_new(object, "bytes", json_integer(st.st_size));
	}
	return 0;
}

static int write_outcome(const char *path, const struct pilot_case *c, const struct case_outcome *outcome, struct err *err)
{
	struct wire_message m = {.kind = WIRE_OUTCOME,
				 .job = c->order.job,
				 .attempt = c->order.attempt,
				 .code = outcome->why.code,
				 .damaged = (int64_t)outcome->damaged,
				 .body = outcome->detail};
	char *text = NULL;
	size_t n;
	int ret;

	snprintf(m.text, sizeof(m.text), "%s", outcome->why.msg);
	ret = wire_encode(&m, &text, &n, err);
	if (ret == 0)
		ret = text_file_write(path, text, n, err);
	free(text);
	return ret;
}

static int run_case(const char *root, const struct pilot_case *c, struct device *dev, struct pet_cache *cache,
		    const struct monitor *monitor, struct case_outcome *ret_outcome, struct err *err)
{
	struct config *config = NULL;
	char out_dir[400];
	int ret = pilot_case_path(root, c->order.job, c->order.attempt, "", out_dir, sizeof(out_dir), err);

	if (ret == 0)
		ret = load_config(root, c, &config, err);
	if (ret == 0) {
		const struct case_run_conf conf = {
			.config = config, .dev = dev, .cache = cache, .folder = root, .out_dir = out_dir, .monitor = monitor};

		case_run(&conf, &c->order, ret_outcome);
		ret = add_sizes(out_dir, ret_outcome->detail, err);
	}
	config_free(config);
	return ret;
}

int detached_case_run(const char *root, int64_t job, int64_t attempt, struct device *dev, struct pet_cache *cache,
		      const struct monitor *monitor, struct err *err)
{
	struct case_outcome outcome = {0};
	struct pilot_case c = {0};
	char order[400], result[400];
	int ret = pilot_case_path(root, job, attempt, ".order", order, sizeof(order), err);

	if (ret == 0)
		ret = pilot_case_path(root, job, attempt, ".outcome", result, sizeof(result), err);
	if (ret == 0)
		ret = read_order(order, job, attempt, &c, err);
	if (ret == 0)
		ret = run_case(root, &c, dev, cache, monitor, &outcome, err);
	if (ret == 0 && (outcome.why.code == ECANCELED || outcome.why.code == EHWPOISON))
		ret = err_set(err, outcome.why.code, "%s", outcome.why.msg);
	else if (ret == 0)
		ret = write_outcome(result, &c, &outcome, err);
	case_outcome_clear(&outcome);
	pilot_case_clear(&c);
	return ret;
}
