/* SPDX-License-Identifier: Apache-2.0 */
/* read_header FILE...: read the header of each file as the indexer does (case_read_facts()); print for each the processor time in
 * seconds, the return value and the message. tests/bench/headers.py uses it. */
#include <stdio.h>
#include <time.h>

#include "dicom/pixels/start.h"
#include "node/reconstruct/case_facts.h"

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	struct err err = {0};

	if (dicom_start(&err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	for (int i = 1; i < argc; i++) {
		struct case_facts f = {0};
		struct err cause = {0};
		double began = cpu_seconds();
		int rc = case_read_facts(argv[i], &f, &cause);

		printf("%.4f\t%d\t%s\n", cpu_seconds() - began, rc, rc < 0 ? cause.msg : f.kind ? f.kind->name : f.reason);
		fflush(stdout);
	}
	dicom_stop();
	return 0;
}
