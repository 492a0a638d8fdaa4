# SPDX-License-Identifier: Apache-2.0
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR revision STREQUAL "")
  set(revision "unknown")
endif()
# Date of the manual pages: that of the revision.
execute_process(COMMAND git -C ${SOURCE} log -1 --format=%cs OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT date)
  string(TIMESTAMP date "%Y-%m-%d" UTC) # of SOURCE_DATE_EPOCH, if that is set
endif()
set(text "#define TOMONODE_VERSION \"${VERSION}\"\n#define TOMONODE_REVISION \"${revision}\"\n#define TOMONODE_DATE \"${date}\"\n")
set(old "")
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUT} "${text}")
endif()
