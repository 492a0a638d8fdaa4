/* SPDX-License-Identifier: Apache-2.0 */
/* Test whether a device computes correctly: before it gets its first case, and on request. */
#ifndef TOMONODE_RECON_SELF_TEST_H
#define TOMONODE_RECON_SELF_TEST_H

#include "kernels/device.h"

/* Entries are float32 and sums of some hundred terms are added in a different order on each device: 100 * 2^-24 = 6e-6. */
#define SELF_TEST_TOL 1e-5

struct self_test_report {
	double gap;	   /* linop_adjoint_gap(), the larger of the two operators */
	double difference; /* largest difference to the CPU device, in units of the largest value; over both operators, A x and
			      A'y */
	double seconds;
};

/* Test both projection models on a small geometry with random data; takes about ten milliseconds and a few MB. EHWPOISON: the
 * numbers are wrong (the message says which), or the device reports a hardware error; other codes come from the device.
 * *ret_report is filled as far as the test got. */
int self_test(struct device *dev, struct self_test_report *ret_report, struct err *err);

#endif
