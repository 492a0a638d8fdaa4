/* SPDX-License-Identifier: Apache-2.0 */
/* PET on a device that fails, once at every call. */
#include "tests/recon/faulty_device.h"
#include "tests/recon/pet/pet_work_fixture.h"
#include "tests/test.h"

/* Let each device call of a run fail once: the error is returned, memory is freed, and finally a run succeeds. */
TEST(faults)
{
	static const struct {
		enum algorithm algorithm;
		int group_views, subsets;
		bool keep;
		int least; /* least number of device calls of such a run */
		struct scan_tof tof;
	} ways[] = {{ALGORITHM_MLEM, 0, 1, true, 30},
		    {ALGORITHM_MLEM, 0, 1, true, 30, {3, 60, 40}},
		    {ALGORITHM_OSEM, 2, 2, false, 60, {3, 60, 40}},
		    {ALGORITHM_BSREM, 2, 2, false, 60},
		    {ALGORITHM_OSEM, 2, 2, true, 60},
		    {ALGORITHM_FBP, 2, 1, true, 12}};

	for (size_t k = 0; k < sizeof(ways) / sizeof(ways[0]); k++) {
		TEST_BLOCK;
		struct work w;
		int calls = 0, r;

		work_make_tof(&w, FIXTURE_POISON, ways[k].tof);
		w.m.n_angles = 4; /* use the beginning of the data as planes with fewer angles */
		w.p.matrix = 8;
		w.p.algorithm = ways[k].algorithm;
		w.p.subsets = ways[k].subsets;
		w.p.iterations = 1;
		w.p.prior_weight = 0.1;
		w.p.psf = 6;
		w.p.postfilter = 5;
		do {
			TEST_BLOCK;
			struct device *dev = fixture_device(FIXTURE_POISON, 1);
			struct device_ops faulty = faulty_ops(dev->ops);
			struct err err = {0};
			float *x;

			w.plan = pet_plan_of(&w.p, &w.m, true, true, dev);
			w.plan.group_views = ways[k].group_views;
			w.plan.keep_tables = ways[k].keep;
			x = take_memory(pet_voxels(&w.plan) * sizeof(*x));
			fault.ops = dev->ops;
			fault.left = calls++;
			dev->ops = &faulty;
			r = pet_reconstruct(&w.p, &w.plan, &w.m, dev, NULL, w.data[1], w.data[2], w.data[3], NULL, x, NULL, &err);
			if (!TOMONODE_FFT && r == -ENOTSUP && w.p.algorithm == ALGORITHM_FBP)
				skip_because("this build has no FFT (kissfft)");
			if (r < 0) {
				assert_int_equal(r, -EIO);
				assert_true(err.msg[0]);
			}
			dev->ops = fault.ops;
			assert_true(calls < 5000);
		} while (r < 0);
		print_message("algorithm %d: %d calls\n", (int)ways[k].algorithm, calls - 1);
		assert_true(calls > ways[k].least);
	}
}
