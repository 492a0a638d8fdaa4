/* fbp_filter_stub.c - in place of fbp_filter.c in a build without kissfft. */
#include "recon/fbp_filter.h"

#include <errno.h>

int fbp_filter_view(const struct scan *scan, int view, enum dbt_filter filter, double cut, float *line, const float *valid,
		    struct err *err)
{
	(void)scan, (void)view, (void)filter, (void)cut, (void)line, (void)valid;
	return err_set(err, ENOTSUP, "fbp: this build has no FFT library (kissfft), so no filtered backprojection");
}
