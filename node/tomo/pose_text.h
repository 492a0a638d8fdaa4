/* SPDX-License-Identifier: Apache-2.0 */
/* Read the projection matrices that Hologic writes as text in the private attribute (0019,xx60). Without DICOM, which is in
 * node/tomo/exam_pose.c.
 *
 * Source: the header of a flat-field exposure of a Selenia Dimensions (ckswilliams/modOpenREM, MG-Im-Hologic-PropProj.dcm). One
 * file was seen, so whatever does not follow its form is refused. Lines end in CR LF or LF:
 * - a few lines of text, the last of which begins with "Fit";
 * - for j = 0 to 11: a line "view j theta value" for each view, then "j c1 c2 c3 c4 chisq". value is the element j of the view's
 *   matrix P, 3 x 4, row-major: (u, v, 1) w = P (X, Y, Z, 1), with lengths in mm; value = c1 + c2 theta + c3 theta^2 + c4 theta^3
 *   with the sum of squared errors chisq; theta is in degrees. */
#ifndef TOMONODE_NODE_POSE_TEXT_H
#define TOMONODE_NODE_POSE_TEXT_H

#include <stddef.h>

#include "kernels/err.h"

#define POSE_VIEWS_MAX 255
#define POSE_TEXT_MAX 262144 /* bytes */

struct pose_text {
	int n_views;
	double theta[POSE_VIEWS_MAX]; /* degrees, distinct; 0 is between the smallest and the largest */
	double fit[12][4];	      /* coefficients of the elements of P */
};

/* Read the text; it may end in blanks or bytes 0. EBADMSG: it has another form, or contradicts itself: thetas differ between
 * elements, the fit does not give the values with the stated error, or its matrices are not those of an X-ray system (third row
 * of length 1). The message names the line. */
int pose_text_read(const char *text, size_t size, struct pose_text *ret_pose, struct err *err);

/* Compute the matrix at an angle, degrees. */
void pose_text_matrix(const struct pose_text *pose, double theta, double ret_matrix[12]);

#endif
