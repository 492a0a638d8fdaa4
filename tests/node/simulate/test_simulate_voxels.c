/* SPDX-License-Identifier: Apache-2.0 */
/* Test volumes of labels as phantoms: the materials file, labels without a material, the digest for UIDs. */
#include "node/simulate/simulate_voxels.h"
#include "tests/test.h"

#define MATERIALS "# comment\n0 0 air air\n\n1\t0.05 fat tissue # more\n50 0.07 pmma paddle\n300 0.09 mass lesion"

static struct materials m;

static int parse(const char *text, struct err *err)
{
	memset(err, 0, sizeof(*err));
	return materials_parse(text, strlen(text), "test.conf", &m, err);
}

TEST(test_materials)
{
	struct err err;

	assert_int_equal(parse(MATERIALS, &err), 0);
	assert_int_equal(m.n, 4);
	assert_int_equal(m.of[0], 0);
	assert_int_equal(m.of[300], 3);
	assert_int_equal(m.of[2], MATERIALS_NONE);
	assert_true(m.material[1].mu == 0.05 && m.material[1].role == VOXEL_TISSUE);
	assert_int_equal(m.material[2].role, VOXEL_PADDLE);
	assert_int_equal(m.material[3].role, VOXEL_LESION);
}

TEST(test_refusals)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "contains no material"},
		{"# nothing\n", "contains no material"},
		{"0 0 air air\n1 0.05 fat\n", "test.conf:2: \"1 0.05 fat\""},
		{"1 0.05 fat tissue more\n", "expected"},
		{"-1 0.05 fat tissue\n", "label -1"},
		{"65536 0.05 fat tissue\n", "label 65536"},
		{"1x 0.05 fat tissue\n", "label 1x"},
		{"1 -0.05 fat tissue\n", "attenuation -0.05"},
		{"1 nan fat tissue\n", "attenuation nan"},
		{"1 10.001 fat tissue\n", "attenuation 10.001"},
		{"1 0.05x fat tissue\n", "attenuation 0.05x"},
		{"1 0.05 fat flesh\n", "role flesh"},
		{"1 0.05 fat tissue\n1 0.05 fat tissue\n", "test.conf:2: label 1 occurs twice"},
	};
	char *many = malloc(257 * 32), *at = many;
	struct err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc = parse(cases[i].text, &err);

		if (rc != -EBADMSG || !strstr(err.msg, cases[i].says))
			fail_msg("\"%s\": %d \"%s\", expected \"%s\"", cases[i].text, rc, err.msg, cases[i].says);
	}
	for (int i = 0; i < 256; i++)
		at += sprintf(at, "%d 0.1 x tissue\n", i);
	assert_int_equal(parse(many, &err), 0);
	assert_int_equal(m.n, 256);
	assert_int_equal(m.of[255], 255);
	sprintf(at, "256 0.1 x tissue\n");
	assert_error(parse(many, &err), &err, EBADMSG, "more than 256");
	assert_int_equal(parse("65535 10 fat tissue\n", &err), 0);
	assert_int_equal(m.of[65535], 0);
	for (int n = 511; n <= 512; n++) { /* the longest line */
		snprintf(many, 600, "1 0.05 fat tissue #%0*d\n2 0 air air\n", n - 19, 0);
		assert_int_equal(parse(many, &err), n == 511 ? 0 : -EBADMSG);
	}
	free(many);
	assert_int_equal(materials_parse("0 0 air\0air\n", 12, "test.conf", &m, &err), -EBADMSG);
}

/* 2 x 2 x 4 voxels between paddles of one plane each. */
TEST(test_load)
{
	static const char header[] = "NDims = 3\nElementSpacing = 0.5 0.5 0.25\nDimSize = 2 2 4\nElementType = MET_USHORT\n"
				     "ElementDataFile = labels.raw\n";
	uint16_t label[16] = {50, 50, 50, 50, 1, 1, 300, 1, 0, 1, 1, 0, 50, 50, 50, 0};
	char folder[64], volume[100], data[100], materials[100], digest[3][65];
	struct voxel_phantom *p = NULL;
	struct err err = {0};

	test_folder(folder, sizeof(folder));
	snprintf(volume, sizeof(volume), "%s/labels.mhd", folder);
	snprintf(data, sizeof(data), "%s/labels.raw", folder);
	snprintf(materials, sizeof(materials), "%s/materials.conf", folder);
	test_put_file(volume, header, strlen(header));
	test_put_file(data, label, sizeof(label));
	test_put_file(materials, MATERIALS, strlen(MATERIALS));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(simulate_voxels_load(volume, materials, &p, digest[i], &err), 0);
		assert_int_equal(p->grid.n[2], 2);
		assert_true(p->grid.h[2] == 0.25 && p->grid.lo[1] == -0.5);
		assert_int_equal(p->voxel[2], 3); /* the index of label 300 */
		assert_int_equal(p->voxel[4], 0);
		p = voxel_phantom_free(p);
	}
	assert_string_equal(digest[0], digest[1]);
	label[5] = 300;
	test_put_file(data, label, sizeof(label));
	assert_int_equal(simulate_voxels_load(volume, materials, &p, digest[2], &err), 0);
	p = voxel_phantom_free(p);
	assert_string_not_equal(digest[0], digest[2]);
	label[6] = 77;
	test_put_file(data, label, sizeof(label));
	assert_error(simulate_voxels_load(volume, materials, &p, digest[2], &err), &err, EBADMSG, "label 77 of voxel (0, 1, 1)");
	assert_null(p);
	unlink(materials);
	assert_int_equal(simulate_voxels_load(volume, materials, &p, digest[2], &err), -ENOENT);
}
