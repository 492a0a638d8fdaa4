/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz volumes of labels: arbitrary bytes give a volume or an error, never a crash, a leak or reading another file. The first
 * byte selects the name: odd is NIfTI, even MetaImage. Run: fuzz_labels -max_len=8192 WORK_FOLDER tests/fuzz/corpus/labels */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "node/format/label_volume.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char folder[] = "/tmp/fuzz-labels-XXXXXX", path[64];
	struct label_volume v;
	struct err err = {0};
	FILE *f;

	if (size == 0 || !mkdtemp(folder))
		return 0;
	snprintf(path, sizeof(path), "%s/%s", folder, data[0] & 1 ? "m.nii" : "m.mha");
	f = fopen(path, "wb");
	if (!f || fwrite(data + 1, 1, size - 1, f) != size - 1 || fclose(f) != 0)
		abort();
	if (label_volume_open(path, &v, &err) == 0) {
		if (label_volume_at(&v, v.corner) != v.labels[0] || label_volume_at(&v, (double[]){1e30, 0, 0}) != 0)
			abort();
		label_volume_clear(&v);
	} else if (!err.msg[0]) {
		abort();
	}
	unlink(path);
	rmdir(folder);
	return 0;
}
