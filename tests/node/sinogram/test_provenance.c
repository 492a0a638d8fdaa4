/* SPDX-License-Identifier: Apache-2.0 */
/* Series Descriptions: settings by which a result differs from its protocol are whole, and the text is at most 64 characters. */
#include "node/sinogram/provenance.h"
#include "tests/test.h"

TEST(test_title)
{
	static const struct {
		const char *title, *changed, *expected, *named;
	} cases[] = {
		{"PET reconstruction pet-mlem", "", "PET reconstruction pet-mlem"},
		{"PET reconstruction pet-mlem", "iterations=20", "PET reconstruction pet-mlem, iterations=20"},
		/* 64 characters */
		{"PET reconstruction pet-mlem", "iterations=20, matrix=96, voxel=2.5",
		 "PET reconstruction pet-mlem, iterations=20, matrix=96, voxel=2.5"},
		{"PET reconstruction pet-mlem", "iterations=20, matrix=128, voxel=2.25, frames=6x10,4x30",
		 "PET reconstruction pet-mlem, iterations=20, +3 more #0aff"},
		{"PET reconstruction pet-mlem", "frames=6x10,4x30,5x60,5x120,5x300,6x600,1x1200",
		 "PET reconstruction pet-mlem, +1 more #870b"},
		/* a long title keeps at least 40 characters */
		{"123456789012345678901234567890123456789012345678901234567890", "iterations=20, matrix=128",
		 "1234567890123456789012345678901234567890123456789, +2 more #90af"},
		{"123456789012345678901234567890123456789012345678901234567890", "matrix=64, beta=2, filter=ramp",
		 "1234567890123456789012345678901234567890123456789, +3 more #e5c9"},
		{"123456789012345678901234567890123456789012345678901234567890", "beta=1",
		 "12345678901234567890123456789012345678901234567890123456, beta=1"},
		/* differ only in what has no room */
		{"123456789012345678901234567890123456789012", "beta=2, matrix=96, filter=hann, iterations=20",
		 "12345678901234567890123456789012345678901, beta=2, +3 more #35ce"},
		{"123456789012345678901234567890123456789012", "beta=2, matrix=96, filter=hann, iterations=21",
		 "12345678901234567890123456789012345678901, beta=2, +3 more #a254"},
		/* one is named before the others, if it would have no room else */
		{"PET reconstruction pet-mlem", "iterations=20, matrix=128, voxel=2.25, frames=6x10,4x30",
		 "PET reconstruction pet-mlem, voxel=2.25, +3 more #bcc2", "voxel"},
		{"PET reconstruction pet-mlem", "iterations=20, matrix=96, voxel=2.5",
		 "PET reconstruction pet-mlem, iterations=20, matrix=96, voxel=2.5", "voxel"},
		{"PET reconstruction pet-mlem", "iterations=20, matrix=128, voxel=2.25, frames=6x10,4x30",
		 "PET reconstruction pet-mlem, iterations=20, +3 more #0aff", "pixel"},
		{"1234567890123456789012345678901234567890123456789012345678901234567890", "",
		 "1234567890123456789012345678901234567890123456789012345678901234"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct result_place place = {0};
		char title[PROVENANCE_TITLE_SIZE];

		snprintf(place.changed, sizeof(place.changed), "%s", cases[i].changed);
		snprintf(place.named, sizeof(place.named), "%s", cases[i].named ? cases[i].named : "");
		snprintf(title, sizeof(title), "%s", cases[i].title);
		provenance_place_title(&place, title);
		assert_string_equal(title, cases[i].expected);
	}
}
