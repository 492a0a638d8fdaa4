/* SPDX-License-Identifier: Apache-2.0 */
/* List-mode PET on the CUDA device compared with the CPU: sensitivity by LORs and by sinograms, resident and streamed; repeatable
 * images. Skipped (exit code 77) without a CUDA device. */
#include "tests/recon/pet/pet_list_fixture.h"
#include "tests/test.h"

static struct pet_protocol osem(void)
{
	struct pet_protocol p = protocol;

	p.algorithm = ALGORITHM_OSEM;
	p.iterations = 3;
	p.subsets = 4;
	p.psf = 5;
	return p;
}

TEST(images_agree)
{
	for (int which = 0; which < 8; which++) {
		struct data d = make_data(which & 1, which & 2);
		struct source *s = make_source(&d, which & 4);
		struct pet_protocol p = osem();
		struct pet_plan plan;
		float *image[2];

		for (int i = 0; i < 2; i++)
			image[i] = image_of(&p, &s->list, fixture_device(i ? FIXTURE_CUDA : FIXTURE_CPU, 0), &plan);
		print_message("difference %g\n", difference(image[1], image[0], voxels_of(&plan)));
		assert_true(difference(image[1], image[0], voxels_of(&plan)) < IMAGE_TOL);
	}
}

TEST(streamed)
{
	struct data d = make_data(true, true);
	struct source *s = make_source(&d, true);
	struct device *dev = fixture_device(FIXTURE_CUDA, 0);
	struct pet_protocol p = osem();
	struct pet_plan resident, plan;
	float *kept = image_of(&p, &s->list, dev, &resident), *image;

	p.memory_limit = resident.bytes.total - d.n_events * sizeof(struct event) / 2;
	image = image_of(&p, &s->list, dev, &plan);
	assert_true(resident.resident && !plan.resident);
	assert_true(difference(image, kept, voxels_of(&plan)) < IMAGE_TOL);
}

TEST(repeatable)
{
	struct data d = make_data(true, true);
	struct source *s = make_source(&d, true);
	struct pet_protocol p = osem();
	struct device *dev = fixture_device(FIXTURE_CUDA, 0);
	struct pet_plan plan;
	float *first;

	p.deterministic = true;
	first = image_of(&p, &s->list, dev, &plan);
	for (int i = 0; i < 3; i++) {
		float *again = image_of(&p, &s->list, dev, &plan);

		assert_memory_equal(first, again, voxels_of(&plan) * sizeof(*first));
	}
}

TESTS_NEED(device_cuda_count() > 0, "no CUDA device");
