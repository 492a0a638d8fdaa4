/* Does a device compute what it should? Before it gets cases, and when somebody asks. */
#ifndef TOMONODE_RECON_SELF_TEST_H
#define TOMONODE_RECON_SELF_TEST_H

#include "kernels/device.h"

/* Float32 entries, sums of some hundred terms, in another order on each device: 100 * 2^-24 = 6e-6. */
#define SELF_TEST_TOL 1e-5

struct self_test_report {
	double gap;	   /* the larger of linop_adjoint_gap() of the two operators */
	double difference; /* to the CPU device, in units of the largest value; the largest of both operators, A x and A'y */
	double seconds;
};

/* Both projection models on a small geometry with random data; takes some ten milliseconds and a few MB. EHWPOISON: the numbers
 * are wrong (the sentence says which), or the device says that it is broken; other codes are the device's own. *ret_report is
 * written as far as the test came. */
int self_test(struct device *dev, struct self_test_report *ret_report, struct err *err);

#endif
