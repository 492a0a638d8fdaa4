/* reconstruct_report.c - what a reconstruction took and found, as JSON: the same words in the journal, in `show` and in `recon`.
 */
#include "node/reconstruct.h"

const char *const reconstruct_stages[RECONSTRUCT_STAGES] = {"open",	   "read",     "prepare", "upload",
							    "reconstruct", "download", "write"};

json_t *reconstruct_seconds(const struct reconstruct_report *r)
{
	const double seconds[RECONSTRUCT_STAGES] = {r->seconds_open,   r->seconds_read,	       r->seconds_prepare,
						    r->seconds_upload, r->seconds_reconstruct, r->seconds_download,
						    r->seconds_write};
	json_t *o = json_object();

	for (size_t i = 0; i < RECONSTRUCT_STAGES; i++)
		json_object_set_new(o, reconstruct_stages[i], json_real(seconds[i]));
	json_object_set_new(o, "total", json_real(r->seconds_total));
	return o;
}

json_t *reconstruct_bins(const struct reconstruct_report *r)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:i}", "padded", (json_int_t)r->padded, "saturated", (json_int_t)r->saturated,
			 "floored", (json_int_t)r->floored, "clamped", (json_int_t)r->clamped, "air", (json_int_t)r->air,
			 "views_without_mask", r->unmasked);
}
