/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_devices.c - `tomonode devices`: list the devices of this machine by their names for --device and node.device, and the
 * reason if there is no GPU; with --check, test whether they compute correctly; then the slots of the node that runs with the
 * configuration: its workers, and the pilots that are connected. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "kernels/clock.h"
#include "kernels/device.h"
#include "node/base/json_get.h"
#include "node/command/commands.h"
#include "node/config/config_path.h"
#include "node/jobs/node_facts.h"
#include "node/options/options.h"
#include "node/store/event.h"
#include "node/store/node_file.h"
#include "recon/core/self_test.h"

struct listing {
	const char *path; /* of the configuration; NULL: not given */
	json_t *array;	  /* NULL: print text */
	bool check;
	int failed;
};

static const struct option_spec option_specs[] = {
	{'c', "config", "FILE", "configuration file of a node, whose slots are listed, too, if it runs",
	 INTO_TEXT(struct listing, path)},
	{0, "check", NULL,
	 "test each device as each worker does at its start: compare projections and backprojections with the CPU",
	 INTO_ON(struct listing, check)},
	{0},
};

static const struct command_spec spec = {
	.name = "devices",
	.usage = "[-c FILE] [--check] [--json]",
	.summary =
		"List the devices (CPU, GPUs) that can reconstruct. The names are values for --device and the key node.device.",
	.text = "If a node runs with the configuration, its slots follow: the workers of this machine's devices, and pilots on "
		"other\n"
		"machines. With --check, the exit code is 6 if a device fails.",
	.options = option_specs,
	.json = true,
	.examples = "tomonode devices\n"
		    "tomonode devices --check\n",
};

static int check_device(const char *name, struct self_test_report *ret_report, struct err *err)
{
	struct device *dev = NULL;
	int ret = device_open(name, &dev, err);

	if (ret == 0)
		ret = self_test(dev, ret_report, err);
	device_close(dev);
	return ret;
}

static void show_check(struct listing *listing, const char *device, json_t *entry)
{
	struct self_test_report report = {0};
	struct err err = {0};
	int ret = check_device(device, &report, &err);

	listing->failed += ret < 0;
	if (entry)
		json_object_set_new(entry, "check",
				    json_pack("{s:b, s:f, s:f, s:f, s:o}", "ok", ret == 0, "adjoint_gap", report.gap,
					      "difference", report.difference, "seconds", report.seconds, "reason",
					      event_json_text(err.msg)));
	else if (ret < 0)
		printf("%-10s FAILED: %s\n", "", err.msg);
	else
		printf("%-10s ok: adjoint gap %.1e, difference to the CPU %.1e (%.0f ms)\n", "", report.gap, report.difference,
		       1e3 * report.seconds);
}

static void show_device(void *ctx, const char *device, const char *name, size_t memory)
{
	struct listing *listing = ctx;
	json_t *entry = NULL;

	if (listing->array)
		entry = json_pack("{s:s, s:s, s:I}", "device", device, "name", name, "memory_bytes", (json_int_t)memory);
	else if (memory)
		printf("%-10s %s, %.1f GiB\n", device, name, (double)memory / (1024.0 * 1024.0 * 1024.0));
	else
		printf("%-10s %s\n", device, name);
	if (listing->check)
		show_check(listing, device, entry);
	if (entry)
		json_array_append_new(listing->array, entry);
}

/* ---- the slots of a node ---- */

static void print_slots(const struct config *config, const json_t *slots, const struct node_facts *facts)
{
	char text[300];
	const json_t *one;
	size_t i;

	printf("\nslots of the node %s (spool %s):\n", config->node.aet, config->node.spool);
	json_array_foreach(slots, i, one)
	{
		const char *device = json_get_text(one, "device"), *state = json_get_text(one, "state");
		bool disabled = json_get_bool(one, "disabled");

		printf("%-10s %s%s%s\n", json_get_text(one, "name"), device, device[0] ? ": " : "",
		       disabled			   ? "disabled"
		       : !strcmp(state, "waiting") ? "waits for a pilot"
						   : state);
		if (disabled)
			printf("%-10s %s\n", "", json_get_text(one, "reason"));
	}
	node_cluster_text(&facts->from_manager.cluster, text, sizeof(text));
	if (facts->from_manager.cluster.used)
		printf("%s\n", text);
	if (facts->from_manager.pilot_refused[0])
		printf("refused: pilot %s\n", facts->from_manager.pilot_refused);
}

/* Return the slots of the node that runs with this configuration, printed already unless `json`; NULL: none runs. */
static json_t *list_slots(const struct config *config, bool json)
{
	static struct node_facts facts;
	json_t *report, *slots;

	node_facts_of_spool(config, clock_wall(), &facts);
	report = facts.runs ? node_file_read(config->node.spool) : NULL;
	slots = json_incref(json_object_get(report, "devices"));
	json_decref(report);
	if (slots && !json)
		print_slots(config, slots, &facts);
	return slots;
}

/* path NULL: the configuration that a node would use, if there is a valid one. */
static int read_config(const struct options *o, const char *path, struct config **ret_config)
{
	char buffer[CONFIG_PATH_BUFFER];
	struct err ignored = {0};

	if (path)
		return options_config(o, path, ret_config);
	if (config_load(config_path_default(buffer), NULL, NULL, ret_config, &ignored) < 0)
		*ret_config = NULL;
	return CODE_OK;
}

static json_t *json_of(const struct listing *listing, const char *no_cuda, int code, json_t *slots)
{
	json_t *all = json_pack("{s:b, s:i, s:O, s:s}", "ok", code == CODE_OK, "code", code, "devices", listing->array, "no_cuda",
				no_cuda);

	if (slots)
		json_object_set_new(all, "slots", slots);
	return all;
}

int cmd_devices(int argc, char **argv)
{
	struct config *config = NULL;
	json_t *slots;
	struct listing listing = {0};
	struct device *cuda = NULL;
	struct options o;
	struct err why = {0};
	int n, code;

	options_begin(&o, &spec, argc, argv);
	o.into = &listing;
	if (options_next(&o) == OPTION_STOP)
		return o.code;
	code = read_config(&o, listing.path, &config);
	if (code != CODE_OK)
		return code;
	if (o.json)
		listing.array = json_array();
	n = device_list(show_device, &listing);
	if (n <= 0) {
		json_decref(listing.array);
		config_free(config);
		return options_fail(&o, CODE_DEVICE, "no device can be opened");
	}
	if (device_cuda_count() == 0 && device_cuda_open(0, &cuda, &why) == 0)
		cuda = device_close(cuda); /* a device appeared after the count */
	code = listing.failed ? CODE_DEVICE : CODE_OK;
	if (!o.json && why.msg[0])
		printf("%-10s %s\n", "no cuda", why.msg);
	slots = config ? list_slots(config, o.json) : NULL;
	config_free(config);
	if (o.json && options_json(json_of(&listing, why.msg, code, slots)) != CODE_OK)
		code = CODE_FAILED;
	json_decref(listing.array);
	if (!o.json)
		json_decref(slots);
	return code;
}
