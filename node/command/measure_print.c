/* SPDX-License-Identifier: Apache-2.0 */
/* measure_print.c - see node/command/measure_print.h. */
#include "node/command/measure_print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order.h"
#include "node/base/json_get.h"
#include "node/tools/image_series.h"

static double member_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

static double component_of(const json_t *object, const char *key, size_t i)
{
	const json_t *value = json_array_get(json_object_get(object, key), i);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Print a number in a column with at least four digits that count; "-" where it is unknown. */
static void print_figure(double value, int width)
{
	double size = fabs(value);

	if (!isfinite(value))
		printf(" %*s", width, "-");
	else if (size > 0 && (size < 1e-4 || size >= 1e9))
		printf(" %*.3e", width, value);
	else
		printf(" %*.*f", width, size >= 1000 ? 0 : size == 0 ? 1 : 3 - (int)floor(log10(size)), value);
}

/* Print a number in a column; "-" where it is unknown. */
static void print_cell(double value, int width, int digits)
{
	if (isfinite(value))
		printf(" %*.*f", width, digits, value);
	else
		printf(" %*s", width, "-");
}

/* ---- tomosynthesis ---- */

/* Median of a member, or of component i of a member, over the items that have it and whose name begins so. NaN: none has it. */
static double median_of(const json_t *list, const char *kind, const char *key, int i)
{
	double *values = calloc(json_array_size(list) + 1, sizeof(*values)), found = NAN;
	const json_t *item;
	size_t n = 0, k;

	json_array_foreach(list, k, item)
	{
		double v = i < 0 ? member_of(item, key) : component_of(item, key, (size_t)i);

		if (values && isfinite(v) && !strncmp(json_get_text(item, "name"), kind, strlen(kind)))
			values[n++] = v;
	}
	if (n > 0) {
		qsort(values, n, sizeof(*values), order_doubles);
		found = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
	}
	free(values);
	return found;
}

static size_t count_items(const json_t *list, const char *kind, const char *key)
{
	const json_t *item;
	size_t n = 0, k;

	json_array_foreach(list, k, item) if (!strncmp(json_get_text(item, "name"), kind, strlen(kind)) &&
					      (!key || json_is_number(json_object_get(item, key)) || json_get_bool(item, key)))
		n++;
	return n;
}

/* Why regions whose names begin so are left out, if it is the same reason for all. */
static const char *common_reason(const json_t *list, const char *kind)
{
	const char *found = NULL;
	const json_t *item;
	size_t k;

	json_array_foreach(list, k, item)
	{
		const char *why = json_string_value(json_object_get(item, "left_out"));

		if (!why || strncmp(json_get_text(item, "name"), kind, strlen(kind)) != 0)
			continue;
		if (found && strcmp(found, why) != 0)
			return "the table says why";
		found = why;
	}
	return found ? found : "the table says why";
}

/* Print one line for the regions whose names begin so: how many, and medians. */
static void summarise_regions(const json_t *list, const char *kind, const char *title)
{
	size_t all = count_items(list, kind, NULL), measured = count_items(list, kind, "mean");

	if (all == 0)
		return;
	printf("%s: %zu measured of %zu", title, measured, all);
	if (measured > 0)
		printf(", medians: contrast %.4f, CNR %.2f, depth %.2f mm", median_of(list, kind, "contrast", -1),
		       median_of(list, kind, "cnr", -1), median_of(list, kind, "asf_fwhm_mm", -1));
	if (measured < all)
		printf("; %zu left out: %s", all - measured, common_reason(list, kind));
	printf("\n");
}

static void summarise_points(const json_t *list)
{
	size_t found = count_items(list, "", "found");
	double most = NAN;
	const json_t *item;
	size_t k;

	if (json_array_size(list) == 0)
		return;
	printf("points: %zu found of %zu", found, json_array_size(list));
	json_array_foreach(list, k, item) most =
		fmax(most, hypot(component_of(item, "error_mm", 0), component_of(item, "error_mm", 1)));
	if (found > 0)
		printf(", medians: FWHM %.3f x %.3f x %.2f mm, SNR %.1f; largest distance to the expected place %.3f mm",
		       median_of(list, "", "fwhm_mm", 0), median_of(list, "", "fwhm_mm", 1), median_of(list, "", "fwhm_mm", 2),
		       median_of(list, "", "snr", -1), most);
	if (isfinite(median_of(list, "", "mtf50_per_mm", 0)))
		printf("; MTF50 %.2f x %.2f line pairs/mm", median_of(list, "", "mtf50_per_mm", 0),
		       median_of(list, "", "mtf50_per_mm", 1));
	printf("\n");
}

static void summarise_distances(const json_t *list, bool pairs)
{
	const json_t *item;
	double most = NAN;
	size_t k;

	if (json_array_size(list) == 0)
		return;
	json_array_foreach(list, k, item) most = fmax(most, fabs(member_of(item, "error_percent")));
	printf("distances: %zu pairs", json_array_size(list));
	if (isfinite(most))
		printf(", largest error %.3f %%", most);
	printf("%s\n", pairs ? "" : "; --pairs prints them");
}

static void print_pairs(const json_t *result)
{
	const json_t *item;
	size_t i;

	json_array_foreach(json_object_get(result, "distances"), i, item)
	{
		printf("%s to %s: %.3f mm", json_get_text(item, "from"), json_get_text(item, "to"),
		       member_of(item, "measured_mm"));
		if (json_is_number(json_object_get(item, "truth_mm")))
			printf(", truth %.3f, %+.3f %%", member_of(item, "truth_mm"), member_of(item, "error_percent"));
		printf("\n");
	}
}

/* Print the profiles along the normal to the skin, one line for each direction: relative to the truth, or without one to the
 * interior. */
static void print_skin(const json_t *skin)
{
	static const char *const ways[] = {"nipple ", "side "};
	const char *to = count_items(skin, "", "true") > 0 ? "truth" : "interior";
	const json_t *item;
	size_t i;

	if (json_array_size(skin) == 0)
		return;
	printf("\n%-20s", "mm from the skin");
	json_array_foreach(skin, i, item) if (!strncmp(json_get_text(item, "name"), ways[0], strlen(ways[0])))
		printf(" %9g", member_of(item, "distance_mm"));
	for (size_t way = 0; way < 2; way++) {
		printf("\n%s/ %-*s", ways[way], (int)(18 - strlen(ways[way])), to);
		json_array_foreach(skin, i, item) if (!strncmp(json_get_text(item, "name"), ways[way], strlen(ways[way])))
			print_cell(member_of(item, "relative"), 9, 3);
	}
	printf("\n");
}

static void print_tissues(const json_t *tissues)
{
	const json_t *item;
	size_t i;

	if (json_array_size(tissues))
		printf("\n%-20s %9s %10s %10s %9s %10s\n", "tissue", "samples", "mean 1/mm", "true 1/mm", "bias", "noise 1/mm");
	json_array_foreach(tissues, i, item) printf("%-20s %9.0f %10.5f %10.5f %7.2f %% %10.5f\n", json_get_text(item, "name"),
						    member_of(item, "samples"), member_of(item, "mean"), member_of(item, "true"),
						    member_of(item, "bias_percent"), member_of(item, "noise"));
}

void measure_print_tomo(const json_t *result, bool pairs)
{
	const json_t *object = json_object_get(result, "object"), *regions = json_object_get(result, "regions");
	const json_t *points = json_object_get(result, "points"), *item;
	const char *units = json_get_text(object, "units");
	double slices = component_of(object, "size", 2),
	       distance = slices > 1 ? fabs(member_of(object, "depth_mm")) / (slices - 1) : NAN;
	size_t i, masses = count_items(regions, "mass ", NULL), calcified = count_items(regions, "calcification ", NULL);
	bool known = false, sharp = false;

	json_array_foreach(regions, i, item) known = known || json_object_get(item, "true");
	json_array_foreach(points, i, item) sharp = sharp || json_object_get(item, "mtf50_per_mm");
	printf("%.0f x %.0f x %.0f voxels of %.3g x %.3g", component_of(object, "size", 0), component_of(object, "size", 1),
	       slices, component_of(object, "spacing_mm", 0), component_of(object, "spacing_mm", 1));
	if (isfinite(distance))
		printf(" x %.3g", distance);
	printf(" mm, %s\n", units[0] ? image_series_unit(units) : "no unit");
	summarise_regions(regions, "mass ", "masses");
	summarise_regions(regions, "calcification ", "calcifications");
	if (masses + calcified < json_array_size(regions))
		summarise_regions(regions, "", "regions");
	summarise_points(points);
	summarise_distances(json_object_get(result, "distances"), pairs);
	if (json_array_size(regions))
		printf("\n%-20s %9s %9s %9s %10s %10s %9s %9s %9s %11s%s\n", "region", "column", "row", "depth mm",
		       !strcmp(units, "/mm") ? "mean 1/mm" : "mean", "around", "contrast", "CNR", "CV", "depth FWHM",
		       known ? "  true mean  contrast" : "");
	json_array_foreach(regions, i, item)
	{
		if (json_object_get(item, "left_out"))
			printf("%-20s left out: %s\n", json_get_text(item, "name"), json_get_text(item, "left_out"));
		else
			printf("%-20s %9.1f %9.1f %9.2f %10.5f %10.5f %9.4f %9.2f %9.4f %8.2f mm", json_get_text(item, "name"),
			       component_of(item, "at", 0) + 1, component_of(item, "at", 1) + 1, component_of(item, "at", 2),
			       member_of(item, "mean"), member_of(item, "background"), member_of(item, "contrast"),
			       member_of(item, "cnr"), member_of(item, "cv"), member_of(item, "asf_fwhm_mm"));
		if (json_object_get(item, "true"))
			printf(" %10.5f %9.4f", member_of(item, "true"), member_of(item, "true_contrast"));
		if (!json_object_get(item, "left_out"))
			printf("\n");
	}
	if (json_array_size(points))
		printf("\n%-20s %9s %9s %9s %27s %9s %15s\n", "point", "column", "row", "depth mm", "FWHM mm (x, y, depth)",
		       "SNR", "MTF50 1/mm");
	json_array_foreach(points, i, item)
	{
		if (json_is_false(json_object_get(item, "found"))) {
			printf("%-20s not found\n", json_get_text(item, "name"));
			continue;
		}
		printf("%-20s %9.2f %9.2f %9.2f %9.3f %8.3f %8.3f %9.1f", json_get_text(item, "name"),
		       component_of(item, "at", 0) + 1, component_of(item, "at", 1) + 1, component_of(item, "at", 2),
		       component_of(item, "fwhm_mm", 0), component_of(item, "fwhm_mm", 1), component_of(item, "fwhm_mm", 2),
		       member_of(item, "snr"));
		for (size_t axis = 0; axis < 2 && json_object_get(item, "mtf50_per_mm"); axis++)
			print_cell(component_of(item, "mtf50_per_mm", axis), 7, 2);
		printf("\n");
	}
	print_tissues(json_object_get(result, "tissues"));
	print_skin(json_object_get(result, "skin"));
	if (pairs && json_array_size(json_object_get(result, "distances"))) {
		printf("\n");
		print_pairs(result);
	}
}

/* ---- PET and CT ---- */

static void summarise_nema(const json_t *nema)
{
	const json_t *list = json_object_get(nema, "spheres"), *lung = json_object_get(nema, "lung"), *item;
	size_t i;

	if (!json_is_object(nema))
		return;
	printf("contrast recovery:");
	json_array_foreach(list, i, item)
		printf("%s %s %.1f %%", i ? "," : "", json_get_text(item, "name"), member_of(item, "recovery_percent"));
	printf("\n");
	if (json_is_object(lung))
		printf("lung residual: %.1f %% (%.1f to %.1f in %zu slices)\n", member_of(lung, "residual_percent"),
		       member_of(lung, "min_percent"), member_of(lung, "max_percent"),
		       json_array_size(json_object_get(lung, "slices")));
}

static void summarise_uniform(const json_t *result, const char *unit)
{
	const json_t *item, *calibration;
	size_t i;

	json_array_foreach(json_object_get(result, "uniformity"), i, item)
	{
		if (json_object_get(item, "left_out")) {
			printf("uniformity of %s left out: %s\n", json_get_text(item, "name"), json_get_text(item, "left_out"));
			continue;
		}
		printf("uniformity of %s: middle %.4g %s, largest difference of a side %.4g", json_get_text(item, "name"),
		       member_of(item, "middle"), unit, member_of(item, "largest_difference"));
		if (json_is_number(json_object_get(item, "largest_difference_percent")))
			printf(" (%.2f %%)", member_of(item, "largest_difference_percent"));
		printf(", integral uniformity %.2f %%, CV %.2f %%\n", member_of(item, "integral_percent"),
		       member_of(item, "cv_percent"));
		if ((calibration = json_object_get(item, "calibration")))
			printf("calibration by %s: activity %.6g, mean %.6g Bq/ml: Dose Calibration Factor %.6g instead of %.6g, or %.6g times "
			       "ecat_counts\n",
			       json_get_text(item, "name"), member_of(calibration, "activity"), member_of(calibration, "mean"),
			       member_of(calibration, "factor"), member_of(calibration, "of_series"),
			       member_of(calibration, "ratio"));
	}
	json_array_foreach(json_object_get(result, "nps"), i, item)
	{
		if (json_object_get(item, "left_out"))
			printf("noise of %s left out: %s\n", json_get_text(item, "name"), json_get_text(item, "left_out"));
		else
			printf("noise of %s: %.4g %s, most at %.3f/mm, mean frequency %.3f/mm (%.0f squares of %.0f pixels)\n",
			       json_get_text(item, "name"), member_of(item, "sd"), unit, member_of(item, "peak_per_mm"),
			       member_of(item, "mean_per_mm"), member_of(item, "squares"), member_of(item, "side_pixels"));
	}
}

static void print_regions(const json_t *list, bool suv)
{
	const json_t *item;
	bool truth = false, other_unit = false;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	json_array_foreach(list, i, item)
	{
		truth = truth || json_is_number(json_object_get(item, "true"));
		other_unit = other_unit || json_is_null(json_object_get(item, "true"));
	}
	if (other_unit && !truth)
		printf("truth and bias are not shown: the result must be in HU (CT; protocol with mu_water) or Bq/ml (PET)\n");
	printf("\n%-20s %9s %11s %11s %11s %11s", "region", "ml", "mean", "sd", "min", "max");
	if (truth)
		printf(" %11s %11s", "truth", "bias");
	printf(suv ? " %9s %9s\n" : "\n", "SUV mean", "SUV max");
	json_array_foreach(list, i, item)
	{
		static const char *const keys[] = {"mean", "sd", "min", "max", "true", "bias"};

		if (json_object_get(item, "left_out")) {
			printf("%-20s left out: %s\n", json_get_text(item, "name"), json_get_text(item, "left_out"));
			continue;
		}
		printf("%-20s", json_get_text(item, "name"));
		print_figure(member_of(item, "volume_ml"), 9);
		for (size_t k = 0; k < (truth ? 6 : 4); k++)
			print_figure(member_of(item, keys[k]), 11);
		if (suv) {
			print_figure(member_of(item, "suv_mean"), 9);
			print_figure(member_of(item, "suv_max"), 9);
		}
		printf("\n");
	}
}

static void print_nema(const json_t *nema)
{
	const json_t *list = json_object_get(nema, "spheres"), *item;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	printf("\n%-20s %9s %11s %11s %11s %14s\n", "sphere", "true", "mean", "background", "recovery %", "variability %");
	json_array_foreach(list, i, item)
	{
		printf("%-20s", json_get_text(item, "name"));
		print_cell(member_of(item, "true_ratio"), 9, 2);
		print_figure(member_of(item, "mean"), 11);
		print_figure(member_of(item, "background"), 11);
		print_cell(member_of(item, "recovery_percent"), 11, 2);
		print_cell(member_of(item, "variability_percent"), 14, 2);
		printf("\n");
	}
}

void measure_print_series(const json_t *result)
{
	const json_t *object = json_object_get(result, "object"), *suv = json_object_get(result, "suv");
	const char *unit = image_series_unit(json_get_text(object, "units")),
		   *position = json_get_text(object, "patient_position");
	bool known = json_is_number(json_object_get(suv, "factor"));

	printf("%s series, %.0f x %.0f x %.0f voxels of %.4g x %.4g x %.4g mm, %s, patient %s%s\n",
	       json_get_text(object, "modality"), component_of(object, "size", 0), component_of(object, "size", 1),
	       component_of(object, "size", 2), component_of(object, "spacing_mm", 0), component_of(object, "spacing_mm", 1),
	       component_of(object, "spacing_mm", 2), unit[0] ? unit : "no unit",
	       position[0] ? position : "in an unknown position",
	       json_get_bool(object, "patient_position_assumed") ? " (assumed)" : "");
	if (known)
		printf("SUV by body weight = value x %.6g g/ml\n", member_of(suv, "factor"));
	else if (json_object_get(suv, "left_out"))
		printf("no SUV: %s\n", json_get_text(suv, "left_out"));
	summarise_nema(json_object_get(result, "nema"));
	summarise_uniform(result, unit);
	print_regions(json_object_get(result, "regions"), known);
	print_nema(json_object_get(result, "nema"));
}

/* ---- comma-separated values ---- */

/* Print a field; quoted if it has a character that separates. */
static void print_field(const char *value)
{
	if (!strpbrk(value, ",\"\n")) {
		printf("%s", value);
		return;
	}
	putchar('"');
	for (; *value; value++) {
		if (*value == '"')
			putchar('"');
		putchar(*value);
	}
	putchar('"');
}

/* Print a value and the values in it. */
static void print_value(const char *list, const char *name, const char *figure, const json_t *value)
{
	const json_t *item;
	char path[256];
	const char *key;
	size_t i;

	if (json_is_array(value)) {
		json_array_foreach(value, i, item)
		{
			snprintf(path, sizeof(path), "%s.%zu", figure, i);
			print_value(list, name, path, item);
		}
		return;
	}
	if (json_is_object(value)) {
		void *at;

		for (at = json_object_iter((json_t *)value); at; at = json_object_iter_next((json_t *)value, at)) {
			key = json_object_iter_key(at);
			item = json_object_iter_value(at);
			snprintf(path, sizeof(path), "%s%s%s", figure, figure[0] ? "." : "", key);
			if (strcmp(path, "name") != 0)
				print_value(list, name, path, item);
		}
		return;
	}
	print_field(list);
	putchar(',');
	print_field(name);
	putchar(',');
	print_field(figure);
	putchar(',');
	if (json_is_string(value))
		print_field(json_string_value(value));
	else if (json_is_integer(value))
		printf("%lld", (long long)json_integer_value(value));
	else if (json_is_real(value))
		printf("%.10g", json_real_value(value));
	else if (json_is_boolean(value))
		printf("%s", json_is_true(value) ? "true" : "false");
	putchar('\n');
}

void measure_print_csv(const json_t *result)
{
	void *at;

	printf("list,name,figure,value\n");
	for (at = json_object_iter((json_t *)result); at; at = json_object_iter_next((json_t *)result, at)) {
		const char *list = json_object_iter_key(at);
		const json_t *value = json_object_iter_value(at), *item;
		size_t i;

		if (json_is_array(value)) {
			json_array_foreach(value, i, item)
			{
				char name[160];

				if (json_object_get(item, "from"))
					snprintf(name, sizeof(name), "%s to %s", json_get_text(item, "from"),
						 json_get_text(item, "to"));
				else
					snprintf(name, sizeof(name), "%s", json_get_text(item, "name"));
				print_value(list, name, "", item);
			}
		} else if (json_is_object(value)) {
			print_value(list, "", "", value);
		} else if (strcmp(list, "ok") != 0) {
			print_value(list, "", "", value);
		}
	}
}
