/* What a person has to do about the spool itself: the same sentences for `tomonode list` and for the status page. Each answers
 * false, and leaves `ret` empty, where there is nothing to say. */
#ifndef TOMONODE_NODE_NOTES_H
#define TOMONODE_NODE_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOTE_SIZE 700

/* `images` lie in SPOOL/unknown (node/store/unknown.h). */
bool note_unknown(const char *spool, uint64_t images, char ret[NOTE_SIZE]);
/* `problem` is what the journal's check at the node's last start found; "" or NULL: nothing. */
bool note_journal(const char *problem, char ret[NOTE_SIZE]);

#endif
