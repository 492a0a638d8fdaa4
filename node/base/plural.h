/* SPDX-License-Identifier: Apache-2.0 */
/* Return the plural ending for a number: printf("%d slice%s", n, plural(n)) prints "1 slice" or "2 slices". */
#ifndef TOMONODE_NODE_PLURAL_H
#define TOMONODE_NODE_PLURAL_H

#define plural(n) ((n) == 1 ? "" : "s")

#endif
