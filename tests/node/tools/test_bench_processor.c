/* SPDX-License-Identifier: Apache-2.0 */
/* The processor's model, from files as kernels of x86 and Arm write them. */
#include "node/tools/bench_processor.h"
#include "tests/test.h"

/* Return the model in a file of this text. */
static const char *model_in(const char *text)
{
	static char model[48];
	char path[] = "/tmp/test_bench_processor.XXXXXX";
	int fd = mkstemp(path);
	FILE *file;

	assert_true(fd >= 0);
	file = fdopen(fd, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	bench_processor(path, model, sizeof(model));
	unlink(path);
	return model;
}

TEST(models)
{
	assert_string_equal(model_in("processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9654 96-Core Processor\n"),
			    "AMD EPYC 9654 96-Core Processor");
	assert_string_equal(model_in("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\nCPU part\t: 0xd41\n"),
			    "implementer 0x41, part 0xd40");
	assert_string_equal(model_in("CPU part\t: 0xd40\n"), "unknown");
	assert_string_equal(model_in("model name\t:\n"), "unknown");
	assert_string_equal(model_in("model names\t: x\nmodel name x\n"), "unknown");
	assert_string_equal(model_in(""), "unknown");
	assert_string_equal(model_in("model name: a name that is longer than there is room for, so it is cut\n"),
			    "a name that is longer than there is room for, s");
}

TEST(no_file)
{
	char model[16] = "before";

	bench_processor("/nonexistent/cpuinfo", model, sizeof(model));
	assert_string_equal(model, "unknown");
}
