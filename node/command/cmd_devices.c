/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_devices.c - `tomonode devices`: list the devices of this machine by their names for --device and node.device, and the
 * reason if there is no GPU; with --check, test whether they compute correctly. */
#include <jansson.h>
#include <stdio.h>

#include "kernels/device.h"
#include "node/command/commands.h"
#include "node/process/options.h"
#include "node/store/event.h"
#include "recon/core/self_test.h"

enum { OPTION_CHECK = OPTION_LONG };

static const struct option_spec option_specs[] = {
	{OPTION_CHECK, "check", NULL,
	 "test each device as each worker does at its start: compare projections and backprojections with the CPU"},
	{0},
};

static const struct command_spec spec = {
	.name = "devices",
	.usage = "[--check] [--json]",
	.summary =
		"List the devices (CPU, GPUs) that can reconstruct. The names are values for --device and the key node.device.",
	.text = "With --check, the exit code is 6 if a device fails.",
	.options = option_specs,
	.json = true,
};

struct listing {
	json_t *array; /* NULL: print text */
	bool check;
	int failed;
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

int cmd_devices(int argc, char **argv)
{
	struct listing listing = {0};
	struct device *cuda = NULL;
	struct options o;
	struct err why = {0};
	int n, id, code;

	options_begin(&o, &spec, argc, argv);
	while ((id = options_next(&o)) >= 0)
		listing.check = listing.check || id == OPTION_CHECK;
	if (id == OPTION_STOP)
		return o.code;
	if (o.json)
		listing.array = json_array();
	n = device_list(show_device, &listing);
	if (n <= 0) {
		json_decref(listing.array);
		return options_fail(&o, CODE_DEVICE, "no device can be opened");
	}
	if (device_cuda_count() == 0 && device_cuda_open(0, &cuda, &why) == 0)
		cuda = device_close(cuda); /* a device appeared after the count */
	code = listing.failed ? CODE_DEVICE : CODE_OK;
	if (o.json)
		return options_json(json_pack("{s:b, s:i, s:o, s:s}", "ok", code == CODE_OK, "code", code, "devices",
					      listing.array, "no_cuda", why.msg)) == CODE_OK
			       ? code
			       : CODE_FAILED;
	if (why.msg[0])
		printf("%-10s %s\n", "no cuda", why.msg);
	return code;
}
