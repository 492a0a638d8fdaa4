/* What a destination's answer means, and when to try again. Pure. */
#ifndef TOMONODE_NODE_DELIVER_H
#define TOMONODE_NODE_DELIVER_H

#include <stdbool.h>
#include <stdint.h>

enum deliver_outcome {
	DELIVER_STORED,	   /* success, or a warning with the object stored */
	DELIVER_TRANSIENT, /* may pass: try again */
	DELIVER_PERMANENT, /* will not pass by itself: dead letter */
};

/* A C-STORE response's status (PS3.4 table B.2-1, PS3.7 annex C); ret_meaning: a few words for people. */
enum deliver_outcome deliver_classify(uint16_t status, const char **ret_meaning);
/* An error of scu_open() or scu_store() (errno value): a peer that took no presentation context will not take
 * it tomorrow either. */
enum deliver_outcome deliver_classify_error(int code);

/* An error of scu_open() that lasts until somebody changes something there or here, but may be mended at any time: the AE title
 * is rejected, a certificate refused, TLS spoken on one side alone. It is tried on, and an alarm soon (alarm_rejections). */
bool deliver_is_lasting(int code);

#endif
