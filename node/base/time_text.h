/* SPDX-License-Identifier: Apache-2.0 */
/* Times and durations for people. Each function returns ret_text. */
#ifndef TOMONODE_NODE_TIME_TEXT_H
#define TOMONODE_NODE_TIME_TEXT_H

#define TIME_TEXT_SIZE 32

/* Write `when` (s since the epoch) as local time, "2026-11-21 14:02:10"; `never` for 0. */
const char *time_text(double when, const char *never, char ret_text[TIME_TEXT_SIZE]);
/* Write a duration: "12 s", "4 min", "3.2 h", "5 days". */
const char *time_text_span(double seconds, char ret_text[TIME_TEXT_SIZE]);

#endif
