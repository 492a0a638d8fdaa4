/* SPDX-License-Identifier: Apache-2.0 */
/* The plural s after a number, "1 slice", "2 slices": printf("%d slice%s", n, plural(n)). */
#ifndef TOMONODE_NODE_PLURAL_H
#define TOMONODE_NODE_PLURAL_H

#define plural(n) ((n) == 1 ? "" : "s")

#endif
