/* SPDX-License-Identifier: Apache-2.0 */
/* Run a fuzz target over the files of folders, without libFuzzer: every kept input, including those that once failed, is a test
 * of each build. usage: replay_NAME FOLDER... */
#include <fts.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX (1 << 24)

static int replay(const char *path)
{
	FILE *f = fopen(path, "rbe");
	uint8_t *data = NULL;
	long size = -1;

	if (f && fseek(f, 0, SEEK_END) == 0)
		size = ftell(f);
	if (size < 0 || size > INPUT_MAX || fseek(f, 0, SEEK_SET) < 0 || !(data = malloc((size_t)size + 1)) ||
	    fread(data, 1, (size_t)size, f) != (size_t)size) {
		fprintf(stderr, "cannot read %s\n", path);
		exit(1);
	}
	fclose(f);
	fprintf(stderr, "%s\n", path); /* if the process dies, the last name printed is that of the input which caused it */
	LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
	return 1;
}

int main(int argc, char **argv)
{
	int n = 0;
	FTS *fts;

	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	fts = argc > 1 ? fts_open(argv + 1, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
	for (FTSENT *entry = fts ? fts_read(fts) : NULL; entry; entry = fts_read(fts))
		if (entry->fts_info == FTS_F)
			n += replay(entry->fts_path);
	if (fts)
		fts_close(fts);
	printf("%d inputs\n", n);
	return n > 0 ? 0 : 1;
}
