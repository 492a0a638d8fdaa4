/* cmd_devices.c - `tomonode devices`: what could reconstruct here, as the names that --device and node.device take, and why there
 * is no GPU where there is none. */
#include <jansson.h>
#include <stdio.h>

#include "kernels/device.h"
#include "node/options.h"

static const struct command_spec spec = {
	.name = "devices",
	.usage = "[--json]",
	.summary = "List the devices that can reconstruct, by the names that --device and the key node.device take.",
	.json = true,
};

struct listing {
	json_t *array; /* NULL: print text */
};

static void show_device(void *ctx, const char *device, const char *name, size_t memory)
{
	struct listing *listing = ctx;

	if (listing->array)
		json_array_append_new(listing->array, json_pack("{s:s, s:s, s:I}", "device", device, "name", name, "memory_bytes",
								(json_int_t)memory));
	else if (memory)
		printf("%-10s %s, %.1f GiB\n", device, name, (double)memory / (1024.0 * 1024.0 * 1024.0));
	else
		printf("%-10s %s\n", device, name);
}

int cmd_devices(int argc, char **argv)
{
	struct listing listing = {0};
	struct device *cuda = NULL;
	struct options o;
	struct err why = {0};
	int n;

	options_begin(&o, &spec, argc, argv);
	if (options_next(&o) == OPTION_STOP)
		return o.code;
	if (o.json)
		listing.array = json_array();
	n = device_list(show_device, &listing);
	if (n <= 0) {
		json_decref(listing.array);
		return options_fail(&o, CODE_DEVICE, "no device can be opened");
	}
	if (device_cuda_count() == 0 && device_cuda_open(0, &cuda, &why) == 0)
		cuda = device_close(cuda); /* one that came in between */
	if (o.json)
		return options_json(json_pack("{s:b, s:o, s:s}", "ok", 1, "devices", listing.array, "no_cuda", why.msg));
	if (why.msg[0])
		printf("%-10s %s\n", "no cuda", why.msg);
	return CODE_OK;
}
