/* SPDX-License-Identifier: Apache-2.0 */
/* Test whether a device computes correctly. The node runs the test before a device computes its first case, and on request. */
#ifndef TOMONODE_RECON_SELF_TEST_H
#define TOMONODE_RECON_SELF_TEST_H

#include "kernels/device.h"

/* Entries are float32 and sums of some hundred terms are added in a different order on each device: 100 * 2^-24 = 6e-6. */
#define SELF_TEST_TOL 1e-5

struct self_test_report {
	double gap;	   /* linop_adjoint_gap(): the larger value of the two operators */
	double difference; /* largest difference from the CPU device's results, relative to the largest value; over A x and A'y of
			      both operators */
	double seconds;
};

/* Test both projection models on a small geometry with random data; takes about ten milliseconds and a few MB. EHWPOISON: the
 * numbers are wrong (the message says which), or the device reports a hardware error; other codes come from the device. On
 * failure *ret_report holds the values measured so far. */
int self_test(struct device *dev, struct self_test_report *ret_report, struct err *err);

#endif
